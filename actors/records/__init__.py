"""Records of every kind: how they are stored, found, listed, owned, and what a plain resource is."""
