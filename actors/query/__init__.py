"""The advanced query: its grammar, its compiler and the bounds of indexes. Knows no resource."""
