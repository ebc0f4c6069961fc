"""The call pipeline: from a request to its response, by the route table."""
