"""WebSocket integrations on real sockets: what arrives, what the server is told, and what ends a connection."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, WebSocketRequest, serve_websocket

from tests.e2e.conftest import Server
from tests.e2e.sse_client import until
from tests.e2e.test_integrations import QUICK, Start, arrived, connected, failure, mqtt, state
from trunkline.actors.connections.integrations.connections import Connections


@asynccontextmanager
async def socket_server(
    handle: Callable[[WebSocketConnection], Any], seen: list[dict[bytes, bytes]]
) -> AsyncIterator[int]:
    """Serve WebSocket on a port of this machine. `seen` gets the headers of the requests."""

    async def accept(request: WebSocketRequest) -> None:
        headers = dict(request.headers)
        seen.append(headers)
        if headers.get(b"x-key") == b"bad":
            await request.reject(403, body=b"no")
            return
        await handle(await request.accept(extra_headers=[(b"X-Server", b"test")]))

    async with trio.open_nursery() as nursery:
        serving = partial(serve_websocket, accept, "127.0.0.1", 0, None)
        server = await nursery.start(serving)
        yield server.port
        nursery.cancel_scope.cancel()


async def websocket(
    server: Server, application: str, url: str, *, enabled: bool = True, **config: Any
) -> str:
    body = {
        "name": "ws",
        "integrationType": "websocket",
        "websocketConfig": {"url": url, **config},
        "enabled": enabled,
    }
    made = await server.call("POST", f"{application}/integrations", body, status=201)
    return f"{application}/integrations/{made['id']}"


async def test_messages_of_a_websocket_arrive(start_server: Start) -> None:
    seen: list[dict[bytes, bytes]] = []

    async def handle(socket: WebSocketConnection) -> None:
        await socket.send_message("text")
        await socket.send_message(b"bytes")
        try:
            await socket.get_message()
        except ConnectionClosed:
            return

    async with (
        socket_server(handle, seen) as port,
        start_server(callback_private_networks=True, limits=QUICK) as server,
    ):
        application, url = await server.application(), f"ws://127.0.0.1:{port}/feed?a=b"
        headers = [{"headerKey": "X-Key", "headerValue": "good"}]
        path = await websocket(server, application, url, username="ada", password="pw", headers=headers)
        await connected(server, path)
        await until(lambda: arrived(server) == 2)
        assert seen[0][b"x-key"] == b"good"
        assert seen[0][b"authorization"] == b"Basic " + base64.b64encode(b"ada:pw")
        bad = [{"headerKey": "X-Key", "headerValue": "bad"}]
        refused = await websocket(server, application, url, headers=bad)
        assert await failure(server, refused) == "Unexpected server response: 403"


async def test_a_websocket_that_is_closed_is_opened_again(start_server: Start) -> None:
    async def handle(socket: WebSocketConnection) -> None:
        await socket.send_message("x" * (300_000 if len(seen) == 2 else 10))
        if len(seen) == 1:
            await socket.aclose(4000, "enough")
        else:
            try:
                await socket.get_message()
            except ConnectionClosed:
                return

    seen: list[dict[bytes, bytes]] = []
    async with (
        socket_server(handle, seen) as port,
        start_server(callback_private_networks=True, limits=QUICK) as server,
    ):
        path = await websocket(server, await server.application(), f"ws://127.0.0.1:{port}/")
        await until(lambda: len(seen) == 3)
        await until(lambda: arrived(server) == 2)
        shown = await state(server, path, lambda shown: "maximum" in shown["disconnectInfo"].get("error", ""))
        assert shown["connectInfo"]["ts"] >= shown["disconnectInfo"]["ts"]


async def test_a_server_that_ends_the_handshake_is_tried_again(start_server: Start) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(answers.pop() if answers else b"")
        await stream.send_eof()

    answers = [b"HTTP/1.1 101 Switching Protocols\r\n\r\n", b"HTTP/1.1 500 No\r\n\r\n" + b"x" * 100_000]
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        async with start_server(callback_private_networks=True, limits=QUICK) as server:
            port = listeners[0].socket.getsockname()[1]
            path = await websocket(server, await server.application(), f"ws://127.0.0.1:{port}")
            counts = server.system.component(Connections).counts
            await until(lambda: counts["failed"] > 2)
            assert not answers
            assert await failure(server, path) == "The server ended the handshake of WebSocket"
        nursery.cancel_scope.cancel()


async def test_a_broker_behind_websocket_at_an_ipv6_address_is_told_its_name(start_server: Start) -> None:
    heads: list[bytes] = []

    async def serve(stream: trio.SocketStream) -> None:
        heads.append(bytes(await stream.receive_some()))
        await stream.send_eof()

    listeners = await trio.open_tcp_listeners(0, host="::1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        async with start_server(callback_private_networks=True, limits=QUICK) as server:
            port = listeners[0].socket.getsockname()[1]
            await mqtt(server, await server.application(), port, "a", protocol="ws", host="::1")
            await until(lambda: heads != [])
        nursery.cancel_scope.cancel()
    assert f"\r\nHost: [::1]:{port}\r\n".encode() in heads[0]
