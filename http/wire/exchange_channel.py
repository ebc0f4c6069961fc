"""What the exchanges of one connection read and send through while the application is awaited for them.

Owns the parser, what is left of the time for a body, the bytes that come behind a request meanwhile, and the wait
for a client to leave. Does not own the transport, nor the phase of the connection (`http1.py`).

Why it is not part of the connection: the fast path needs none of it but the parser.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable

import trio

from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.request_heads import RequestHeads
from trunkline.http.wire.request_parser import Bounds, RequestParser
from trunkline.http.wire.transport import Transport

BACKLOG_BYTES_MAX = 65_536
"""Pipelined bytes that are received while the application is awaited."""
BODY_STEP_BYTES = 1 << 20
"""Each MiB of a body has the body time-out to itself."""
HALF_CLOSED_S = 1.0
"""How long a client that has closed its sending half may wait for a response that has not started."""


class ExchangeChannel:
    """Implements the `Connection` of an `Exchange`."""

    __slots__ = (
        "_body_left_bytes",
        "_body_left_s",
        "_body_timeout_s",
        "_disconnect_wait",
        "_transport",
        "backlog",
        "draining",
        "parser",
    )

    def __init__(
        self, transport: Transport, bounds: Bounds, request_heads: RequestHeads, *, draining: bool
    ) -> None:
        self.draining = draining
        self.parser = RequestParser(self, bounds, request_heads)
        self._transport = transport
        self._body_timeout_s = bounds.body_timeout_s
        self._body_left_bytes = 0
        self._body_left_s = 0.0
        self.backlog = b""
        """Bytes behind the current request that were received and are not parsed yet."""
        self._disconnect_wait: trio.CancelScope | None = None

    def close(self) -> None:
        """Drop the parser's references to this object, which would wait for the garbage collector otherwise."""
        self.parser.close()

    # For the connection.

    def has_read_ahead(self) -> bool:
        """Bytes behind the current request were received already."""
        parser = self.parser
        return not (
            parser.partial is None and parser.failure is None and not parser.requests and not self.backlog
        )

    def parse_backlog(self) -> None:
        """Parse what has come behind the last request."""
        backlog, self.backlog = self.backlog, b""
        self.parser.feed(backlog)

    def begin_body(self) -> None:
        """The body of another request is read next, with a time of its own."""
        self._body_left_bytes = 0

    # For exchanges.

    def send(self, data: bytes) -> Awaitable[None]:
        return self._transport.send(data)

    async def read_body(self, exchange: Exchange) -> bool:
        """Parse more of the body; False where no more of it will come.

        The deadline counts only while the client is waited for: an application may take its time.
        """
        parser, transport = self.parser, self._transport
        if parser.failure is not None:
            return False
        if self.backlog:  # of a body that began behind the request before
            self.parse_backlog()
            return exchange.complete or parser.failure is None
        if self._body_left_bytes <= 0:
            self._body_left_bytes = BODY_STEP_BYTES
            self._body_left_s = self._body_timeout_s
        deadline_s = transport.read_deadline_s = trio.current_time() + self._body_left_s
        try:
            data = await transport.receive()
        finally:
            transport.read_deadline_s = math.inf
        self._body_left_s = deadline_s - trio.current_time()
        self._body_left_bytes -= len(data)
        if not data:
            return False
        parser.feed(data)
        return exchange.complete or parser.failure is None

    async def wait_disconnected(self, exchange: Exchange) -> None:
        """Return when the client has left or the response is complete.

        A client that closes only its sending half looks the same as one that leaves, so it gets a moment for a
        response that has not started. Pipelined bytes are kept for later, up to a bound; if a client sends more,
        only the next send notices that it has left.
        """
        with trio.CancelScope() as scope:
            self._disconnect_wait = scope
            try:
                while len(self.backlog) < BACKLOG_BYTES_MAX:
                    data = await self._transport.receive()
                    if not data:
                        if not (self._transport.gone or exchange.started):
                            await trio.sleep(HALF_CLOSED_S)
                        return
                    self.backlog += data
                await trio.sleep_forever()
            finally:
                self._disconnect_wait = None

    def response_complete(self) -> None:
        if self._disconnect_wait is not None:
            self._disconnect_wait.cancel()
