"""Routes of workflows and of their runs."""
