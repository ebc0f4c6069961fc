"""One open link: from the hello of a device to its end.

Owns the numbers of frames, what waits for a commit, and what is sent for it; who may send what; when the link ends and
what is logged of it. Does not own the form of frames (`frames.py`, `outgoing.py`), the WebSocket (`wire/websocket.py`),
nor what a device does with a frame (`actors/fleet/devices/`).

A frame takes its turn in the device's actor when it is received. All frames of one read share a commit, and one
acknowledgement after it. Frames with a backlog wait for their turn in the backlog lane, one after the other, in a task
that exists only while there are any. The module is long because a link has one state, and all of it is here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog
import trio

from trunkline.actors.access.authority import check_peripheral
from trunkline.actors.core.records import records
from trunkline.actors.core.runtime.machines import Machines
from trunkline.actors.core.runtime.mailbox import FULL
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.work import noted
from trunkline.actors.core.values.errors import (
    Crashed,
    DomainError,
    NotFound,
    Overloaded,
    StorageFull,
    TooManyRequests,
    Unanswered,
    Unauthorized,
)
from trunkline.actors.fleet.devices.commands.command_messages import (
    AcknowledgeCommand,
    GiveUpCommand,
    LinkCommand,
)
from trunkline.actors.fleet.devices.commands.link_session import LinkEnd
from trunkline.actors.fleet.devices.commands.links import Link, Links
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.state.backlog import BacklogLane
from trunkline.actors.fleet.devices.state.head import Head, Source
from trunkline.actors.fleet.devices.state.link_messages import ReportFrame
from trunkline.actors.fleet.devices.state.traffic import Traffic
from trunkline.http.calls.access import check_resource_access
from trunkline.http.calls.admissions import work_of
from trunkline.http.calls.auth import check_scope
from trunkline.http.calls.call import Call
from trunkline.http.link.frames import Hello, Malformed, Received, States, decode_frame
from trunkline.http.link.outgoing import Outgoing
from trunkline.http.link.tasks import LinkTasks
from trunkline.http.wire.websocket import WebSocket
from trunkline.http.wire.websocket_frames import FAILED

if TYPE_CHECKING:
    from trunkline.actors.access.authority import Principal
    from trunkline.actors.core.runtime.system import PendingAnswer

ELSEWHERE: Final = 4301
MALFORMED: Final = 4400
TOKEN_ENDED: Final = 4401
NOT_ALLOWED: Final = 4403
NO_DEVICE: Final = 4404
IDLE: Final = 4408
SUPERSEDED: Final = 4410
WINDOW_EXCEEDED: Final = 4413
DRAINING: Final = 4503

_CRASHED: Final = "The server failed to handle this frame; the fault is logged."
_log = structlog.get_logger("trunkline.link")


class _Frame:
    """A frame that was received and is neither stored nor refused."""

    __slots__ = ("device", "done", "n", "size_bytes", "states")

    def __init__(self, states: States, size_bytes: int) -> None:
        self.n = states.n
        self.device = states.device
        self.done = False
        self.states: States | None = states if states.backlog else None
        """What it brings, while it waits in the backlog lane."""
        self.size_bytes = size_bytes


class LinkSession:
    """The session of a WebSocket (`wire/websocket.py`) and of a link (`fleet/devices/commands/links.py`), for the
    device of a call."""

    __slots__ = (
        "_answered",
        "_backlog",
        "_call",
        "_frames",
        "_from_client",
        "_link",
        "_newest",
        "_outgoing",
        "_refused",
        "_session",
        "_socket",
        "_to_client",
        "_turns",
        "_waiting",
        "_watched",
        "_work",
        "device",
    )

    def __init__(self, call: Call, outgoing: Outgoing) -> None:
        self._call = call
        self._outgoing = outgoing
        self.device = Ref("device", call.application, call.ids["device"])
        self._work = work_of(call.route, None if call.is_anonymous else call.principal, call.ids)._replace(
            kind="link"
        )
        self._socket: WebSocket | None = None
        self._link: Link | None = None
        self._session: int | None = None
        """The session of the client; None before its hello."""
        self._newest = 0
        """The number of the last frame."""
        self._waiting: deque[_Frame] = deque()
        """Live frames that are neither acknowledged nor refused."""
        self._turns: list[tuple[_Frame, PendingAnswer]] = []
        """Those of this read that wait for their commit."""
        self._backlog: deque[_Frame] = deque()
        window = call.service.system.limits.link_unacked_frames_max
        self._refused: deque[tuple[int, bytes, int]] = deque(maxlen=window)
        """Frames that were refused: how many frames had come by then, the device of the frame, and its number."""
        self._frames = 0
        self._answered = (0, 0)
        """The numbers of two frames: the first came a window of frames ago or earlier, the other a window later."""
        self._watched: Principal | None = None
        self._from_client = 0
        self._to_client = 0

    # The WebSocket.

    def opened(self, socket: WebSocket) -> None:
        self._socket = socket
        limits = self._call.service.system.limits
        socket.close_at(trio.current_time() + limits.link_hello_s, IDLE, "no hello came in time")

    def received(self, data: bytes, *, text: bool) -> None:
        self._from_client += 1
        noted.work = self._work
        try:
            if text is not self._outgoing.text:
                raise Malformed(
                    "a text was sent on a link in CBOR" if text else "bytes were sent on a link in JSON"
                )
            frame = decode_frame(data, text=text)
            if type(frame) is States:
                self._report(frame, len(data))
            elif type(frame) is Received:
                self._acknowledged(frame)
            else:
                assert type(frame) is Hello
                self._welcome(frame)
        except Malformed as problem:
            self._close(MALFORMED, str(problem))

    def received_all(self) -> None:
        """Wait for the commits of this read: once for all frames of a device, as its writes are one group."""
        turns, self._turns = self._turns, []
        if turns:
            self._call.service.system.when_all_stored(turns, self._committed)

    def drain(self) -> None:
        self._close(DRAINING, "the server is stopping; connect again later")

    def closed(self, code: int, reason: str) -> None:
        self.received_all()
        self._unwatch()
        self._waiting.clear()
        self._backlog.clear()
        if self._link is not None:
            self._links.close(self._link, f"{code} {reason}".strip())
            self._link = None  # it refers to this session: the two would wait for the garbage collector

    def flushed(self) -> None:
        if self._link is not None:
            self._links.pump(self._link)

    @property
    def _links(self) -> Links:
        return self._call.service.system.component(Links)

    def _close(self, code: int, reason: str) -> None:
        if self._socket is not None:
            self._socket.close(code, reason)

    def _send(self, data: bytes) -> None:
        assert self._socket is not None
        self._to_client += 1
        self._socket.send(data, text=self._outgoing.text)

    # Hello.

    def _welcome(self, hello: Hello) -> None:
        """Answer the hello, if the caller may have this link."""
        if self._session is not None:
            raise Malformed("hello came twice")
        call = self._call
        system = call.service.system
        try:
            if call.is_anonymous:
                if hello.token is None:
                    raise Unauthorized("The hello has no token, and the request had no Authorization header.")
                self._authenticate(b"Bearer " + hello.token.encode())
            else:  # it may have been revoked since the handshake, when nobody watched it
                self._authenticate(call.request.headers[b"authorization"])
            nearer = system.component(Machines).nearer(call.request.machine) if hello.nearest else None
            if nearer is not None:
                self._close(ELSEWHERE, nearer)
                return
            self._watch()
            mark = Head.read(system.journal, self.device.id).link
            then = partial(self._link_opened, *mark.told(hello.session))
            self._link, _ = self._links.open(
                call.application, self.device.id, self, then, address=call.request.address, origin=call.origin
            )
        except DomainError as refusal:
            self._refuse_link(refusal)
            return
        self._session = hello.session

    def _link_opened(self, n: int, backlog_n: int, failure: DomainError | None) -> None:
        """The opening is on disk: the client may know what is stored of its session."""
        system = self._call.service.system
        limits = system.limits
        if failure is not None:
            self._refuse_link(failure)
            return
        facts = {
            "n": n,
            "backlogN": backlog_n,
            "time": system.clock.wall_ms(),
            "window": limits.link_unacked_frames_max,
            "frameBytes": limits.link_frame_bytes_max,
            "frameStates": limits.states_per_call_max,
            "pingSeconds": limits.websocket_ping_interval_s,
        }
        self._send_if_open(self._outgoing.welcome(facts))

    def _refuse_link(self, reason: DomainError) -> None:
        refusal = self._call.service.system.checked(reason)
        self._note_refusal(self.device.id, refusal)
        self._close(_code_of(refusal), refusal.message)

    def _authenticate(self, header: bytes) -> None:
        """Check that a token allows this link. Raises `DomainError`."""
        call = self._call
        call.request.headers = {**call.request.headers, b"authorization": header}
        principal = call.service.tokens.authenticate(header)
        check_scope(call.route, principal)
        call.principal = principal
        check_resource_access(call)

    def _watch(self) -> None:
        """End the link when its token does."""
        system, principal = self._call.service.system, self._call.principal
        self._watched = principal
        system.revocations.hold(principal)
        principal.watchers[self._check_again] = None
        deadline_s = math.inf
        if principal.expires_ms is not None:
            left_ms = principal.expires_ms - system.clock.wall_ms()
            deadline_s = trio.current_time() + max(0, left_ms) / 1000
        assert self._socket is not None
        self._socket.close_at(deadline_s, TOKEN_ENDED, "the token has expired; connect with a new one")

    def _unwatch(self) -> None:
        if self._watched is not None:
            self._watched.watchers.pop(self._check_again, None)
            self._call.service.system.revocations.release(self._watched)
            self._watched = None

    def _check_again(self) -> None:
        """Something has changed that the token depends on."""
        self._unwatch()
        try:
            header = self._call.request.headers.get(b"authorization")
            self._authenticate(header or b"")
            self._watch()
        except DomainError as reason:
            refusal = self._call.service.system.checked(reason)
            if isinstance(refusal, Overloaded) or self._device_exists():
                self._close(_code_of(refusal), refusal.message)
            else:  # its token ends with a device: a new one would not help
                self._close(NO_DEVICE, "the device was deleted")

    def _device_exists(self) -> bool:
        with self._call.service.system.store.snapshot() as snapshot:
            return records.exists(snapshot, DEVICE, self.device.parent, self.device.id)

    # States.

    def _report(self, states: States, size_bytes: int) -> None:
        """Take the turn of a frame, or let it wait in the backlog lane."""
        if self._session is None:
            raise Malformed("the first frame must be hello")
        n = states.n
        if n <= self._newest:
            raise Malformed(f"frame {n} came after frame {self._newest}; numbers must rise")
        self._newest = n
        self._frames += 1
        system = self._call.service.system
        window = system.limits.link_unacked_frames_max
        if not self._frames % window:
            self._answered = self._answered[1], n
        if len(self._waiting) + len(self._backlog) >= window:
            self._close(WINDOW_EXCEEDED, f"more than {window} frames are under way")
            return
        if states.backlog:
            self._backlog.append(_Frame(states, size_bytes))
            if len(self._backlog) == 1:
                system.component(LinkTasks).start_soon(self._bring_backlog)
            return
        frame = _Frame(states, size_bytes)
        self._waiting.append(frame)
        try:
            ref = self._ref_of(states)
            system.check_load()
            turn = system.begin(ref, self._message(states))
            if turn is None:
                raise Overloaded(
                    "The device is busy with a long call. Send the states again in a second.", reason=FULL
                )
        except DomainError as refusal:
            self._turned_away(frame, states, system.checked(refusal))
        except Exception as bug:  # noqa: BLE001 - the other frames never notice
            _log.error("frame failed", exc_info=bug)
            self._stored([frame], Crashed(_CRASHED))
        else:
            self._turns.append((frame, turn))

    def _turned_away(self, frame: _Frame, states: States, refusal: DomainError) -> None:
        """A live frame could take no turn: refuse it, unless an earlier connection has brought it."""
        was_stored = self._was_stored(states, refusal)
        if was_stored is not None:
            self._stored([frame], None if was_stored else refusal)

    def _was_stored(self, states: States, refusal: DomainError) -> bool | None:
        """Whether a frame that is refused was stored before: it may have shared a commit that has failed, or there is
        no room for it. None ends the link: it is about to be."""
        system, frame = self._call.service.system, (states.n, states.device)
        for_room = isinstance(refusal, TooManyRequests | Overloaded)
        if for_room and not self._is_marked(*frame, system.journal, backlog=states.backlog):
            return False
        with system.store.snapshot() as snapshot:
            if self._is_marked(*frame, snapshot, backlog=states.backlog):
                return True
        if not for_room:
            return False
        self._close(DRAINING, "a frame that was sent again is not stored yet; connect again later")
        return None

    def _is_marked(self, n: int, device: bytes | None, source: Source, *, backlog: bool) -> bool:
        """Whether a frame is one of those that are stored, by the mark of its device."""
        assert self._session is not None
        mark = Head.read(source, device or self.device.id).link
        return mark.has(self._session, n, backlog=backlog) and n not in mark.refused

    def _message(self, states: States) -> ReportFrame:
        assert self._session is not None
        return ReportFrame(
            session=self._session,
            n=states.n,
            body=states.body,
            backlog=states.backlog,
            refused=self._refused_of(states.device or self.device.id) if self._refused else (),
            answered=self._answered_up_to(),
            origin=self._call.principal.origin,
        )

    def _answered_up_to(self) -> int:
        """The number up to which the client has the answers to all frames, as it keeps to its window."""
        n = self._answered[0]
        for waiting in (self._waiting, self._backlog):
            if waiting and waiting[0].n <= n:
                n = waiting[0].n - 1
        return n

    def _refused_of(self, device: bytes) -> tuple[int, ...]:
        """The frames for a device whose refusal the client may not have: no older ones, as it keeps to its window."""
        refused, window = self._refused, self._call.service.system.limits.link_unacked_frames_max
        while refused and refused[0][0] + window < self._frames:
            refused.popleft()
        return tuple(n for _, of, n in refused if of == device)

    def _ref_of(self, states: States) -> Ref:
        """The device of a frame. Raises `DomainError` unless it is that of the link, or a peripheral of it."""
        if states.device is None or states.device == self.device.id:
            return self.device
        self.check_peripheral(states.device)
        return Ref("device", self.device.parent, states.device)

    def check_peripheral(self, device: bytes) -> None:
        """Raise `DomainError` unless a device is a peripheral of that of this link."""
        with self._call.service.system.store.snapshot() as snapshot:
            check_peripheral(snapshot, self._call.application, self.device.id, device, "link")

    def _committed(self, frames: list[_Frame], failure: DomainError | None) -> None:
        """The commit of live frames has succeeded or failed. Those that an earlier connection has brought are stored
        whatever becomes of a commit that they have only shared."""
        if failure is not None and self._session is not None:
            with self._call.service.system.store.snapshot() as snapshot:
                known = [
                    each for each in frames if self._is_marked(each.n, each.device, snapshot, backlog=False)
                ]
            if known:
                self._stored(known, None)
                frames = [each for each in frames if each not in known]
        self._stored(frames, failure)

    def _stored(self, frames: list[_Frame], failure: DomainError | None) -> None:
        """These frames are stored, or refused: acknowledge all that are stored without a gap. The link ends where
        nobody knows: the client sends them again."""
        if failure is not None and failure.is_unknown:
            self._close(_code_of(failure), failure.message)
            return
        waiting, n = self._waiting, 0
        for frame in frames:
            frame.done = True
            if failure is not None:
                if frame in waiting:
                    waiting.remove(frame)
                self._refuse(frame, failure)
        while waiting and waiting[0].done:
            n = waiting.popleft().n
        if n:
            self._send_if_open(self._outgoing.stored(n, backlog=False))

    def _refuse(self, frame: _Frame, refusal: DomainError) -> None:
        device = frame.device or self.device.id
        self._refused.append((self._frames, device, frame.n))
        self._note_refusal(device, refusal)
        bucket = retry_ms = None
        if isinstance(refusal, TooManyRequests):
            bucket, retry_ms = refusal.bucket, math.ceil(refusal.retry_after_s * 1000)
        elif isinstance(refusal, Overloaded):
            retry_ms = math.ceil(refusal.retry_after_s * 1000)
        self._send_if_open(self._outgoing.refusal(frame.n, refusal.type, refusal.message, bucket, retry_ms))

    def _note_refusal(self, device: bytes, refusal: DomainError) -> None:
        """Count what was refused on this link."""
        call = self._call
        call.service.system.component(Traffic).refuse(call.application, device, call.route.operation, refusal)

    def _send_if_open(self, data: bytes) -> None:
        if self._socket is not None and self._socket.open:
            self._send(data)

    # Commands.

    def _acknowledged(self, received: Received) -> None:
        """A command has arrived at the device."""
        if self._session is None:
            raise Malformed("the first frame must be hello")
        self._settle(
            received.device,
            AcknowledgeCommand(id=received.command, gateway=self._gateway_of(received.device)),
        )

    def deliver(self, commands: Sequence[LinkCommand]) -> None:
        bytes_max = self._call.service.system.limits.link_frame_bytes_max
        for command in commands:
            frame = self._outgoing.command(command)
            if len(frame) <= bytes_max:
                self._send_if_open(frame)
            else:
                self._give_up(command, len(frame))

    def _give_up(self, command: LinkCommand, size_bytes: int) -> None:
        """A command is larger than the frames that clients were told to take: it expires."""
        device = command.device or self.device.id
        _log.warning("a command is too large", device=device.hex(), command=command.id, bytes=size_bytes)
        self._settle(device, GiveUpCommand(id=command.id, gateway=self._gateway_of(device)))

    def _gateway_of(self, device: bytes | None) -> bytes | None:
        """The gateway that carries the commands of a device; None for that of this link."""
        return None if device in (None, self.device.id) else self.device.id

    def _settle(self, device: bytes | None, message: AcknowledgeCommand | GiveUpCommand) -> None:
        self._links.settle(self.device.parent, device or self.device.id, message)

    def has_room(self) -> bool:
        return self._socket is not None and self._socket.has_room

    def end(self, why: LinkEnd) -> None:
        self._close(_ENDS[why], why.value)

    def counts(self) -> tuple[int, int]:
        return self._from_client, self._to_client

    # Backlogs.

    async def _bring_backlog(self) -> None:
        """Store the frames that wait in the backlog lane, one after the other."""
        system = self._call.service.system
        lane = system.component(BacklogLane)
        while self._backlog:
            frame = self._backlog[0]
            assert frame.states is not None
            refusal: DomainError | None = None
            try:
                ref = self._ref_of(frame.states)
                async with lane.turn(ref, frame.states.count, frame.size_bytes):
                    await system.ask(ref, self._message(frame.states))
            except DomainError as reason:
                refused = system.checked(reason)
                was_stored = self._was_stored(frame.states, refused)
                if was_stored is None:
                    return
                refusal = None if was_stored else refused
            except Exception as bug:  # noqa: BLE001 - the link goes on
                _log.error("backlog failed", exc_info=bug)
                refusal = Crashed(_CRASHED)
            if not self._backlog:
                return  # the link has ended meanwhile
            if refusal is not None and refusal.is_unknown:
                self._close(_code_of(refusal), refusal.message)
                return
            self._backlog.popleft()
            if refusal is None:
                self._send_if_open(self._outgoing.stored(frame.n, backlog=True))
            else:
                self._refuse(frame, refusal)


_ENDS: Final = {
    LinkEnd.SUPERSEDED: SUPERSEDED,
    LinkEnd.GONE: NO_DEVICE,
    LinkEnd.FAILED: FAILED,
    LinkEnd.MOVED: DRAINING,
}


def _code_of(refusal: DomainError) -> int:
    if isinstance(refusal, Unauthorized):
        return TOKEN_ENDED
    if isinstance(refusal, NotFound):
        return NO_DEVICE
    if isinstance(refusal, Overloaded | TooManyRequests | StorageFull | Unanswered):
        return DRAINING
    return FAILED if isinstance(refusal, Crashed) else NOT_ALLOWED
