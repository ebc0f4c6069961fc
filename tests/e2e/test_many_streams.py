"""A thousand open command streams on one process stay alive, and a reader that stops reading costs little."""

from __future__ import annotations

import json
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio

from tests.e2e.scale import Resident, register
from tests.e2e.server_process import ServerProcess, serving
from tests.patience import PATIENCE_S
from trunkline.bench.client import Connection
from trunkline.bench.session import Session

pytestmark = pytest.mark.slow

STREAMS = 1000
DESCRIPTORS = 2 * STREAMS + 200
SENDERS = 16
COMMENT = b":\n\n"

DEAD_READERS = 20
COMMANDS = 600
PAYLOAD = "x" * 60_000
GROWTH_BYTES_MAX = 16 * 2**20
"""All readers share the bytes of an event, so without a bound it would be the 36 MB of all commands."""


@pytest.fixture(autouse=True)
def enough_descriptors() -> Iterator[None]:
    """As many as the streams need, here and in the server, which inherits the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(DESCRIPTORS, hard)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Reader:
    """A reader of an event stream on a bare socket."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.comments = 0
        self.commands: list[Any] = []
        self.ended = False
        self._rest = b""

    async def read(self) -> None:
        """Take what comes next. Chunks are the server's pieces; events are taken from their content."""
        piece = await self.stream.receive_some(65_536)
        self.ended = not piece
        self.take(piece)

    def take(self, piece: bytes) -> None:
        """Count and keep what is whole."""
        *whole, self._rest = (self._rest + piece).split(b"\n\n")
        for event in whole:
            self.comments += event.endswith(b":")
            name, found, data = event.partition(b"\ndata: ")
            if found:
                assert b"event: deviceCommand\nid: " in name, name
                self.commands.append(json.loads(data))


@asynccontextmanager
async def opened(server: ServerProcess, device: str, *, receive_bytes: int = 0) -> AsyncIterator[Reader]:
    """An open command stream of the device; the head of the answer is read."""
    address = urlsplit(server.url)
    sock = trio.socket.socket()
    if receive_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    with sock:
        await sock.connect((str(address.hostname), address.port))
        stream = trio.SocketStream(sock)
        head = (
            f"GET {device}/commandStream?keepAliveInterval=1 HTTP/1.1",
            "Host: here",
            f"Authorization: Bearer {server.token}",
        )
        await stream.send_all("\r\n".join((*head, "", "")).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += await stream.receive_some(4096)
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        reader = Reader(stream)
        reader.take(answer.partition(b"\r\n\r\n")[2])
        yield reader


async def metric(server: ServerProcess, name: str) -> float:
    """The value of a metric without labels."""
    async with server.client("") as client:
        lines = (await client.get("/metrics")).text.splitlines()
    (value,) = [float(line.split()[1]) for line in lines if line.startswith(f"{name} ")]
    return value


async def registered(tmp_path: Path, count: int) -> Path:
    """A data directory with so many devices."""
    await register(tmp_path / "data", count)
    return tmp_path / "data"


async def paths_of(session: Session) -> list[str]:
    """The paths of all devices."""
    (application,) = [each async for each in session.items("/applications")]
    place = f"/applications/{application['id']}/devices"
    return [f"{place}/{each['id']}" async for each in session.items(place)]


async def test_a_thousand_streams_stay_alive_and_hear_their_command(tmp_path: Path) -> None:
    async with serving(await registered(tmp_path, STREAMS), cold=True) as server:
        session = Session(server.url, token=server.token)
        devices = await paths_of(session)
        session.close()
        assert len(devices) == STREAMS
        all_open, all_alive = Countdown(STREAMS), Countdown(STREAMS)
        heard: dict[str, list[Any]] = {}

        async def listen(device: str) -> None:
            async with opened(server, device) as reader:
                all_open.count()
                # The first comment opens the stream, the next ones keep it alive.
                while reader.comments < 3:
                    await reader.read()
                    assert not reader.ended
                all_alive.count()
                while not reader.commands:
                    await reader.read()
                    assert not reader.ended
                heard[device] = [command["payload"] for command in reader.commands]

        async def send(waiting: Any) -> None:
            async with Connection(session.origin, token=server.token) as connection:
                for number, device in waiting:
                    body = json.dumps({"name": "go", "payload": number}).encode()
                    answer = await connection.request("POST", f"{device}/command", body)
                    assert answer.status == 200, answer.body

        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for device in devices:
                    nursery.start_soon(listen, device)
                await all_open.reached.wait()
                assert await metric(server, "trunkline_streams_open") == STREAMS
                await all_alive.reached.wait()
                assert await metric(server, "trunkline_streams_open") == STREAMS
                waiting = iter(list(enumerate(devices)))
                for _ in range(SENDERS):
                    nursery.start_soon(send, waiting)
            assert heard == {device: [number] for number, device in enumerate(devices)}
            # Those who left are forgotten, at the latest with the next keep-alive.
            while await metric(server, "trunkline_streams_open"):
                await trio.lowlevel.checkpoint()
        assert await metric(server, "trunkline_slow_consumers_closed_total") == 0


async def test_readers_that_stop_reading_cost_no_more_than_their_buffers(tmp_path: Path) -> None:
    """Twenty of them are sent 36 MB; the one who reads misses nothing."""
    async with serving(await registered(tmp_path, 1), "--limits", "off", cold=True) as server:
        session = Session(server.url, token=server.token)
        (device,) = await paths_of(session)
        async with trio.open_nursery() as nursery:
            watching = trio.Event()

            async def watch() -> None:
                async with opened(server, device) as reader:
                    watching.set()
                    while len(reader.commands) < COMMANDS:
                        await reader.read()
                        assert not reader.ended
                    assert [command["payload"][0] for command in reader.commands] == list(range(COMMANDS))

            async def forget() -> None:
                async with opened(server, device, receive_bytes=4096):
                    ready.count()
                    await done.wait()

            ready, done = Countdown(DEAD_READERS), trio.Event()
            with trio.fail_after(PATIENCE_S):
                nursery.start_soon(watch)
                for _ in range(DEAD_READERS):
                    nursery.start_soon(forget)
                await watching.wait()
                await ready.reached.wait()
                before = Resident.of(server.process.pid).own
                for number in range(COMMANDS):
                    command = {"name": "fill", "payload": [number, PAYLOAD]}
                    await session.call("POST", f"{device}/command", command)
                grown = Resident.of(server.process.pid).own - before
                closed = await metric(server, "trunkline_slow_consumers_closed_total")
                done.set()
        session.close()
        assert grown < GROWTH_BYTES_MAX
        assert closed == DEAD_READERS


class Countdown:
    """Says when it was counted down."""

    def __init__(self, count: int) -> None:
        self.reached = trio.Event()
        self._left = count

    def count(self) -> None:
        """One more."""
        self._left -= 1
        if not self._left:
            self.reached.set()
