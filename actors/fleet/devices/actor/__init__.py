"""The actor of a device, the only writer of its keys, in parts, and the feed of its states."""
