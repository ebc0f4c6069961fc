"""Plain resources, one file for each: fields, checks and answers."""
