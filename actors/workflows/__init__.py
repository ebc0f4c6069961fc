"""Workflows as they are defined, and what triggers them. Runs nothing: `engine` does."""
