"""Other systems: webhooks, integrations, and the credentials for them."""
