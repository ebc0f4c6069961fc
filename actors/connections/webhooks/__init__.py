"""Webhooks: their records, and the calls that other systems make to their addresses."""
