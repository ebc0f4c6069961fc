"""Pages for people and programs that operate the server: the API document, metrics."""
