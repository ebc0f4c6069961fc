"""What is handed over when another protocol continues on a connection that was read as HTTP/1.1.

Owns only the bytes that were received before. Who continues with them says `stock.py`.
"""

from __future__ import annotations

from typing import NamedTuple


class ProtocolSwitch(NamedTuple):
    """HTTP/2 or WebSocket continues with bytes that were received already."""

    first: bytes
    """The beginning of HTTP/2, or the head of the request for a WebSocket."""
    after_handshake: bytes | None
    """For a WebSocket: what came behind its handshake. None for HTTP/2, where `first` is all."""
