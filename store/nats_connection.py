"""A connection to one of several NATS servers, which is made again whenever it breaks.

Owns the socket, TLS, the login, pings, and which answer belongs to which request. Does not own the protocol
(`nats_codec.py`) nor what is asked (`jetstream.py`).

The answers to all requests come to one subscription, `_INBOX.<random>.*`, so a request subscribes to nothing. When a
connection breaks, all requests that wait fail at once with `LogUnreachable`: nobody can say whether they were received,
so nothing is sent a second time here.
"""

from __future__ import annotations

import secrets
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import structlog
import trio

from trunkline.store import nats_codec
from trunkline.store.errors import LogUnreachable, StoreBroken, first_of
from trunkline.store.nats_address import Address
from trunkline.store.nats_codec import Event, Info, Message, Parser, Ping, ProtocolError, Refusal
from trunkline.store.nats_login import NOBODY, Login

CONNECT_S: Final = 2.0
"""For everything until the first request can be sent: with several servers the next one is tried then."""
CONNECTED_S: Final = 5.0
"""How long a connection is waited for by what has no time of its own."""
PING_S: Final = 0.5
SILENCE_S: Final = 1.5
"""A connection on which nothing comes for so long, not even the answer to a ping, is broken."""
PAUSE_MIN_S: Final = 0.02
PAUSE_MAX_S: Final = 1.0
"""Between two rounds through all servers. It doubles from one round to the next."""
UNSENT_BYTES_MAX: Final = 64 * 1024 * 1024
RECEIVE_BYTES: Final = 64 * 1024
NO_RESPONDERS: Final = 503
REQUESTS: Final = 1
"""The subscription to which the answers to requests come."""

_PROBLEMS: Final = (OSError, trio.BrokenResourceError, ProtocolError, StoreBroken, ValueError)
_log = structlog.get_logger("trunkline.store")


class _Waiting:
    """A request that waits for its answer, or a reader of many messages."""

    __slots__ = ("broken", "changed", "found")

    def __init__(self) -> None:
        self.found: deque[Message] = deque()
        self.broken = False
        self.changed = trio.Event()

    def take(self, message: Message) -> None:
        self.found.append(message)
        self.changed.set()

    def end(self) -> None:
        self.broken = True
        self.changed.set()

    async def next(self) -> Message:
        """The next message. Raises LogUnreachable if the connection breaks before."""
        while not self.found and not self.broken:
            self.changed = trio.Event()
            await self.changed.wait()
        if self.found:
            return self.found.popleft()
        raise LogUnreachable(
            "The connection to the log broke, so nobody can say whether it received what was sent."
        )


class Messages:
    """The messages that are sent to `subject`, in order. They end when the connection breaks."""

    def __init__(self, subject: str, waiting: _Waiting) -> None:
        self.subject = subject
        self._waiting = waiting

    async def next(self, wait_s: float) -> Message:
        """The next message. Raises LogUnreachable if the connection breaks before, or none comes in time."""
        with trio.move_on_after(wait_s):
            return await self._waiting.next()
        raise LogUnreachable(f"Nothing came from the log for {wait_s:g} s.")


class NatsConnection:
    """Use one for all that a process asks. `run` it in a nursery; what is asked before waits for the connection.

    `servers` are tried in their order, so the first one should be the nearest; when a connection breaks, the next one
    follows. `context` is for those with TLS, and for those that require it.
    """

    def __init__(
        self,
        servers: Sequence[Address],
        login: Login = NOBODY,
        *,
        context: ssl.SSLContext | None = None,
        name: str = "trunkline",
    ) -> None:
        self.servers = tuple(servers)
        self.info: Mapping[str, Any] = {}
        """What the server says of itself."""
        self.server: Address | None = None
        """The server, while there is a connection."""
        self.connections = 0
        """How many were made."""
        self._login = login
        self._context = context
        self._name = name
        self._inbox = f"_INBOX.{secrets.token_hex(11)}"
        self._numbers = REQUESTS
        self._requests: dict[str, _Waiting] = {}
        self._readers: dict[int, _Waiting] = {}
        self._connected = trio.Event()
        self._unsent = bytearray()
        self._has_unsent = trio.Event()
        self._heard_s = 0.0
        self._problems: dict[Address, str] = {}
        """Of each server since the last connection. A problem is logged when it is another one than before."""

    @property
    def problem(self) -> str:
        """Why there is no connection: what the servers have said, or why they were not reached."""
        said = (f"{address}: {problem}" for address, problem in self._problems.items())
        return "; ".join(said) or "no server was reached yet"

    # Asking.

    async def request(
        self, subject: str, payload: bytes = b"", headers: Mapping[str, str] | None = None, *, wait_s: float
    ) -> Message:
        """Send a message, and return its answer.

        Raises LogUnreachable if there is no connection within `wait_s`, no answer in that time, nobody who could
        answer, or the connection breaks. Then nobody can say whether the message was received.
        """
        self._numbers += 1
        token, waiting = f"{self._numbers:x}", _Waiting()
        reply = f"{self._inbox}.{token}"
        with trio.move_on_after(wait_s) as scope, _listed(self._requests, token, waiting):
            await self.send(subject, payload, headers, reply=reply)
            answer = await waiting.next()
            if answer.status == NO_RESPONDERS:
                raise LogUnreachable(
                    f"{self.server} has no JetStream that could answer, or its servers have no majority."
                )
            return answer
        assert scope.cancelled_caught
        raise LogUnreachable(f"The log did not answer for {wait_s:g} s.") if self.server else self._alone()

    async def send(
        self, subject: str, payload: bytes, headers: Mapping[str, str] | None = None, *, reply: str = ""
    ) -> None:
        """Send a message as soon as there is a connection, in the order of the calls.

        Raises LogUnreachable if there is none for `CONNECTED_S`, or too much waits to be sent.
        """
        await self._write(nats_codec.publish(subject, payload, reply=reply, headers=headers))

    @asynccontextmanager
    async def messages(self, subject: str = "") -> AsyncGenerator[Messages, None]:
        """What is sent to a subject, or to one of this client alone, until the end of the body or of the connection.

        Raises LogUnreachable.
        """
        self._numbers += 1
        number, waiting = self._numbers, _Waiting()
        subject = subject or f"{self._inbox}-{number:x}"
        with _listed(self._readers, number, waiting):
            await self._write(nats_codec.subscribe(subject, number))
            try:
                yield Messages(subject, waiting)
            finally:
                if not waiting.broken:
                    self._write_now(nats_codec.unsubscribe(number))

    async def _write(self, data: bytes) -> None:
        if not self._connected.is_set():
            with trio.move_on_after(CONNECTED_S):
                while not self._connected.is_set():
                    await self._connected.wait()
            if not self._connected.is_set():
                raise self._alone()
        if len(self._unsent) + len(data) > UNSENT_BYTES_MAX:
            raise LogUnreachable(f"{len(self._unsent)} bytes wait to be sent to the log already.")
        self._write_now(data)

    def _alone(self) -> LogUnreachable:
        return LogUnreachable(f"There is no connection to the log: {self.problem}.")

    def _write_now(self, data: bytes) -> None:
        self._unsent += data
        self._has_unsent.set()

    # Being connected.

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Be connected until cancelled."""
        task_status.started()
        pause_s = PAUSE_MIN_S
        while True:
            before = self.connections
            for address in self.servers:
                try:
                    await self._serve(address)
                except* _PROBLEMS as problems:
                    self._tell(address, first_of(problems))
            if self.connections > before:
                pause_s = PAUSE_MIN_S
            await trio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    def _tell(self, address: Address, problem: BaseException) -> None:
        reason = (str(problem) or str(problem.__cause__ or type(problem).__name__)).rstrip(".")
        if reason != self._problems.get(address):
            _log.warning("no connection to the log", problem=f"{address}: {reason}")
        self._problems[address] = reason

    async def _serve(self, address: Address) -> None:
        """Connect to a server, and be connected until that ends. Always raises."""
        parser = Parser()
        async with self._opened(address, parser) as (stream, events):
            self._connected_to(address, events)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._send, stream)
                    nursery.start_soon(self._watch)
                    await self._receive(stream, parser)
            finally:
                self._disconnected()

    def _connected_to(self, address: Address, events: list[Event]) -> None:
        self.connections += 1
        self.server = address
        self._problems = {address: "the connection broke"}
        self._heard_s = trio.current_time()
        self._unsent = bytearray(nats_codec.subscribe(f"{self._inbox}.*", REQUESTS))
        self._has_unsent.set()
        for event in events:
            self._take(event)
        self._connected.set()
        _log.info("connected to the log", server=str(address), name=self.info.get("server_name"))

    def _disconnected(self) -> None:
        self.server = None
        self._connected = trio.Event()
        self._unsent = bytearray()
        for waiting in (*self._requests.values(), *self._readers.values()):
            waiting.end()

    @asynccontextmanager
    async def _opened(
        self, address: Address, parser: Parser
    ) -> AsyncGenerator[tuple[trio.abc.Stream, list[Event]], None]:
        """A stream on which the server has accepted the login, and what it sent with that."""
        stream: trio.abc.Stream | None = None
        try:
            with _answered():
                plain = stream = await trio.open_tcp_stream(address.host, address.port)
                info = await self._said(stream, parser, Info)
                assert isinstance(info, Info)
                self.info = info.fields
                if address.tls or info.fields.get("tls_required"):
                    stream = trio.SSLStream(
                        plain, self._context or ssl.create_default_context(), server_hostname=address.host
                    )
                    await stream.do_handshake()
                events = await self._log_in(stream, parser)
            yield stream, events
        finally:
            if stream is not None:
                await trio.aclose_forcefully(stream)

    async def _log_in(self, stream: trio.abc.Stream, parser: Parser) -> list[Event]:
        fields = {
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "protocol": 1,
            "lang": "python",
            "version": "1",
            "name": self._name,
            **self._login.fields(str(self.info.get("nonce", ""))),
        }
        await stream.send_all(nats_codec.connect(fields) + nats_codec.PING)
        events: list[Event] = []
        while True:
            for event in parser.feed(await _received(stream)):
                if isinstance(event, Refusal):
                    raise StoreBroken(f"the server refuses: {event.text}")
                events.append(event)
            if any(isinstance(event, nats_codec.Pong) for event in events):
                return events

    async def _said(self, stream: trio.abc.Stream, parser: Parser, kind: type[Event]) -> Event:
        """The first event, which is of this kind."""
        while True:
            for event in parser.feed(await _received(stream)):
                if not isinstance(event, kind):
                    raise ProtocolError(f"The server begins with {type(event).__name__}.")
                return event

    async def _receive(self, stream: trio.abc.Stream, parser: Parser) -> None:
        while True:
            data = await _received(stream)
            self._heard_s = trio.current_time()
            for event in parser.feed(data):
                self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, Message):
            if event.subscription == REQUESTS:
                waiting = self._requests.get(event.subject.rpartition(".")[2])
            else:
                waiting = self._readers.get(event.subscription)
            if waiting is not None:  # else nobody waits for it any more
                waiting.take(event)
        elif isinstance(event, Ping):
            self._write_now(nats_codec.PONG)
        elif isinstance(event, Info):
            self.info = {**self.info, **event.fields}
        elif isinstance(event, Refusal):
            raise StoreBroken(f"the server refuses: {event.text}")

    async def _send(self, stream: trio.abc.Stream) -> None:
        """Send what waits: all that came in a turn of the loop with one call."""
        while True:
            await self._has_unsent.wait()
            self._has_unsent = trio.Event()
            data, self._unsent = self._unsent, bytearray()
            if data:
                await stream.send_all(data)

    async def _watch(self) -> None:
        """Raise if nothing is heard any more."""
        while True:
            await trio.sleep(PING_S)
            silent_s = trio.current_time() - self._heard_s
            if silent_s >= SILENCE_S:
                raise trio.BrokenResourceError(f"nothing was heard for {silent_s:.1f} s")
            self._write_now(nats_codec.PING)


@contextmanager
def _listed(found: dict[Any, _Waiting], key: Any, waiting: _Waiting) -> Iterator[None]:
    found[key] = waiting
    try:
        yield
    finally:
        del found[key]


@contextmanager
def _answered() -> Iterator[None]:
    try:
        with trio.fail_after(CONNECT_S):
            yield
    except trio.TooSlowError:
        raise trio.BrokenResourceError(f"it did not answer for {CONNECT_S:g} s") from None


async def _received(stream: trio.abc.Stream) -> bytes:
    data = bytes(await stream.receive_some(RECEIVE_BYTES))
    if not data:
        raise trio.BrokenResourceError("the server closed the connection")
    return data
