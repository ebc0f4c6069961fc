"""A small HTTP/1.1 keep-alive client for load generation.

Owns one connection: writing a request, reading its answer, time-outs and reconnecting. Does not own framing
(``framing``), JSON, tokens, retries or the meaning of a status.

httpx needs about a millisecond of CPU for a request, which is more than the server needs; a load generator that
used it would measure itself. So the head of an answer stays bytes until a header is read, and ``exchange`` takes
a request that is already encoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

import trio

from trunkline.bench.errors import ConnectionBroken, TimedOut
from trunkline.bench.framing import Body, Inbox, Response
from trunkline.bench.transport import Origin, Transport, open_transport

REQUEST_TIMEOUT_S = 30.0
"""Seconds: from the first byte sent to the last byte received."""

IDLE_PROBE_S = 0.5
"""Seconds: a connection that was idle for longer is checked before use, as the server may have closed it."""


class Connection:
    """One keep-alive connection; opens on first use and again after a failure; for one task at a time.

    Every failure raises a WireError and closes the connection, so that the next call opens a new one.
    """

    def __init__(
        self,
        origin: Origin,
        *,
        token: str | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
        transport: Transport | None = None,
    ) -> None:
        self.origin = origin
        self.token = token
        self.timeout_s = timeout_s
        self.connects = 0
        self._transport = transport
        self._inbox = None if transport is None else Inbox(transport)
        self._last_used_s = 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        if self._transport is not None:
            self._transport.abandon()
        self._transport = self._inbox = None

    def encode(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """The bytes of a request for ``exchange``; a body is JSON unless ``headers`` has another type."""
        if body is None:
            return self._head(method, path, headers or {}) + b"\r\n"
        return self.encode_head(method, path, headers) + b"%d\r\n\r\n" % len(body) + body

    def encode_head(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> bytes:
        """The head of a request with a body, up to the value of Content-Length, for sending it many times."""
        fields = {name.lower(): value for name, value in (headers or {}).items()}
        fields.setdefault("content-type", "application/json")
        return self._head(method, path, fields) + b"content-length: "

    def _head(self, method: str, path: str, headers: Mapping[str, str]) -> bytes:
        lines = [f"{method} {self.origin.prefix}{path} HTTP/1.1", f"host: {self.origin.authority}"]
        if self.token:
            lines.append(f"authorization: Bearer {self.token}")
        lines += (f"{name.lower()}: {value}" for name, value in headers.items())
        return "\r\n".join(lines).encode("latin-1") + b"\r\n"

    async def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send one request and return its answer, of whatever status. Raises TimedOut after ``timeout_s``."""
        with trio.move_on_after(self.timeout_s):
            return await self.exchange(self.encode(method, path, body, headers), bodiless=method == "HEAD")
        raise TimedOut(f"{method} {path} had no answer after {self.timeout_s:g} s.", maybe_done=True)

    async def exchange(self, raw: bytes, *, bodiless: bool = False) -> Response:
        """Send an encoded request and read its whole answer. No time-out: that is the caller's task."""
        head, body = await self.begin(raw, bodiless=bodiless)
        try:
            whole = await body.read_all()
        except BaseException as problem:
            self._fail(problem)
            raise
        self._last_used_s = trio.current_time()
        if body.closes:
            self.close()
        return Response(int(head[9:12]), head, whole)

    async def begin(self, raw: bytes, *, bodiless: bool = False) -> tuple[bytes, Body]:
        """Send an encoded request; return the final head of its answer and the body, still to be read."""
        inbox = await self.connect()
        assert self._transport is not None
        try:
            await self._transport.send_all(raw)
            head = await inbox.read_head()
            while head[9:10] == b"1":
                head = await inbox.read_head()
            return head, Body(inbox, head, bodiless=bodiless)
        except BaseException as problem:
            self._fail(problem)
            raise

    async def connect(self) -> Inbox:
        """Open the connection if it is not open or the server has closed it; raises ConnectFailed."""
        if self._transport is not None and self._inbox is not None:
            idle = trio.current_time() - self._last_used_s > IDLE_PROBE_S
            if not self._inbox.buffered and not (idle and self._transport.is_stale()):
                return self._inbox
            self.close()
        self._transport = await open_transport(self.origin)
        self._inbox = Inbox(self._transport)
        self._last_used_s = trio.current_time()
        self.connects += 1
        return self._inbox

    def _fail(self, problem: BaseException) -> None:
        """Close after any failure or cancellation: bytes left on the stream would belong to no request."""
        self.close()
        if isinstance(problem, (OSError, trio.BrokenResourceError, trio.ClosedResourceError)):
            reason = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
            raise ConnectionBroken(f"The connection broke: {reason}.", maybe_done=True) from problem
