"""Which copies of a partition may be read, and what its owner waits for (`test_simulated_machines.py` has the rest)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import trio
import trio.testing

from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.errors import CopyOutdated
from trunkline.store.freshness import Freshness
from trunkline.store.leases import HELD_S, Leases, is_read_elsewhere
from trunkline.store.log import Entry
from trunkline.store.log_nodes import Word
from trunkline.store.overlay import Overlay
from trunkline.store.partition_copy import PartitionCopy
from trunkline.store.partitioned import Partitions
from trunkline.store.partitions import write_partition_count
from trunkline.store.release import Release

WAIT_S = 0.4


def word(place: int, said_s: float = 1.0) -> Word:
    return Word("b", 7, 1, place, False, "address", said_s)


def test_a_store_is_fresh_until_the_time_that_was_said_and_not_after_a_start_of_the_machine(
    tmp_path: Path,
) -> None:
    now = SimpleNamespace(s=10.0)
    one = Freshness(tmp_path / "partitions" / "fresh", 2, lambda: now.s, boot=1)
    other = Freshness(tmp_path / "partitions" / "fresh", 2, lambda: now.s, boot=1)
    started_again = Freshness(tmp_path / "partitions" / "fresh", 2, lambda: now.s, boot=2)
    assert not other.is_fresh(1)
    one.say(1, 11.0, is_own=False)
    assert (other.is_fresh(1), other.is_own(1), other.serves(), other.is_fresh(0)) == (
        True,
        False,
        False,
        False,
    )
    assert not started_again.is_fresh(1)
    now.s = 11.0
    assert not other.is_fresh(1)
    one.say(1, 12.0, is_own=True)
    assert other.serves()
    one.end(1)
    assert not other.is_own(1)


async def test_a_commit_waits_for_each_copy_with_a_lease(autojump_clock: trio.testing.MockClock) -> None:
    leases = Leases(5, 0.0)
    assert not leases.hear(word(4)), "it lacks what the owner has claimed behind"
    assert leases.hear(word(5))
    assert leases.told() == {7: 1.0}
    assert not await leases.confirmed(9, WAIT_S)
    assert not leases.hear(word(8, said_s=2.0)), "nobody gets a lease any more without the commit"
    assert leases.told() == {7: 1.0}
    leases.hear(word(9, said_s=3.0))
    assert await leases.confirmed(9, WAIT_S)
    assert leases.told() == {7: 3.0}


async def test_a_lease_of_who_is_gone_is_waited_for(autojump_clock: trio.testing.MockClock) -> None:
    leases = Leases(5, trio.current_time())
    leases.hear(word(5))
    began_s = trio.current_time()
    while not await leases.confirmed(9, WAIT_S):
        pass
    assert trio.current_time() - began_s == pytest.approx(HELD_S)
    assert not leases.told()
    # So are those that an owner before may have granted.
    after = Leases(9, trio.current_time() + 2.0)
    assert not await after.confirmed(9, WAIT_S)
    assert after.end() == pytest.approx(2.0 - WAIT_S)


def test_only_what_other_partitions_read_waits() -> None:
    def written(fill: Batch) -> bool:
        overlay = Overlay()
        overlay.merge(fill)
        return is_read_elsewhere(overlay)

    record, row, count, total = Batch(), Batch(), Batch(), Batch()
    record.put(keys.RECORDS, b"key", b"value")
    row.put(keys.ROWS, b"key", b"value")
    count.add(keys.COUNTS, bytes(keys.ID_BYTES) + b"key", {"n": 1})
    total.add(keys.COUNTS, keys.total_key("device", bytes(keys.ID_BYTES)), {"n": 1})
    assert [written(each) for each in (record, row, count, total)] == [True, False, False, True]


def test_a_store_that_is_not_fresh_is_not_read_and_all_that_was_read_counts_as_changed(
    tmp_path: Path,
) -> None:
    write_partition_count(tmp_path, 2)
    now = SimpleNamespace(s=10.0)
    copy = PartitionCopy(tmp_path, 1, 2, lambda: now.s, boot=1)
    partitions = Partitions(tmp_path, 0)
    partitions.use_freshness(copy.freshness)
    copy.granted(10.0)
    assert partitions.are_fresh
    before = partitions.numbers.changes()
    list(partitions.numbers.revoked())
    assert not partitions.numbers.has_revoked
    now.s = 11.0
    with pytest.raises(CopyOutdated):
        partitions.map_of(1)
    assert partitions.numbers.changes() > before
    assert partitions.numbers.has_revoked
    assert list(partitions.numbers.revoked()) == [None]
    assert not partitions.numbers.has_revoked, "once is enough, as nothing of it can be read any more"
    # What a follower writes is told: the record, and whose access may depend on it.
    copy.granted(11.0)
    before, overlay, batch = partitions.numbers.changes(), Overlay(), Batch()
    id = bytes(range(keys.ID_BYTES))
    batch.put(keys.RECORDS, keys.record_key("user", bytes(keys.ID_BYTES), id), b"value")
    overlay.merge(batch)
    assert copy.took(3, overlay)
    assert partitions.numbers.changes() > before
    assert list(partitions.numbers.revoked()) == [id]
    assert copy.freshness.place(1) == 3


@pytest.mark.parametrize("release", [Release(), Release("b"), Release("", 0.5)])
def test_a_release_is_read_as_it_was_written(release: Release) -> None:
    entry = Entry(0, 1, "a", bytes(16), "release", release.encoded())
    assert Release.of(entry) == release
    assert bool(entry.body) is any(release)
