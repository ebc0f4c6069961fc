"""The comparison: the same loads for each peer, one after the other, on the same cores, in one run.

Owns the order and the medians. A peer that cannot take part is reported with a sentence. All programs of a peer
are stopped when its turn ends, in whatever way.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import trio

from tests.bench.peers.influxdb import InfluxDb
from tests.bench.peers.mosquitto import Mosquitto
from tests.bench.peers.nats import Nats
from tests.bench.peers.peer import Peer, Posts, Started
from tests.bench.peers.redis import Redis
from tests.bench.peers.series import POINTS_OF_EACH, SeriesPoints, SeriesSource, SeriesTurn, ask_series
from tests.bench.peers.trunkline import Trunkline, TrunklineMqtt, TrunklineQuart, TrunklineStock
from tests.bench.peers.web import FastApiPostgres, FastApiSqlite
from trunkline.bench.bottleneck import generator_problem
from trunkline.bench.client import Connection
from trunkline.bench.cores import Cores, on_cores
from trunkline.bench.disk_meter import DiskMeter
from trunkline.bench.errors import BenchError
from trunkline.bench.fleet import with_body
from trunkline.bench.load import Tally
from trunkline.bench.programs import ProgramUnavailable, Workspace
from trunkline.bench.progress import ProgressBar
from trunkline.bench.result import Record, Stage, machine, shown_settings
from trunkline.bench.server_monitor import ServerMonitor
from trunkline.bench.stage import Plan, measure, null_rate
from trunkline.bench.transport import Origin

PEERS: tuple[type[Peer], ...] = (
    Trunkline,
    TrunklineStock,
    TrunklineQuart,
    FastApiPostgres,
    FastApiSqlite,
    TrunklineMqtt,
    Mosquitto,
    Nats,
    Redis,
    InfluxDb,
)
"""All peers; the ratios refer to the first one."""

LOADS = ((1, "single states"), (100, "arrays of 100"))
"""States a call, and the name of the load."""


T = TypeVar("T")


class Turn(Record, frozen=True):
    """The median stage of one peer and one load over all rounds, with the rate of each round.

    ``work`` is the name of the load. ``ratio`` is the rate of the first peer divided by that of this peer.
    """

    work: str
    rates: list[float]
    stage: Stage
    ratio: float | None


class Entry(Record, frozen=True):
    """One peer: its version and guarantees, its results, or the reason why it could not take part."""

    name: str
    version: str = ""
    durable: bool | None = None
    durability: str = ""
    keeps: str = ""
    kept: str = ""
    turns: list[Turn] = msgspec.field(default_factory=list)
    series: SeriesTurn | None = None
    problem: str | None = None


class ComparisonResult(Record, frozen=True):
    """The result of a complete comparison."""

    begun: str
    machine: dict[str, str]
    settings: dict[str, str]
    entries: list[Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is compared, and how. ``work`` is the directory for environments and data."""

    work: Path
    peers: Sequence[type[Peer]]
    plan: Plan
    devices: int
    rounds: int
    cores: Cores
    series_points: int = POINTS_OF_EACH


class _PeerState:
    """The results of one peer so far."""

    def __init__(self) -> None:
        self.started: Started | None = None
        self.kept = ""
        self.problem: str | None = None
        self.stages: dict[str, list[Stage]] = {}
        self.series: list[SeriesTurn] = []


def select_peers(names: Sequence[str]) -> list[type[Peer]]:
    """The peers whose names contain one of these texts, and always Trunkline; all peers if no text is given."""
    wanted = [name.casefold() for name in names]
    found = [one for one in PEERS if not wanted or any(text in one.name.casefold() for text in wanted)]
    missing = [text for text in wanted if not any(text in one.name.casefold() for one in PEERS)]
    if missing:
        raise BenchError(
            f"No peer is named {missing[0]!r}; there are {', '.join(one.name for one in PEERS)}."
        )
    return found if Trunkline in found else [Trunkline, *found]


async def compare(comparison: Comparison, bar: ProgressBar) -> ComparisonResult:
    """Run the whole comparison."""
    begun = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    states = {peer: _PeerState() for peer in comparison.peers}
    references = {count: await _in_thread(partial(_reference, comparison, count)) for count, _ in LOADS}
    for number in range(comparison.rounds):
        for peer, state in states.items():
            if state.problem is None:
                await _take_turn(comparison, peer, state, references, bar, number)
    first = states[comparison.peers[0]]
    return ComparisonResult(
        begun=begun,
        machine=machine(),
        settings=shown_settings(
            {
                "connections": comparison.plan.connections,
                "devices": comparison.devices,
                "seconds a work": comparison.plan.duration_s,
                "seconds of warming up": comparison.plan.warmup_s,
                "rounds": comparison.rounds,
                "cores of a server": "any"
                if comparison.cores.server is None
                else len(comparison.cores.server),
            }
        ),
        entries=[_entry(peer.name, state, first) for peer, state in states.items()],
    )


async def _take_turn(
    comparison: Comparison,
    peer: type[Peer],
    state: _PeerState,
    references: dict[int, float],
    bar: ProgressBar,
    number: int,
) -> None:
    """Start a peer, run all loads on it, check what it has stored, and stop it."""
    bar.begin(peer.name)
    directory = comparison.work / f"run-{time.time_ns()}"
    workspace = Workspace(directory, [comparison.work / "bin"], comparison.cores.server)
    try:
        async with peer().run(comparison.work, workspace, comparison.devices, bar) as started:
            state.started = started
            meter = _meter(workspace, started)
            for count, work in LOADS:
                reference = references[count] if peer.speaks_http else None
                begun = await meter.begin() if meter else None
                stage = await _in_thread(
                    partial(_measure, comparison, workspace, started, count, work, bar, reference)
                )
                if meter and begun:
                    disk = await meter.end(begun, "states", stage.calls[0].units_in_all)
                    stage = msgspec.structs.replace(stage, disk=disk)
                problem = generator_problem(stage)
                state.stages.setdefault(work, []).append(stage.withheld(problem) if problem else stage)
            if started.series is not None:
                state.series.append(await _ask(comparison, started, started.series))
            kept = await started.kept()
            state.kept = str(kept)
            if kept.lost:
                state.problem = f"{state.kept}, so no figure is given"
    except ProgramUnavailable as problem:
        state.problem = str(problem)
    except BenchError as problem:
        state.problem = f"It failed: {problem}"
    finally:
        # Synchronous, so that an interruption cannot leave a program running.
        workspace.close()
    bar.begin(peer.name if comparison.rounds == 1 else f"{peer.name}, round {number + 1}")
    bar.end(state.problem or "done")


def _measure(
    comparison: Comparison,
    workspace: Workspace,
    started: Started,
    count: int,
    work: str,
    bar: ProgressBar,
    reference: float | None,
) -> Stage:
    tally = Tally(work, "states")
    with on_cores(comparison.cores.generator):
        stage = measure(
            work,
            started.callers(tally, count),
            started.origin,
            comparison.plan,
            bar=bar,
            monitor=ServerMonitor(workspace.pids),
            protocol=started.protocol,
            null_rate=reference,
        )
    (calls,) = stage.calls
    if not calls.acknowledged:
        raise BenchError(f"nothing was acknowledged. {calls.first_refusal}")
    return stage


def _meter(workspace: Workspace, started: Started) -> DiskMeter | None:
    try:
        return DiskMeter(workspace.directory, ServerMonitor(workspace.pids), started.finish)
    except BenchError:
        return None


async def _ask(comparison: Comparison, started: Started, source: SeriesSource) -> SeriesTurn:
    points = SeriesPoints.until(time.time_ns() // 1_000_000, each=comparison.series_points)
    await source.store(points)
    await started.finish()
    with on_cores(comparison.cores.generator):
        return await ask_series(source, points)


def _reference(comparison: Comparison, count: int) -> float:
    """Calls a second of this load against a server that does nothing."""
    encoder = Connection(Origin("127.0.0.1", 0, tls=False, prefix=""))
    head = encoder.encode_head("POST", f"/devices/{'0' * 24}/state")

    def build(_device_id: str, body: bytes, _count: int) -> bytes:
        return with_body(head, body)

    posts = Posts(comparison.devices, build)
    with on_cores(comparison.cores.generator):
        return null_rate(
            posts.callers(Tally("null", "states"), count),
            comparison.plan.connections,
            comparison.cores.server,
        )


def _entry(name: str, state: _PeerState, first: _PeerState) -> Entry:
    started = state.started
    turns = []
    if state.problem is None:
        for work, stages in state.stages.items():
            median, mine, reference = _median(stages), _rate(stages), _rate(first.stages.get(work, []))
            turns.append(
                Turn(
                    work=work,
                    rates=[one.calls[0].unit_rate for one in stages if one.calls],
                    stage=median,
                    ratio=reference / mine if mine and reference and state is not first else None,
                )
            )
    series = _median_series(state.series)
    if series is not None and state is not first and (own := _median_series(first.series)) is not None:
        series = msgspec.structs.replace(series, ratio=own.points_a_second / series.points_a_second)
    return Entry(
        name=name,
        version=started.version if started else "",
        durable=started.durable if started else None,
        durability=started.durability if started else "",
        keeps=started.keeps if started else "",
        kept=state.kept,
        turns=turns,
        series=series if state.problem is None else None,
        problem=state.problem,
    )


def _median_series(turns: Sequence[SeriesTurn]) -> SeriesTurn | None:
    ordered = sorted(turns, key=lambda turn: turn.points_a_second)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def _rate(stages: Sequence[Stage]) -> float | None:
    """The median of the states a second of all rounds with figures; None if there are none."""
    rates = [one.calls[0].unit_rate for one in stages if one.calls]
    return statistics.median_low(rates) if rates else None


def _median(stages: Sequence[Stage]) -> Stage:
    """The stage with the median rate; a stage without figures if no round has any."""
    rate = _rate(stages)
    return next((one for one in stages if one.calls and one.calls[0].unit_rate == rate), stages[0])


async def _in_thread(work: Callable[[], T]) -> T:
    return await trio.to_thread.run_sync(work, abandon_on_cancel=True)
