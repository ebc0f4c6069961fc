"""What an engine counts of its connections, for the metrics."""

from __future__ import annotations

import msgspec


class ConnectionCounts(msgspec.Struct, array_like=True):
    """The counters of one engine, or of several together; since its start where nothing else is said."""

    connections: int = 0
    """Open now, those in a handshake among them."""
    accepted: int = 0
    refused: int = 0
    """Because there were as many as are allowed."""
    displaced: int = 0
    """Closed while they were idle, for a new one."""
    timed_out: int = 0
    """Closed because the client was idle or slow for too long."""
    heads_known: int = 0
    """Request heads that are looked up when they come again, now."""
    heads_found: int = 0
    doors: int = 0
    """The engines of other processes among them, now; 0 where there is only one process."""
    doors_cpu_s: float = 0.0
    """The processor time of those processes."""

    def add(self, other: ConnectionCounts, *, past: bool = False) -> None:
        """Add those of another engine; with `past` of one that has ended, of which nothing is open."""
        for name in self.__struct_fields__:
            if not past or name not in ("connections", "heads_known", "doors"):
                setattr(self, name, getattr(self, name) + getattr(other, name))
