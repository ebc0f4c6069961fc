"""Requests that the server itself sends: mail and HTTP calls, with the check of their addresses."""
