"""A door: it serves clients and passes each request on to the owner of the data.

Owns the calls of this process that are under way (`under_way.py`), and what a client is told when the owner ends. Does
not own connections (`wire/`), nor what a request means: that is the owner's alone, so a door has no rights, limits of
callers or data that could be old.

A whole request goes on the fast path of the wire: no task waits for its answer. The owner answers it, or declines it,
and then it comes again as a call, which a task awaits; so does everything that has a long body or a long answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final

import msgspec
import trio

from trunkline.actors.core.values.errors import Overloaded, Unanswered
from trunkline.http.calls.errors import protocol_error
from trunkline.http.processes.batches import Head, Kind, Message, Note
from trunkline.http.processes.channel import Channel, Flushes
from trunkline.http.processes.under_way import Call, Pending, Question
from trunkline.http.wire.asgi import CLIENT_CERTIFICATE, MACHINE, WEBSOCKET
from trunkline.http.wire.byte_session import GoesOn
from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.fast_path import Respond
from trunkline.http.wire.headers import Fields
from trunkline.http.wire.passed_on import Passed
from trunkline.http.wire.request_context import current_request
from trunkline.http.wire.request_heads import KnownHead
from trunkline.http.wire.websocket import Offer

WAITING_BYTES_MAX: Final = 8 * 1024 * 1024
"""While the owner has not taken more than this, a door refuses further calls. Each has a part of a body at most."""
BODY_BYTES_MAX: Final = 262_144
"""A request with a longer body is passed on as a call."""
DECLINES_MAX: Final = 2
"""Requests for one target that the owner has declined in a row, after which they are passed on as calls at once."""
IDLE_S: Final = 0.02
"""How often a process that stops looks whether anything is under way."""
OFFERED_AGAIN: Final = 16
"""Of those, each one of so many is offered to the owner all the same."""
TARGETS_LENGTH_MAX: Final = 4096
NO_OWNER: Final = "The process that owns the data is starting again; repeat the call in a second."
FAILED: Final = "The server failed to answer; the fault is logged."
OWNER_BUSY: Final = (
    "The process that owns the data does not take calls as fast as they come; repeat it in a second."
)
OWNER_ENDED: Final = (
    "The process that owns the data has ended before it answered. Nobody knows whether the call was done: read it "
    "back, or repeat it with the same Idempotency-Key."
)


class Door:
    """The fast path and the ASGI application of the engine of a door. `channel` leads to the owner while it is open."""

    def __init__(
        self,
        flushes: Flushes,
        heads_max: int,
        relay: Callable[[bytes], GoesOn],
        use: Callable[[Any], None],
        machine: str = "",
    ) -> None:
        """`heads_max`: so many heads the engine keeps. `relay` passes on a connection, to which the owner is sent the
        bytes first. `use` gets the certificates of domains. `machine` is the name of this one, if there are several."""
        self.ended = trio.Event()
        """The channel was closed."""
        self.left = trio.Event()
        """The owner ends, and wants the channel closed."""
        self.passed_on = 0
        """Requests that the owner has answered, or was sent as calls."""
        self.relayed = 0
        """Connections whose bytes are passed on to it, or were."""
        self.asked = 0
        """Questions that it was sent."""
        self._flushes = flushes
        self._relay = relay
        self._use = use
        self._machine = machine
        self._heads: list[KnownHead | None] = [None] * heads_max
        self._head_numbers: dict[KnownHead, int] = {}
        self._next_head = 0
        self._pending: dict[int, Pending] = {}
        self._calls: dict[int, Call] = {}
        self._questions: dict[int, Question] = {}
        self._numbers = count()
        self._declines: dict[int, int] = {}
        """By the hash of method and target, how often requests were declined in a row, or not offered after that."""
        self.channel = self.new_channel()

    async def idle(self) -> None:
        """Return when nothing is under way, for a process that stops."""
        # An event in place of the pauses would cost each call something.
        while self._pending or self._calls or self._questions:  # noqa: ASYNC110
            await trio.sleep(IDLE_S)

    def new_channel(self) -> Channel:
        """The session of a new connection to the owner, after the one before has ended."""
        self.ended, self.left = trio.Event(), trio.Event()
        self._heads = [None] * len(self._heads)
        self._head_numbers.clear()
        self._declines.clear()
        self.channel = Channel(self._flushes, lambda: None, self._take, self._end)
        return self.channel

    # Whole requests.

    def begin(self, exchange: Exchange, respond: Respond, again: Callable[[], None] | None) -> bool:
        """Pass on a whole request (`FastPath`)."""
        channel = self.channel
        if again is None or not channel.open or exchange.offer is not None:
            return False
        body = exchange.whole_body()
        if len(body) > BODY_BYTES_MAX or channel.unsent_bytes > WAITING_BYTES_MAX:
            return False
        known = exchange.known
        if known is None and self._is_declined(exchange):
            return False
        number = next(self._numbers)
        self._pending[number] = Pending(exchange, respond, again)
        if known is None or not self._heads:
            channel.send(Kind.WHOLE, number, exchange.method, exchange.target, exchange.headers, body)
            return True
        head = self._head_numbers.get(known)
        if head is None:
            head = self._number_of(known)
            channel.send(Kind.HEAD, head, known.method, known.target, known.headers)
        channel.send(Kind.KNOWN, number, head, body)
        return True

    def _number_of(self, known: KnownHead) -> int:
        """The number of a head from now on; that of the oldest one if there are as many as are kept."""
        number = self._next_head
        self._next_head = (number + 1) % len(self._heads)
        before = self._heads[number]
        if before is not None:
            del self._head_numbers[before]
        self._heads[number] = known
        self._head_numbers[known] = number
        return number

    def _is_declined(self, exchange: Exchange) -> bool:
        """Whether the owner has declined requests like this one so often that it is not offered to it."""
        key = hash((exchange.method, exchange.target))
        declines = self._declines.get(key, 0)
        if declines < DECLINES_MAX:
            return False
        self._declines[key] = declines + 1
        return declines % OFFERED_AGAIN != 0

    def _declined(self, pending: Pending) -> None:
        exchange = pending.exchange
        if len(self._declines) >= TARGETS_LENGTH_MAX:
            self._declines.clear()
        key = hash((exchange.method, exchange.target))
        self._declines[key] = self._declines.get(key, 0) + 1
        pending.again()

    # What the owner says.

    def _take(self, message: Message) -> None:
        kind, number = message[0], message[1]
        if kind == Kind.CERTIFICATES:
            self._use(number)
            return
        if kind == Kind.LEAVING:
            self.channel.is_leaving = True
            self.left.set()
            return
        pending = self._pending.pop(number, None)
        if pending is not None:
            if kind == Kind.ANSWER:
                self.passed_on += 1
                _, _, status, headers, body, note = message
                self._note(pending.exchange, note)
                if self._declines and pending.exchange.known is None:
                    self._declines.pop(hash((pending.exchange.method, pending.exchange.target)), None)
                pending.respond(status, _fields(headers), body)
            elif kind == Kind.DECLINED:
                self._declined(pending)
            else:
                pending.respond(*_refusal(500, FAILED))
            return
        question = self._questions.get(number)
        if question is not None:
            question.answer = message[2]
            question.settled.set()
            return
        call = self._calls.get(number)
        if call is None:
            return  # its client has left
        if kind == Kind.WANT:
            call.wanted = True
        else:
            call.messages.append(message)
        call.wake()

    @staticmethod
    def _note(exchange: Any, note: Any) -> None:
        if note is not None:
            said = msgspec.convert(note, Note)
            exchange.take_id(said.request_id)
            exchange.work = said.work

    def _end(self) -> None:
        """The owner has ended, or the connection to it."""
        pending, self._pending = self._pending, {}
        for each in pending.values():
            each.respond(*_unanswered(each.exchange.method))
        for call in self._calls.values():
            call.ended = True
            call.wake()
        for question in self._questions.values():
            question.settled.set()
        self.ended.set()

    # Questions for actors and readers.

    async def ask(self, question: bytes) -> bytes:
        """Ask the other process (`peers.py`). Raises `Overloaded` where nothing was asked, `Unanswered` where nobody
        knows what came of it."""
        channel = self.channel
        if not channel.open:
            raise Overloaded(NO_OWNER)
        if channel.unsent_bytes > WAITING_BYTES_MAX:
            raise Overloaded(OWNER_BUSY)
        number, asked = next(self._numbers), Question()
        self._questions[number] = asked
        self.asked += 1
        channel.send(Kind.ASK, number, question)
        try:
            await asked.settled.wait()
        finally:
            del self._questions[number]
        if asked.answer is None:
            raise Unanswered(OWNER_ENDED)
        return asked.answer

    # Calls.

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        offer: Offer | None = scope["extensions"].get(WEBSOCKET)
        exchange: Any = current_request.get()
        if not self.channel.open:
            await answer(send, *_refusal(503, NO_OWNER))
        elif self.channel.unsent_bytes > WAITING_BYTES_MAX:
            await answer(send, *_refusal(503, OWNER_BUSY))
        elif offer is not None:
            offer.pass_on = partial(self._pass_on, scope, exchange.target)
        else:
            await self._call(exchange, scope, receive, send)

    def _pass_on(self, scope: dict[str, Any], target: bytes, rest: bytes) -> GoesOn:
        """Have the owner answer a request for WebSocket, on the rest of the connection."""
        lines = [b"%b %b HTTP/1.1" % (scope["method"].encode(), target)]
        lines += [b"%b: %b" % header for header in scope["headers"]]
        passed = Passed(
            "http",
            scope["client"],
            scope["server"],
            scope["scheme"] == "https",
            _certificate(scope),
            machine=scope.get("state", {}).get(MACHINE, self._machine),
        )
        return self._relay(b"".join((passed.encode(), b"\r\n".join(lines), b"\r\n\r\n", rest)))

    async def _call(self, exchange: Any, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Pass on a request, and its answer back, in parts."""
        number, call, channel = next(self._numbers), Call(), self.channel
        head = Head(
            scope["method"],
            exchange.target,
            scope["headers"],
            scope["http_version"],
            scope["client"],
            scope["server"],
            scope["scheme"],
            _certificate(scope),
            exchange.request_id,
        )
        body, more = b"", True
        if not exchange.expects:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = message["body"], message["more_body"]
            if not channel.open:  # it was closed meanwhile
                await answer(send, *_refusal(503, NO_OWNER))
                return
        self._calls[number] = call
        self.passed_on += 1
        channel.send(Kind.CALL, number, head, body, more)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_send_body, channel, number, call, receive, more)
                await self._pass_back(channel, number, call, exchange, send)
                nursery.cancel_scope.cancel()
        finally:
            del self._calls[number]
            channel.send(Kind.GONE, number)

    async def _pass_back(self, channel: Channel, number: int, call: Call, exchange: Any, send: Any) -> None:
        """Send the client what the owner answers."""
        has_begun = False
        while (message := await call.next()) is not None:
            kind = message[0]
            if kind == Kind.ANSWER:
                _, _, status, headers, body, note = message
                self._note(exchange, note)
                await _start(send, status, headers)
                await send({"type": "http.response.body", "body": body})
                return
            if kind == Kind.FAILED:
                if not has_begun:
                    await answer(send, *_refusal(500, FAILED))
                return
            if kind == Kind.START:
                _, _, status, headers, body = message
                await _start(send, status, headers)
                has_begun, more = True, True
            else:
                _, _, body, more = message
            await send({"type": "http.response.body", "body": body, "more_body": more})
            if not more:
                return
            channel.send(Kind.TAKEN, number)
        if not (has_begun or call.left):
            await answer(send, *_unanswered(exchange.method))


async def _send_body(channel: Channel, number: int, call: Call, receive: Any, more: bool) -> None:
    """Send the owner the parts of a body when it wants them; then tell it when the client leaves."""
    while more:
        while not call.wanted:
            await call.changed()
        call.wanted = False
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        more = message["more_body"]
        channel.send(Kind.BODY, number, message["body"], more)
    if not more:
        await receive()
    call.ended = call.left = True
    call.wake()


def _certificate(scope: dict[str, Any]) -> bytes | None:
    certificate: bytes | None = scope.get("state", {}).get(CLIENT_CERTIFICATE)
    return certificate


def _fields(headers: list[list[bytes]]) -> Fields:
    return tuple((name, value) for name, value in headers)


async def _start(send: Any, status: int, headers: list[list[bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": _fields(headers)})


def _refusal(status: int, problem: str) -> tuple[int, Fields, bytes]:
    """The answer to a request that the owner does not answer."""
    return status, *protocol_error(status, problem)


def _unanswered(method: str) -> tuple[int, Fields, bytes]:
    """The answer where the owner has ended before its own. A read has done nothing, so it may be repeated at once."""
    return _refusal(503, NO_OWNER) if method in ("GET", "HEAD") else _refusal(502, OWNER_ENDED)


async def answer(send: Any, status: int, headers: Fields, body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _live(receive: Any, send: Any) -> None:
    """The lifespan of the application: it has nothing to start or to stop."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
