"""One stage of a run: a load of some seconds and its figures.

Owns running a load and collecting its figures. Does not own preparation, audit or verdict. Everything here
blocks, in the thread of the load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import msgspec

from trunkline.bench.load import Caller, Load, Tally
from trunkline.bench.null_server import null_server
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import Reactor, clock, gc_paused
from trunkline.bench.result import Calls, Delay, Figure, Stage
from trunkline.bench.sampler import Sampler
from trunkline.bench.server_monitor import ServerMonitor, Usage
from trunkline.bench.transport import Origin
from trunkline.bench.wire_protocol import HttpProtocol, WireProtocol

NULL_DURATION_S = 0.5
"""Seconds: of the load of a stage against the null server."""

COUNTED_CONNECTIONS_MIN = 500
"""Connections: with fewer, the memory of a single connection cannot be measured."""

ACCEPTED_AFTER_S = 1.0
"""Seconds: in which a server accepts all connections that the kernel has established."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a scenario is run. With ``rate``, in calls a second, the load is an open loop."""

    connections: int = 64
    duration_s: float = 10.0
    warmup_s: float = 1.0
    rate: float | None = None
    ceiling: bool = True
    server_pid: int | None = None


class AnyLoad(Protocol):
    """What can be measured as a stage."""

    tallies: list[Tally]
    unsent: int
    reconnects: int

    def open(self) -> None:
        """Open all connections."""

    def run(self, duration_s: float, on_tick: Callable[[], None] | None = None) -> float:
        """Load the server for so long, and return the seconds that it took."""

    def reset(self) -> None:
        """Set all counts to zero."""

    def close(self) -> None:
        """Close all connections."""


class LoadObserver:
    """Observes the effects of a load, such as events on open streams. This base class does nothing."""

    def open(self) -> None:
        """Get ready before the load begins."""

    def settle(self) -> None:
        """The load has ended: wait for effects that are still to come."""

    def reset(self) -> None:
        """Discard what was measured during the warm-up."""

    def delays(self) -> list[Delay]:
        """The distributions that were measured."""
        return []

    def figures(self, elapsed_s: float) -> list[Figure]:
        """The numbers that were measured."""
        return []

    def close(self) -> None:
        """Release everything."""


def measure(
    name: str,
    callers: Sequence[Caller],
    origin: Origin,
    plan: Plan,
    *,
    bar: ProgressBar,
    monitor: ServerMonitor | None = None,
    protocol: Callable[[], WireProtocol] = HttpProtocol,
    make_observer: Callable[[Reactor], LoadObserver] | None = None,
    null_rate: float | None = None,
) -> Stage:
    """Load ``origin`` with ``callers`` as planned and return the stage. Raises BenchError if it cannot be reached."""

    def make_load(reactor: Reactor) -> Load:
        return Load(reactor, origin, callers, connections=plan.connections, rate=plan.rate, protocol=protocol)

    stage = measure_load(name, make_load, plan, bar=bar, monitor=monitor, make_observer=make_observer)
    return msgspec.structs.replace(stage, rate=plan.rate, null_rate=null_rate)


def measure_load(
    name: str,
    make_load: Callable[[Reactor], AnyLoad],
    plan: Plan,
    *,
    bar: ProgressBar,
    monitor: ServerMonitor | None = None,
    make_observer: Callable[[Reactor], LoadObserver] | None = None,
) -> Stage:
    """Run a load as planned and return the stage. Raises BenchError if the server cannot be reached."""
    with load_reactor() as reactor:
        before = monitor.usage() if monitor else None
        observer = make_observer(reactor) if make_observer else LoadObserver()
        load = make_load(reactor)
        try:
            observer.open()
            load.open()
            figures = _memory_of_connections(before, monitor, plan.connections, reactor)
            if plan.warmup_s:
                load.run(plan.warmup_s)
                observer.settle()
                load.reset()
                observer.reset()
            sampler = Sampler(load.tallies, monitor, bar, plan.duration_s)
            elapsed_s = load.run(plan.duration_s, sampler.tick)
            sampler.end()
            observer.settle()
        finally:
            load.close()
            observer.close()
    if load.unsent:
        figures.append(Figure(name="due starts that found no free connection", value=load.unsent))
    if load.reconnects:
        figures.append(Figure(name="connections made again", value=load.reconnects))
    return Stage(
        name=name,
        elapsed_s=elapsed_s,
        calls=[Calls.of(tally, elapsed_s) for tally in load.tallies],
        delays=observer.delays(),
        figures=figures + observer.figures(elapsed_s),
        samples=sampler.samples,
        generator_cpu=sampler.generator_cpu,
        server_cpu=sampler.server_cpu,
    )


def null_rate(callers: Sequence[Caller], connections: int, cores: frozenset[int] | None = None) -> float:
    """Calls a second of a load against a server that does nothing, which runs on ``cores`` if given."""
    with null_server(cores) as origin, load_reactor() as reactor:
        load = Load(reactor, origin, callers, connections=connections)
        try:
            load.open()
            elapsed_s = load.run(NULL_DURATION_S)
        finally:
            load.close()
    return sum(tally.acknowledged for tally in load.tallies) / elapsed_s


@contextmanager
def load_reactor() -> Iterator[Reactor]:
    """A reactor for the duration of a load, with the garbage collector disabled."""
    reactor = Reactor()
    try:
        with gc_paused():
            yield reactor
    finally:
        reactor.close()


def _memory_of_connections(
    before: Usage | None, monitor: ServerMonitor | None, count: int, reactor: Reactor
) -> list[Figure]:
    if before is None or monitor is None or count < COUNTED_CONNECTIONS_MIN:
        return []
    # A connection is open here as soon as the kernel has it; the server accepts it a little later.
    reactor.run(clock() + ACCEPTED_AFTER_S)
    value = (monitor.usage().private_bytes - before.private_bytes) / count
    return [Figure(name="server memory a connection", value=value, unit="bytes")]
