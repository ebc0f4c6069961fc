"""Events: the actor, reads, updates, changes of many, exports."""
