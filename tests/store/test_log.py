"""Entries of a log, and the chain that they are: nothing is missing, and nothing is in the place of another entry."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.store import codec
from trunkline.store.errors import LogBroken
from trunkline.store.log import (
    BEGINNING,
    VERSION,
    Chain,
    Entry,
    Kind,
    Placed,
    decoded,
    encoded,
    hash_of,
)


def chained(*entries: tuple[int, str, Kind]) -> list[Placed]:
    """Entries that follow each other, with these epochs, owners and kinds."""
    found: list[Placed] = []
    tip = BEGINNING
    for at, (epoch, owner, kind) in enumerate(entries):
        data = encoded(Entry(3, epoch, owner, tip, kind, b"body %d" % at))
        found.append(Placed(at * 10 + 1, data))
        tip = hash_of(data)
    return found


HISTORY = chained(
    (1, "a", "claim"), (1, "a", "group"), (2, "b", "claim"), (2, "b", "group"), (2, "b", "mark")
)


def test_an_entry_is_read_as_it_was_written() -> None:
    entry = Entry(3, 7, "node a", bytes(16), "group", b"\x00\xff")
    assert decoded(encoded(entry)) == entry


def test_a_chain_ends_where_its_last_entry_is() -> None:
    chain = Chain(3)
    assert [chain.add(each).body for each in HISTORY] == [b"body %d" % at for at in range(5)]
    assert (chain.place, chain.tip, chain.epoch, chain.owner) == (41, hash_of(HISTORY[-1].data), 2, "b")
    again = Chain(3, HISTORY[1].place, hash_of(HISTORY[1].data), 1, "a")
    assert again.add(HISTORY[2]).owner == "b"


def broken(before: int, placed: Placed, partition: int = 3) -> str:
    """The sentence with which a chain of so many entries refuses one; it is as it was."""
    chain = Chain(partition)
    for each in HISTORY[:before]:
        chain.add(each)
    place, tip, epoch = chain.place, chain.tip, chain.epoch
    with pytest.raises(LogBroken) as refusal:
        chain.add(placed)
    assert (chain.place, chain.tip, chain.epoch) == (place, tip, epoch)
    return str(refusal.value)


def test_a_hole_is_noticed() -> None:
    assert "broken at 21: the entry there does not follow the one at 1" in broken(1, HISTORY[2])


def test_a_fork_is_noticed() -> None:
    other = chained((1, "a", "claim"), (2, "c", "claim"), (2, "c", "group"))
    assert "does not follow" in broken(2, Placed(31, other[2].data))


def test_an_entry_comes_once() -> None:
    assert "does not follow" in broken(2, HISTORY[1])


def test_a_log_is_of_one_partition() -> None:
    assert "has an entry of partition 3 at 1" in broken(0, HISTORY[0], partition=4)


@pytest.mark.parametrize(
    ("epoch", "owner", "kind"),
    [(2, "a", "group"), (1, "b", "group"), (1, "b", "claim"), (3, "b", "claim"), (0, "", "group")],
)
def test_an_epoch_begins_with_a_claim_and_has_one_owner(epoch: int, owner: str, kind: Kind) -> None:
    data = encoded(Entry(3, epoch, owner, hash_of(HISTORY[1].data), kind, b""))
    assert "owns epoch" in broken(2, Placed(99, data))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff", "is not CBOR"),
        (codec.encode(5), "is not CBOR, or no array"),
        (codec.encode([VERSION + 1, 0, 1, "a", bytes(16), "group", b""]), "has version 2"),
        (codec.encode([VERSION, 0, 1]), "has not the fields"),
        (codec.encode([VERSION, 0, True, "a", bytes(16), "group", b""]), "has not the fields"),
        (codec.encode([VERSION, 0, 1, "a", bytes(15), "group", b""]), "no hash"),
        (codec.encode([VERSION, 0, 1, "a", bytes(16), "other", b""]), "has the kind 'other'"),
    ],
)
def test_what_is_no_entry_is_told(data: Any, sentence: str) -> None:
    with pytest.raises(LogBroken, match=sentence):
        decoded(data)
