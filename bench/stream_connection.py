"""An event stream under load: opened, read, and opened again if it ends, resuming after the last event.

Owns the connection and the framing of one stream. Does not own the meaning of events.
"""

from __future__ import annotations

from collections.abc import Callable

import httptools

from trunkline.bench.errors import ConnectionBroken, ProtocolViolation, WireError
from trunkline.bench.event_stream import Event, EventParser
from trunkline.bench.load_connection import LoadConnection
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.transport import Origin

REOPEN_PAUSE_S = 0.2
"""Seconds: before a stream that ended or was refused is opened again."""


class StreamConnection(LoadConnection):
    """One stream. ``on_open`` is called each time the server accepts it, ``on_event`` for each event."""

    __slots__ = (
        "_closed",
        "_events",
        "_parser",
        "last_id",
        "live",
        "on_break",
        "on_event",
        "on_open",
        "reopened",
        "request",
    )

    def __init__(
        self,
        reactor: Reactor,
        origin: Origin,
        request: bytes,
        *,
        on_event: Callable[[Event], None],
        on_open: Callable[[], None],
        on_break: Callable[[WireError], None] | None = None,
    ) -> None:
        super().__init__(reactor, origin)
        self.request = request
        self.on_event = on_event
        self.on_open = on_open
        self.on_break = on_break
        self.last_id = ""
        self.live = False
        self.reopened = 0
        self._closed = True

    def start(self) -> None:
        """Open the stream and keep it open."""
        self._closed = False
        self.open()

    def end(self) -> None:
        """Close the stream immediately."""
        self._closed = True
        self.live = False
        self.close()

    # Callbacks of the connection.

    def opened(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._events = EventParser()
        resume = b"last-event-id: %b\r\n" % self.last_id.encode() if self.last_id else b""
        head, _, _ = self.request.rpartition(b"\r\n")
        self.send(head + resume + b"\r\n")

    def received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            self.fail(ProtocolViolation(f"The server's stream is not HTTP/1.1: {problem}."))

    def broken(self, problem: WireError) -> None:
        self.live = False
        self.reopened += 1
        if self.on_break is not None:
            self.on_break(problem)
        self.reactor.call_at(clock() + REOPEN_PAUSE_S, self._reopen)

    # Callbacks of llhttp.

    def on_headers_complete(self) -> None:
        if self._parser.get_status_code() == 200:
            self.live = True
            self.on_open()

    def on_body(self, part: bytes) -> None:
        if self.live:
            for event in self._events.feed(part):
                self.last_id = event.id or self.last_id
                self.on_event(event)

    def on_message_complete(self) -> None:
        # The stream was refused or ended by the server. Closing waits, because the parser is still running here.
        self.reactor.call_at(clock(), self._ended)

    def _ended(self) -> None:
        if not self._closed and self.is_open:
            self.fail(ConnectionBroken("The server ended the stream.", maybe_done=False))

    def _reopen(self) -> None:
        if not self._closed:
            self.open()
