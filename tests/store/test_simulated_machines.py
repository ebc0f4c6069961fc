"""Machines with several partitions that take over from each other: nothing acknowledged is lost, and nothing that is
old is read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
import trio

from tests.rounds import examples
from tests.store.repeated import repeated
from tests.store.simulated_machines import live
from trunkline.store.log import Placed
from trunkline.store.log_owner import LogOwner
from trunkline.store.replicated_journal import ReplicatedPartitionedJournal
from trunkline.store.standby import Claim, Standby, Tips

REACHED = (
    "a machine was cut off",
    "a machine was ended",
    "a machine was killed",
    "a process owns its partition",
    "a process was cut off",
    "a process was cut off at a claim",
    "a process was killed",
    "a read was told",
    "a read was told to nobody",
    "a store was copied",
    "a write was acknowledged",
    "all partitions were claimed",
    "an owner ended in order",
    "an owner was fenced",
    "the log was trimmed",
)


def lived(tmp_path: Path, seed: int) -> Counter[str]:
    """What happened in the history of a seed."""
    return repeated("machines", live, tmp_path, seed)


def test_what_is_told_is_never_older_than_what_was_known(tmp_path: Path) -> None:
    """`EXAMPLES=50 pytest tests/store/test_simulated_machines.py` makes more histories."""
    reached = sum((lived(tmp_path, seed) for seed in range(examples(8))), Counter[str]())
    assert [each for each in REACHED if not reached[each]] == []


async def _at_once(_standby: Standby, _directory: Path, _owner: LogOwner) -> None:
    await trio.lowlevel.checkpoint()


async def _one_after_the_other(
    owner: LogOwner, bodies: Mapping[int, bytes], tips: Mapping[int, Placed | None]
) -> bool:
    """`LogOwner.claim_all` without an atomic batch."""
    append_all, log = owner._log.append_all, owner._log

    async def each(entries: Mapping[int, tuple[bytes, int]]) -> int:
        places = [await append_all({number: entry}) for number, entry in entries.items()]
        return places[0]

    log.append_all = each  # type: ignore[method-assign]
    try:
        return await _claim_all(owner, bodies, tips)
    finally:
        log.append_all = append_all  # type: ignore[method-assign]


_claim_all = LogOwner.claim_all


def _of_another_look(standby: Standby, _tips: Tips) -> float:
    """`Standby._longest_read_s` whatever has been appended since the look."""
    return max(0.0, standby.nodes.silence_max_s - (trio.current_time() - standby._seen[0]))


def _without_a_lease(standby: Standby) -> bool:
    """`Standby._may_claim` without the wait for others who may read."""
    standby._read_s = -math.inf
    return _may_claim(standby)


_may_claim = Standby._may_claim


async def _its_own_only(_standby: Standby, owner: LogOwner, claim: Claim) -> bool:
    """`Standby._claimed` without the partitions of others."""
    return await owner.claim(claim.encoded())


MISTAKES: dict[str, tuple[object, str, object]] = {
    "a process serves before its neighbours have all of the log": (Standby, "_all_claimed", _at_once),
    "others may read for no time": (Standby, "_longest_read_s", lambda _standby, _tips: 0.0),
    "others may read since an older look": (Standby, "_longest_read_s", _of_another_look),
    "a process claims while others may read": (Standby, "_may_claim", _without_a_lease),
    "a root claims its own partition only": (Standby, "_claimed", _its_own_only),
    "reads are told however old they are": (
        ReplicatedPartitionedJournal,
        "is_current",
        lambda _journal: True,
    ),
    "partitions are claimed one after the other": (LogOwner, "claim_all", _one_after_the_other),
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
