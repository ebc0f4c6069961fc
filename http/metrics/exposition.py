"""The metrics as text: those of this process, and with several partitions also those of the other owners.

Owns what is added where there are several: the label `process` of each sample, which processes have answered, and what
passes between them. A process that does not answer in time is left out, and is shown as not up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.peers import process_name
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.ids import ROOT
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.metrics.metrics import MetricsCollector
from trunkline.http.processes.peers import ProcessPeers
from trunkline.http.wire.connection_counts import ConnectionCounts

SUBJECT: Final = "metrics"
"""The name of what each process tells the others (`System.tells`)."""
_MARK: Final = "\n# HELP "

Told = Sequence[tuple[str, str]]
"""The metrics of a process as text: of each the lines that say what it is, and those of its samples."""


async def exposition(
    dispatcher: Dispatcher, connections: ConnectionCounts, version: str
) -> tuple[bytes, str]:
    """The metrics as text, and its content type."""
    system = dispatcher.system
    if system.peers is None:
        return _text(families(dispatcher, connections, version)), CONTENT_TYPE_LATEST
    told: dict[int, Told | None] = await system.peers.ask_each(SUBJECT)
    told[system.component(Places).own] = own_metrics(dispatcher, connections, version)
    named = {process_name(number): told[number] for number in sorted(told)}
    return merged(named).encode(), CONTENT_TYPE_LATEST


def own_metrics(dispatcher: Dispatcher, connections: ConnectionCounts, version: str) -> Told:
    """What this process tells the others: its metrics, each sample with its name.

    Each writes its own, so that the turn of the one that is asked is no longer for many than for few.
    """
    found = families(dispatcher, connections, version)
    process = process_name(dispatcher.system.component(Places).own)
    for family in found:
        family.samples = [
            sample._replace(labels={**sample.labels, "process": process}) for sample in family.samples
        ]
    return _pieces(_text(found).decode())


def families(dispatcher: Dispatcher, connections: ConnectionCounts, version: str) -> list[Metric]:
    """The metrics of this process."""
    collector = MetricsCollector(dispatcher, connections, version)
    return [*collector.collect(), *of_partition(dispatcher.system)]


def of_partition(system: System) -> Iterator[Metric]:
    """What a process has only where there are several partitions."""
    if not isinstance(system.peers, ProcessPeers):
        return
    with system.store.snapshot() as snapshot:
        count = records.total(snapshot, APPLICATION, ROOT)
    applications = GaugeMetricFamily(
        "trunkline_applications", "Applications in the partition of the process."
    )
    applications.add_metric([], count)
    yield applications
    passed_on = CounterMetricFamily(
        "trunkline_requests_passed_on", "Requests passed on to another process.", labels=["to"]
    )
    relayed = CounterMetricFamily(
        "trunkline_connections_passed_on",
        "Connections of links, webhooks and MQTT passed on to another process.",
        labels=["to"],
    )
    questions = CounterMetricFamily(
        "trunkline_questions", "Questions for actors and readers of another process.", labels=["to"]
    )
    unsent = GaugeMetricFamily(
        "trunkline_channel_unsent_bytes", "Bytes that wait until another process takes them.", labels=["to"]
    )
    for number, door in sorted(system.peers.doors.items()):
        name = process_name(number)
        passed_on.add_metric([name], door.passed_on)
        relayed.add_metric([name], door.relayed)
        questions.add_metric([name], door.asked)
        unsent.add_metric([name], door.channel.unsent_bytes)
    yield from (passed_on, relayed, questions, unsent)


def merged(told: Mapping[str, Told | None]) -> str:
    """The metrics of several processes, by their names; None for one that has not answered."""
    whole: dict[str, list[str]] = {}
    for found in (*told.values(), _pieces(_text([up(told)]).decode())):
        for head, samples in found or ():
            whole.setdefault(head, []).append(samples)
    return "".join(head + "".join(samples) for head, samples in whole.items())


def up(told: Mapping[str, Told | None]) -> Metric:
    """Which processes have told their metrics."""
    family = GaugeMetricFamily(
        "trunkline_process_up",
        "1 for each owner of a partition that has told its metrics, 0 for one that has not.",
        labels=["process"],
    )
    for process, found in told.items():
        family.add_metric([process], found is not None)
    return family


def _text(found: Sequence[Metric]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(found))
    return generate_latest(registry)


def _pieces(text: str) -> Told:
    """The lines of each metric. What a text says in its lines is escaped, so each begins where the mark stands."""
    pieces = []
    for block in text.removesuffix("\n").split(_MARK):
        lines = [f"{line}\n" for line in block.removeprefix(_MARK[1:]).split("\n")]
        pieces.append((_MARK[1:] + "".join(lines[:2]), "".join(lines[2:])))
    return pieces


class _Collected(Collector):
    """Metrics that were collected already."""

    def __init__(self, found: Sequence[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        yield from self._found
