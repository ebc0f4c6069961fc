"""A log that loses what it had acknowledged: whoever has more than it stops, and nobody goes on with a fork."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import trio

from tests.rounds import examples
from tests.store.repeated import repeated
from tests.store.simulated_losses import live
from tests.store.test_simulated_nodes import behind_whatever_is_there
from trunkline.store.errors import LogBroken
from trunkline.store.log_owner import LogOwner

REACHED = (
    "a node owns the partition",
    "a node stopped for its log",
    "a node went on with the log",
    "the log has lost an entry",
    "the log has lost its end",
)


def lived(tmp_path: Path, seed: int) -> Counter[str]:
    """What happened in the history of a seed."""
    return repeated("losses", live, tmp_path, seed)


def test_who_has_more_than_the_log_stops(tmp_path: Path) -> None:
    """`EXAMPLES=50 pytest tests/store/test_simulated_losses.py` makes more histories."""
    reached = sum((lived(tmp_path, seed) for seed in range(examples(6))), Counter[str]())
    assert [each for each in REACHED if not reached[each]] == []


async def _not_looked(_owner: LogOwner) -> None:
    await trio.lowlevel.checkpoint()


MISTAKES: dict[str, tuple[object, str, object]] = {
    "an append behind an entry of which only the place is right": (LogOwner, "_check_last", _not_looked),
    "an append behind whatever is there": (LogOwner, "_settled", behind_whatever_is_there),
}


@pytest.mark.slow
@pytest.mark.load
@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    place, name, instead = MISTAKES[mistake]
    monkeypatch.setattr(place, name, instead)
    with pytest.raises((AssertionError, LogBroken), match=r"and goes on|is broken"):
        many(tmp_path)


def many(tmp_path: Path) -> None:
    for seed in range(100, 140):
        lived(tmp_path, seed)
