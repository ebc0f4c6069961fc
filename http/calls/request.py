"""Requests and responses in plain values, the same for every way in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Headers = list[tuple[bytes, bytes]]


class Request:
    """A request in plain values. Header names are lower case; of a field given twice the last one counts."""

    __slots__ = ("address", "body", "headers", "method", "path", "query")

    def __init__(
        self, method: str, path: str, query: bytes, headers: Mapping[bytes, bytes], body: bytes, address: str
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.address = address

    def header(self, name: bytes) -> str | None:
        """The value of a field as text, None where it was not sent."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin1")


def address_of(client: tuple[Any, ...] | None, headers: Mapping[bytes, bytes], *, trusted: bool) -> str:
    """Where a request comes from: its connection, or what a `trusted` proxy says in X-Forwarded-For."""
    if trusted and headers.get(b"x-forwarded-for"):
        # The last entry is the one that the proxy added; those before it are the client's own words.
        return headers[b"x-forwarded-for"].rpartition(b",")[2].decode("latin1").strip()
    return str(client[0]) if client else ""


class Stream(Protocol):
    """A body that is sent piece by piece. The door calls `close` when the client or the stream is gone."""

    async def next(self) -> bytes | None:
        """The next piece; None at the end."""
        ...

    def close(self) -> None:
        """Give everything back. Idempotent, never waits."""
        ...


class Response:
    """Status, headers, and either a whole body or a stream."""

    __slots__ = ("body", "headers", "status", "stream")

    def __init__(
        self, status: int, headers: Headers, body: bytes = b"", stream: Stream | None = None
    ) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.stream = stream

    @property
    def parts(self) -> tuple[int, Headers, bytes]:
        """Status, headers and body of what is no stream."""
        return self.status, self.headers, self.body
