"""The actor runtime: actors, mailboxes, turns, streams. Knows no kind of actor."""
