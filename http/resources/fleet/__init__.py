"""Routes of devices: records, states, commands, exports, deployments, recipes."""
