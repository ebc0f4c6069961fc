"""The small languages of workflows: payload paths, expressions, templates. Pure: no actors, no I/O, no clock."""
