"""kill -9 under the load of links: every report is stored exactly once, and every command is delivered.

`pytest -m load tests/e2e/test_link_crash.py` runs the long form: fifty kills, and prints the counts.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from cbor2 import CBORTag
from trio_websocket import ConnectionClosed

from tests.e2e.conftest import Server
from tests.e2e.crash_load import FIRST_MS, read_states
from tests.e2e.link_peer import LinkPeer, linked
from tests.e2e.server_process import OWNER, ServerProcess, serving
from tests.patience import PATIENCE_S
from trunkline.bench.errors import WireError
from trunkline.bench.history import to_iso
from trunkline.bench.session import Session

pytestmark = pytest.mark.disk

FAULTY = (str(Path(__file__).with_name("crash_program.py")),)
SYNC_S = ("0", "0.004")
DEVICES = 4
UNDER_WAY = 16


class Device:
    """A client that keeps what was not acknowledged, and which commands it was given, over kills of the server.

    The number of a state is its value, and its time; without `times` the server gives it one.
    """

    def __init__(self, path: str, token: str, random: Random, *, times: bool = True) -> None:
        self.path = path
        self.token = token
        self.session = random.getrandbits(53)
        self.states = 0
        """Sent so far."""
        self.acknowledged = 0
        self.newest = -1
        """The highest number that is acknowledged."""
        self.refusals: frozenset[str] = frozenset()
        """The types with which frames may be refused."""
        self.refused: list[int] = []
        """The states of such frames, which are not sent again."""
        self.connect_s: float = PATIENCE_S
        """How long an answer is waited for before a connection is given up."""
        self.pause_s = 0.0
        """Before each new frame."""
        self.repeated = 0
        self.commands: dict[int, str] = {}
        self.deliveries = 0
        self._random = random
        self._times = times
        self._n = 0
        self._waiting: dict[int, tuple[list[Any], range]] = {}
        """Frames that are not acknowledged by their numbers, and the numbers of their states."""
        self._changed = trio.Event()

    async def run(self, server: Server, *, task_status: trio.TaskStatus[None]) -> None:
        """Send until the server is gone."""
        with suppress(ConnectionClosed):
            async with linked(
                server, self.path, self.token, session=self.session, connect_s=self.connect_s
            ) as (peer, facts):
                task_status.started()
                await self._talk(peer, facts)

    async def finish(self, server: Server, commands: set[str]) -> None:
        """Send again what is not acknowledged, until all is and these commands have come."""
        async with linked(server, self.path, self.token, session=self.session) as (peer, facts):
            await self._talk(peer, facts, commands)

    async def _talk(self, peer: LinkPeer, facts: dict[str, Any], last: set[str] | None = None) -> None:
        self._stored(facts["n"], backlog=False)
        self._stored(facts["backlogN"], backlog=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._receive, peer, nursery.cancel_scope)
            with suppress(ConnectionClosed):
                for frame, _ in list(self._waiting.values()):
                    self.repeated += 1
                    await peer.send(*frame)
                while last is None:
                    await self._until(lambda: len(self._waiting) < UNDER_WAY)
                    await trio.sleep(self.pause_s)
                    await peer.send(*self._next_frame())
                await self._until(lambda: not self._waiting and last <= set(self.commands.values()))
                nursery.cancel_scope.cancel()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed = trio.Event()
            await self._changed.wait()

    async def _receive(self, peer: LinkPeer, talk: trio.CancelScope) -> None:
        with suppress(ConnectionClosed):
            while True:
                kind, *body = await peer.next()
                if kind == 1:
                    self._stored(body[0], backlog=len(body) == 2)
                elif kind == 2 and body[1] in self.refusals:
                    self.refused += self._waiting.pop(body[0])[1]
                    self._changed.set()
                else:
                    assert kind == 3, body
                    id, name = body[:2]
                    assert self.commands.setdefault(id, name) == name
                    self.deliveries += 1
                    await peer.send(4, id)
                    self._changed.set()
        talk.cancel()

    def _stored(self, n: int, *, backlog: bool) -> None:
        for number in [each for each in self._waiting if each <= n]:
            frame, states = self._waiting[number]
            if backlog is (len(frame) > 4 + (frame[0] == 3)):
                del self._waiting[number]
                self.acknowledged += len(states)
                self.newest = max(self.newest, states[-1])
        self._changed.set()

    def _next_frame(self) -> list[Any]:
        """One state, rows or columns; some as a backlog. States without times come one at a time, and live."""
        kind = self._random.randint(1, 3) if self._times else 1
        numbers = range(self.states, self.states + (1 if kind == 1 else self._random.choice((1, 5, 50))))
        self.states = numbers.stop
        self._n += self._random.randint(1, 3)
        first_ms = FIRST_MS + numbers.start
        body: list[Any]
        if kind == 1:
            body = [first_ms if self._times else None, {"temp": float(numbers.start)}]
        elif kind == 2:
            body = [["temp"], [[FIRST_MS + number, float(number)] for number in numbers]]
        else:
            column = CBORTag(86, struct.pack(f"<{len(numbers)}d", *numbers))
            body = [first_ms, list(range(len(numbers))), {"temp": column}]
        options = [{"backlog": True}] if self._times and self._random.random() < 0.2 else []
        frame = [kind, self._n, *body, *options]
        self._waiting[self._n] = (frame, numbers)
        return frame


class Load:
    """The clients, and the commands that were sent to them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.devices: list[Device] = []
        self.commands: list[tuple[Device, str]] = []
        """Those that the server has acknowledged."""

    async def prepare(self, server: ServerProcess) -> None:
        application = await server.application()
        for number in range(DEVICES):
            path = await server.device(application, f"device {number}")
            token, _ = await server.device_token(path)
            self.devices.append(Device(path, token, Random(self.random.random())))

    async def killed(self, server: ServerProcess) -> None:
        """Send from all devices and to all, and kill the server at a random moment."""
        if not self.devices:
            await self.prepare(server)
        states = self._acknowledged() + self.random.randint(20, 2000)
        commands = len(self.commands) + self.random.randint(1, 20)
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for device in self.devices:
                    await nursery.start(device.run, server)
                nursery.start_soon(self._command, server)
                while self._acknowledged() < states or len(self.commands) < commands:
                    await trio.lowlevel.checkpoint()
                await trio.sleep(self.random.uniform(0, 0.02))
                await server.kill()

    def _acknowledged(self) -> int:
        return sum(device.acknowledged for device in self.devices)

    async def _command(self, server: ServerProcess) -> None:
        """Send commands to all devices in turn, until the server is gone."""
        session = Session(server.url, token=server.token, patience_s=0, timeout_s=PATIENCE_S)
        with suppress(WireError):
            for number in count():
                device = self.devices[number % DEVICES]
                name = f"command {len(self.commands)}-{self.random.getrandbits(32)}"
                await session.call("POST", f"{device.path}/command", {"name": name})
                self.commands.append((device, name))
        session.close()

    async def audit(self, server: ServerProcess) -> None:
        """Let the clients finish, and compare what they know with what is stored."""
        session = Session(server.url, token=server.token, timeout_s=PATIENCE_S)
        for device in self.devices:
            with trio.fail_after(PATIENCE_S):
                await device.finish(server, {name for each, name in self.commands if each is device})
            assert device.acknowledged == device.states
            stored = await read_states(session, device.path)
            assert [time for time, _ in stored] == [to_iso(FIRST_MS + at) for at in range(device.states)]
            assert [data for _, data in stored] == [f'{{"temp": {float(at)}}}' for at in range(device.states)]
            counts = await session.call("GET", f"{device.path}/payloadCounts")
            assert counts["deviceState"] == device.states
        session.close()


async def rounds(data_dir: Path, kills: int, seed: int) -> str:
    """Kill again and again on one data directory; the counts."""
    load = Load(seed)
    for number in range(kills):
        env = {**OWNER, "CRASH_SYNC_S": SYNC_S[number % 2]}
        async with serving(data_dir, "--limits", "off", program=FAULTY, env=env) as server:
            await load.killed(server)
    async with serving(data_dir, "--limits", "off") as server:
        await load.audit(server)
        assert await server.terminate() == 0
    assert load.commands
    devices = load.devices
    return (
        f"{kills} kills: {sum(each.states for each in devices)} states sent and stored once, "
        f"{sum(each.repeated for each in devices)} frames sent again, {len(load.commands)} commands acknowledged, "
        f"{sum(len(each.commands) for each in devices)} delivered, "
        f"{sum(each.deliveries for each in devices)} times"
    )


@pytest.mark.slow
async def test_a_kill_loses_nothing_and_repeats_no_report(tmp_path: Path) -> None:
    await rounds(tmp_path / "data", 3, seed=15)


@pytest.mark.load
@pytest.mark.timeout(1800)
async def test_fifty_kills_lose_nothing_and_repeat_no_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = await rounds(tmp_path / "data", 50, seed=50)
    with capsys.disabled():
        sys.stdout.write(f"\n{counted}\n")
