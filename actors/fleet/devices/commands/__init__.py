"""Commands to a device: over its link, and those that wait for it."""
