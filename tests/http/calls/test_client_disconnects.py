"""A client that disconnects: its streams and calls end, on the fast path, through Quart, and on both engines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.http.both_paths import FAST_ROUTES, GOOD_BODIES, Twin, both_paths, request
from tests.http.raw_wire import Peer
from tests.patience import PATIENCE_S
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.request import Request, Response
from trunkline.http.routes import TABLE

pytestmark = pytest.mark.usefixtures("silent")

STREAM = next(route for route in TABLE.routes if route.operation == "device.commandStream")
BEFORE_THE_NEXT_COMMENT_S = 50
ENGINES = pytest.mark.parametrize("engine", ["fast", "stock"])


@asynccontextmanager
async def streaming(data_dir: Path, engine: str = "fast") -> AsyncIterator[tuple[Twin, Peer]]:
    """A device whose command stream is open on its own connection."""
    async with both_paths(data_dir, engine, {"write_timeout_s": 20}) as paths:
        peer = await paths.fast.wired.connect(receive_buffer_bytes=65_536)
        await peer.send(request(paths.fast, STREAM, query="?keepAliveInterval=60"))
        assert (await peer.head() or b"").startswith(b"HTTP/1.1 200 ")
        assert len(paths.fast.house.system.streams) == 1
        yield paths.fast, peer


async def no_stream_left(twin: Twin) -> None:
    with trio.fail_after(BEFORE_THE_NEXT_COMMENT_S):
        while len(twin.house.system.streams):
            await trio.lowlevel.checkpoint()


@ENGINES
@pytest.mark.parametrize("ending", ["close", "reset", "half_close"])
async def test_a_subscription_ends_with_its_client(tmp_path: Path, engine: str, ending: str) -> None:
    """At once, not at the next keep-alive."""
    async with streaming(tmp_path / "data", engine) as (twin, peer):
        await getattr(peer, ending)()
        await no_stream_left(twin)


async def test_a_subscription_ends_with_a_client_that_never_reads(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    async with streaming(tmp_path / "data") as (twin, _):
        await wait_all_tasks_blocked()
        for _ in range(200):
            await twin.house.command(twin.device, "fill", payload="x" * 60_000)
            await wait_all_tasks_blocked()
        mock_clock.jump(20)
        await wait_all_tasks_blocked()
        mock_clock.jump(1)
        await wait_all_tasks_blocked()
        assert len(twin.house.system.streams) == 0
        assert twin.wired.engine.connections == 0


async def test_pipelined_bytes_behind_a_stream_do_not_hide_that_its_client_left(tmp_path: Path) -> None:
    async with streaming(tmp_path / "data") as (twin, peer):
        await peer.send(request(twin, FAST_ROUTES["device.getState"]) * 3)
        await wait_all_tasks_blocked()
        await peer.reset()
        await no_stream_left(twin)


@ENGINES
async def test_a_call_through_quart_is_cancelled_when_its_client_leaves(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, cancelled = trio.Event(), trio.Event()

    async def waits(self: Dispatcher, request: Request, found: object = None) -> Response:
        entered.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    async with both_paths(tmp_path / "data", engine) as paths:
        monkeypatch.setattr(Dispatcher, "handle", waits)
        peer = await paths.fast.wired.connect()
        await peer.send(b"GET /me HTTP/1.1\r\nHost: x\r\n\r\n")
        await entered.wait()
        await peer.reset()
        with trio.fail_after(PATIENCE_S):
            await cancelled.wait()


async def test_a_call_of_the_fast_path_is_finished_when_its_client_leaves(tmp_path: Path) -> None:
    """It was received completely, so it is carried out; a later read sees it."""
    route = FAST_ROUTES["device.sendState"]
    async with both_paths(tmp_path / "data") as paths:
        twin = paths.fast
        peer = await twin.wired.connect()
        await peer.send(request(twin, route, GOOD_BODIES[route.operation]))
        await peer.reset()
        await twin.wired.deserted()
        states = await twin.house.states(twin.device)
        assert [state["data"] for state in states] == [{"a": 21.5, "label": "x"}]
