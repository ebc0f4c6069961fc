"""Many links at once: their memory, a reconnect storm, and one command to all of them.

Every device has one link, over which everything goes. All times of a storm are measured from the moment at which the
links begin to reconnect, so the longest one is its duration.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from functools import partial

import msgspec
import trio

from trunkline.bench.command_ledger import COMMAND, Arrivals, CommandLedger, audit_history
from trunkline.bench.errors import BenchError, WireError
from trunkline.bench.fleet import Fleet
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.ledger import ACKNOWLEDGED, Audit, StateLedger, body_of
from trunkline.bench.link_connection import LinkConnection, masked
from trunkline.bench.link_frames import Command, FromServer, Refusal, Stored, Welcome, write_frame
from trunkline.bench.link_load import SESSION_BITS
from trunkline.bench.link_states import frame_of
from trunkline.bench.load import CONNECTING_MAX
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.result import Delay, Figure, Latency, Stage
from trunkline.bench.run import Run, Scenario
from trunkline.bench.scenarios.commands import ARRIVAL_TIMEOUT_S, DEVICES_PER_CALL_MAX
from trunkline.bench.scenarios.storm import RETRY_PAUSE_S, STORM_TIMEOUT_S
from trunkline.bench.session import Session
from trunkline.bench.stage import ACCEPTED_AFTER_S, Plan, load_reactor
from trunkline.bench.transport import Origin


class _Links(Scenario):
    """A fleet of which each device has a link."""

    staged = False

    def __init__(self, *, links: int) -> None:
        self.links = links

    def connections(self, plan: Plan) -> int:
        return self.links

    def settings(self) -> dict[str, object]:
        return {"links": self.links}

    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        self.fleet = await Fleet.create(session, bar, "link", self.links)
        self.commands = CommandLedger(self.fleet.device_ids)
        self.arrivals = [Arrivals(one, self.commands) for one in self.fleet.device_ids]

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        await self.fleet.audit(session, found, bar)
        for one in self.arrivals:
            one.audit(found)
        await audit_history(session, self.fleet.application_id, [self.commands], found)


class IdleLinksScenario(_Links):
    """The memory of the server for each link on which nothing happens."""

    name = "link idle"
    title = "Idle links"

    async def perform(self, run: Run) -> None:
        if run.monitor is None:
            raise BenchError("The memory of a server can be read on its machine only.")
        await report_states(run, self.fleet)
        with load_reactor() as reactor:
            crowd = Crowd(self, run, reactor)
            try:
                before = run.monitor.usage().private_bytes
                stage = await crowd.connect("idle links", together=CONNECTING_MAX)
                await run.in_thread(lambda: reactor.run(clock() + ACCEPTED_AFTER_S))
                value = (run.monitor.usage().private_bytes - before) / self.links
                figure = Figure(name="server memory a link", value=value, unit="bytes")
                stage.figures.append(figure)
                run.add(stage)
            finally:
                crowd.close()


async def report_states(run: Run, fleet: Fleet) -> None:
    """Let each device post a state: it is in memory before its connection, as those of a server in use."""
    waiting, done = iter(fleet.ledgers), 0
    run.bar.begin("a state of each device")

    async def work() -> None:
        nonlocal done
        for ledger in waiting:
            number = ledger.begin()
            body = msgspec.Raw(body_of(number, 1, ledger.first_ms))
            await run.session.call("POST", fleet.path(ledger.device_id, "/state"), body)
            ledger.settle(number, 1, ACKNOWLEDGED)
            done += 1
            run.bar.show(done / len(fleet.ledgers))

    async with trio.open_nursery() as nursery:
        for _ in range(run.session.connections_max):
            nursery.start_soon(work)
    run.bar.end()


class LinkStormScenario(_Links):
    """All links are cut at once and come back at once, each with a state that has to be acknowledged."""

    name = "link storm"
    title = "Reconnect storm of links"

    async def perform(self, run: Run) -> None:
        with load_reactor() as reactor:
            crowd = Crowd(self, run, reactor)
            try:
                run.add(await crowd.connect("first connection", together=self.links, report=True))
                crowd.close()
                run.add(await crowd.connect("storm", together=self.links, report=True))
            finally:
                crowd.close()


class LinkCommandsScenario(_Links):
    """Commands to all links, one after the other, each measured until the last link has it."""

    name = "link commands"
    title = "One command to many links"

    def __init__(self, *, links: int, rounds: int) -> None:
        if links > DEVICES_PER_CALL_MAX:
            raise BenchError(f"One call commands at most {DEVICES_PER_CALL_MAX:,} devices.")
        super().__init__(links=links)
        self.rounds = rounds

    def settings(self) -> dict[str, object]:
        return {**super().settings(), "commands": self.rounds}

    async def perform(self, run: Run) -> None:
        with load_reactor() as reactor:
            crowd = Crowd(self, run, reactor)
            try:
                run.add(await crowd.connect("connection", together=CONNECTING_MAX))
                run.bar.begin("commands")
                before = run.monitor.usage() if run.monitor else None
                began_s, cpu_s = clock(), time.process_time()
                for done in range(self.rounds):
                    await self._round(run, crowd)
                    run.bar.show((done + 1) / self.rounds, f"{done + 1:,} commands")
                elapsed_s = clock() - began_s
                after = run.monitor.usage() if run.monitor else None
                run.add(
                    Stage(
                        name="commands",
                        elapsed_s=elapsed_s,
                        delays=[
                            Delay(name="from sending to arrival", latency=Latency.of(crowd.arrival)),
                            Delay(name="until the last link has it", latency=Latency.of(crowd.last_arrival)),
                        ],
                        figures=[
                            Figure(name="arrivals", value=crowd.arrival.count / elapsed_s, unit="a second")
                        ],
                        generator_cpu=(time.process_time() - cpu_s) / elapsed_s,
                        server_cpu=(after.cpu_s - before.cpu_s) / elapsed_s if before and after else None,
                    )
                )
                run.bar.end(f"{elapsed_s:.1f} s")
            finally:
                crowd.close()

    async def _round(self, run: Run, crowd: Crowd) -> None:
        """Send one command, and read until every link has it."""
        body = {"name": COMMAND, "deviceIds": self.fleet.device_ids}
        number = self.commands.begin(clock())
        crowd.await_command()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.in_thread, partial(crowd.reactor.run, clock() + ARRIVAL_TIMEOUT_S))
            path = f"/applications/{self.fleet.application_id}/devices/command"
            await run.session.call("POST", path, {**body, "payload": {"sequence": number}})
            self.commands.outcomes[number] = ACKNOWLEDGED


class Crowd:
    """The links of the fleet."""

    def __init__(self, scenario: _Links, run: Run, reactor: Reactor) -> None:
        self.reactor = reactor
        self.arrival = LatencyRecorder()
        self.last_arrival = LatencyRecorder()
        self.problem: WireError | None = None
        self._run = run
        self._waiting_for = 0
        self._unopened: list[DeviceLink] = []
        self._links = [
            DeviceLink(self, run.session.origin, scenario.fleet, ledger, arrivals)
            for ledger, arrivals in zip(scenario.fleet.ledgers, scenario.arrivals, strict=True)
        ]

    async def connect(self, name: str, *, together: int, report: bool = False) -> Stage:
        """Open all links, ``together`` of them at once; with ``report`` each sends a state. Raises BenchError."""
        self._run.bar.begin(name)
        stage = await self._run.in_thread(partial(self._connect, name, together, report))
        self._run.bar.end(f"{self.served:,} of {len(self._links):,} in {stage.elapsed_s:.2f} s")
        if self.served < len(self._links):
            raise BenchError(
                f"After {STORM_TIMEOUT_S:g} s {self.served:,} of {len(self._links):,} links were open. "
                f"{self.problem or ''}".strip()
            )
        return stage

    def _connect(self, name: str, together: int, report: bool) -> Stage:
        monitor = self._run.monitor
        before, cpu_s = monitor.usage() if monitor else None, time.thread_time()
        self.until_open, self.until_stored = LatencyRecorder(), LatencyRecorder()
        self.served = self.failures = 0
        self.began_s = clock()
        self._unopened = self._links[together:]
        for link in self._links:
            link.reports = report
        for link in self._links[:together]:
            link.start()
        give_up_s = self.began_s + STORM_TIMEOUT_S
        while self.served < len(self._links) and clock() < give_up_s:
            self.reactor.run(min(give_up_s, clock() + 0.5))
            self._run.bar.show(self.served / len(self._links), f"{self.served:,} served")
        elapsed_s = clock() - self.began_s
        after = monitor.usage() if monitor else None
        delays = [Delay(name="until the link was open", latency=Latency.of(self.until_open))]
        if report:
            delays.append(Delay(name="until a state was stored", latency=Latency.of(self.until_stored)))
        return Stage(
            name=name,
            elapsed_s=elapsed_s,
            delays=delays,
            figures=[
                Figure(name="until all were served", value=elapsed_s, unit="s"),
                Figure(name="links served", value=self.served / elapsed_s, unit="a second"),
                Figure(name="tries that failed", value=self.failures),
            ],
            generator_cpu=(time.thread_time() - cpu_s) / elapsed_s,
            server_cpu=(after.cpu_s - before.cpu_s) / elapsed_s if before and after else None,
        )

    def close(self) -> None:
        """Close all links immediately."""
        for link in self._links:
            link.end()

    # Commands.

    def await_command(self) -> None:
        """From now on the reactor runs until every link has one more command."""
        self._waiting_for = len(self._links)

    def arrived(self, sent_s: float) -> None:
        """A link has got a command."""
        delay_s = clock() - sent_s
        self.arrival.record(delay_s)
        self._waiting_for -= 1
        if not self._waiting_for:
            self.last_arrival.record(delay_s)
            self.reactor.stop()

    # Callbacks of the links.

    def opened(self) -> None:
        self.until_open.record(clock() - self.began_s)
        if self._unopened:
            self._unopened.pop().start()

    def stored(self) -> None:
        self.until_stored.record(clock() - self.began_s)

    def done(self) -> None:
        """A link is open, and its state, if it sent one, is stored."""
        self.served += 1
        if self.served == len(self._links):
            self.reactor.stop()

    def failed(self, problem: WireError, again: Callable[[], None]) -> None:
        self.failures += 1
        self.problem = problem
        pause_s = secrets.randbelow(1000) / 1000 * RETRY_PAUSE_S
        self.reactor.call_at(clock() + pause_s, again)


class DeviceLink(LinkConnection):
    """The link of one device: it resumes its session, and sends a state again that was not acknowledged."""

    __slots__ = ("_arrivals", "_crowd", "_ended", "_ledger", "_n", "_number", "reports")

    def __init__(
        self, crowd: Crowd, origin: Origin, fleet: Fleet, ledger: StateLedger, arrivals: Arrivals
    ) -> None:
        super().__init__(crowd.reactor, origin, fleet.link(ledger.device_id), secrets.randbits(SESSION_BITS))
        self._crowd = crowd
        self._ledger = ledger
        self._arrivals = arrivals
        self._n = 0
        self._number: int | None = None
        self._ended = True
        self.reports = False

    def start(self) -> None:
        """Open the link, and keep it open."""
        self._ended = False
        if self.reports and self._number is None:
            self._n += 1
            self._number = self._ledger.begin()
        self.open()

    def end(self) -> None:
        """Close the link immediately."""
        self._ended = True
        self.close()

    def welcomed(self, welcome: Welcome) -> None:
        self._crowd.opened()
        if self._number is None:
            if not self.reports:
                self._crowd.done()
        elif welcome.n >= self._n:
            self._stored()
        else:
            frame = frame_of("rows", self._n, self._number, 1, self._ledger.first_ms)
            self.send(masked(frame))

    def answered(self, frame: FromServer) -> None:
        match frame:
            case Stored():
                self._stored()
            case Command(payload={"sequence": int(number)}):
                self._arrivals.add(number)
                self._crowd.arrived(self._arrivals.ledger.sent_s[number])
                self.send(masked(write_frame(frame.received, text=False)))
            case Refusal():
                raise BenchError(f"The server refused a state: {frame.message}")

    def _stored(self) -> None:
        assert self._number is not None
        self._ledger.settle(self._number, 1, ACKNOWLEDGED)
        self._number = None
        self._crowd.stored()
        self._crowd.done()

    def broken(self, problem: WireError) -> None:
        self._crowd.failed(problem, self._again)

    def _again(self) -> None:
        if not self._ended:
            self.open()
