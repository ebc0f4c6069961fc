"""The engine: runs the definitions of workflows."""
