"""One stage of a run: a load for so many seconds, and all that is seen of it.

Owns driving a load and collecting its figures. Does not own preparing, auditing or judging. Everything here
blocks, in the thread of the load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from trunkline.bench.exchange import Framing, HttpFraming
from trunkline.bench.load import Load, Work
from trunkline.bench.meter import Meter
from trunkline.bench.null_server import null_server
from trunkline.bench.progress import Bar
from trunkline.bench.reactor import Reactor, clock, quiet_collector
from trunkline.bench.result import Calls, Delay, Figure, Stage
from trunkline.bench.transport import Origin
from trunkline.bench.watch import ServerWatch, Usage

NULL_DURATION_S = 0.5
"""Seconds: a stage's load against the null server."""

COUNTED_CONNECTIONS_MIN = 500
"""Connections: fewer tell nothing about the memory of one."""

ACCEPTED_AFTER_S = 1.0
"""Seconds: in which a server accepts all connections that stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a scenario is run. ``rate`` in calls a second makes an open loop."""

    connections: int = 64
    duration_s: float = 10.0
    warmup_s: float = 1.0
    rate: float | None = None
    ceiling: bool = True
    server_pid: int | None = None


class Listeners:
    """What stands beside a load and hears of it, such as open streams; here nobody does."""

    def open(self) -> None:
        """Be ready before the load begins."""

    def settle(self) -> None:
        """The load has ended: wait for what is on its way."""

    def reset(self) -> None:
        """Forget what was measured while warming up."""

    def delays(self) -> list[Delay]:
        """The distributions that were measured."""
        return []

    def figures(self, elapsed_s: float) -> list[Figure]:
        """The numbers that were measured."""
        return []

    def close(self) -> None:
        """Be gone."""


def measure(
    name: str,
    works: Sequence[Work],
    origin: Origin,
    plan: Plan,
    *,
    bar: Bar,
    watch: ServerWatch | None = None,
    framing: Callable[[], Framing] = HttpFraming,
    listeners: Callable[[Reactor], Listeners] | None = None,
    null_rate: float | None = None,
) -> Stage:
    """Load ``origin`` with ``works`` by the plan; what was found. Raises BenchError where it cannot be reached."""
    with driven() as reactor:
        before = watch.look() if watch else None
        beside = listeners(reactor) if listeners else Listeners()
        load = Load(reactor, origin, works, connections=plan.connections, rate=plan.rate, framing=framing)
        try:
            beside.open()
            load.open()
            figures = _memory_of_connections(before, watch, plan.connections, reactor)
            if plan.warmup_s:
                load.run(plan.warmup_s)
                beside.settle()
                load.reset()
                beside.reset()
            meter = Meter(load.tallies, watch, bar, plan.duration_s)
            elapsed_s = load.run(plan.duration_s, meter.tick)
            meter.end()
            beside.settle()
        finally:
            load.close()
            beside.close()
    if load.unsent:
        figures.append(Figure(name="due starts that found no free connection", value=load.unsent))
    if load.reconnects:
        figures.append(Figure(name="connections made again", value=load.reconnects))
    return Stage(
        name=name,
        elapsed_s=elapsed_s,
        rate=plan.rate,
        calls=[Calls.of(tally, elapsed_s) for tally in load.tallies],
        delays=beside.delays(),
        figures=figures + beside.figures(elapsed_s),
        samples=meter.samples,
        generator_cpu=meter.generator_cpu,
        server_cpu=meter.server_cpu,
        null_rate=null_rate,
    )


def null_rate(works: Sequence[Work], connections: int, cores: frozenset[int] | None = None) -> float:
    """Calls a second of a load against a server that does nothing, on these cores where they are given."""
    with null_server(cores) as origin, driven() as reactor:
        load = Load(reactor, origin, works, connections=connections)
        try:
            load.open()
            elapsed_s = load.run(NULL_DURATION_S)
        finally:
            load.close()
    return sum(tally.acknowledged for tally in load.tallies) / elapsed_s


@contextmanager
def driven() -> Iterator[Reactor]:
    """A reactor for the length of a load, with the collector of cycles out of the way."""
    reactor = Reactor()
    try:
        with quiet_collector():
            yield reactor
    finally:
        reactor.close()


def _memory_of_connections(
    before: Usage | None, watch: ServerWatch | None, count: int, reactor: Reactor
) -> list[Figure]:
    if before is None or watch is None or count < COUNTED_CONNECTIONS_MIN:
        return []
    # A connection stands for us as soon as the kernel has it; the server takes it a little later.
    reactor.run(clock() + ACCEPTED_AFTER_S)
    value = (watch.look().private_bytes - before.private_bytes) / count
    return [Figure(name="server memory a connection", value=value, unit="bytes")]
