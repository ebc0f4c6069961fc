"""Several processes of one server: one owns the data directory, the others are doors, which serve the clients."""
