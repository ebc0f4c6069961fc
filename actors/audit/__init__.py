"""The audit log of an organization: the actor and the reads."""
