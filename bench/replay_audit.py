"""The counts of a replay, and the comparison of its acknowledged rows with the history on the server.

Owns the counts and the comparison, value by value. Does not own sending.

A device that the replay created must have exactly the acknowledged data. A device that existed before may have
other times and attributes: they are counted and are no error.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from trunkline.bench.history import History, to_iso
from trunkline.bench.ledger import same_value
from trunkline.bench.measurements import DeviceSeries, Value
from trunkline.bench.pacing import Pacer
from trunkline.bench.session import Session

EXAMPLES_MAX = 20
"""Findings: a replay lists at most this many and counts the rest."""


@dataclass(slots=True)
class ReplayCounts:
    """The counts of a replay, of rows unless the name says otherwise; a point is one time of one device."""

    sent: int = 0
    acknowledged: int = 0
    refused: int = 0
    calls: int = 0
    throttled_calls: int = 0
    repeated_calls: int = 0
    points: int = 0
    points_read: int = 0
    values_equal: int = 0
    missing: int = 0
    different: int = 0
    unexpected: int = 0
    others: int = 0
    elapsed_s: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Whether the read-back found no difference."""
        return not (self.missing or self.different or self.unexpected)

    def note(self, finding: str) -> None:
        """Keep a finding as an example, up to EXAMPLES_MAX."""
        if len(self.examples) < EXAMPLES_MAX:
            self.examples.append(finding)


class ReplayDevice:
    """One device of a replay: its series, its id, and which rows were acknowledged."""

    __slots__ = ("acknowledged", "created", "device_id", "pacer", "path", "series")

    def __init__(self, series: DeviceSeries) -> None:
        self.series = series
        self.acknowledged = bytearray(len(series.times))
        self.device_id = ""
        self.path = ""
        self.created = False
        self.pacer = Pacer()

    def expected(self) -> dict[int, dict[str, Value]]:
        """The expected history: the acknowledged rows, merged where several have the same time."""
        points: dict[int, dict[str, Value]] = {}
        for index, outcome in enumerate(self.acknowledged):
            if outcome:
                points.setdefault(self.series.times[index], {}).update(self.series.rows[index])
        return points


async def compare(session: Session, application_id: str, device: ReplayDevice, counts: ReplayCounts) -> None:
    """Read the history of one device over the whole time of its series and compare it value by value."""
    expected = device.expected()
    counts.points += len(expected)
    times = device.series.times
    history = History(session, application_id, device.device_id, first_ms=times[0], last_ms=times[-1])
    async for page in history:
        for time_ms, data in page:
            where = f"{device.series.name} at {to_iso(time_ms)}"
            sent = expected.pop(time_ms, None)
            if sent is None:
                if device.created:
                    counts.unexpected += 1
                    counts.note(f"unexpected: {where}: {data}")
                else:
                    counts.others += 1
                continue
            counts.points_read += 1
            wrong = {name for name in sent if name not in data or not same_value(sent[name], data[name])}
            counts.values_equal += len(sent) - len(wrong)
            if wrong or (device.created and data.keys() - sent.keys()):
                counts.different += 1
                counts.note(f"different: {where}: sent {sent}, read {data}")
    counts.missing += len(expected)
    for time_ms, sent in list(expected.items())[:EXAMPLES_MAX]:
        counts.note(f"missing: {device.series.name} at {to_iso(time_ms)}: acknowledged {sent}")
