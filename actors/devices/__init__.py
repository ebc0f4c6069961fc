"""Devices: the actor, what devices reported and were told, lists, queries over data, exports."""
