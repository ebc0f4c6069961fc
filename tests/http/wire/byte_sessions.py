"""A session of bytes that notes what happens, a server that speaks it at a port of its own, and its clients.

Owns no test.
"""

from __future__ import annotations

import dataclasses
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.http import raw_wire
from tests.http.raw_wire import Peer, Wired, application, echo, serving
from tests.http.tls_client import TlsStream
from tests.patience import PATIENCE_S
from trunkline.http.hosting.sockets import bind
from trunkline.http.wire import byte_session
from trunkline.http.wire.accepting import Listener
from trunkline.http.wire.byte_session import ByteBounds, ByteProtocol, Bytes
from trunkline.http.wire.engine import REAP_S

UNSENT_BYTES_MAX = 262_144
BOUNDS = ByteBounds(UNSENT_BYTES_MAX, established_s=10, write_timeout_s=20)


class Echo:
    """Sends back what it gets. `acts` has what it does instead when it gets a word, in the callback of that name."""

    def __init__(self, peer: byte_session.Peer | None, **acts: Callable[[Echo], Any]) -> None:
        self.peer = peer
        self.acts = acts
        self.connection: Bytes | None = None
        self.calls: list[str] = []
        self.ends: list[str] = []
        self.got = 0
        self.over = trio.Event()

    @property
    def wire(self) -> Bytes:
        assert self.connection is not None
        return self.connection

    def _act(self, name: str) -> bool:
        assert not self.ends, f"{name} after the end"
        self.calls.append(name)
        if name in self.acts:
            self.acts[name](self)
            return True
        return False

    def opened(self, connection: Bytes) -> None:
        self.connection = connection
        self._act("opened")

    def received(self, data: bytes) -> None:
        self.got += len(data)
        if not self._act("received"):
            self.wire.send(data)

    def received_all(self) -> None:
        self._act("received_all")

    def flushed(self) -> None:
        self._act("flushed")

    def drain(self) -> None:
        if not self._act("drain"):
            self.wire.close("the server stops")

    def closed(self, reason: str) -> None:
        self._act("closed") if "closed" in self.acts else None
        self.ends.append(reason)
        self.over.set()


@dataclass
class Speaking:
    """A server that speaks the protocol of `Echo` at `port`, and HTTP beside it."""

    wired: Wired
    port: int
    acts: dict[str, Callable[[Echo], Any]]
    sessions: list[Echo] = field(default_factory=list)

    async def connect(self, **options: Any) -> tuple[Peer, Echo]:
        """A client, and its session."""
        before = len(self.sessions)
        there = dataclasses.replace(self.wired, url=f"mqtt://127.0.0.1:{self.port}")
        peer = await there.connect(**options)
        with trio.fail_after(PATIENCE_S):
            while len(self.sessions) == before:
                await trio.lowlevel.checkpoint()
        return peer, self.sessions[before]

    async def connect_with(self, context: ssl.SSLContext) -> tuple[Peer, Echo]:
        """A client that uses TLS with a context of its own."""
        before = len(self.sessions)
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        peer = Peer(TlsStream(stream, context))
        self.wired.peers.append(peer)
        await peer.stream.do_handshake()
        with trio.fail_after(PATIENCE_S):
            while len(self.sessions) == before:
                await trio.lowlevel.checkpoint()
        return peer, self.sessions[before]


@asynccontextmanager
async def speaking(
    bounds: ByteBounds = BOUNDS,
    *,
    tls: bool | None = None,
    acts: dict[str, Callable[[Echo], Any]] | None = None,
    **options: Any,
) -> AsyncIterator[Speaking]:
    """Serve, with TLS where the raw connections of the test use it or `tls` says so. `options` are for `serving`."""
    sock = bind("127.0.0.1", 0)
    chosen = raw_wire.over_tls is not None if tls is None else tls
    served: Speaking | None = None

    def session_for(peer: byte_session.Peer) -> Echo:
        assert served is not None
        served.sessions.append(Echo(peer, **served.acts))
        return served.sessions[-1]

    listener = Listener(sock, tls=chosen, protocol=ByteProtocol(session_for, bounds))
    port = sock.getsockname()[1]
    async with serving(application(echo), listeners=[listener], **options) as wired:
        served = Speaking(wired, port, acts or {})
        yield served


async def take(peer: Peer, size: int) -> bytes:
    """The next bytes of the server; fewer where the connection ends."""
    pieces, missing = [], size
    with trio.fail_after(PATIENCE_S):
        while missing:
            data = await peer.stream.receive_some(min(missing, 65_536))
            if not data:
                break
            pieces.append(data)
            missing -= len(data)
    return b"".join(pieces)


async def passes(clock: MockClock, seconds: float) -> None:
    """Let time pass, and the reaper see it."""
    await wait_all_tasks_blocked()
    clock.jump(seconds)
    await wait_all_tasks_blocked()
    clock.jump(REAP_S)
    await wait_all_tasks_blocked()


async def over(session: Echo) -> list[str]:
    with trio.fail_after(PATIENCE_S):
        await session.over.wait()
    return session.ends
