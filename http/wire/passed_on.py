"""Connections that another process of the server has accepted and passes on, each on a Unix socket of its own.

Owns what such a connection begins with: who its client is, and what is spoken on it. Then its bytes follow in both
directions, without TLS, which is the other process's. Does not own how they are passed on (`processes/relays.py`).
"""

from __future__ import annotations

import socket
from typing import Final

import msgspec
import trio

from trunkline.http.wire.asgi import Address

_LENGTH_BYTES: Final = 4


class Passed(msgspec.Struct, array_like=True, frozen=True):
    """A connection that was passed on: its protocol, both ends of it, and what TLS has found out."""

    protocol: str
    client: Address = None
    server: Address = None
    tls: bool = False
    certificate: bytes | None = None
    """The certificate of the client in DER, which was verified; None if it sent none."""
    websocket: bool = False
    """Whether the client sends its bytes in messages of a WebSocket."""
    machine: str = ""
    """The name of the machine that has accepted it, if the server has several."""

    def encode(self) -> bytes:
        """What the connection begins with."""
        data = msgspec.msgpack.encode(self)
        return len(data).to_bytes(_LENGTH_BYTES, "big") + data


async def receive_passed(sock: socket.socket) -> Passed:
    """Read what a connection begins with, and nothing behind it. Raises OSError where the other process has left."""
    size = int.from_bytes(await _exactly(sock, _LENGTH_BYTES), "big")
    return msgspec.msgpack.decode(await _exactly(sock, size), type=Passed)


async def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        await trio.lowlevel.wait_readable(sock)
        try:
            piece = sock.recv(size - len(data))
        except BlockingIOError:
            continue
        if not piece:
            raise ConnectionResetError("the other process has closed the connection")
        data += piece
    return data
