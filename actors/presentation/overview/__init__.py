"""The overview of an application, and its actors in memory."""
