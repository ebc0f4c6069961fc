"""Calls: from a request to its answer by the route table."""
