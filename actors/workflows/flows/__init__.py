"""Workflows: definitions, versions, storage entries, and what is kept of their runs. Runs nothing."""
