"""Clients that leave early: a stream, a download and a connection are given back whoever leaves when."""

from __future__ import annotations

import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
import trustme

from tests.e2e.conftest import Server
from tests.e2e.sse_client import until
from tests.e2e.test_exports import export
from tests.http.other_protocols import H2Peer
from tests.patience import PATIENCE_S
from trunkline.actors.platform.jobs.runner import Jobs
from trunkline.http.app import create_app
from trunkline.http.routes import TABLE
from trunkline.http.serve import make_dispatcher
from trunkline.http.site.site import Site
from trunkline.http.wire.transport import ClientGone

ROUNDS = 20
NAMES = ("connections_open", "doors")
PROTOCOLS = pytest.mark.parametrize("protocol", ["http/1.1", "http/1.1 over tls", "h2", "h2 over tls"])


async def targets(server: Server) -> list[str]:
    """The paths of the two streams of a device, and of a download."""
    device = await server.device(await server.application())
    _, log = await export(server, device)
    link = urlsplit(log["output"]["file"]["url"])
    return [f"{device}/commandStream", f"{device}/stateStream", f"{link.path}?{link.query}"]


def opened(server: Server) -> int:
    return len(server.system.streams) + server.system.component(Jobs).results.downloads


class Leaver:
    """A client of the application itself that leaves when the head of its response is sent."""

    def __init__(self, how: str) -> None:
        self.heads = 0
        self._how = how
        self._body_received = False
        self._scope = trio.CancelScope()

    async def call(self, app: Any, server: Server, target: str) -> None:
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"x"), (b"authorization", f"Bearer {server.token}".encode())],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
            "extensions": {},
        }
        with trio.fail_after(PATIENCE_S), self._scope:
            try:
                await app(scope, self._receive, self._send)
            except* ClientGone:
                pass

    async def _receive(self) -> dict[str, Any]:
        if self._body_received:
            await trio.sleep_forever()
        self._body_received = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: dict[str, Any]) -> None:
        assert message["type"] == "http.response.start", "nothing is sent after the client has left"
        assert message["status"] == 200
        self.heads += 1
        if self._how == "gone":
            raise ClientGone("the client closed its connection")
        self._scope.cancel()
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("how", ["gone", "cancelled"])
async def test_what_was_opened_is_closed_where_the_head_cannot_be_sent(server: Server, how: str) -> None:
    """Quart never enters such a body."""
    app = create_app(make_dispatcher(server.system, server.settings), Site(TABLE, "test"))
    for target in await targets(server):
        for _ in range(ROUNDS):
            leaver = Leaver(how)
            await leaver.call(app, server, target)
            assert leaver.heads == 1
            assert opened(server) == 0


# Over sockets, in every protocol.


class Wire:
    """Connects to a server in one protocol, and asks for a path."""

    def __init__(self, protocol: str, context: ssl.SSLContext) -> None:
        self.http2 = protocol.startswith("h2")
        self.context = context if protocol.endswith("tls") else None

    async def connect(self, server: Server) -> Any:
        """A stream of bytes, over TLS after its handshake."""
        address = urlsplit(server.url)
        assert address.port is not None
        stream: Any = await trio.open_tcp_stream("127.0.0.1", address.port)
        if self.context is not None:
            self.context.set_alpn_protocols(["h2" if self.http2 else "http/1.1"])
            stream = trio.SSLStream(stream, self.context, server_hostname="localhost", https_compatible=True)
            await stream.do_handshake()
        return stream

    async def ask(self, stream: Any, server: Server, target: str) -> None:
        """Send a request; over HTTP/2 four of them, of which one is reset at once."""
        if not self.http2:
            fields = f"Host: x\r\nAuthorization: Bearer {server.token}\r\n\r\n"
            await stream.send_all(f"GET {target} HTTP/1.1\r\n{fields}".encode())
            return
        peer = H2Peer(stream)
        for n in range(4):
            number = peer.begin("GET", target, ("authorization", f"Bearer {server.token}"))
            if n == 1:
                peer.h2.reset_stream(number)
        await peer.flush()


@asynccontextmanager
async def wire_to(
    protocol: str, tmp_path: Path, start_server: Any, **settings: Any
) -> AsyncIterator[tuple[Server, Wire]]:
    """A server that speaks the protocol, and a way to connect to it."""
    authority, context = trustme.CA(), ssl.create_default_context()
    authority.configure_trust(context)
    if protocol.endswith("tls"):
        issued = authority.issue_cert("localhost")
        settings |= {"certfile": str(tmp_path / "chain.pem"), "keyfile": str(tmp_path / "key.pem")}
        issued.cert_chain_pems[0].write_to_path(settings["certfile"])
        issued.private_key_pem.write_to_path(settings["keyfile"])
    elif protocol == "h2":
        settings["http2_prior_knowledge"] = True
    async with start_server(**settings) as server:
        yield server, Wire(protocol, context)


async def leave(stream: Any, when: int) -> None:
    """Leave at once, a moment later, when the first bytes have come, or with a reset."""
    if when % 4 == 1:
        for _ in range(when % 7):
            await trio.lowlevel.checkpoint()
    elif when % 4 == 2:
        await stream.receive_some(1000)
    elif when % 4 == 3:
        transport = stream if isinstance(stream, trio.SocketStream) else stream.transport_stream
        transport.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await trio.aclose_forcefully(stream)


async def no_connection_open(server: Server) -> None:
    """Wait until the server counts no connection but the one that asks, and those of its doors.

    It asks on one connection: where the counts of a door are a second old, others would be counted as well.
    """
    async with server.client("") as client:
        with trio.fail_after(PATIENCE_S):
            while True:
                text = (await client.get("/metrics")).text
                open, doors = (re.search(rf"^trunkline_{name} (\d+)", text, re.M) for name in NAMES)
                assert open is not None
                assert doors is not None
                if int(open[1]) == 1 + int(doors[1]):
                    return


async def leavers(server: Server, wire: Wire, rounds: int) -> None:
    """Clients that leave early, ten at a time; then nothing of them is left."""
    for target in await targets(server):
        async with trio.open_nursery() as nursery:
            limit = trio.CapacityLimiter(10)

            async def one(when: int, target: str = target, limit: trio.CapacityLimiter = limit) -> None:
                async with limit:
                    with trio.fail_after(PATIENCE_S):
                        stream = await wire.connect(server)
                        await wire.ask(stream, server, target)
                        await leave(stream, when)

            for when in range(rounds):
                nursery.start_soon(one, when)
        await until(lambda: not opened(server))
        await no_connection_open(server)


@PROTOCOLS
async def test_nothing_is_left_of_clients_that_leave_early(
    protocol: str, tmp_path: Path, start_server: Any
) -> None:
    async with wire_to(protocol, tmp_path, start_server) as (server, wire):
        await leavers(server, wire, 60)


@pytest.mark.load
@PROTOCOLS
async def test_nothing_is_left_of_thousands_that_leave_early(
    protocol: str, tmp_path: Path, start_server: Any
) -> None:
    async with wire_to(protocol, tmp_path, start_server) as (server, wire):
        await leavers(server, wire, 2000)
        await leavers(server, wire, 60)


@PROTOCOLS
async def test_idle_connections_and_open_streams_do_not_hold_up_a_drain(
    protocol: str, tmp_path: Path, start_server: Any
) -> None:
    """With a grace of an hour: nothing here uses it."""
    async with wire_to(protocol, tmp_path, start_server, limits={"drain_s": 3600}) as (server, wire):
        stream_of_states = (await targets(server))[1]
        idle, asked, listening = [await wire.connect(server) for _ in range(3)]
        await wire.ask(asked, server, "/healthz")
        await wire.ask(listening, server, stream_of_states)
        with trio.fail_after(PATIENCE_S):
            while not opened(server):
                await trio.lowlevel.checkpoint()
            await server.stop()
            for stream in (idle, asked, listening):
                while await received(stream):
                    pass


async def received(stream: Any) -> bytes:
    try:
        return bytes(await stream.receive_some(65_536))
    except trio.BrokenResourceError:
        return b""
