"""What a user would pick instead, each started here and given the same work."""
