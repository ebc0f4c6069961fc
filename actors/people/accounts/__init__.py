"""Users: the user actor, passwords, API tokens, and the devices that a device token can access."""
