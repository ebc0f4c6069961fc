"""Application templates: the form of their files, the catalogue, its answers, and those that come with the server."""
