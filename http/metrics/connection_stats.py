"""The counters of connections, as the metrics read them from whatever engine serves."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from trunkline.http.wire.places import Places
from trunkline.http.wire.request_heads import RequestHeads


class ConnectionStats(Protocol):
    """The connection counters of the engine."""

    @property
    def connections(self) -> int:
        """Open connections."""

    @property
    def accepted(self) -> int:
        """Connections accepted since the start."""

    @property
    def refused(self) -> int:
        """Connections refused since the start because the server had as many as it allows."""

    @property
    def places(self) -> Places:
        """The places for connections."""

    @property
    def timed_out(self) -> int:
        """Connections closed since the start because the client was idle or slow for too long."""

    @property
    def heads(self) -> RequestHeads:
        """The cache of request heads."""


class NoConnectionStats(NamedTuple):
    """Zeros, for when no engine counts: in tests, and with Hypercorn's stock engine."""

    connections: int = 0
    accepted: int = 0
    refused: int = 0
    timed_out: int = 0
    places: Places = Places(0, by_address=False)
    heads: RequestHeads = RequestHeads(0)
