"""Several stores read as one: which of them has a key, merged ranges, added numbers, names that only one may claim."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.partitions import make_partitions
from trunkline.store import codec, keys
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.placing import EVERYWHERE
from trunkline.store.snapshot import Snapshot

COUNT = 3


class ByFirstByte:
    """The first byte of a key says which partition has it; 9: any of them."""

    def of_key(self, _db: str, key: bytes) -> int:
        return EVERYWHERE if key[:1] == b"\x09" else key[0] % COUNT

    def of_range(self, db: str, lo: bytes, _hi: bytes | None) -> int:
        return self.of_key(db, lo)

    def record_of(self, application: bytes) -> bytes:
        return b"\x09" + application

    def counted(self, _key: bytes, application: bytes) -> dict[str, int]:
        return {"n": int(application)}

    def holds(self, _part: Snapshot, application: bytes, holder: bytes) -> bool:
        return holder.startswith(application)


class Stores(NamedTuple):
    """The stores of all partitions, which this process has open."""

    all: list[Store]

    def put(self, partition: int, db: str, key: bytes, value: bytes) -> None:
        batch = Batch()
        batch.put(db, key, value)
        self.all[partition].journal.submit(batch)
        self.all[partition].journal.flush()


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    make_partitions(tmp_path, COUNT)
    with ExitStack() as held:
        opened = [
            held.enter_context(Store.open(tmp_path, partition=number, map_size_bytes=1 << 20))
            for number in range(COUNT)
        ]
        for store in opened:
            assert store.partitions is not None
            store.partitions.placing = ByFirstByte()
        yield Stores(opened)


def test_a_key_is_read_from_the_partition_that_has_it(stores: Stores) -> None:
    for number in range(COUNT):
        stores.put(number, keys.RECORDS, bytes([number]), b"of %d" % number)
        stores.put((number + 1) % COUNT, keys.RECORDS, bytes([number, 1]), b"misplaced")
    for store in stores.all:
        with store.snapshot() as snapshot:
            for number in range(COUNT):
                assert snapshot.get(keys.RECORDS, bytes([number])) == b"of %d" % number
                assert store.journal.get(keys.RECORDS, bytes([number])) == b"of %d" % number
                assert snapshot.get(keys.RECORDS, bytes([number, 1])) is None
                assert store.journal.get(keys.RECORDS, bytes([number, 1])) is None


def test_what_may_be_anywhere_is_looked_for_everywhere(stores: Stores) -> None:
    stores.put(2, keys.UNIQUE, b"\x09name", b"holder")
    for store in stores.all:
        assert store.journal.get(keys.UNIQUE, b"\x09name") == b"holder"
        with store.snapshot() as snapshot:
            assert snapshot.get(keys.UNIQUE, b"\x09name") == b"holder"
            assert snapshot.get(keys.UNIQUE, b"\x09other") is None


def test_what_waits_in_the_own_journal_is_seen_there_and_elsewhere_when_it_is_on_disk(stores: Stores) -> None:
    batch = Batch()
    batch.put(keys.UNIQUE, b"\x09name", b"holder")
    stores.all[1].journal.submit(batch)
    assert stores.all[1].journal.get(keys.UNIQUE, b"\x09name") == b"holder"
    assert stores.all[0].journal.get(keys.UNIQUE, b"\x09name") is None
    stores.all[1].journal.flush()
    assert stores.all[0].journal.get(keys.UNIQUE, b"\x09name") == b"holder"


def test_numbers_of_records_are_added_where_all_are_asked_for(stores: Stores) -> None:
    for number, store in enumerate(stores.all):
        batch = Batch()
        batch.add(keys.COUNTS, b"\x09total", {"n": 10**number, "x": number})
        store.journal.submit(batch)
        store.journal.flush()
    for number, store in enumerate(stores.all):
        raw = store.journal.get(keys.COUNTS, b"\x09total")
        assert raw is not None
        assert codec.decode(raw) == {"n": 111, "x": 3}
        raw = store.journal.own(keys.COUNTS, b"\x09total")
        assert raw is not None
        assert codec.decode(raw)["n"] == 10**number
        with store.snapshot(wide=True) as snapshot:
            raw = snapshot.get(keys.COUNTS, b"\x09total")
            assert raw is not None
            assert codec.decode(raw)["n"] == 111
        with store.snapshot() as snapshot:
            raw = snapshot.get(keys.COUNTS, b"\x09total")
            assert raw is not None
            assert codec.decode(raw)["n"] == 10**number


@given(
    entries=st.sets(st.binary(min_size=1, max_size=2), max_size=20),
    skip=st.integers(0, 5),
    reverse=st.booleans(),
    db=st.sampled_from([keys.RECORDS, keys.INDEXES]),
)
def test_ranges_of_all_partitions_are_merged_in_order(
    tmp_path_factory: pytest.TempPathFactory, entries: set[bytes], skip: int, reverse: bool, db: str
) -> None:
    path = tmp_path_factory.mktemp("merged")
    make_partitions(path, 2)
    ordered = sorted(entries)
    with (
        Store.open(path, map_size_bytes=1 << 20) as root,
        Store.open(path, partition=1, map_size_bytes=1 << 20) as other,
    ):
        for number, key in enumerate(ordered):
            batch = Batch()
            batch.put(db, b"\x09" + key, b"value of " + key)
            store = (root, other)[number % 2]
            store.journal.submit(batch)
            store.journal.flush()
        wanted = [b"\x09" + key for key in (ordered[::-1] if reverse else ordered)][skip:]
        for number, store in enumerate((root, other)):
            assert store.partitions is not None
            store.partitions.placing = ByFirstByte()
            with store.snapshot(wide=True) as snapshot:
                assert list(snapshot.keys(db, b"\x09", b"\x0a", reverse=reverse, skip=skip)) == wanted
                found = list(snapshot.range(db, b"\x09", b"\x0a", reverse=reverse, skip=skip))
                assert found == [(key, b"value of " + key[1:]) for key in wanted]
                assert snapshot.count(db, b"\x09", b"\x0a") == len(ordered)
            with store.snapshot() as snapshot:
                own = [b"\x09" + key for key in ordered[number::2]]
                assert list(snapshot.keys(db, b"\x09", b"\x0a")) == own


def test_a_change_of_records_raises_the_number_of_all_when_it_is_on_disk(stores: Stores) -> None:
    before = [store.journal.record_changes for store in stores.all]
    batch = Batch()
    batch.put(keys.RECORDS, b"\x01", b"")
    stores.all[1].journal.submit(batch)
    waiting = [store.journal.record_changes for store in stores.all]
    assert waiting[0] == before[0]
    assert waiting[1] > before[1]  # who reads the journal sees it before the commit
    stores.all[1].journal.flush()
    after = [store.journal.record_changes for store in stores.all]
    assert after[0] > before[0]
    assert after[2] > before[2]
    stores.put(0, keys.LOGS, b"\x00", b"")
    assert [store.journal.record_changes for store in stores.all] == after


def test_only_one_process_claims_a_name_at_a_time(stores: Stores) -> None:
    parts = [store.partitions for store in stores.all]
    first, second = parts[0], parts[1]
    assert first is not None
    assert second is not None
    assert first.hold_names()
    assert first.hold_names()
    assert not second.hold_names()
    stores.put(0, keys.UNIQUE, b"\x09name", b"holder")  # the commit releases them
    assert second.hold_names()
    second.release_names()
    assert first.hold_names()
    first.release_names()


APPLICATION = b"a" * 12


def test_what_has_arrived_and_was_not_given_away_does_not_count(stores: Stores) -> None:
    """A move copies a record with its count, and another commit takes them away where they were."""
    record, index, counts = b"\x09" + APPLICATION, b"\x09i" + APPLICATION, b"\x09n"
    for number in (0, 1):
        stores.put(number, keys.RECORDS, record, b"1")
        stores.put(number, keys.INDEXES, index, b"")
        stores.put(number, keys.COUNTS, counts, codec.encode({"n": 1}))
    stores.put(1, keys.META, keys.arrived_key(APPLICATION), codec.encode({"from": 0}))

    def seen(own: Store) -> tuple[int, int, int, int]:
        with own.snapshot(wide=True) as snapshot:
            found = snapshot.get(keys.COUNTS, counts)
            assert found is not None
            lists = [len(list(snapshot.range(db, b"\x09", b"\x0a"))) for db in (keys.RECORDS, keys.INDEXES)]
            return *lists, snapshot.count(keys.RECORDS, b"\x09", b"\x0a"), codec.decode(found).get("n", 0)

    for own in stores.all:
        assert seen(own) == (1, 1, 1, 1)
    batch = Batch()
    batch.delete(keys.RECORDS, record)
    batch.delete(keys.INDEXES, index)
    batch.add(keys.COUNTS, counts, {"n": -1})
    stores.all[0].journal.submit(batch)
    stores.all[0].journal.flush()
    for own in stores.all:
        assert seen(own) == (0, 0, 0, 0), "it was deleted where it was"
    for to, left in ((2, 0), (1, 1)):
        stores.put(0, keys.META, keys.foreign_key(APPLICATION), codec.encode({"partition": to}))
        for own in stores.all:
            assert seen(own) == (left, left, left, left), f"it was given to {to}"


@pytest.mark.parametrize("to", [None, 2, 1])
def test_a_name_of_what_has_arrived_and_was_not_given_away_is_free(stores: Stores, to: int | None) -> None:
    name = b"\x09name"
    stores.put(1, keys.UNIQUE, name, APPLICATION)
    stores.put(1, keys.META, keys.arrived_key(APPLICATION), codec.encode({"from": 0}))
    if to is not None:
        stores.put(0, keys.META, keys.foreign_key(APPLICATION), codec.encode({"partition": to}))
    assert stores.all[1].partitions is not None
    stores.all[1].partitions.arriving.add(APPLICATION)  # its process is alive
    wanted = APPLICATION if to == 1 else None
    for own in stores.all:
        assert own.journal.get(keys.UNIQUE, name) == wanted
        with own.snapshot() as snapshot:
            assert snapshot.get(keys.UNIQUE, name) == wanted
    if to != 1:
        stores.put(2, keys.UNIQUE, name, b"another one")
        assert [own.journal.get(keys.UNIQUE, name) for own in stores.all] == [b"another one"] * COUNT


def test_what_was_given_away_and_settled_between_two_looks_counts(stores: Stores) -> None:
    """A reader that has seen the note of the arrival, and not any more that it was given away, looks again."""
    record = b"\x09" + APPLICATION
    stores.put(1, keys.RECORDS, record, b"1")
    stores.put(1, keys.META, keys.arrived_key(APPLICATION), codec.encode({"from": 0}))
    looks = 0

    def look(snapshot: Snapshot) -> list[bytes]:
        nonlocal looks
        looks += 1
        if looks == 1:  # it has opened its own store
            batch = Batch()
            batch.delete(keys.META, keys.arrived_key(APPLICATION))
            stores.all[1].journal.submit(batch)
            stores.all[1].journal.flush()
        return [bytes(key) for key, _ in snapshot.range(keys.RECORDS, b"\x09", b"\x0a")]

    assert stores.all[1].look(look, wide=True) == [record]
    assert looks == 2


def test_a_reader_begins_again_where_an_application_was_moved_while_stores_were_opened(
    stores: Stores,
) -> None:
    looks = 0

    def look(snapshot: Snapshot) -> list[bytes]:
        nonlocal looks
        looks += 1
        if looks == 1:  # it has opened its own store
            partitions = stores.all[2].partitions
            assert partitions is not None
            stores.put(2, keys.RECORDS, b"\x09b", b"")
            partitions.numbers.note_move()
        return [bytes(key) for key, _ in snapshot.range(keys.RECORDS, b"\x09", b"\x0a")]

    assert stores.all[0].look(look, wide=True) == [b"\x09b"]
    assert looks == 2
