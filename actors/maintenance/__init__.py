"""What keeps a data directory in order: the sweep, retention, the check, its secrets, backups."""
