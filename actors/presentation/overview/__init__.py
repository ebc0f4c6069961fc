"""The overview and the health of an application, and its actors in memory."""
