"""Nodes that take over from each other: nothing acknowledged is lost, and nothing that is old is read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import trio

from tests.rounds import examples
from tests.store.repeated import repeated
from tests.store.simulated_nodes import live
from trunkline.store import replicated_journal
from trunkline.store.errors import LogUnreachable
from trunkline.store.log import NotNext
from trunkline.store.log_owner import AGAIN_S, LogOwner
from trunkline.store.replicated_journal import ReplicatedJournal
from trunkline.store.standby import Standby

REACHED = (
    "a node was cut off",
    "a node was killed",
    "a node owns the partition",
    "a read was told",
    "a read was told to nobody",
    "a write was acknowledged",
    "an owner ended in order",
    "an owner was fenced",
)


def lived(tmp_path: Path, seed: int) -> Counter[str]:
    """What happened in the history of a seed."""
    return repeated("nodes", live, tmp_path, seed)


def test_what_is_told_is_never_older_than_what_was_known(tmp_path: Path) -> None:
    """`EXAMPLES=50 pytest tests/store/test_simulated_nodes.py` makes more histories."""
    reached = sum((lived(tmp_path, seed) for seed in range(examples(8))), Counter[str]())
    assert [each for each in REACHED if not reached[each]] == []


def test_a_history_is_repeated_from_its_seed(tmp_path: Path) -> None:
    assert lived(tmp_path, 3) == lived(tmp_path, 3)


_claim = LogOwner.claim


async def _only_the_first_claims(owner: LogOwner, body: bytes) -> bool:
    return bool(owner.chain.place) or await _claim(owner, body)


async def _taken_for_done(owner: LogOwner, data: bytes, *, is_sure: bool) -> int:
    try:
        return await owner._log.append(data, owner.chain.place)
    except (LogUnreachable, NotNext):
        return owner.chain.place + owner._log.length(data)


async def _behind_whatever_is_there(owner: LogOwner, data: bytes, *, is_sure: bool) -> int:
    while True:
        try:
            return await owner._log.append(data, owner.chain.place)
        except LogUnreachable:
            await trio.sleep(AGAIN_S)
        except NotNext as refusal:
            owner.chain.place = refusal.last


MISTAKES: dict[str, tuple[object, str, object]] = {
    "reads whose age is not looked at": (ReplicatedJournal, "is_current", lambda _journal: True),
    "a claim while the owner is heard": (Standby, "_owner_is_gone", lambda _standby: True),
    "a partition without a claim": (LogOwner, "claim", _only_the_first_claims),
    "a lease that is longer than the silence": (replicated_journal, "LEASE_S", 4.0),
    "an append that was not answered is taken for done": (LogOwner, "_settled", _taken_for_done),
    "an owner that is not fenced": (LogOwner, "_settled", _behind_whatever_is_there),
}


@pytest.mark.slow
@pytest.mark.load
@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    place, name, instead = MISTAKES[mistake]
    monkeypatch.setattr(place, name, instead)
    with pytest.raises(BaseExceptionGroup):
        many(tmp_path)


def many(tmp_path: Path) -> None:
    for seed in range(100, 140):
        lived(tmp_path, seed)
