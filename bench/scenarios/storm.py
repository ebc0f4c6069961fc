"""Reconnect storm: a whole fleet drops and comes back at once; time until all are served, nothing lost.

A device holds two connections, as devices do: its command stream, and one for posts. It counts as served
when its stream is open, the command that it missed has arrived and its state is acknowledged. The times
count from the moment at which all came back, so that the longest is the length of the storm.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

from trunkline.bench.command_ledger import COMMAND, Arrivals, CommandBook, audit_history
from trunkline.bench.errors import BenchError, ConnectionBroken, ProtocolViolation, WireError
from trunkline.bench.event_stream import Event
from trunkline.bench.exchange import HttpFraming
from trunkline.bench.fleet import Fleet
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.ledger import ACKNOWLEDGED, Audit
from trunkline.bench.line import Line
from trunkline.bench.load import Tally, Work
from trunkline.bench.progress import Bar
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.result import Delay, Figure, Latency, Stage
from trunkline.bench.run import Run, Scenario
from trunkline.bench.scenarios.commands import ARRIVAL_TIMEOUT_S, DEVICES_PER_CALL_MAX
from trunkline.bench.session import Session, refusal
from trunkline.bench.stage import Plan, driven
from trunkline.bench.stream_line import StreamLine
from trunkline.bench.transport import Origin

STORM_TIMEOUT_S = 120.0
"""Seconds: a fleet that is not served by then is reported as it is."""

RETRY_PAUSE_S = 0.2
"""Seconds: at most this long after a failure a device tries again, at a random moment."""


class StormScenario(Scenario):
    """``devices`` come, are cut off together, miss a command, and come back together."""

    name = "storm"
    title = "Reconnect storm"
    staged = False

    def __init__(self, *, devices: int) -> None:
        self.devices = devices

    def connections(self, plan: Plan) -> int:
        return 2 * self.devices

    def settings(self) -> dict[str, object]:
        return {"devices": self.devices}

    async def prepare(self, session: Session, bar: Bar) -> None:
        self.fleet = await Fleet.create(session, bar, self.name, self.devices)
        self.commands = CommandBook(self.fleet.device_ids)

    async def perform(self, run: Run) -> None:
        with driven() as reactor:
            storm = Storm(reactor, run, self.fleet, self.commands)
            try:
                await self._come(run, storm, "first coming")
                await self._command(run.session)
                await run.in_thread(storm.hear)
                storm.cut()
                await self._command(run.session)
                await self._come(run, storm, "storm")
            finally:
                storm.cut()
        self.arrivals = storm.arrivals

    async def _come(self, run: Run, storm: Storm, name: str) -> None:
        run.bar.begin(name)
        stage = await run.in_thread(partial(storm.come, name))
        run.add(stage)
        run.bar.end(f"{storm.served:,} of {self.devices:,} served in {stage.elapsed_s:.2f} s")
        if storm.served < self.devices:
            raise BenchError(
                f"After {STORM_TIMEOUT_S:g} s {storm.served:,} of {self.devices:,} devices were served. "
                f"{storm.problem}".strip()
            )

    async def _command(self, session: Session) -> None:
        """Send one command to every device."""
        number = self.commands.begin(clock())
        ids = self.fleet.device_ids
        for first in range(0, len(ids), DEVICES_PER_CALL_MAX):
            body = {
                "name": COMMAND,
                "payload": {"sequence": number},
                "deviceIds": ids[first : first + DEVICES_PER_CALL_MAX],
            }
            await session.call("POST", f"/applications/{self.fleet.application_id}/devices/command", body)
        self.commands.fates[number] = ACKNOWLEDGED

    async def audit(self, session: Session, found: Audit, bar: Bar) -> None:
        await self.fleet.audit(session, found, bar)
        for one in self.arrivals:
            one.audit(found)
        await audit_history(session, self.fleet.application_id, [self.commands], found)


class Storm:
    """The fleet's connections: brought up by ``come``, dropped by ``cut``."""

    def __init__(self, reactor: Reactor, run: Run, fleet: Fleet, commands: CommandBook) -> None:
        self.reactor = reactor
        self.served = 0
        self.problem = ""
        self.failures = 0
        self.began_s = 0.0
        self._run = run
        self.arrivals = [Arrivals(one, commands) for one in fleet.device_ids]
        works = fleet.state_posts(Tally("state posts", "states"), rehearsal=False)
        self._devices = [
            Device(
                self, run.session.origin, one, work, fleet.get(fleet.path(one.device_id, "/commandStream"))
            )
            for one, work in zip(self.arrivals, works, strict=True)
        ]
        self.reset()

    def reset(self) -> None:
        """Begin to measure anew."""
        self.until_open = LatencyRecorder()
        self.until_acknowledged = LatencyRecorder()
        self.until_served = LatencyRecorder()
        self.served = self.failures = 0

    def come(self, name: str) -> Stage:
        """Connect all devices at once and wait until all are served."""
        watch = self._run.watch
        before, cpu_s = watch.look() if watch else None, time.thread_time()
        self.reset()
        self.began_s = clock()
        for device in self._devices:
            device.come()
        give_up_s = self.began_s + STORM_TIMEOUT_S
        while self.served < len(self._devices) and clock() < give_up_s:
            self.reactor.run(min(give_up_s, clock() + 0.5))
            self._run.bar.show(self.served / len(self._devices), f"{self.served:,} served")
        elapsed_s = clock() - self.began_s
        after = watch.look() if watch else None
        return Stage(
            name=name,
            elapsed_s=elapsed_s,
            delays=[
                Delay(name="until the stream was open", latency=Latency.of(self.until_open)),
                Delay(name="until a state was acknowledged", latency=Latency.of(self.until_acknowledged)),
                Delay(name="until served", latency=Latency.of(self.until_served)),
            ],
            figures=[
                Figure(name="until all were served", value=elapsed_s, unit="s"),
                Figure(name="devices served", value=self.served / elapsed_s, unit="a second"),
                Figure(name="tries that failed", value=self.failures),
            ],
            generator_cpu=(time.thread_time() - cpu_s) / elapsed_s,
            server_cpu=(after.cpu_s - before.cpu_s) / elapsed_s if before and after else None,
        )

    def hear(self) -> None:
        """Read until every acknowledged command has arrived, for some seconds at most."""
        give_up_s = clock() + ARRIVAL_TIMEOUT_S
        while clock() < give_up_s and any(True for one in self.arrivals for _ in one.missing()):
            self.reactor.run(clock() + 0.05)

    def cut(self) -> None:
        """Drop all connections at once, without a farewell."""
        for device in self._devices:
            device.cut()


class Device:
    """One device: its stream, its posts, and whether it is served."""

    __slots__ = ("_arrivals", "_came", "_post", "_posted", "_storm", "_stream")

    def __init__(self, storm: Storm, origin: Origin, arrivals: Arrivals, work: Work, request: bytes) -> None:
        self._storm = storm
        self._arrivals = arrivals
        self._stream = StreamLine(
            storm.reactor, origin, request, on_event=self._heard, on_open=self._opened, on_break=self._failed
        )
        self._post = OneCall(storm.reactor, origin, work, on_done=self._acknowledged, on_break=self._failed)
        self._came = self._posted = True

    def come(self) -> None:
        """Connect."""
        self._came = self._posted = False
        self._stream.start()
        self._post.start()

    def cut(self) -> None:
        """Drop both connections."""
        self._stream.end()
        self._post.end()

    def _opened(self) -> None:
        self._storm.until_open.record(clock() - self._storm.began_s)
        self._check()

    def _heard(self, event: Event) -> None:
        self._arrivals.take(event.data)
        self._check()

    def _acknowledged(self) -> None:
        self._posted = True
        self._storm.until_acknowledged.record(clock() - self._storm.began_s)
        self._check()

    def _failed(self, problem: WireError) -> None:
        self._storm.failures += 1
        self._storm.problem = str(problem)

    def _check(self) -> None:
        """Count the device once all three have happened."""
        storm = self._storm
        if (
            self._came
            or not (self._posted and self._stream.live)
            or any(True for _ in self._arrivals.missing())
        ):
            return
        self._came = True
        storm.until_served.record(clock() - storm.began_s)
        storm.served += 1
        if storm.served == len(storm.arrivals):
            storm.reactor.stop()


class OneCall(Line):
    """A connection that makes one call until it is acknowledged, and then stays open."""

    __slots__ = ("_done", "_ended", "_framing", "_on_break", "_on_done", "_work")

    def __init__(
        self,
        reactor: Reactor,
        origin: Origin,
        work: Work,
        *,
        on_done: Callable[[], None],
        on_break: Callable[[WireError], None],
    ) -> None:
        super().__init__(reactor, origin)
        self._work = work
        self._on_done = on_done
        self._on_break = on_break
        self._ended = True
        self._done = True

    def start(self) -> None:
        """Connect and call."""
        self._ended = self._done = False
        self.open()

    def end(self) -> None:
        """Drop the connection."""
        self._ended = True
        self.close()

    def opened(self) -> None:
        self._framing = HttpFraming()
        if not self._done:
            self.send(self._work.request())

    def received(self, data: bytes) -> None:
        try:
            answers = self._framing.feed(data)
        except ProtocolViolation as problem:
            self.fail(problem)
            return
        for response in answers:
            if response.status < 300:
                self._done = True
                self._work.acknowledged(response)
                self._on_done()
                continue
            if response.status < 500 or response.status in (503, 507):
                self._work.refused()
            self.fail(ConnectionBroken(str(refusal(response)), maybe_done=False))
            return

    def broken(self, problem: WireError) -> None:
        self._on_break(problem)
        self.reactor.call_at(clock() + random.uniform(0, RETRY_PAUSE_S), self._again)

    def _again(self) -> None:
        if not self._ended:
            self.open()
