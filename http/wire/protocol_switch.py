"""The bytes that another protocol begins with, when it continues on a connection that began as HTTP/1.1.

Owns only these bytes. `stock.py` chooses the protocol and serves it. A module of its own, so that neither the
connection nor the stock protocols have to import each other.
"""

from __future__ import annotations

from typing import NamedTuple


class ProtocolSwitch(NamedTuple):
    """HTTP/2 or WebSocket continues with bytes that were received already."""

    first: bytes
    """The beginning of HTTP/2, or the head of the request for a WebSocket."""
    after_handshake: bytes | None
    """For a WebSocket: what came behind its handshake. None for HTTP/2, where `first` is all."""
