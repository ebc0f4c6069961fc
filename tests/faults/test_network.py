"""A network that is slow, stalls, resets or is gone: others are served, all is freed, nothing is lost or doubled."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import trio
from trio_websocket import ConnectionClosed, HandshakeError

from tests.e2e.conftest import Server, running_server
from tests.e2e.link_peer import linked
from tests.e2e.sse_client import opened_stream, until
from tests.faults.proxy import Network, network, vanish
from tests.patience import PATIENCE_S

COMMANDS: Final = 30
STATES: Final = 30
STALLED_BYTES: Final = 30_000
FIRST_MS: Final = 1_700_000_000_000
CUT_AFTER_BYTES: Final = (700, 900, 1100, 1300, 1501, 1702, 1903, 2104, 2305, 2506)
"""In the head of an answer, between events and within them."""


class Reached(Server):
    """A server as clients reach it: by a network."""

    def __init__(self, server: Server, between: Network) -> None:
        super().__init__(between.url, server.system, server.settings, server.stop)
        self.token = server.token


@asynccontextmanager
async def reached(tmp_path: Path, **limits: Any) -> AsyncIterator[tuple[Server, Reached, Network, str]]:
    """A server, the same behind a network, the network, and the path of a device."""
    async with running_server(tmp_path / "data", limits=limits) as server, network(server.url) as between:
        device = await server.device(await server.application())
        yield server, Reached(server, between), between, device


async def command(server: Server, device: str, number: int) -> None:
    await server.call("POST", f"{device}/command", {"name": f"c{number}"})


async def test_a_stream_whose_client_is_gone_without_a_word_ends(tmp_path: Path) -> None:
    """Its comments are too small to fill a buffer: only that nobody acknowledges them tells."""
    async with reached(tmp_path, write_timeout_s=1) as (server, _, _, device):
        host, port = server.url.removeprefix("http://").split(":")
        head = f"GET {device}/commandStream?keepAliveInterval=1 HTTP/1.1\r\nHost: h\r\n"
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(f"{head}Authorization: Bearer {server.token}\r\n\r\n".encode())
            await stream.receive_some()
            await until(lambda: len(server.system.streams) == 1)
            vanish(stream)
            await until(lambda: not len(server.system.streams))


async def test_calls_and_streams_work_byte_by_byte(tmp_path: Path) -> None:
    async with reached(tmp_path) as (server, slow, between, device):
        between.piece_bytes = 1
        slow.token = await slow.log_in()
        async with opened_stream(slow, device) as stream:
            for number in range(3):
                await command(slow, device, number)
            assert await stream.names(3) == ["c0", "c1", "c2"]
        await slow.call("POST", f"{device}/state", {"data": {"temp": 1}})
        assert (await server.call("GET", f"{device}/compositeState"))["temp"]["value"] == 1


async def test_a_stream_that_is_reset_at_any_byte_has_no_gap_and_nothing_twice(tmp_path: Path) -> None:
    seen: list[str] = []
    last_id: str | None = None
    async with reached(tmp_path) as (server, far, between, device):
        for number in range(COMMANDS):
            await command(server, device, number)
        between.cuts = iter(CUT_AFTER_BYTES)
        last_id = "0"
        with trio.fail_after(PATIENCE_S):
            while len(seen) < COMMANDS:
                try:
                    async with opened_stream(far, device, last_id=last_id) as stream:
                        while len(seen) < COMMANDS and (event := await stream.event()):
                            seen.append(event.data["name"])
                            last_id = event.id
                except httpx.TransportError:
                    continue
        assert seen == [f"c{number}" for number in range(COMMANDS)]
        assert between.connections > len(CUT_AFTER_BYTES) / 2


async def test_a_request_that_stalls_is_ended_in_time_while_others_are_served(tmp_path: Path) -> None:
    async with reached(tmp_path, body_timeout_s=0.5, head_timeout_s=0.5) as (server, far, between, device):
        body = {"data": {"label": "x" * 100_000}}
        outcomes: list[int] = []

        async def send() -> None:
            async with far.client() as client:
                try:
                    outcomes.append((await client.post(f"{device}/state", json=body)).status_code)
                except httpx.TransportError:
                    outcomes.append(0)

        between.cuts, between.stalls = itertools.repeat(STALLED_BYTES), True
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(send)
            await until(lambda: between.connections == 3)
            await server.call("POST", f"{device}/state", {"data": {"temp": 2}})
        assert outcomes == [408] * 3
        assert (await server.call("GET", f"{device}/compositeState"))["temp"]["value"] == 2
        async with server.client() as client:
            assert "\ntrunkline_connections_open 1.0\n" in (await client.get("/metrics")).text


async def test_a_link_that_is_reset_at_any_byte_stores_each_state_once(tmp_path: Path) -> None:
    async with reached(tmp_path) as (server, far, between, device):
        token, _ = await server.device_token(device)
        between.cuts = iter(range(900, 1500, 40))  # after the handshake
        stored = 0
        with trio.fail_after(PATIENCE_S):
            while stored < STATES:
                try:
                    async with linked(far, device, token) as (peer, welcome):
                        stored = welcome["n"]
                        for number in range(stored + 1, STATES + 1):
                            await peer.send(1, number, FIRST_MS + number, {"temp": number})
                        while stored < STATES:
                            kind, acknowledged, *_ = await peer.next()
                            assert kind == 1
                            stored = acknowledged
                except* (ConnectionClosed, HandshakeError, OSError, trio.BrokenResourceError):
                    pass
        query = {"start": 2, "end": 2 * FIRST_MS, "limit": 1000}
        page = await server.call("GET", f"{device}/state", params=query)
        assert sorted(each["data"]["temp"] for each in page) == list(range(1, STATES + 1))
        assert between.connections > 5
