"""Connections of bytes: what another protocol than HTTP is spoken on, at a listening socket of its own.

Owns the order of what is sent, the bound on what the client has not taken, the deadlines, and how a connection ends.
Does not own what the bytes mean: that is a `ByteSession`, as MQTT has one. A session does the same over WebSocket
(`byte_websocket.py`).

A session is called back and does not wait in a task, as that of a WebSocket (`websocket.py` says why). Reading goes on
while the client has not taken all that was sent: it may have to say something before it gets more. Only while half of
what may wait does so, nothing is read. A connection has a task only at its beginning and its end, as an idle one would
keep it in memory: 3 kB.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import structlog
import trio

from trunkline.http.wire.byte_session import ByteBounds, ByteSession
from trunkline.http.wire.faults import place_of
from trunkline.http.wire.places import LEAST_S, Place, Places
from trunkline.http.wire.socket_transport import WRITE_STEP_BYTES
from trunkline.http.wire.transport import ClientGone, Transport

CLIENT_CLOSED = "the client has closed the connection"
CLIENT_LOST = "the connection was lost"
CLIENT_SLOW = "the client does not take what is sent"
NOT_ESTABLISHED = "the client has not said in time who it is"
GAVE_WAY = "the connection gave its place to another before the client has said who it is"
SERVER_FAILED = "the server failed; the fault is logged"
SERVER_STOPPED = "the server has stopped"
_log = structlog.get_logger("trunkline.http")


class ByteConnection:
    """One open connection. The session sends and closes from callbacks; `run` does what has to wait."""

    __slots__ = (
        "_bounds",
        "_cut",
        "_end",
        "_missed",
        "_paused",
        "_place",
        "_places",
        "_scope",
        "_session",
        "_taken_bytes",
        "_transport",
        "_unsent",
        "_unsent_bytes",
    )

    def __init__(
        self, transport: Transport, session: ByteSession, bounds: ByteBounds, places: Places, place: Place
    ) -> None:
        """Open the session. The connection has its place among `places`, and does not leave it."""
        self._transport = transport
        self._session: ByteSession | None = session
        self._bounds = bounds
        self._places = places
        self._place = place
        self._unsent: list[bytes] = []
        """What follows the bytes that the transport has not sent yet."""
        self._unsent_bytes = 0
        self._taken_bytes = 0
        """What the client has taken since its time for that began."""
        self._end: tuple[float, str, bytes] | None = None
        self._paused = False
        self._missed = False
        """Something may have come while nothing was read."""
        self._cut = False
        """The connection ends without what was not sent."""
        self._scope: trio.CancelScope | None = None
        """Of the end of the task."""
        transport.read_deadline_s = trio.current_time() + bounds.established_s
        try:
            session.opened(self)
        except Exception as bug:  # noqa: BLE001 - the other connections never notice
            self._fail(bug)

    # For the session.

    @property
    def open(self) -> bool:
        return self._session is not None

    @property
    def has_room(self) -> bool:
        return not self._unsent and not self._transport.has_unsent

    @property
    def unsent_bytes(self) -> int:
        return self._unsent_bytes + self._transport.unsent_bytes

    def send(self, data: bytes) -> None:
        transport = self._transport
        if self._session is None or transport.gone:
            return
        if self._unsent or transport.has_unsent:
            self._unsent.append(data)
            self._unsent_bytes += len(data)
            if self._unsent_bytes > self._bounds.unsent_bytes_max:
                self._cut_off(CLIENT_SLOW)
            return
        try:
            if not transport.send_nowait(data):
                transport.watch_writable()
                self._give_time()
        except ClientGone:
            transport.wake()

    def close(self, reason: str = "") -> None:
        if self._session is not None:
            self._end_session(reason)
            self._transport.wake()

    def close_at(self, time_s: float, reason: str, last: bytes = b"") -> None:
        self._end = (time_s, reason, last)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        if self._missed:
            self._missed = False
            self._transport.mark_readable()
            self._transport.wake()

    def established(self) -> None:
        if self._session is not None:
            self._transport.read_deadline_s = math.inf
            self._places.exempt(self._place)

    # For the engine.

    async def run(self, awake: Callable[[], None]) -> bool:
        """Serve the connection until it is over, and return False; or until its callbacks serve it, and return True.

        Then `awake` is called once, when `run` is needed again.
        """
        transport = self._transport
        while self._session is not None:
            if transport.gone or transport.input_ended:
                self._end_session(CLIENT_LOST if transport.gone else CLIENT_CLOSED)
            elif transport.sleep(self._on_event, awake):
                return True
            else:
                await transport.read_again(self._on_event)
        if transport.gone:
            return False
        if self._cut:
            transport.send_last(b"")
            return False
        with trio.CancelScope() as self._scope:
            try:
                await transport.send(b"".join(self._unsent))
                self._drop_unsent()
                await transport.linger()
            except ClientGone:
                return False
        return False

    def wake(self) -> None:
        """Have `run` called again."""
        self._transport.wake()

    def over(self) -> None:
        """The connection has ended, however: its socket is to be closed."""
        self._end_session(SERVER_STOPPED)
        self._drop_unsent()
        self._scope = None
        self._transport.detach()

    def expire(self, now_s: float) -> bool:
        """End a connection at the time that its session has set, or whose client is over a deadline."""
        transport = self._transport
        if self._end is not None and now_s >= self._end[0]:
            _, reason, last = self._end
            if last:
                self.send(last)
            self.close(reason)
            return False
        if now_s < transport.read_deadline_s and now_s < transport.write_deadline_s:
            return False
        if self._session is not None:
            self._cut_off(CLIENT_SLOW if now_s >= transport.write_deadline_s else NOT_ESTABLISHED)
            return True
        if self._scope is None or self._scope.cancel_called:
            return False
        self._scope.cancel()
        return True

    def drain(self) -> None:
        if self._session is not None:
            try:
                self._session.drain()
            except Exception as bug:  # noqa: BLE001 - the other connections never notice
                self._fail(bug)

    def idle_until_s(self, now_s: float) -> float | None:
        """Whatever it sends: only who says who it is keeps its place. Its first second it has in any case."""
        until_s = self._transport.read_deadline_s
        return None if now_s < until_s - self._bounds.established_s + LEAST_S else until_s

    def give_way(self) -> None:
        self._cut_off(GAVE_WAY)

    # Events of the socket.

    def _on_event(self) -> bool:
        """Send what waits, receive and act. True where the task may keep sleeping."""
        session, transport = self._session, self._transport
        if session is None or transport.gone:
            return False
        try:
            if self._unsent or transport.has_unsent:
                if self._flush_nowait():
                    session.flushed()
                elif self.unsent_bytes > self._bounds.unsent_bytes_max // 2:
                    return not transport.gone
            if self._session is None:
                return False
            if self._paused:
                self._missed = True
                return not transport.gone
            data = transport.receive_nowait()
            if data == b"":
                return False
            if data is not None:
                session.received(data)
                if self._session is not None:
                    session.received_all()
        except Exception as bug:  # noqa: BLE001 - the other connections never notice
            self._fail(bug)
        return self._session is not None and not transport.gone

    def _flush_nowait(self) -> bool:
        """Send what can be sent at once. True where nothing is left, so that the session is to be told."""
        transport, before = self._transport, self.unsent_bytes
        try:
            if transport.flush_nowait() and self._unsent:
                data = b"".join(self._unsent)
                self._drop_unsent()
                transport.send_nowait(data)
        except ClientGone:
            return False
        if self.has_room:
            transport.write_deadline_s = math.inf
            return True
        self._taken_bytes += before - self.unsent_bytes
        if self._taken_bytes >= WRITE_STEP_BYTES:
            self._give_time()
        return False

    def _give_time(self) -> None:
        """From now on the client has its time to take something."""
        self._taken_bytes = 0
        self._transport.write_deadline_s = trio.current_time() + self._bounds.write_timeout_s

    # The end.

    def _fail(self, bug: Exception) -> None:
        _log.error("byte connection failed", fault=place_of(bug))
        self.close(SERVER_FAILED)

    def _cut_off(self, reason: str) -> None:
        """End the connection now: what was not sent would only wait."""
        self._drop_unsent()
        self._cut = True
        self._end_session(reason)
        if self._scope is None:
            self._transport.wake()
        else:
            self._scope.cancel()

    def _drop_unsent(self) -> None:
        self._unsent.clear()
        self._unsent_bytes = 0

    def _end_session(self, reason: str) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        self._end = None
        self._transport.read_deadline_s = math.inf
        try:
            session.closed(reason)
        except Exception as bug:  # noqa: BLE001 - the other connections never notice
            _log.error("byte connection failed", fault=place_of(bug))
