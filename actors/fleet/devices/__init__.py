"""Devices: the actor, reads of records and history, lists, queries over states, exports."""
