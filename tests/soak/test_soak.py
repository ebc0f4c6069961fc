"""A few seconds of the soak: nothing acknowledged is lost, no call is refused, and clients that leave leave nothing.

`python -m tests.soak --minutes 60` is the long form, with a verdict about what grows.
"""

from __future__ import annotations

from pathlib import Path

from tests.soak.meter import Reading
from tests.soak.soak import KINDS, Soak
from tests.soak.verdict import Minute, growths

SHORT_MINUTES = 0.05
DESCRIPTORS_MAX = 12
"""More than before the first client: of the processes for scripts."""


async def test_a_short_soak_loses_nothing_and_leaves_nothing_open(tmp_path: Path) -> None:
    soak = Soak(tmp_path, SHORT_MINUTES, cold=False)
    await soak.run()
    assert not soak.calls.faults, "\n".join(soak.calls.faults)
    assert {status for _, status in soak.calls.answers} == {200}
    assert soak.calls.acknowledged > 3 * len(KINDS)
    assert soak.calls.read_back > 3 * len(KINDS)
    assert not soak.check, soak.check
    assert soak.last.said["streams"] == soak.last.said["runs waiting"] == 0
    assert soak.last.descriptors <= soak.first.descriptors + DESCRIPTORS_MAX


def minutes(memory_mb: list[float]) -> list[Minute]:
    """Readings of a server that differ by the memory only."""
    names = ("store", "actors", "connections", "streams")
    readings = [Reading(int(mb * 1e6), 60, 8, 3, 10_000_000, dict.fromkeys(names, 100.0)) for mb in memory_mb]
    return [Minute(float(at), each, {"call": [0.002] * 9}) for at, each in enumerate(readings)]


def too_much(memory_mb: list[float], from_minute: float = 0) -> list[str]:
    return [each.name for each in growths(minutes(memory_mb), from_minute) if each.is_too_much]


def test_what_grows_steadily_is_told_and_outliers_are_not() -> None:
    assert too_much([100 + 0.5 * at for at in range(50)]) == ["memory"]
    assert too_much([100 + 70 * (at % 5 == 4) for at in range(50)]) == []
    assert too_much([100 + 5 * min(at, 10) for at in range(50)], from_minute=10) == []
