"""Records of all kinds: storing, finding, listing, ownership, placement, and plain resources."""
