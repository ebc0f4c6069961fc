"""A soak: a real server under mixed load for minutes or hours, read each minute, and read back.

Owns the server, the houses and the readings. Does not own the verdict.

One house lasts for the whole soak. Two more live for `LIFE_S` at a time, are read back and deleted, and are followed by
new ones. So after some minutes as much goes as comes, and all that grows is a fault.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio

from tests.e2e.server_process import CLI, OWNER, ServerProcess, serving, trunkline
from tests.patience import PATIENCE_S
from tests.soak import meter
from tests.soak.calls import Calls
from tests.soak.commands import Commands
from tests.soak.console import Console
from tests.soak.events import Events
from tests.soak.exports import Exports
from tests.soak.files import Files
from tests.soak.flows import Flows
from tests.soak.house import House, Part
from tests.soak.messages import Messages
from tests.soak.people import People
from tests.soak.records import Records
from tests.soak.rows import Rows
from tests.soak.states import LinkReports, MqttReports, Reports
from tests.soak.traces import PROGRAM, Traces
from tests.soak.verdict import Minute

KINDS: Final[tuple[type[Part], ...]] = (
    Reports,
    LinkReports,
    MqttReports,
    Messages,
    Commands,
    Rows,
    Events,
    Flows,
    Files,
    Exports,
    Records,
    People,
    Console,
)
PASSING: Final = 2
"""Houses that live at a time beside the one that lasts."""
LIFE_S: Final = 150.0
MINUTE_S: Final = 60.0
LOOK_S: Final = 2.0
TRACED_FROM: Final = 3
"""The reading with the first snapshot of a traced server; the last one is taken when all clients have left."""
PORT: Final = r"MQTT: \S+ port (\d+)"
LIMITS: Final = {
    "admission_cache_length_max": 100,
    "arrival_flush_s": 120,
    "audit_entry_keep_s": 300,
    "device_restore_days": 1,
    "head_cache_length_max": 100,
    "idempotency_keep_s": 300,
    "job_logs_max": 50,
    "job_result_keep_s": 120,
    "kept_event_changes_max": 100,
    "outbox_length_max": 20,
    "purge_interval_s": 20,
    "retention_interval_s": 60,
    "token_cache_length_max": 100,
}
"""What is kept for hours or a year is kept for minutes, so that it has its size when the verdict begins: reports that
are not flushed, answers, logs, results, mails. Caches are small, so that they are full by then."""


class Soak:
    """One soak of a new data directory in `folder`."""

    def __init__(
        self,
        folder: Path,
        minutes: float,
        *,
        seed: str = "1",
        pace: float = 1.0,
        traces: Traces | None = None,
        cold: bool = True,
    ) -> None:
        self.minutes: list[Minute] = []
        self.first: meter.Reading
        """Before the first client, and after the last one has left."""
        self.last: meter.Reading
        self.calls: Calls
        self.check = ""
        """What `trunkline check` found after the stop."""
        self.logged: Counter[tuple[str, str]] = Counter()
        """Warnings and errors in the log of the server: how often each, by level and event."""
        self._folder = folder
        self._length_s = minutes * MINUTE_S
        self._traces = traces
        self._seed = seed
        self._pace = pace
        self._cold = cold

    async def run(self, tell: Callable[[Minute], object] = lambda _minute: None) -> None:
        """Soak, stop the server and check what it leaves."""
        config = self._folder / "soak.toml"
        limits = "".join(f"{name} = {value}\n" for name, value in LIMITS.items())
        config.write_text(f'log_format = "json"\n[limits]\n{limits}')
        data = self._folder / "data"
        options = ["--mqtt-port", "0", "--config", str(config)]
        if self._pace > 1:
            options += ["--limits", "off"]
        program: tuple[str, ...] = CLI
        env = OWNER
        if self._traces is not None:
            program, env = PROGRAM, {**OWNER, **self._traces.env}
        async with serving(data, *options, cold=self._cold, program=program, env=env) as server:
            port = int((await server.prints(PORT))[1])
            self.calls = Calls(server, port)
            self.first = await self._alone(server)
            await self._load(server, tell)
            if self._traces is not None:
                await self._traces.take(server)
            self.last = await self._alone(server)
            code = await server.terminate()
            assert code == 0, (code, server.log)
            self._read_log(server.log)
        done = await trunkline("check", "--data", str(data))
        self.check = "" if done.returncode == 0 else done.stdout + done.stderr

    async def _alone(self, server: ServerProcess) -> meter.Reading:
        """Read a server when all connections have ended but the one that asks."""
        session, are_gone = self.calls.session, False
        session.close()
        with trio.fail_after(PATIENCE_S):
            while True:
                memory = meter.Memory(server.process.pid).taken()
                reading = await meter.read(server.process.pid, server.data_dir, session, memory)
                if are_gone:
                    return reading
                are_gone = reading.said["connections"] <= 1  # since its descriptors were counted
                if not are_gone:
                    await trio.sleep(LOOK_S / 10)

    def _read_log(self, log: str) -> None:
        for line in log.splitlines():
            if self._pace > 1 and line.startswith("THE THROTTLES ARE OFF"):
                continue  # as this soak has asked for
            try:
                entry = json.loads(line)
            except ValueError:  # Python writes it, or a library
                entry = {"level": "error", "event": "a line that is no entry"}
            if entry["level"] in ("warning", "error", "critical"):
                self.logged[entry["level"], entry["event"]] += 1
                if entry["level"] != "warning":
                    self.calls.fault("the log of the server", AssertionError(line))

    async def _load(self, server: ServerProcess, tell: Callable[[Minute], object]) -> None:
        houses: list[House] = []
        over = trio.Event()

        async def live(number: int) -> None:
            """Houses after each other, the first of which has a shorter life so that they do not end together."""
            count = 0
            while not over.is_set():
                count += 1
                life_s = LIFE_S * (number + 1) / PASSING if count == 1 else LIFE_S
                house = House(
                    self.calls, f"passing {number}.{count}", f"{self._seed}-{number}-{count}", KINDS
                )
                houses.append(house)
                await house.live(life_s, self._pace)
                houses.remove(house)

        async with trio.open_nursery() as nursery:
            lasting = House(self.calls, "lasting", self._seed, KINDS)
            houses.append(lasting)
            nursery.start_soon(lasting.live, self._length_s, self._pace)
            for number in range(PASSING):
                nursery.start_soon(live, number)
            async with trio.open_nursery() as reading:
                reading.start_soon(self._read, server, tell)
                await trio.sleep(self._length_s)
                reading.cancel_scope.cancel()
            over.set()
            for house in houses:
                house.end()

    async def _read(self, server: ServerProcess, tell: Callable[[Minute], object]) -> None:
        began_s = trio.current_time()
        pause_s = min(MINUTE_S, self._length_s / 3)
        number = 0
        memory = meter.Memory(server.process.pid)
        while True:
            number += 1
            while trio.current_time() < began_s + number * pause_s:
                memory.look()
                await trio.sleep(min(LOOK_S, pause_s / 3))
            if self._traces is not None and number == TRACED_FROM:
                await self._traces.take(server)
            session = self.calls.session
            reading = await meter.read(server.process.pid, server.data_dir, session, memory.taken())
            at = (trio.current_time() - began_s) / MINUTE_S
            minute = Minute(at, reading, self.calls.taken())
            self.minutes.append(minute)
            tell(minute)
