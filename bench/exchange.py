"""What the bytes on a line of calls mean: answers of HTTP/1.1, framed by llhttp.

Owns turning bytes into whole answers without waiting. Does not own sending. A protocol that is not HTTP
takes part in a load by another ``Framing``, as the brokers of ``peers`` do.
"""

from __future__ import annotations

from typing import Protocol

import httptools

from trunkline.bench.errors import ProtocolViolation
from trunkline.bench.framing import BODY_BYTES_MAX, Response


class Framing(Protocol):
    """One connection's way of telling answers apart. ``greeting`` is sent first and takes ``greetings`` answers."""

    greeting: bytes
    greetings: int

    def outgoing(self, request: bytes) -> bytes:
        """What is sent for a request: for protocols in which it names the connection."""

    def feed(self, data: bytes) -> list[Response]:
        """The answers that are whole with these bytes; raises ProtocolViolation."""


class HttpFraming:
    """Answers of HTTP/1.1. Their bodies are whole in memory; a status from 400 keeps its head."""

    __slots__ = ("_answers", "_head", "_parser", "_parts", "_size", "greeting", "greetings")

    def __init__(self) -> None:
        self.greeting = b""
        self.greetings = 0
        self._answers: list[Response] = []
        self._head: list[bytes] = []
        self._parts: list[bytes] = []
        self._size = 0
        self._parser = httptools.HttpResponseParser(self)

    def outgoing(self, request: bytes) -> bytes:
        """The request as it is."""
        return request

    def feed(self, data: bytes) -> list[Response]:
        """The answers that are whole with these bytes; raises ProtocolViolation."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            raise ProtocolViolation(f"The server's answer is not HTTP/1.1: {problem}.") from None
        answers, self._answers = self._answers, []
        return answers

    # What llhttp calls.

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
