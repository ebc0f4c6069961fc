"""The small languages of workflows: payload paths, expressions, templates. Pure: no actors, no I/O.

The time is passed in; only where a caller passes none, a template reads the clock of the machine.
"""
