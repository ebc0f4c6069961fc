"""The result of a run of the bench as plain records, for the terminal, the HTML page and JSON.

Owns the structure of a result, and removing figures that must not be reported. Does not own measuring or layout.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Literal

import msgspec

from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.ledger import Audit
from trunkline.bench.load import Tally

Unit = Literal["", "s", "bytes", "share", "a second"]


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A record with camel-case names in JSON."""


class Latency(Record, frozen=True):
    """A distribution of durations in milliseconds; ``curve`` has pairs of a percentile and its duration."""

    count: int
    mean_ms: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    curve: list[tuple[float, float]]

    @classmethod
    def of(cls, recorder: LatencyRecorder) -> Latency:
        """The figures of a recorder."""
        p50, p90, p99, p999 = (recorder.percentile(percent) * 1e3 for percent in (50, 90, 99, 99.9))
        return cls(
            count=recorder.count,
            mean_ms=recorder.mean_s * 1e3,
            p50_ms=p50,
            p90_ms=p90,
            p99_ms=p99,
            p999_ms=p999,
            max_ms=recorder.max_s * 1e3,
            curve=[(percent, seconds * 1e3) for percent, seconds in recorder.curve()],
        )


class Calls(Record, frozen=True):
    """The calls of one kind. ``rate`` and ``unit_rate`` are acknowledged calls and units a second.

    ``units_in_all`` are the acknowledged units, those of the warm-up included.
    """

    name: str
    unit: str
    sent: int
    acknowledged: int
    units: int
    units_in_all: int
    unknown: int
    breaks: int
    refused: dict[str, int]
    failed: dict[str, int]
    first_refusal: str
    rate: float
    unit_rate: float
    latency: Latency
    service: Latency | None

    @classmethod
    def of(cls, tally: Tally, elapsed_s: float) -> Calls:
        """The figures of a tally over ``elapsed_s`` seconds."""
        return cls(
            name=tally.name,
            unit=tally.unit,
            sent=tally.sent,
            acknowledged=tally.acknowledged,
            units=tally.units,
            units_in_all=tally.units_in_all,
            unknown=tally.unknown,
            breaks=tally.breaks,
            refused=dict(tally.refused),
            failed=dict(tally.failed),
            first_refusal=tally.first_refusal,
            rate=tally.acknowledged / elapsed_s,
            unit_rate=tally.units / elapsed_s,
            latency=Latency.of(tally.latency),
            service=Latency.of(tally.service) if tally.service.count else None,
        )

    @property
    def answered(self) -> int:
        """Calls that got an answer of any kind."""
        return self.acknowledged + sum(self.refused.values()) + sum(self.failed.values())


class Delay(Record, frozen=True):
    """A distribution of durations other than call times, such as the time until a command arrives."""

    name: str
    latency: Latency


class Figure(Record, frozen=True):
    """One number with a name."""

    name: str
    value: float
    unit: Unit = ""


class DiskUse(Record, frozen=True):
    """What was written to a block device during a stage, until all of it had its final place.

    ``writes``, ``bytes`` and ``flushes`` are those of the whole device in ``elapsed_s`` seconds, with what other
    programs wrote; ``idle_writes`` and ``idle_bytes`` are those of ``idle_s`` seconds without load just before.
    ``server_calls`` and ``server_bytes`` are the write calls of the server's processes and the bytes given to them,
    None if unknown. ``units`` were acknowledged, those of the warm-up included; ``unit`` is what they are.
    """

    device: str
    unit: str
    units: int
    elapsed_s: float
    writes: int
    bytes: int
    flushes: int
    idle_s: float
    idle_writes: int
    idle_bytes: int
    server_calls: int | None
    server_bytes: int | None


class Sample(Record, frozen=True):
    """One sample: acknowledged units and refused calls a second, shares of a core, bytes."""

    at_s: float
    unit_rate: float
    refused_rate: float
    generator_cpu: float
    server_cpu: float | None
    server_bytes: int | None


class Stage(Record, frozen=True):
    """One part of a run with one kind of load. ``problem`` is the reason why its figures are not reported."""

    name: str
    elapsed_s: float
    rate: float | None = None
    calls: list[Calls] = []
    delays: list[Delay] = []
    figures: list[Figure] = []
    samples: list[Sample] = []
    generator_cpu: float = 0.0
    server_cpu: float | None = None
    null_rate: float | None = None
    disk: DiskUse | None = None
    problem: str | None = None

    def withheld(self, reason: str) -> Stage:
        """The stage without its figures, and with the reason as ``problem``."""
        return msgspec.structs.replace(
            self, calls=[], delays=[], figures=[], samples=[], problem=self.problem or reason
        )


class Server(Record, frozen=True):
    """The server's processes and their memory: resident, and of it private (not backed by files)."""

    pids: list[int]
    begin_bytes: int
    begin_private_bytes: int
    end_bytes: int
    end_private_bytes: int
    peak_bytes: int


class AuditResult(Record, frozen=True):
    """The result of the audit."""

    acknowledged: int
    read: int
    missing: int
    different: int
    unexpected: int
    unknown: int
    unknown_found: int
    examples: list[str]

    @classmethod
    def of(cls, audit: Audit) -> AuditResult:
        """The figures of an audit."""
        return cls(**{name: getattr(audit, name) for name in cls.__struct_fields__})


Verdict = Literal["sound", "loss", "generatorBound"]


class Result(Record, frozen=True):
    """A complete run. If the verdict is not ``sound``, the stages concerned have no figures."""

    scenario: str
    title: str
    begun: str
    machine: dict[str, str]
    settings: dict[str, str]
    stages: list[Stage]
    server: Server | None
    audit: AuditResult
    verdict: Verdict
    notes: list[str]


def machine() -> dict[str, str]:
    """The machine and the software on which the figures depend."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123 - no path worth an object
            named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        named = []
    return named[0] if named else platform.machine()


def shown_settings(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings as text, without those that are None."""
    return {
        name: f"{value:,}" if isinstance(value, int) else str(value)
        for name, value in settings.items()
        if value is not None
    }
