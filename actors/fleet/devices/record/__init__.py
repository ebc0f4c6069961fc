"""What a device is: its record, its attributes, and messages about it."""
