"""Signs of life of a device: the last one, how often one is expected, and from when on the device is silent.

Owns the rule, which is the same for devices that report over REST, over the link and over MQTT. A report that arrives
and a change of the connection are signs of life. A device that is not connected is silent when it has missed three of
the intervals that are expected of it:

- `expectedIntervalSeconds` of its record, which a recipe gives to its devices;
- else what is learned from its last 16 reports: it is silent after three times the median of the gaps between them, or
  twice the second longest of these gaps, whichever is longer, so that one outage does not count, and irregular reports
  do. At least a minute and at most three days;
- else, with fewer than five reports, it is silent after five minutes.

Pure functions of a snapshot. Does not own the count of a fleet (`presentation/overview/fleet.py`).
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median_low
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from trunkline.actors.fleet.devices.state.head import last_arrival_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunkline.actors.core.records.kind import Doc
    from trunkline.store.report_items import Ahead
    from trunkline.store.snapshot import Snapshot

FIELD: Final = "expectedIntervalSeconds"
INTERVALS: Final = 3
"""So many intervals without a sign of life, and a device is silent."""
DEFAULT_INTERVAL_MS: Final = 100_000
SILENT_MS_MIN: Final = 60_000
SILENT_MS_MAX: Final = 3 * 86_400_000
LEARNED_REPORTS_MIN: Final = 5
LEARNED_REPORTS_MAX: Final = 16

Source = Literal["device", "history", "default"]
Health = Literal["connected", "reporting", "silent", "neverSeen"]


class Expected(NamedTuple):
    """The interval in which a sign of life is expected, what says so, and after how long the device is silent."""

    interval_ms: int
    silent_ms: int
    source: Source


DEFAULT: Final = Expected(DEFAULT_INTERVAL_MS, INTERVALS * DEFAULT_INTERVAL_MS, "default")


class Life(NamedTuple):
    """The last sign of life of a device in ms, None for none; `expected_by_ms` is None also while it is connected."""

    seen_ms: int | None
    is_connected: bool
    expected: Expected

    @property
    def expected_by_ms(self) -> int | None:
        """When the device is silent if no sign of life comes before."""
        if self.seen_ms is None or self.is_connected:
            return None
        return self.seen_ms + self.expected.silent_ms

    def health(self, now_ms: int) -> Health:
        """The health at a time in one word."""
        if self.is_connected:
            return "connected"
        by_ms = self.expected_by_ms
        if by_ms is None:
            return "neverSeen"
        return "silent" if by_ms < now_ms else "reporting"


def life_of(snapshot: Snapshot, device: bytes, doc: Doc) -> Life:
    """The signs of life of a device with this record."""
    ahead = snapshot.head(device)
    connection = doc.get("connection") or {}
    seen_ms = max(last_arrival_ms(ahead), connection.get("time", -1))
    return Life(
        None if seen_ms < 0 else seen_ms,
        connection.get("connected") == 1,
        expected_as_set(doc) or expected_as_learned(snapshot, device, ahead),
    )


def expected_as_set(doc: Doc) -> Expected | None:
    """What the record says, None if it says nothing."""
    seconds = doc.get(FIELD)
    if seconds is None:
        return None
    return Expected(seconds * 1000, INTERVALS * seconds * 1000, "device")


def expected_as_learned(snapshot: Snapshot, device: bytes, ahead: Ahead) -> Expected:
    """What the last reports say; what is expected of any device if there are too few."""
    times = sorted(time_ms for time_ms, _ in ahead.reports)
    if len(times) < LEARNED_REPORTS_MIN and (times or ahead.head is not None):
        times = _newest_times(snapshot, device)
    return learned(times[-LEARNED_REPORTS_MAX:])


def _newest_times(snapshot: Snapshot, device: bytes) -> list[int]:
    """The times of the last reports, ascending. No values are read."""
    times: list[int] = []
    for part in snapshot.points(device, reverse=True, numbers=(), rows=LEARNED_REPORTS_MAX):
        times = [*map(int, part.visible().times[-LEARNED_REPORTS_MAX:]), *times]
        if len(times) >= LEARNED_REPORTS_MAX:
            break
    return times[-LEARNED_REPORTS_MAX:]


def learned(times: Sequence[int]) -> Expected:
    """What reports at these ascending times say."""
    if len(times) < LEARNED_REPORTS_MIN:
        return DEFAULT
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    interval_ms = median_low(gaps)
    silent_ms = max(INTERVALS * interval_ms, 2 * gaps[-2])
    return Expected(interval_ms, min(max(silent_ms, SILENT_MS_MIN), SILENT_MS_MAX), "history")
