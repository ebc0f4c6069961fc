"""WebSocket connections: the handshake, and what follows on the connection.

Owns the opening and closing handshakes, pings, the order of what is sent, and the bound on what the client has not
taken. Does not own the syntax of frames (`websocket_frames.py`), nor what messages mean: that is a `Session`.

Why a session is called back and does not wait in a task: a server has many idle links, each of which would keep the
frames of its coroutines in memory, and a busy one would wake its task for each message.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import structlog
import trio

from trunkline.http.wire.byte_session import GoesOn
from trunkline.http.wire.faults import place_of
from trunkline.http.wire.headers import Headers
from trunkline.http.wire.transport import ClientGone, Transport
from trunkline.http.wire.websocket_frames import (
    BINARY,
    CLOSE,
    FAILED,
    GOING_AWAY,
    PING,
    PONG,
    TEXT,
    Broken,
    FrameReader,
    accept_of,
    close_payload,
    frame,
    is_key,
    read_close,
)

ABNORMAL = 1006
"""The code that a session is told where the client has left without one."""
IDLE = 4408
"""The code for a client that was silent for too long."""
SLOW = 4409
"""The code that a session is told where the client does not take what is sent; the client sees no close frame."""
_log = structlog.get_logger("trunkline.http")
CLOSING_S = 5.0
"""How long the client may take to answer a close frame."""


class Session(Protocol):
    """What an application does with an open WebSocket. Its methods must not wait.

    One that raises is logged and ends its connection.
    """

    def opened(self, socket: WebSocket) -> None:
        """The connection is open: messages may be sent."""
        ...

    def received(self, data: bytes, *, text: bool) -> None:
        """A message of the client; of a text, its UTF-8."""
        ...

    def received_all(self) -> None:
        """All messages of one read were given: what was gathered can be done at once."""
        ...

    def flushed(self) -> None:
        """The client has taken what had to wait (`WebSocket.has_room`)."""
        ...

    def drain(self) -> None:
        """The server is stopping: close the connection soon."""
        ...

    def closed(self, code: int, reason: str) -> None:
        """The connection is over. Called exactly once, and nothing else after it.

        Only this is called where the client has left before it was told that its offer is accepted.
        """
        ...


class SocketBounds(NamedTuple):
    """The bounds of one WebSocket."""

    message_bytes_max: int
    unsent_bytes_max: int
    """A client that has not taken this much is closed."""
    ping_interval_s: float
    """A client that is silent for so long is pinged."""
    pong_timeout_s: float
    """A client that does not say anything for so long after a ping is closed."""


class Accepted(NamedTuple):
    session: Session
    protocol: str | None
    bounds: SocketBounds

    async def announce(self, transport: Transport, response: bytes) -> None:
        """Tell the client that its offer is accepted, or the session that the client has left before that."""
        try:
            await transport.send(response)
        except BaseException:
            self.session.closed(ABNORMAL, "")
            raise


class Offer:
    """A client's request to go on with WebSocket, which the application accepts or answers as any other request."""

    __slots__ = ("_key", "accepted", "pass_on", "problem", "protocols")

    def __init__(self, headers: Headers) -> None:
        found = {name: value for name, value in headers if name.startswith(b"sec-websocket-")}
        listed = b",".join(value for name, value in headers if name == b"sec-websocket-protocol")
        self.protocols = tuple(filter(None, (each.strip() for each in listed.decode("latin1").split(","))))
        """The names of the protocols that the client speaks, the preferred one first."""
        self._key = found.get(b"sec-websocket-key", b"").strip()
        self.problem: str | None = None
        """Why the handshake cannot be accepted."""
        if found.get(b"sec-websocket-version", b"").strip() != b"13":
            self.problem = "Sec-WebSocket-Version: this server speaks version 13."
        elif not is_key(self._key):
            self.problem = "Sec-WebSocket-Key: 16 bytes in base 64 are needed."
        self.accepted: Accepted | None = None
        self.pass_on: Callable[[bytes], GoesOn] | None = None
        """Set by an application that has another process answer the request, on the rest of the connection. It is
        called with what has come behind the head, when the application has returned."""

    def accept(self, session: Session, protocol: str | None, bounds: SocketBounds) -> None:
        """Go on with `session`, when the application has returned. `protocol` is one of `protocols`, or None."""
        assert self.problem is None
        assert protocol is None or protocol in self.protocols
        self.accepted = Accepted(session, protocol, bounds)

    def response_fields(self) -> Headers:
        """The fields of the response that are those of the handshake."""
        assert self.accepted is not None
        fields = [
            (b"upgrade", b"websocket"),
            (b"sec-websocket-accept", accept_of(self._key)),
        ]
        if self.accepted.protocol is not None:
            fields.append((b"sec-websocket-protocol", self.accepted.protocol.encode("latin1")))
        return fields


class WebSocket:
    """One open connection. `run` is its task; the session sends and closes from callbacks."""

    __slots__ = (
        "_bounds",
        "_close_sent",
        "_end",
        "_paused",
        "_pinged",
        "_reader",
        "_scope",
        "_session",
        "_transport",
        "_unsent",
        "_unsent_bytes",
    )

    def __init__(
        self, transport: Transport, accepted: Accepted, first: bytes, *, draining: bool = False
    ) -> None:
        """Open the session. `first` is what came behind the request."""
        self._transport = transport
        self._session: Session | None = accepted.session
        self._bounds = accepted.bounds
        self._reader: FrameReader | None = FrameReader(accepted.bounds.message_bytes_max)
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._close_sent = False
        self._end: tuple[float, int, str, bytes] | None = None
        """When the session wants to end, with which code and reason, behind which message."""
        self._paused = False
        self._pinged = False
        self._scope: trio.CancelScope | None = None
        self._heard()
        self._call(accepted.session.opened, self)
        if first:
            self._feed(first)
        if draining:
            self.drain()

    # For the session.

    @property
    def open(self) -> bool:
        """Whether messages can still be sent."""
        return self._session is not None

    @property
    def has_room(self) -> bool:
        """Whether the client has taken all that was sent before, so that nothing waits here."""
        return not self._unsent and not self._transport.has_unsent

    @property
    def unsent_bytes(self) -> int:
        """What waits here because the client has not taken it."""
        return self._unsent_bytes + self._transport.unsent_bytes

    def send(self, payload: bytes, *, text: bool = False) -> None:
        """Send a message after those before it. Never waits; nothing is sent once the connection is over."""
        if self._session is not None:
            self._send(frame(TEXT if text else BINARY, payload))

    def close(self, code: int, reason: str) -> None:
        """Close the connection behind what is to be sent. The session is told at once."""
        if self._session is None:
            return
        self._send(frame(CLOSE, close_payload(code, reason)))
        self._close_sent = True
        self._end_session(code, reason)
        self._transport.read_deadline_s = trio.current_time() + CLOSING_S

    def close_at(self, time_s: float, code: int, reason: str, last: bytes = b"") -> None:
        """Close the connection at a time of Trio's clock, or up to half a second later; replaces an earlier call.

        `last` is a message that is sent before, if it is not empty.
        """
        self._end = (time_s, code, reason, last)

    def pause(self) -> None:
        """Read nothing from now on, until `resume`: what was received has to be worked off first."""
        self._paused = True

    def resume(self) -> None:
        """Read again."""
        if self._paused:
            self._paused = False
            self._transport.mark_readable()
            self._transport.wake()

    # For the engine.

    async def run(self) -> None:
        """Serve the connection until it is over."""
        transport = self._transport
        with trio.CancelScope() as self._scope:
            try:
                while self._reader is not None and not transport.input_ended:
                    if not self.has_room:
                        await self._flush()
                    else:
                        await transport.wait(self._on_readable)
                if not self.has_room:
                    await self._flush()
                if not transport.gone:
                    await transport.linger()
            except ClientGone:
                return
        if not self._close_sent and not transport.has_unsent:
            transport.send_last(frame(CLOSE, close_payload(GOING_AWAY, "")))

    def over(self) -> None:
        """The task has ended, however."""
        self._end_session(ABNORMAL, "")
        self._unsent.clear()
        self._scope = None

    def expire(self, now_s: float) -> bool:
        """Ping a client that is silent, and end one that has not answered or does not take what is sent."""
        transport = self._transport
        if self._end is not None and now_s >= self._end[0] and self._session is not None:
            _, code, reason, last = self._end
            if last:
                self.send(last)
            self.close(code, reason)
            return False
        if now_s < transport.read_deadline_s and now_s < transport.write_deadline_s:
            return False
        if self._scope is None or self._scope.cancel_called:
            return False
        if now_s >= transport.write_deadline_s:
            self._give_up()
        elif self._session is not None:
            if not self._pinged:
                self._pinged = True
                transport.read_deadline_s = now_s + self._bounds.pong_timeout_s
                self._send(frame(PING, b""))
                return False
            self.close(IDLE, "nothing came for too long, not even an answer to a ping")
        self._scope.cancel()
        return True

    def drain(self) -> None:
        if self._session is not None:
            self._call(self._session.drain)

    # Receiving.

    def _heard(self) -> None:
        self._pinged = False
        if self._session is not None:
            self._transport.read_deadline_s = trio.current_time() + self._bounds.ping_interval_s

    def _on_readable(self) -> bool:
        """Receive and act. True where the task may keep sleeping."""
        if self._paused:
            return True
        data = self._transport.receive_nowait()
        if data is None:
            return self.has_room  # a part of what was sent may be left since the task began to wait
        if not data:
            return False
        self._heard()
        self._feed(data)
        return self._reader is not None and self.has_room

    def _feed(self, data: bytes) -> None:
        reader = self._reader
        if reader is None:
            return
        broken = None
        try:
            messages = reader.feed(data)
        except Broken as caught:
            broken, messages = caught, caught.args[1]
        try:
            for opcode, payload in messages:
                session = self._session
                if opcode < CLOSE:
                    if session is not None:
                        session.received(payload, text=opcode == TEXT)
                elif not self._control(opcode, payload):
                    return
            if self._session is not None:
                self._session.received_all()
        except Exception as bug:  # noqa: BLE001 - the other connections never notice
            self._fail(bug)
        if broken is not None:
            self.close(broken.code, broken.message)
            self._reader = None

    def _control(self, opcode: int, payload: bytes) -> bool:
        """Act on a control frame. False where it was the last frame."""
        if opcode == PING and self._session is not None:
            self._send(frame(PONG, payload))
        if opcode != CLOSE:
            return True
        self._reader = None
        try:
            code, reason = read_close(payload)
        except Broken as broken:
            self.close(broken.code, broken.message)
            return False
        if not self._close_sent:
            self._send(frame(CLOSE, close_payload(code, "") if payload else b""))
            self._close_sent = True
        if self._session is not None:
            self._session.received_all()
        self._end_session(code, reason)
        return False

    # Sending.

    def _send(self, data: bytes) -> None:
        transport = self._transport
        if transport.gone or self._close_sent:
            return
        if not self.has_room:
            self._unsent.append(data)
            self._unsent_bytes += len(data)
            if self._unsent_bytes > self._bounds.unsent_bytes_max:
                self._give_up()
            return
        try:
            if not transport.send_nowait(data):
                transport.wake()
        except ClientGone:
            transport.wake()

    def _give_up(self) -> None:
        """The client does not take what is sent: a close frame would only wait behind it."""
        self._unsent.clear()
        self._unsent_bytes = 0
        self._close_sent = True
        self._end_session(SLOW, "the client does not take what is sent")
        if self._scope is not None:
            self._scope.cancel()

    async def _flush(self) -> None:
        await self._transport.flush()
        if self._unsent:
            data = b"".join(self._unsent)
            self._unsent.clear()
            self._unsent_bytes = 0
            await self._transport.send(data)
        if self._session is not None and self.has_room:
            self._call(self._session.flushed)

    def _end_session(self, code: int, reason: str) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._transport.read_deadline_s = math.inf
            self._call(session.closed, code, reason)

    def _call(self, callback: Callable[..., None], *arguments: object) -> None:
        try:
            callback(*arguments)
        except Exception as bug:  # noqa: BLE001 - the other connections never notice
            self._fail(bug)

    def _fail(self, bug: Exception) -> None:
        _log.error("websocket failed", fault=place_of(bug))
        self.close(FAILED, "the server failed; the fault is logged")
