"""The actor runtime: actors, mailboxes, turns, streams. Does not depend on any kind of actor."""
