"""Organizations: the actor, members and their roles, invitations, messages and reads."""
