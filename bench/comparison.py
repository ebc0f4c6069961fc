"""What became of the rows of a replay, and the comparison of what was acknowledged with the API's answer.

Owns the account of a replay and the read-back, value by value. Does not own sending.

On a device that the replay made, everything must be there and nothing else. On a device that existed
before, other times and other attributes are another's: they are counted and left alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from trunkline.bench.history import History, to_iso
from trunkline.bench.ledger import same_value
from trunkline.bench.measurements import Series, Value
from trunkline.bench.pacing import Pacer
from trunkline.bench.session import Session

EXAMPLES_MAX = 20
"""Findings: a replay lists so many and counts the rest."""


@dataclass(slots=True)
class Account:
    """The numbers of a replay: rows unless named otherwise; a point is one time of one device."""

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


class Lane:
    """One device of a replay: its series, its id, and which rows were acknowledged."""

    __slots__ = ("acknowledged", "created", "device_id", "pacer", "path", "series")

    def __init__(self, series: Series) -> None:
        self.series = series
        self.acknowledged = bytearray(len(series.times))
        self.device_id = ""
        self.path = ""
        self.created = False
        self.pacer = Pacer()

    def expected(self) -> dict[int, dict[str, Value]]:
        """What the history must hold: acknowledged rows, later ones of a time laid over earlier ones."""
        points: dict[int, dict[str, Value]] = {}
        for index, fate in enumerate(self.acknowledged):
            if fate:
                points.setdefault(self.series.times[index], {}).update(self.series.rows[index])
        return points


async def compare(session: Session, application_id: str, lane: Lane, account: Account) -> None:
    """Read the history of one device back over the series' whole time and compare it value by value."""
    expected = lane.expected()
    account.points += len(expected)
    times = lane.series.times
    history = History(session, application_id, lane.device_id, first_ms=times[0], last_ms=times[-1])
    async for page in history:
        for time_ms, data in page:
            where = f"{lane.series.name} at {to_iso(time_ms)}"
            sent = expected.pop(time_ms, None)
            if sent is None:
                if lane.created:
                    account.unexpected += 1
                    account.note(f"unexpected: {where}: {data}")
                else:
                    account.others += 1
                continue
            account.points_read += 1
            wrong = {name for name in sent if name not in data or not same_value(sent[name], data[name])}
            account.values_equal += len(sent) - len(wrong)
            if wrong or (lane.created and data.keys() - sent.keys()):
                account.different += 1
                account.note(f"different: {where}: sent {sent}, read {data}")
    account.missing += len(expected)
    for time_ms, sent in list(expected.items())[:EXAMPLES_MAX]:
        account.note(f"missing: {lane.series.name} at {to_iso(time_ms)}: acknowledged {sent}")
