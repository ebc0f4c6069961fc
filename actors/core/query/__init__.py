"""The advanced query: its grammar, its compiler and the bounds for indexes. Contains no code for one resource."""
