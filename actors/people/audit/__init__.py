"""The audit log of organizations and of persons: the actor and the reads."""
