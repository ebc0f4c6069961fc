"""The vocabulary: one module of frozen structs for each noun of the domain."""
