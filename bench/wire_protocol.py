"""The protocol on a connection under load: HTTP/1.1, parsed by llhttp.

Owns parsing bytes into complete answers, without waiting. Does not own sending. Other protocols, such as those of
the brokers in ``tests/bench/peers``, are other implementations of ``WireProtocol``.
"""

from __future__ import annotations

from typing import Protocol

import httptools

from trunkline.bench.errors import ProtocolViolation
from trunkline.bench.framing import BODY_BYTES_MAX, Response


class WireProtocol(Protocol):
    """The protocol state of one connection. ``greeting`` is sent first and gets ``greetings`` answers."""

    greeting: bytes
    greetings: int

    def encode(self, request: bytes) -> bytes:
        """The bytes to send for a request, for protocols whose requests depend on the connection."""

    def feed(self, data: bytes) -> list[Response]:
        """Return the answers that these bytes complete; raises ProtocolViolation."""


class HttpProtocol:
    """HTTP/1.1. Bodies are complete in memory; the head of an answer is kept only for a status from 400."""

    __slots__ = ("_answers", "_head", "_parser", "_parts", "_size", "greeting", "greetings")

    def __init__(self) -> None:
        self.greeting = b""
        self.greetings = 0
        self._answers: list[Response] = []
        self._head: list[bytes] = []
        self._parts: list[bytes] = []
        self._size = 0
        self._parser = httptools.HttpResponseParser(self)

    def encode(self, request: bytes) -> bytes:
        """Return the request unchanged."""
        return request

    def feed(self, data: bytes) -> list[Response]:
        """Return the answers that these bytes complete; raises ProtocolViolation."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            raise ProtocolViolation(f"The server's answer is not HTTP/1.1: {problem}.") from None
        answers, self._answers = self._answers, []
        return answers

    # Callbacks of llhttp.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head.append(b"%b: %b" % (name, value))

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > BODY_BYTES_MAX:
            raise ProtocolViolation(f"The server's answer has more than {BODY_BYTES_MAX} bytes.")

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:
            head = b"\r\n".join([b"HTTP/1.1 %d" % status, *self._head]) if status >= 400 else b""
            body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._answers.append(Response(status, head, body))
        self._head.clear()
        self._parts.clear()
        self._size = 0
