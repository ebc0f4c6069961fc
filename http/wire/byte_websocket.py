"""A session of bytes over WebSocket, so that one protocol is spoken on a socket of its own and in browsers.

Owns that messages are binary and what their bounds mean for the session. Does not own the WebSocket (`websocket.py`),
nor what the bytes mean (`ByteSession`). Where messages begin and end means nothing to the session.
"""

from __future__ import annotations

import math

import trio

from trunkline.http.wire.byte_connection import CLIENT_CLOSED, CLIENT_LOST, NOT_ESTABLISHED
from trunkline.http.wire.byte_session import ByteSession
from trunkline.http.wire.websocket import ABNORMAL, IDLE, WebSocket

NORMAL = 1000
NOT_BINARY = 1003


class ByteWebSocket:
    """The session of a WebSocket that gives its bytes to a `ByteSession`, whose connection it is (`Bytes`)."""

    __slots__ = ("_end", "_established_by_s", "_session", "_socket")

    def __init__(self, session: ByteSession, established_s: float) -> None:
        """A client has `established_s` seconds to say who it is."""
        self._session = session
        self._established_by_s = trio.current_time() + established_s
        self._end: tuple[float, str, bytes] = (math.inf, "", b"")
        """When the session wants to end, with which reason, behind which bytes."""
        self._socket: WebSocket | None = None

    # For the session.

    @property
    def open(self) -> bool:
        return self._socket is not None and self._socket.open

    @property
    def has_room(self) -> bool:
        return self._socket is not None and self._socket.has_room

    @property
    def unsent_bytes(self) -> int:
        return 0 if self._socket is None else self._socket.unsent_bytes

    def send(self, data: bytes) -> None:
        if self._socket is not None:
            self._socket.send(data)

    def close(self, reason: str = "") -> None:
        if self._socket is not None:
            self._socket.close(NORMAL, reason)

    def close_at(self, time_s: float, reason: str, last: bytes = b"") -> None:
        self._end = (time_s, reason, last)
        self._set_end()

    def pause(self) -> None:
        if self._socket is not None:
            self._socket.pause()

    def resume(self) -> None:
        if self._socket is not None:
            self._socket.resume()

    def established(self) -> None:
        self._established_by_s = math.inf
        self._set_end()

    def _set_end(self) -> None:
        if self._socket is None:
            return
        time_s, reason, last = self._end
        if self._established_by_s < time_s:
            self._socket.close_at(self._established_by_s, IDLE, NOT_ESTABLISHED)
        else:
            self._socket.close_at(time_s, NORMAL, reason, last)

    # For the WebSocket.

    def opened(self, socket: WebSocket) -> None:
        self._socket = socket
        self._set_end()
        self._session.opened(self)

    def received(self, data: bytes, *, text: bool) -> None:
        assert self._socket is not None
        if text:
            self._socket.close(NOT_BINARY, "messages have to be binary")
        else:
            self._session.received(data)

    def received_all(self) -> None:
        self._session.received_all()

    def flushed(self) -> None:
        self._session.flushed()

    def drain(self) -> None:
        self._session.drain()

    def closed(self, code: int, reason: str) -> None:
        self._socket = None  # which would be kept in memory as long as the session
        self._session.closed(reason or (CLIENT_LOST if code == ABNORMAL else CLIENT_CLOSED))
