"""Plain resources, one file each: fields, checks and what is shown."""
