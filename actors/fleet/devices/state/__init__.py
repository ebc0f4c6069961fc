"""What a device reported: its current state, its history, its columns, how long it is kept."""
