"""A log that loses what it had acknowledged: whoever has more than it stops, and nobody goes on with a fork."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import trio

from tests.rounds import examples
from tests.store.repeated import repeated
from tests.store.simulated_losses import live
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


async def _not_looked(_owner: LogOwner) -> bool:
    await trio.lowlevel.checkpoint()
    return True


@pytest.mark.slow
@pytest.mark.load
def test_an_append_behind_an_entry_of_which_only_the_place_is_right_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogOwner, "_has_last", _not_looked)
    with pytest.raises((AssertionError, LogBroken), match=r"and goes on|is broken"):
        many(tmp_path)


def many(tmp_path: Path) -> None:
    for seed in range(100, 140):
        lived(tmp_path, seed)
