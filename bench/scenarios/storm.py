"""Reconnect storm: a whole fleet disconnects and reconnects at once; time until all are served, nothing lost.

A device has two connections, like real devices: its command stream, and one for posts. It is served when its stream
is open, the command that it missed has arrived and its state is acknowledged. All times are measured from the moment
at which the fleet starts to reconnect, so the longest one is the duration of the storm.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial

from trunkline.bench.command_ledger import COMMAND, Arrivals, CommandLedger, audit_history
from trunkline.bench.errors import BenchError, ConnectionBroken, ProtocolViolation, WireError
from trunkline.bench.event_stream import Event
from trunkline.bench.fleet import Fleet
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.ledger import ACKNOWLEDGED, Audit
from trunkline.bench.load import Caller, Tally
from trunkline.bench.load_connection import LoadConnection
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.result import Delay, Figure, Latency, Stage
from trunkline.bench.run import Run, Scenario
from trunkline.bench.scenarios.commands import ARRIVAL_TIMEOUT_S, DEVICES_PER_CALL_MAX
from trunkline.bench.session import Session, refusal
from trunkline.bench.stage import Plan, load_reactor
from trunkline.bench.stream_connection import StreamConnection
from trunkline.bench.transport import Origin
from trunkline.bench.wire_protocol import HttpProtocol

STORM_TIMEOUT_S = 120.0
"""Seconds: if a fleet is not served by then, the run ends with an error."""

RETRY_PAUSE_S = 0.2
"""Seconds: the maximum of the random pause after which a device tries again."""


class StormScenario(Scenario):
    """``devices`` connect, are disconnected together, miss a command, and reconnect together."""

    name = "storm"
    title = "Reconnect storm"
    staged = False

    def __init__(self, *, devices: int) -> None:
        self.devices = devices

    def connections(self, plan: Plan) -> int:
        return 2 * self.devices

    def settings(self) -> dict[str, object]:
        return {"devices": self.devices}

    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        self.fleet = await Fleet.create(session, bar, self.name, self.devices)
        self.commands = CommandLedger(self.fleet.device_ids)

    async def perform(self, run: Run) -> None:
        with load_reactor() as reactor:
            storm = Storm(reactor, run, self.fleet, self.commands)
            try:
                await self._connect(run, storm, "first connection")
                await self._command(run.session)
                await run.in_thread(storm.await_commands)
                storm.disconnect()
                await self._command(run.session)
                await self._connect(run, storm, "storm")
            finally:
                storm.disconnect()
        self.arrivals = storm.arrivals

    async def _connect(self, run: Run, storm: Storm, name: str) -> None:
        run.bar.begin(name)
        stage = await run.in_thread(partial(storm.connect, name))
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
        self.commands.outcomes[number] = ACKNOWLEDGED

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        await self.fleet.audit(session, found, bar)
        for one in self.arrivals:
            one.audit(found)
        await audit_history(session, self.fleet.application_id, [self.commands], found)


class Storm:
    """The connections of the fleet, opened by ``connect`` and closed by ``disconnect``."""

    def __init__(self, reactor: Reactor, run: Run, fleet: Fleet, commands: CommandLedger) -> None:
        self.reactor = reactor
        self.served = 0
        self.problem = ""
        self.failures = 0
        self.began_s = 0.0
        self._run = run
        self.arrivals = [Arrivals(one, commands) for one in fleet.device_ids]
        callers = fleet.state_posts(Tally("state posts", "states"), rehearsal=False)
        self._devices = [
            Device(
                self, run.session.origin, one, caller, fleet.get(fleet.path(one.device_id, "/commandStream"))
            )
            for one, caller in zip(self.arrivals, callers, strict=True)
        ]
        self.reset()

    def reset(self) -> None:
        """Discard all measurements."""
        self.until_open = LatencyRecorder()
        self.until_acknowledged = LatencyRecorder()
        self.until_served = LatencyRecorder()
        self.served = self.failures = 0

    def connect(self, name: str) -> Stage:
        """Connect all devices at once and wait until all are served."""
        monitor = self._run.monitor
        before, cpu_s = monitor.usage() if monitor else None, time.thread_time()
        self.reset()
        self.began_s = clock()
        for device in self._devices:
            device.connect()
        give_up_s = self.began_s + STORM_TIMEOUT_S
        while self.served < len(self._devices) and clock() < give_up_s:
            self.reactor.run(min(give_up_s, clock() + 0.5))
            self._run.bar.show(self.served / len(self._devices), f"{self.served:,} served")
        elapsed_s = clock() - self.began_s
        after = monitor.usage() if monitor else None
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

    def await_commands(self) -> None:
        """Read until every acknowledged command has arrived, for at most ARRIVAL_TIMEOUT_S."""
        give_up_s = clock() + ARRIVAL_TIMEOUT_S
        while clock() < give_up_s and any(True for one in self.arrivals for _ in one.missing()):
            self.reactor.run(clock() + 0.05)

    def disconnect(self) -> None:
        """Close all connections immediately."""
        for device in self._devices:
            device.disconnect()


class Device:
    """One device: its stream, its posts, and whether it is served."""

    __slots__ = ("_arrivals", "_post", "_posted", "_served", "_storm", "_stream")

    def __init__(
        self, storm: Storm, origin: Origin, arrivals: Arrivals, caller: Caller, request: bytes
    ) -> None:
        self._storm = storm
        self._arrivals = arrivals
        self._stream = StreamConnection(
            storm.reactor,
            origin,
            request,
            on_event=self._received,
            on_open=self._opened,
            on_break=self._failed,
        )
        self._post = OneCall(storm.reactor, origin, caller, on_done=self._acknowledged, on_break=self._failed)
        self._served = self._posted = True

    def connect(self) -> None:
        """Open both connections."""
        self._served = self._posted = False
        self._stream.start()
        self._post.start()

    def disconnect(self) -> None:
        """Close both connections."""
        self._stream.end()
        self._post.end()

    def _opened(self) -> None:
        self._storm.until_open.record(clock() - self._storm.began_s)
        self._check()

    def _received(self, event: Event) -> None:
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
        """Count the device as served once all three conditions are met."""
        storm = self._storm
        if (
            self._served
            or not (self._posted and self._stream.live)
            or any(True for _ in self._arrivals.missing())
        ):
            return
        self._served = True
        storm.until_served.record(clock() - storm.began_s)
        storm.served += 1
        if storm.served == len(storm.arrivals):
            storm.reactor.stop()


class OneCall(LoadConnection):
    """A connection that repeats one call until it is acknowledged, and then stays open."""

    __slots__ = ("_caller", "_done", "_ended", "_on_break", "_on_done", "_protocol")

    def __init__(
        self,
        reactor: Reactor,
        origin: Origin,
        caller: Caller,
        *,
        on_done: Callable[[], None],
        on_break: Callable[[WireError], None],
    ) -> None:
        super().__init__(reactor, origin)
        self._caller = caller
        self._on_done = on_done
        self._on_break = on_break
        self._ended = True
        self._done = True

    def start(self) -> None:
        """Connect and make the call."""
        self._ended = self._done = False
        self.open()

    def end(self) -> None:
        """Close the connection."""
        self._ended = True
        self.close()

    def opened(self) -> None:
        self._protocol = HttpProtocol()
        if not self._done:
            self.send(self._caller.request())

    def received(self, data: bytes) -> None:
        try:
            answers = self._protocol.feed(data)
        except ProtocolViolation as problem:
            self.fail(problem)
            return
        for response in answers:
            if response.status < 300:
                self._done = True
                self._caller.acknowledged(response)
                self._on_done()
                continue
            if response.status < 500 or response.status in (503, 507):
                self._caller.refused()
            self.fail(ConnectionBroken(str(refusal(response)), maybe_done=False))
            return

    def broken(self, problem: WireError) -> None:
        self._on_break(problem)
        self.reactor.call_at(clock() + random.uniform(0, RETRY_PAUSE_S), self._again)

    def _again(self) -> None:
        if not self._ended:
            self.open()
