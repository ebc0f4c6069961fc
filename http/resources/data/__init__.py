"""Routes of data tables, events, topics and files."""
