"""The comparison: the same durable work for each peer, one after the other, on the same cores, in one run.

Owns the order, the medians, and what a peer that cannot take part becomes: a sentence. Every program is
stopped when its peer's turn ends, however it ends.
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

from trunkline.bench.bottleneck import generator_problem
from trunkline.bench.client import Connection
from trunkline.bench.cores import Cores, on_cores
from trunkline.bench.errors import BenchError
from trunkline.bench.fleet import with_body
from trunkline.bench.load import Tally
from trunkline.bench.peers.influxdb import InfluxDb
from trunkline.bench.peers.mosquitto import Mosquitto
from trunkline.bench.peers.nats import Nats
from trunkline.bench.peers.peer import Peer, Posts, Started
from trunkline.bench.peers.programs import Absent, Place
from trunkline.bench.peers.redis import Redis
from trunkline.bench.peers.trunkline import Trunkline, TrunklineQuart, TrunklineStock
from trunkline.bench.peers.web import FastApiPostgres, FastApiSqlite
from trunkline.bench.progress import Bar
from trunkline.bench.result import Record, Stage, machine, shown_settings
from trunkline.bench.stage import Plan, measure, null_rate
from trunkline.bench.transport import Origin
from trunkline.bench.watch import ServerWatch

PEERS: tuple[type[Peer], ...] = (
    Trunkline,
    TrunklineStock,
    TrunklineQuart,
    FastApiPostgres,
    FastApiSqlite,
    Mosquitto,
    Nats,
    Redis,
    InfluxDb,
)
"""All that take part; the first is what the ratios refer to."""

JOBS = ((1, "single states"), (100, "arrays of 100"))
"""States a call, and the name of the work."""


T = TypeVar("T")


class Turn(Record, frozen=True):
    """One peer's median stage of one work over all rounds, with the rate of each round."""

    work: str
    rates: list[float]
    stage: Stage
    ratio: float | None


class Entry(Record, frozen=True):
    """One peer: what it is and promises, what it reached, or why it could not take part."""

    name: str
    version: str = ""
    durable: bool | None = None
    durability: str = ""
    keeps: str = ""
    kept: str = ""
    turns: list[Turn] = msgspec.field(default_factory=list)
    problem: str | None = None


class Outcome(Record, frozen=True):
    """A whole comparison."""

    begun: str
    machine: dict[str, str]
    settings: dict[str, str]
    entries: list[Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """What is compared and how."""

    work: Path
    peers: Sequence[type[Peer]]
    plan: Plan
    devices: int
    rounds: int
    cores: Cores


class _Score:
    """What is known of one peer so far."""

    def __init__(self) -> None:
        self.started: Started | None = None
        self.kept = ""
        self.problem: str | None = None
        self.stages: dict[str, list[Stage]] = {}


def chosen(names: Sequence[str]) -> list[type[Peer]]:
    """The peers whose names contain one of these texts, Trunkline always among them; all where none is given."""
    wanted = [name.casefold() for name in names]
    found = [one for one in PEERS if not wanted or any(text in one.name.casefold() for text in wanted)]
    missing = [text for text in wanted if not any(text in one.name.casefold() for one in PEERS)]
    if missing:
        raise BenchError(
            f"No peer is named {missing[0]!r}; there are {', '.join(one.name for one in PEERS)}."
        )
    return found if Trunkline in found else [Trunkline, *found]


async def compare(contest: Contest, bar: Bar) -> Outcome:
    """Run the comparison to its end."""
    begun = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    scores = {peer: _Score() for peer in contest.peers}
    references = {count: await _in_thread(partial(_reference, contest, count)) for count, _ in JOBS}
    for number in range(contest.rounds):
        for peer, score in scores.items():
            if score.problem is None:
                await _take_turn(contest, peer, score, references, bar, number)
    first = scores[contest.peers[0]]
    return Outcome(
        begun=begun,
        machine=machine(),
        settings=shown_settings(
            {
                "connections": contest.plan.connections,
                "devices": contest.devices,
                "seconds a work": contest.plan.duration_s,
                "seconds of warming up": contest.plan.warmup_s,
                "rounds": contest.rounds,
                "cores of a server": "any" if contest.cores.server is None else len(contest.cores.server),
            }
        ),
        entries=[_entry(peer.name, score, first) for peer, score in scores.items()],
    )


async def _take_turn(
    contest: Contest, peer: type[Peer], score: _Score, references: dict[int, float], bar: Bar, number: int
) -> None:
    """Start a peer, give it all the work, check what it kept, and stop it."""
    bar.begin(peer.name)
    directory = contest.work / f"run-{time.time_ns()}"
    place = Place(directory, [contest.work / "bin"], contest.cores.server)
    try:
        async with peer().run(contest.work, place, contest.devices, bar) as started:
            score.started = started
            for count, work in JOBS:
                reference = references[count] if peer.speaks_http else None
                stage = await _in_thread(
                    partial(_measure, contest, place, started, count, work, bar, reference)
                )
                score.stages.setdefault(work, []).append(stage)
            kept = await started.kept()
            score.kept = str(kept)
            if kept.lost:
                score.problem = f"{score.kept}, so no figure is given"
    except Absent as problem:
        score.problem = str(problem)
    except BenchError as problem:
        score.problem = f"It failed: {problem}"
    finally:
        # In this thread, so that an interruption finds nothing left behind.
        place.close()
    bar.begin(peer.name if contest.rounds == 1 else f"{peer.name}, round {number + 1}")
    bar.end(score.problem or "done")


def _measure(
    contest: Contest, place: Place, started: Started, count: int, work: str, bar: Bar, reference: float | None
) -> Stage:
    tally = Tally(work, "states")
    with on_cores(contest.cores.generator):
        stage = measure(
            work,
            started.works(tally, count),
            started.origin,
            contest.plan,
            bar=bar,
            watch=ServerWatch(place.pids),
            framing=started.framing,
            null_rate=reference,
        )
    (calls,) = stage.calls
    if not calls.acknowledged:
        raise BenchError(f"nothing was acknowledged. {calls.first_refusal}")
    problem = generator_problem(stage)
    return stage.withheld(problem) if problem else stage


def _reference(contest: Contest, count: int) -> float:
    """Calls a second of this work against a server that does nothing."""
    encoder = Connection(Origin("127.0.0.1", 0, tls=False, prefix=""))
    head = encoder.encode_head("POST", f"/devices/{'0' * 24}/state")

    def build(_device_id: str, body: bytes, _count: int) -> bytes:
        return with_body(head, body)

    posts = Posts(contest.devices, build)
    with on_cores(contest.cores.generator):
        return null_rate(
            posts.works(Tally("null", "states"), count), contest.plan.connections, contest.cores.server
        )


def _entry(name: str, score: _Score, first: _Score) -> Entry:
    started = score.started
    turns = []
    if score.problem is None:
        for work, stages in score.stages.items():
            median, mine, reference = _median(stages), _rate(stages), _rate(first.stages.get(work, []))
            turns.append(
                Turn(
                    work=work,
                    rates=[one.calls[0].unit_rate for one in stages if one.calls],
                    stage=median,
                    ratio=reference / mine if mine and reference and score is not first else None,
                )
            )
    return Entry(
        name=name,
        version=started.version if started else "",
        durable=started.durable if started else None,
        durability=started.durability if started else "",
        keeps=started.keeps if started else "",
        kept=score.kept,
        turns=turns,
        problem=score.problem,
    )


def _rate(stages: Sequence[Stage]) -> float | None:
    """The median of the states a second, of the rounds that may be told."""
    rates = [one.calls[0].unit_rate for one in stages if one.calls]
    return statistics.median_low(rates) if rates else None


def _median(stages: Sequence[Stage]) -> Stage:
    """The round with the median rate; one without figures where none may be told."""
    rate = _rate(stages)
    return next((one for one in stages if one.calls and one.calls[0].unit_rate == rate), stages[0])


async def _in_thread(work: Callable[[], T]) -> T:
    return await trio.to_thread.run_sync(work, abandon_on_cancel=True)
