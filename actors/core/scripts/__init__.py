"""JavaScript of workflows, which runs in child processes.

Owns the processes, what they are sent and answer, whose turn it is, and what a script finds beside the language
itself. Does not own where a script comes from, nor which part of a payload it gets.
"""
