"""Routes of credentials, integrations and webhooks."""
