"""Credentials: records of what other systems ask for, sealed."""
