"""Workflows: definitions, versions, storage entries. Runs nothing."""
