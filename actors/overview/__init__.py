"""The overview of an application."""
