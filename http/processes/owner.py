"""The owner's side of doors: their requests are answered as those of a connection of its own.

Owns the calls that are under way on each channel, and what doors count. Does not own what a request means: whole
requests are offered to the fast path first, as `http1.py` does, and all others are answered by the ASGI application.
A door is told at once that its request was declined by the fast path, and sends it again as a call.

A call reads its body, and sends a long answer, part by part: the next one follows when the other end has taken the one
before. So a slow client, or a call that reads slowly, holds no more than a part in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import structlog
import trio

from trunkline.actors.core.values.store_errors import Outdated, StoreError
from trunkline.http.processes.batches import Head, Kind, Message, Note, NotedWork
from trunkline.http.processes.channel import BOUNDS, OWNERS_PROTOCOL, PROTOCOL, Channel, Flushes
from trunkline.http.wire.asgi import (
    CLIENT_CERTIFICATE,
    Application,
    log_crash,
    log_unanswered,
    run_application,
)
from trunkline.http.wire.byte_session import ByteProtocol, Peer
from trunkline.http.wire.connection_counts import ConnectionCounts
from trunkline.http.wire.headers import Fields, Headers
from trunkline.http.wire.passed_on import Passed
from trunkline.http.wire.request_context import (
    Work,
    beginning,
    current_request,
    given_id_line,
    id_of_line,
    new_id_lines,
)
from trunkline.http.wire.request_heads import KnownHead
from trunkline.http.wire.transport import ClientGone
from trunkline.http.wire.websocket import Offer

if TYPE_CHECKING:
    from trunkline.http.calls.fast_path import FastPath

FOLLOW_S: Final = 1.0
"""How often it is looked whether the certificates of domains have changed."""
WHOLE_BYTES_MAX: Final = 65_536
"""Longer bodies of answers are sent in parts."""

_log = structlog.get_logger("trunkline.processes")


class PassedRequest:
    """A request that a door has passed on, as the fast path and the ASGI application see one (`Exchange`)."""

    offer: Offer | None = None
    version = "1.1"
    expects = False
    """Whether its client waits for a word before it sends the body: it was given one, if its body is wanted."""
    known: KnownHead | None = None
    work: Work | None = None
    id = b""

    def __init__(self, method: str, target: bytes, headers: Headers, body: bytes) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body

    @classmethod
    def of(cls, known: KnownHead, body: bytes) -> PassedRequest:
        """A request with a head that came before."""
        request = cls(known.method, known.target, known.headers, body)
        request.known = known
        return request

    @property
    def path(self) -> str:
        return self.target.partition(b"?")[0].decode("ascii")

    @property
    def request_id(self) -> bytes:
        if not self.id:
            self.id = id_of_line(given_id_line(self.headers) or next(new_id_lines))
        return self.id

    def whole_body(self) -> bytes:
        return self.body

    def take_id(self, id: bytes) -> None:
        """Have the id that it has where it was passed on, unless it has one already."""
        self.id = self.id or id


class PassedCall(PassedRequest):
    """A request that the ASGI application answers: its body comes, and its answer goes, in parts."""

    def __init__(self, channel: DoorChannel, number: int, head: Head, body: bytes, *, more: bool) -> None:
        super().__init__(head.method, head.target, head.headers, body)
        self.version = head.version
        self.id = head.request_id
        self.gone = False
        self.started = False
        self.finished = False
        self._channel = channel
        self._number = number
        self._parts: deque[tuple[bytes, bool]] = deque()
        if body or not more:
            self._parts.append((body, more))
        self._ended = False
        self._start: tuple[int, Fields] = (0, ())
        self._changed = trio.Event()
        self._is_sending = False

    def wake(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def take(self, body: bytes, *, more: bool) -> None:
        """The next part of the body has come."""
        self._parts.append((body, more))
        self.wake()

    def taken(self) -> None:
        """The client has taken what was sent."""
        self._is_sending = False
        self.wake()

    def leave(self) -> None:
        """The client has left."""
        self.gone = True
        self.wake()

    async def receive(self) -> dict[str, Any]:
        """The next part of the body; after its end, wait for the end of the exchange."""
        if not self._parts and not self._ended and not self.gone:
            self._channel.send(Kind.WANT, self._number)
        while not self._parts:
            if self.gone or self.finished:
                return {"type": "http.disconnect"}
            await self._changed.wait()
        body, more = self._parts.popleft()
        self._ended = not more
        return {"type": "http.request", "body": body, "more_body": more}

    async def send(self, message: dict[str, Any]) -> None:
        """Send a part of the answer. Raises OSError where the client is gone."""
        if message["type"] == "http.response.start":
            self._start = message["status"], tuple(message.get("headers", ()))
            return
        if message["type"] != "http.response.body" or self.finished:
            return
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        while True:
            if self.gone:
                raise ClientGone("the client closed its connection")
            piece, body = body[:WHOLE_BYTES_MAX], body[WHOLE_BYTES_MAX:]
            await self._send_part(piece, more=more or bool(body))
            if not body:
                break
        if not more:
            self.finished = True
            self.wake()

    async def _send_part(self, piece: bytes, *, more: bool) -> None:
        status, headers = self._start
        if not self.started and not more:
            self.started = True
            self._channel.answer(self._number, self, status, headers, piece)
            return
        if self.started:
            self._channel.send(Kind.PART, self._number, piece, more)
        else:
            self._channel.send(Kind.START, self._number, status, headers, piece)
        self.started = True
        if not more:
            return
        self._is_sending = True
        while self._is_sending and not self.gone:
            await self._changed.wait()


class DoorChannel:
    """The channel of one door: what it asks for, and the calls that are under way."""

    def __init__(self, doors: Doors, answers: Answers) -> None:
        self.counts = ConnectionCounts()
        self._doors = doors
        self._answers = answers
        self._channel = Channel(doors.flushes, self._begun, self._take, self._ended, self._drained)
        self._heads: dict[int, KnownHead] = {}
        self._calls: dict[int, PassedCall] = {}
        self.send = self._channel.send

    @property
    def session(self) -> Channel:
        """The session of its connection."""
        return self._channel

    def answer(self, number: int, request: PassedRequest, status: int, headers: Fields, body: bytes) -> None:
        """Send a whole answer."""
        note = None
        if self._doors.logs_access or request.id or status >= 400:
            work = request.work
            note = Note(request.request_id, None if work is None else NotedWork(work.name, work.bearer))
        self.send(Kind.ANSWER, number, status, headers, body, note)

    def _take(self, message: Message) -> None:
        kind = message[0]
        if kind == Kind.KNOWN:
            _, number, head_number, body = message
            self._offer(number, PassedRequest.of(self._heads[head_number], body))
        elif kind == Kind.WHOLE:
            _, number, method, target, headers, body = message
            self._offer(number, PassedRequest(method, target, _pairs(headers), body))
        elif kind == Kind.HEAD:
            _, head_number, method, target, headers = message
            self._heads[head_number] = KnownHead(PassedRequest(method, target, _pairs(headers), b""), 0)
        elif kind == Kind.CALL:
            _, number, head, body, more = message
            head = msgspec.convert(head, Head)
            call = self._calls[number] = PassedCall(self, number, head, body, more=more)
            self._doors.start(partial(self._answer, number, call, head))
        elif kind == Kind.ASK:
            self._doors.start(partial(self._reply, message[1], message[2]))
        elif kind == Kind.COUNTS:
            self.counts = msgspec.convert(message[1], ConnectionCounts)
        else:
            self._take_for_call(kind, message)
        self._doors.lap()

    def _take_for_call(self, kind: int, message: Message) -> None:
        call = self._calls.get(message[1])
        if call is None:
            return  # it is answered already
        if kind == Kind.BODY:
            call.take(message[2], more=message[3])
        elif kind == Kind.TAKEN:
            call.taken()
        elif kind == Kind.GONE:
            call.leave()

    def _offer(self, number: int, request: PassedRequest, *, first: bool = True) -> None:
        """Offer a whole request to the fast path, which may put it off once."""
        fast_path = self._answers.fast_path
        beginning.request = request
        try:
            done = partial(self.answer, number, request)
            again = partial(self._offer, number, request, first=False) if first else None
            if fast_path is not None and fast_path.begin(request, done, again):
                return
        except Exception as bug:  # noqa: BLE001 - this call ends, the others never notice
            log_crash(request, bug)
            self.send(Kind.FAILED, number)
            return
        finally:
            beginning.request = None
        self.send(Kind.DECLINED, number)

    async def _answer(self, number: int, call: PassedCall, head: Head) -> None:
        """Let the ASGI application answer a call."""
        state = None if head.certificate is None else {CLIENT_CERTIFICATE: head.certificate}
        try:
            app = self._answers.app
            is_sound = await run_application(app, call, head.client, head.server, state, head.scheme)
            if not (call.finished or call.gone):
                if is_sound:
                    log_unanswered(call)
                self.send(Kind.FAILED, number)
        finally:
            current_request.set(None)
            call.finished = True
            call.wake()
            self._calls.pop(number, None)

    async def _reply(self, number: int, question: bytes) -> None:
        """Answer a question for an actor or a reader."""
        self.send(Kind.REPLY, number, await self._doors.answered(question))

    def _begun(self) -> None:
        self.send(Kind.CERTIFICATES, self._doors.certificates)

    def _drained(self) -> None:
        if self._doors.are_elsewhere:
            self.send(Kind.LEAVING, 0)

    def _ended(self) -> None:
        for call in self._calls.values():
            call.leave()
        self._doors.ended(self)


class Answers(NamedTuple):
    """What answers requests: the fast path is offered a whole request first."""

    app: Application
    fast_path: FastPath | None


class Doors:
    """The doors of an owner. `run` it in a nursery; `protocol_of` says what is spoken on connections that they pass on.

    It has the counters of all doors together, as the metrics read those of an engine.
    """

    def __init__(
        self,
        answers: Answers,
        own: Answers,
        mqtt: ByteProtocol,
        *,
        answered: Callable[[bytes], Awaitable[bytes]],
        logs_access: bool,
        lap: Callable[[], None],
        are_elsewhere: bool = False,
    ) -> None:
        """`own` answers what other owners pass on. `answered` answers questions of theirs. `lap` is called after each
        message, as it took a turn.

        `are_elsewhere`: some are on other machines and do not end with this one, so they are told that it ends.
        """
        self.answered = answered
        self.logs_access = logs_access
        self.lap = lap
        self.are_elsewhere = are_elsewhere
        self.flushes = Flushes()
        self._answers = {PROTOCOL: answers, OWNERS_PROTOCOL: own}
        self._mqtt = mqtt
        self._channels: set[DoorChannel] = set()
        self._before = ConnectionCounts()
        """Of doors that have ended."""
        self.certificates: dict[str, str] = {}
        """Of domains, as PEM with the key, by name."""
        self._nursery: trio.Nursery | None = None

    def protocol_of(self, passed: Passed) -> ByteProtocol | None:
        """What is spoken on a connection that a door passes on; None for HTTP."""
        answers = self._answers.get(passed.protocol)
        if answers is not None:
            return ByteProtocol(partial(self._open_channel, answers), BOUNDS)
        return self._mqtt if passed.protocol == "mqtt" else None

    def _open_channel(self, answers: Answers, _peer: Peer) -> Channel:
        door = DoorChannel(self, answers)
        self._channels.add(door)
        return door.session

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Answer what doors ask for, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            try:
                await self.flushes.run()
            finally:
                self._nursery = None

    def start(self, task: Callable[[], Any]) -> None:
        """Run a task of a call, unless this process has ended: then its channel is closed in a moment."""
        if self._nursery is not None:
            self._nursery.start_soon(task, name="DoorChannel._answer")

    def ended(self, door: DoorChannel) -> None:
        """A door has gone."""
        self._channels.discard(door)
        self._before.add(door.counts, past=True)

    def counts(self) -> ConnectionCounts:
        """The counters of all doors together. Those of a door are up to a second old."""
        total = ConnectionCounts()
        total.add(self._before)
        for door in self._channels:
            total.add(door.counts)
        return total

    async def follow_certificates(
        self, certificates: Callable[[], dict[str, str]], changes: Callable[[], int]
    ) -> None:
        """Have all doors use the certificates of domains, PEM by name, whenever they have changed, until cancelled.

        `changes` is another number when anything may have changed.
        """
        seen, is_failing = -1, False
        while True:
            if (now := changes()) != seen:
                try:
                    seen, found = now, certificates()
                except StoreError as broken:
                    # Logged only once, as it is tried again with each look.
                    if not (is_failing or isinstance(broken, Outdated)):
                        _log.error("certificates of domains cannot be read", reason=str(broken))
                    is_failing, found = True, self.certificates
                else:
                    is_failing = False
                if found != self.certificates:
                    self.certificates = found
                    for door in self._channels:
                        door.send(Kind.CERTIFICATES, found)
            await trio.sleep(FOLLOW_S)


def _pairs(headers: list[list[bytes]]) -> Headers:
    return [(name, value) for name, value in headers]
