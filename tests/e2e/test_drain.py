"""SIGTERM drains: no new connections, streams end, calls in flight are answered, what was acknowledged is there."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trio

from tests.e2e.conftest import PASSWORD, Server, running_server
from tests.e2e.crash_load import FIRST_MS, Load, audit
from tests.e2e.server_process import OWNER, ServerProcess, serving, started
from tests.e2e.test_crash import FAULTY
from tests.patience import PATIENCE_S
from trunkline.http.app import create_app
from trunkline.http.routes import TABLE
from trunkline.http.serve import make_dispatcher
from trunkline.http.site.site import Site

pytestmark = pytest.mark.slow

LAST_CHUNK = b"0\r\n\r\n"


def grace(tmp_path: Path, drain_s: float) -> tuple[str, str]:
    """The option that sets how long calls in flight are waited for. No other time-out ends anything."""
    file = tmp_path / "limits.toml"
    numbers = (
        f"drain_s = {drain_s}",
        "body_timeout_s = 3600",
        "write_timeout_s = 3600",
        'send_state = "off"',
    )
    file.write_text("\n".join(numbers))
    return "--limits", str(file)


@asynccontextmanager
async def connected(server: ServerProcess) -> AsyncIterator[trio.SocketStream]:
    """A bare connection to the server."""
    address = urlsplit(server.url)
    assert address.hostname is not None
    assert address.port is not None
    with trio.fail_after(PATIENCE_S):
        async with await trio.open_tcp_stream(address.hostname, address.port) as stream:
            yield stream


def head(server: ServerProcess, method: str, path: str, *more: str) -> bytes:
    """The head of a request with the owner's token."""
    lines = (f"{method} {path} HTTP/1.1", "Host: here", f"Authorization: Bearer {server.token}", *more)
    return "\r\n".join((*lines, "", "")).encode()


async def received(stream: trio.SocketStream, until: bytes | None = None) -> bytes:
    """What comes: to the end of the stream, or until it ends with `until`."""
    answer = b""
    async for piece in stream:
        answer += piece
        if until is not None and answer.endswith(until):
            break
    return answer


@asynccontextmanager
async def listening(server: ServerProcess, device: str) -> AsyncIterator[trio.SocketStream]:
    """An open command stream of which the first comment has come."""
    async with connected(server) as stream:
        await stream.send_all(head(server, "GET", f"{device}/commandStream"))
        await received(stream, until=b":\n\n\r\n")
        yield stream


@asynccontextmanager
async def half_sent(server: ServerProcess, path: str, body: bytes) -> AsyncIterator[trio.SocketStream]:
    """A call of which the server has the head and waits for the body: it has asked for it."""
    more = ("Content-Type: application/json", f"Content-Length: {len(body)}", "Expect: 100-continue")
    async with connected(server) as stream:
        await stream.send_all(head(server, "POST", path, *more))
        await received(stream, until=b"HTTP/1.1 100 Continue\r\n\r\n")
        await stream.send_all(body[:5])
        yield stream


async def refuses_connections(server: ServerProcess) -> None:
    """Return when the server takes no new connections."""
    while True:
        try:
            async with connected(server):
                await trio.lowlevel.checkpoint()
        except OSError:
            return


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_streams_and_idle_connections_end_at_once(tmp_path: Path, number: signal.Signals) -> None:
    """With a grace of an hour: nothing here uses it."""
    async with serving(tmp_path / "data", *grace(tmp_path, 3600)) as server:
        device = await server.device(await server.application())
        async with listening(server, device) as stream, connected(server) as idle:
            await idle.send_all(head(server, "GET", "/healthz"))
            await received(idle, until=b'"alive"}')
            server.send_signal(number)
            assert (await received(stream)).endswith(LAST_CHUNK)
            assert await received(idle) == b""
        assert await server.ended() == 0
        assert "Traceback" not in server.log
        # Whom the operator chose is not shown.
        assert PASSWORD not in await server.output() + server.log


@pytest.mark.parametrize("hot", [True, False])
async def test_a_call_in_flight_is_answered_and_kept(tmp_path: Path, hot: bool) -> None:
    """Once on the direct way of the states, once through the application."""
    async with serving(tmp_path / "data", *grace(tmp_path, 3600)) as server:
        application = await server.application()
        device = await server.device(application)
        path, content = (f"{device}/state", {"data": {"temp": 7}}) if hot else (device, {"name": "late"})
        path, content = (path, content) if hot else (f"{application}/devices", content)
        body = json.dumps(content).encode()
        async with listening(server, device) as stream, half_sent(server, path, body) as late:
            server.send_signal(signal.SIGTERM)
            await received(stream)
            await refuses_connections(server)
            await late.send_all(body[5:])
            answer = await received(late)
            assert answer.startswith(b"HTTP/1.1 200 " if hot else b"HTTP/1.1 201 "), answer
        assert await server.ended() == 0
    assert not (tmp_path / "data" / "control.sock").exists()
    assert (tmp_path / "data" / "lock").read_text() == ""
    async with running_server(tmp_path / "data") as again:
        if hot:
            assert [each["data"] for each in await again.call("GET", f"{device}/state")] == [{"temp": 7}]
        else:
            found = await again.call("GET", f"{application}/devices?filterField=name&filter=late")
            assert found["totalCount"] == 1


async def test_a_call_that_never_ends_is_waited_for_no_longer_than_the_grace(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", *grace(tmp_path, 0.2)) as server:
        device = await server.device(await server.application())
        async with half_sent(server, f"{device}/state", b'{"data": {}}'):
            assert await server.terminate() == 0


async def test_a_reader_that_takes_nothing_is_waited_for_no_longer_than_the_grace(tmp_path: Path) -> None:
    """The answer of 10 MB is larger than what the sockets between the two take."""
    async with serving(tmp_path / "data", *grace(tmp_path, 0.2)) as server:
        device = await server.device(await server.application())
        label = "x" * 60_000
        for batch in range(10):
            states = [{"time": FIRST_MS + batch * 100 + n, "data": {"label": label}} for n in range(17)]
            await server.call("POST", f"{device}/state", states)
        query = f"limit=1000&start={FIRST_MS}&end={FIRST_MS + 1000}"
        async with connected(server) as stream:
            await stream.send_all(head(server, "GET", f"{device}/state?{query}"))
            assert await stream.receive_some(15) == b"HTTP/1.1 200 OK"
            assert await server.terminate() == 0


async def test_a_second_signal_cuts_the_drain_short(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", *grace(tmp_path, 3600)) as server:
        device = await server.device(await server.application())
        async with listening(server, device) as stream, half_sent(server, f"{device}/state", b'{"data": {}}'):
            server.send_signal(signal.SIGTERM)
            await received(stream)
            assert await server.terminate() == 0


async def test_what_was_acknowledged_under_load_is_there(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", "--limits", "off") as server:
        load = Load(server.url, server.token, seed=11)
        await load.prepare()
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(load.run)
                await load.reached(300)
                assert await server.terminate() == 0
        assert "Traceback" not in server.log
    async with serving(tmp_path / "data") as server:
        assert await audit(server.url, server.token, load.books) > 300


async def test_a_signal_during_the_start_ends_it_cleanly(tmp_path: Path) -> None:
    env = {**OWNER, "CRASH_STEP": "7", "CRASH_SIGNAL": "SIGTERM"}
    async with started(tmp_path / "crash-data", program=FAULTY, env=env) as server:
        assert await server.ended() == 0, server.log
        assert "Traceback" not in server.log
    async with serving(tmp_path / "crash-data") as server:
        await server.application()


async def test_readiness_is_taken_back(server: Server) -> None:
    """Connections that are idle end with the drain, so this is asked of the application itself."""
    app = create_app(make_dispatcher(server.system, server.settings), Site(TABLE, "test"))
    ask = partial(app.test_client().get, "/readyz")
    assert (await ask()).status_code == 200
    server.system.drain()
    answer = await ask()
    assert (answer.status_code, await answer.get_json()) == (503, {"status": "draining"})
