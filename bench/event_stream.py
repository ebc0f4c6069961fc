"""Server-sent events: a parser without I/O, and a reader over one connection.

Owns the event framing (the ``event``, ``id`` and ``data`` fields, comments, all three line ends) and the time-out
of a stream on which nothing arrives. Does not own reconnecting: the caller knows where to resume.

The format is the HTML standard's, section 9.2.6 ("Interpreting an event stream").
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio

from trunkline.bench.client import Connection
from trunkline.bench.errors import ConnectionBroken, ProtocolViolation, TimedOut
from trunkline.bench.framing import Body, Response
from trunkline.bench.session import refusal
from trunkline.bench.transport import Origin

EVENT_BYTES_MAX = 1024 * 1024
"""Bytes: one event with all its lines; the largest body of the server is 1 MiB."""

QUIET_TIMEOUT_S = 30.0
"""Seconds: keep-alive comments come every 2 s, so after 15 missing ones the peer is considered dead."""


class Event(NamedTuple):
    """One event: its name (``message`` if the server names none), the last id received, and its data."""

    event: str
    id: str
    data: str


class EventParser:
    """Parses bytes into events; the result does not depend on how the bytes are split."""

    def __init__(self) -> None:
        self.comments = 0
        self.last_id = ""
        self._pending = bytearray()
        self._event = ""
        self._data: list[str] = []
        self._size = 0
        self._at_start = True
        self._skip_newline = False

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that these bytes complete."""
        events: list[Event] = []
        self._pending += data
        for line in self._lines():
            self._size += len(line)
            if self._size > EVENT_BYTES_MAX:
                raise ProtocolViolation(f"An event has more than {EVENT_BYTES_MAX} bytes.")
            if (event := self._take(line)) is not None:
                events.append(event)
        return events

    def _lines(self) -> list[bytes]:
        pending = self._pending
        if self._skip_newline and pending:
            # The last line ended with a carriage return; a line feed right after it is part of that line end.
            if pending[:1] == b"\n":
                del pending[:1]
            self._skip_newline = False
        if not pending:
            return []
        self._skip_newline = pending.endswith(b"\r")
        unified = bytes(pending).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = unified.split(b"\n")
        if len(rest) > EVENT_BYTES_MAX:
            raise ProtocolViolation(f"A line of an event has more than {EVENT_BYTES_MAX} bytes.")
        self._pending = bytearray(rest)
        return lines

    def _take(self, line: bytes) -> Event | None:
        if self._at_start:
            line = line.removeprefix(b"\xef\xbb\xbf")
            self._at_start = False
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            self.comments += 1
            self._size -= len(line)
            return None
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self.last_id = value
        return None

    def _dispatch(self) -> Event | None:
        event = Event(self._event or "message", self.last_id, "\n".join(self._data)) if self._data else None
        self._event = ""
        self._data.clear()
        self._size = 0
        return event


class EventStream:
    """An async iterator over the events of one open stream; it ends when the server ends the stream.

    Raises ConnectionBroken if the connection breaks, and TimedOut if nothing, not even a keep-alive, came for
    ``quiet_timeout_s``.
    """

    def __init__(self, body: Body, *, quiet_timeout_s: float = QUIET_TIMEOUT_S) -> None:
        self._body = body
        self._parser = EventParser()
        self._ready: deque[Event] = deque()
        self._quiet_timeout_s = quiet_timeout_s

    @property
    def keep_alives(self) -> int:
        """The number of comments received so far."""
        return self._parser.comments

    @property
    def last_id(self) -> str:
        """The id to resume from, or an empty string."""
        return self._parser.last_id

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            data = b""
            with trio.move_on_after(self._quiet_timeout_s) as scope:
                try:
                    data = await self._body.read_some()
                except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as problem:
                    raise ConnectionBroken(
                        f"The event stream broke: {problem}.", maybe_done=False
                    ) from problem
            if scope.cancelled_caught:
                raise TimedOut(
                    f"The event stream was silent for {self._quiet_timeout_s:g} s.", maybe_done=False
                )
            if not data:
                raise StopAsyncIteration
            self._ready.extend(self._parser.feed(data))
        return self._ready.popleft()


@asynccontextmanager
async def open_events(
    url: str,
    path: str,
    token: str | None,
    *,
    last_id: str = "",
    quiet_timeout_s: float = QUIET_TIMEOUT_S,
) -> AsyncIterator[EventStream]:
    """Open an event stream on a connection of its own; raises ApiError if the server refuses it."""
    headers = {"accept": "text/event-stream", "cache-control": "no-store"}
    if last_id:
        headers["last-event-id"] = last_id
    async with Connection(Origin.parse(url), token=token) as connection:
        body: Body | None = None
        with trio.move_on_after(connection.timeout_s):
            head, body = await connection.begin(connection.encode("GET", path, headers=headers))
            if head[9:12] != b"200":
                raise refusal(Response(int(head[9:12]), head, await body.read_all()))
        if body is None:
            raise TimedOut(f"{path} did not open in {connection.timeout_s:g} s.", maybe_done=False)
        yield EventStream(body, quiet_timeout_s=quiet_timeout_s)
