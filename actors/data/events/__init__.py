"""Events: the actor, reads, updates, jobs that change many events, exports."""
