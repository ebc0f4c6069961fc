"""Deployments: which version of a workflow edge and embedded devices are to run. Nothing carries it to a device yet."""
