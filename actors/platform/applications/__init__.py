"""Applications: the actor, access keys, messages and reads."""
