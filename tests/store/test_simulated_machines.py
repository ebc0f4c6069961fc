"""Machines with several partitions that take over from each other: nothing acknowledged is lost, and nothing that is
old is read."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest
import trio

from tests.rounds import examples
from tests.store.repeated import repeated
from tests.store.simulated_machines import live
from trunkline.store.freshness import Freshness
from trunkline.store.leases import Leases
from trunkline.store.log_nodes import Word
from trunkline.store.overlay import Overlay
from trunkline.store.partition_copy import PartitionCopy
from trunkline.store.replicated_journal import ReplicatedJournal, ReplicatedPartitionedJournal

REACHED = (
    "a copy was not fresh",
    "a copy was read",
    "a machine was cut off",
    "a machine was ended",
    "a machine was killed",
    "a process owns its partition",
    "a process was cut off",
    "a process was cut off at a claim",
    "a process was ended",
    "a process was killed",
    "a read was told",
    "a read was told to nobody",
    "a store was copied",
    "a write was acknowledged",
    "an owner ended in order",
    "an owner was fenced",
    "machines shared the partitions",
    "the log was trimmed",
)


FIRST = 10
"""From this seed on a few histories reach all of this."""


def lived(tmp_path: Path, seed: int) -> Counter[str]:
    """What happened in the history of a seed."""
    return repeated("machines", live, tmp_path, seed)


def test_what_is_told_is_never_older_than_what_was_known(tmp_path: Path) -> None:
    """`EXAMPLES=50 pytest tests/store/test_simulated_machines.py` makes more histories."""
    reached = sum((lived(tmp_path, seed) for seed in range(FIRST, FIRST + examples(8))), Counter[str]())
    assert [each for each in REACHED if not reached[each]] == []


async def _at_once(_journal: ReplicatedPartitionedJournal, _overlay: Overlay) -> None:
    """`_confirmed` without a wait."""
    await trio.lowlevel.checkpoint()


def _granted_to_all(leases: Leases, word: Word) -> bool:
    """`Leases.hear` wherever the copy is."""
    return _hear(leases, word._replace(place=max(word.place, leases._needed)) if word.said_s else word)


_hear = Leases.hear


def _alone(leases: Leases, place: int, _others_until_s: float) -> None:
    """`Leases` of an owner that knows of no others."""
    _begin(leases, place, -math.inf)


_begin = Leases.__init__


def _from_now(copy: PartitionCopy, _said_s: float) -> None:
    """`PartitionCopy.granted` with a lease from when it is heard, and not from when it was asked for."""
    _granted(copy, copy.freshness.clock_s())


_granted = PartitionCopy.granted


def _ended(leases: Leases) -> float:
    """`Leases.end` without those that are held."""
    _end(leases)
    return 0.0


_end = Leases.end


def _proved(journal: ReplicatedPartitionedJournal, began_s: float) -> None:
    """`_prove` also while the release is appended."""
    ReplicatedJournal._prove(journal, began_s)
    journal._copy.proved(began_s)


MISTAKES: dict[str, tuple[object, str, object]] = {
    "a commit is answered before the copies have it": (ReplicatedPartitionedJournal, "_confirmed", _at_once),
    "a copy gets a lease that lacks something": (Leases, "hear", _granted_to_all),
    "a copy is fresh for ever": (Freshness, "is_fresh", lambda _freshness, _number: True),
    "an owner knows nothing of leases before it": (Leases, "__init__", _alone),
    "a lease begins when it is heard": (PartitionCopy, "granted", _from_now),
    "an owner that ends tells of no leases": (Leases, "end", _ended),
    "a release proves that the store is fresh": (ReplicatedPartitionedJournal, "_prove", _proved),
    "a store is fresh that was released": (Freshness, "end", lambda _freshness, _number: None),
    "leases are granted without being sure": (Freshness, "is_own", lambda _freshness, _number: True),
    "reads are told however old they are": (
        ReplicatedPartitionedJournal,
        "is_current",
        lambda _journal: True,
    ),
}


@pytest.mark.slow
@pytest.mark.load
@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    place, name, instead = MISTAKES[mistake]
    monkeypatch.setattr(place, name, instead)
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        many(tmp_path)


def many(tmp_path: Path) -> None:
    for seed in range(100, 250):
        lived(tmp_path, seed)
