"""Users: the account actor, passwords, API tokens and what a device token reaches."""
