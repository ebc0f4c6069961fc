"""Routes of applications as a whole, of their jobs, and of the server."""
