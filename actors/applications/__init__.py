"""Applications: the actor, its access keys, its reads and counts."""
