"""The domain: messages, actors, and the runtime that runs them.

Owns what a device, an application and an account are and may do. Knows no HTTP: it raises the errors
of `trunkline.actors.core.values.errors` and the edge gives them status codes.
"""
