"""A device's end of the link: it keeps its frames until they are acknowledged, and connects again by itself.

Owns when frames are sent, and what follows from the answers. Does not own the frames (`link_frames`) or where they are
kept (`link_queue`). A load uses `link_connection` instead, which costs less for a frame.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from ssl import SSLContext
from typing import Any, Final

import trio
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    HandshakeError,
    WebSocketConnection,
    open_websocket_url,
)

from trunkline.bench.errors import BenchError, ConnectionBroken, ProtocolViolation, TimedOut, TryLater
from trunkline.bench.framing import Response
from trunkline.bench.link_frames import (
    CBOR_PROTOCOL,
    COLUMNS,
    JSON_PROTOCOL,
    ROWS,
    STATE,
    Command,
    Frame,
    FromServer,
    Refusal,
    Stored,
    Welcome,
    read_frame,
    write_frame,
)
from trunkline.bench.link_queue import Entry, FrameQueue
from trunkline.bench.session import refusal
from trunkline.bench.transport import Origin, tls_context

PAUSE_MIN_S: Final = 1.0
PAUSE_MAX_S: Final = 60.0
"""Seconds: the longest pause before another attempt to connect; the first is up to `PAUSE_MIN_S`, doubled each time."""

WELCOME_TIMEOUT_S: Final = 30.0
PONG_TIMEOUT_S: Final = 30.0
CLOSE_TIMEOUT_S: Final = 5.0
MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
HANDLED_MAX: Final = 1024
"""Commands: that are known by their id if they come again."""

SUPERSEDED: Final = 4410
"""The close code where the device has opened another link."""

ELSEWHERE: Final = 4301
"""The close code where the device is served elsewhere, at the address that is the reason."""
MOVES_MAX: Final = 3
"""So often in a row a client goes where it is told; then it stays where it is."""

LASTING: Final = frozenset({1002, 1003, 1007, 1009, 4400, 4401, 4403, 4404, SUPERSEDED, 4413})
"""Close codes after which the same client would not get on by connecting again."""


class LinkEnded(BenchError):
    """The link was closed for good, with a close code and its reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"The server closed the link with {code}: {reason}")
        self.code = code
        self.reason = reason


class LinkClient:
    """The link of one device. Run `run` for as long as it is to be open.

    `on_command` is called for each command, once while this client lives; when it returns, the command is
    acknowledged. Without it none is. `on_refusal` is called for each frame that the server refused and that is not
    sent again, and `on_stored` for each acknowledgement. `on_connected` and `on_interrupted` are called as the
    connection comes and goes.

    The client connects to the machine that serves the device, if it is told of one, and to `url` again when that
    connection has ended.
    """

    def __init__(
        self,
        url: str,
        path: str,
        token: str,
        *,
        queue: FrameQueue | None = None,
        on_command: Callable[[Command], object] | None = None,
        on_refusal: Callable[[Refusal], object] = lambda _refusal: None,
        on_stored: Callable[[Stored], object] = lambda _stored: None,
        on_connected: Callable[[], object] = lambda: None,
        on_interrupted: Callable[[Exception], object] = lambda _problem: None,
        pause_min_s: float = PAUSE_MIN_S,
        random: Random | None = None,
    ) -> None:
        self._first = url
        self._path = path
        self.url: str
        """Where it connects."""
        self._tls: SSLContext | None
        self._go_to(url)
        self._moves = 0
        """How often in a row it was told to go elsewhere."""
        self._token = token
        self.queue = FrameQueue() if queue is None else queue
        self._on_command = on_command
        self._on_refusal = on_refusal
        self._on_stored = on_stored
        self._on_connected = on_connected
        self._on_interrupted = on_interrupted
        self._pause_min_s = pause_min_s
        self._random = random or Random()
        self._to_send: deque[Entry] = deque()
        self._under_way: set[int] = set()
        self._welcome: Welcome | None = None
        self._paused_until_s = 0.0
        self._handled: OrderedDict[tuple[str | None, int, int], None] = OrderedDict()
        self._changed = trio.Event()

    # States.

    async def send_state(
        self,
        data: Mapping[str, Any],
        time_ms: int | None = None,
        *,
        device: str | None = None,
        backlog: bool = False,
    ) -> int:
        """Keep one state, and send it when there is a connection. Returns the number of its frame.

        Waits only while the queue is full.
        """
        return await self._put([STATE, time_ms, dict(data)], device, backlog)

    async def send_rows(
        self,
        names: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        device: str | None = None,
        backlog: bool = False,
    ) -> int:
        """The same of many states: each row is a time and a value for each name, None for not reported."""
        return await self._put([ROWS, list(names), [list(row) for row in rows]], device, backlog)

    async def send_columns(
        self,
        base_ms: int,
        deltas: Any,
        columns: Mapping[str, Any],
        *,
        device: str | None = None,
        backlog: bool = False,
    ) -> int:
        """The same of columns, each a list or a typed array (`link_frames.typed`)."""
        return await self._put([COLUMNS, base_ms, deltas, dict(columns)], device, backlog)

    async def _put(self, body: Frame, device: str | None, backlog: bool) -> int:
        while self.queue.full:
            await self._changed.wait()
        entry = self.queue.put(body, device, backlog=backlog)
        self._to_send.append(entry)
        self._wake()
        return entry.n

    async def settled(self) -> None:
        """Wait until every frame is acknowledged, or was refused for good."""
        while self.queue:
            await self._changed.wait()

    # The connection.

    def _go_to(self, url: str) -> None:
        origin = Origin.parse(url)
        self.url = f"{'wss' if origin.tls else 'ws'}://{origin.authority}{origin.prefix}{self._path}/link"
        self._tls = tls_context() if origin.tls else None

    def _move(self, url: str) -> None:
        """Go where the server says, but never from TLS to none."""
        if self._tls is not None and not url.startswith("https://"):
            self._moves = MOVES_MAX
            return
        self._moves += 1
        self._go_to(url)

    async def run(self) -> None:
        """Keep the link open until cancelled. Raises `LinkEnded`, or an `ApiError`, if that has no prospect."""
        limit_s = self._pause_min_s
        while True:
            self._welcome = None
            problem: Exception
            try:
                problem = await self._connection()
            except ConnectionRejected as rejected:
                problem = _refusal_of(rejected)
                if not isinstance(problem, TryLater) and rejected.status_code < 500:
                    raise problem from None
            except (HandshakeError, OSError) as failed:
                problem = ConnectionBroken(
                    f"{self.url} cannot be reached: {failed or type(failed).__name__}.", maybe_done=False
                )
            if isinstance(problem, LinkEnded):
                if problem.code in LASTING:
                    raise problem
                if problem.code == ELSEWHERE and self._moves < MOVES_MAX:
                    self._move(problem.reason)
                    continue
            self._go_to(self._first)
            if self._welcome is not None:
                limit_s = self._pause_min_s
                self._moves = 0
            self._on_interrupted(problem)
            pause_s = self._random.uniform(0, limit_s)
            if isinstance(problem, TryLater) and problem.retry_after_s is not None:
                pause_s += problem.retry_after_s
            await trio.sleep(pause_s)
            limit_s = min(2 * limit_s, PAUSE_MAX_S)

    async def _connection(self) -> Exception:
        """One connection to its end, which is returned. Raises what is no end of a connection."""
        fatal: BaseException | None = None
        async with open_websocket_url(
            self.url,
            self._tls,
            subprotocols=[JSON_PROTOCOL if self.queue.text else CBOR_PROTOCOL],
            extra_headers=[(b"authorization", f"Bearer {self._token}".encode())],
            max_message_size=MESSAGE_BYTES_MAX,
            disconnect_timeout=CLOSE_TIMEOUT_S,
        ) as socket:
            problem: Exception = ConnectionBroken("The link broke.", maybe_done=True)
            try:
                async with trio.open_nursery() as nursery:
                    await self._open(socket)
                    nursery.start_soon(self._send_frames, socket)
                    nursery.start_soon(self._ping, socket)
                    while True:
                        await self._take(socket, read_frame(await socket.get_message()))
            except* ConnectionClosed:
                closed = socket.closed
                if closed is not None and closed.code != 1006:
                    problem = LinkEnded(closed.code, closed.reason or "")
            except* trio.TooSlowError:
                problem = TimedOut("The server does not answer.", maybe_done=True)
            except* BenchError as failures:
                fatal = failures.exceptions[0]
        if fatal is not None:
            raise fatal
        return problem

    async def _open(self, socket: WebSocketConnection) -> None:
        """Say hello, and begin again with all that is not acknowledged."""
        facts = {"session": self.queue.session, "nearest": self._moves < MOVES_MAX}
        await self._send(socket, write_frame([0, facts], text=self.queue.text))
        with trio.fail_after(WELCOME_TIMEOUT_S):
            welcome = read_frame(await socket.get_message())
        if not isinstance(welcome, Welcome):
            raise ProtocolViolation("The first frame of the server is not a welcome.")
        self.queue.stored(welcome.n, backlog=False, own_only=True)
        self.queue.stored(welcome.backlog_n, backlog=True, own_only=True)
        self._under_way.clear()
        self._to_send = deque(self.queue.entries.values())
        self._welcome = welcome
        self._on_connected()
        self._wake()

    async def _send_frames(self, socket: WebSocketConnection) -> None:
        assert self._welcome is not None
        window = self._welcome.window
        while True:
            while not self._to_send or len(self._under_way) >= window:
                await self._changed.wait()
            await trio.sleep_until(self._paused_until_s)
            if self._to_send:
                entry = self._to_send.popleft()
                self._under_way.add(entry.n)
                await self._send(socket, entry.data)

    async def _ping(self, socket: WebSocketConnection) -> None:
        """Find out when the server is gone without a word."""
        assert self._welcome is not None
        while True:
            await trio.sleep(self._welcome.ping_s)
            with trio.fail_after(PONG_TIMEOUT_S):
                await socket.ping()

    async def _send(self, socket: WebSocketConnection, data: bytes) -> None:
        await socket.send_message(data.decode() if self.queue.text else data)

    async def _take(self, socket: WebSocketConnection, frame: FromServer) -> None:
        match frame:
            case Stored(n, backlog):
                self.queue.stored(n, backlog=backlog)
                self._under_way.intersection_update(self.queue.entries)
                self._on_stored(frame)
            case Refusal():
                self._refused(frame)
            case Command() if self._on_command is not None:
                known = (frame.device, frame.id, frame.time_ms)
                if known not in self._handled:
                    self._on_command(frame)
                    self._handled[known] = None
                    if len(self._handled) > HANDLED_MAX:
                        self._handled.popitem(last=False)
                await self._send(socket, write_frame(frame.received, text=self.queue.text))
        self._wake()

    def _refused(self, frame: Refusal) -> None:
        """A frame that was refused for now is sent again under a new number; another is over."""
        self._under_way.discard(frame.n)
        if frame.retry_ms is None:
            if self.queue.drop(frame.n) is not None:
                self._on_refusal(frame)
            return
        again = self.queue.renew(frame.n)
        if again is not None:
            self._to_send.append(again)
            self._paused_until_s = trio.current_time() + frame.retry_ms / 1000

    def _wake(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()


@asynccontextmanager
async def running(client: LinkClient) -> AsyncIterator[LinkClient]:
    """Keep a link open for the duration of a block."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.run)
        yield client
        nursery.cancel_scope.cancel()


def _refusal_of(rejected: ConnectionRejected) -> BenchError:
    lines = [b"HTTP/1.1 %d" % rejected.status_code]
    lines += [b"%b: %b" % pair for pair in rejected.headers or ()]
    return refusal(Response(rejected.status_code, b"\r\n".join(lines), rejected.body or b""))
