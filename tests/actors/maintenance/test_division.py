"""Which partition applications and keys go to, when a data directory is divided."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records.placement import home_of_key
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.key_owners import KeyOwners
from trunkline.actors.maintenance.new_stores import renumbered
from trunkline.actors.maintenance.shares import shares
from trunkline.actors.maintenance.survey import Fingerprint
from trunkline.store import codec, keys
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.errors import StoreDamaged


def app(number: int) -> bytes:
    return number.to_bytes(12, "big")


def test_the_largest_goes_first_to_where_least_is() -> None:
    sizes = {app(1): 60, app(2): 50, app(3): 30, app(4): 20}
    assert shares(sizes, dict.fromkeys(sizes, 0), [10, 0, 0], grows=True) == {
        app(1): 1,
        app(2): 2,
        app(3): 0,
        app(4): 0,
    }


def test_what_is_not_of_an_application_counts() -> None:
    sizes = {app(1): 10, app(2): 10}
    assert shares(sizes, dict.fromkeys(sizes, 0), [100, 0], grows=True) == {app(1): 1, app(2): 1}


def test_with_fewer_partitions_only_those_of_the_removed_ones_move() -> None:
    sizes = {app(1): 10, app(2): 100, app(3): 5, app(4): 1}
    now = {app(1): 0, app(2): 1, app(3): 2, app(4): 3}
    assert shares(sizes, now, [0, 0], grows=False) == {app(1): 0, app(2): 1, app(3): 0, app(4): 0}


def test_with_more_partitions_those_that_fit_stay() -> None:
    sizes = {app(number): 10 for number in range(1, 9)}
    now = {app(number): number % 2 for number in range(1, 9)}
    placed = shares(sizes, now, [0, 0, 0, 0], grows=True)
    moved = [id for id in sizes if placed[id] != now[id]]
    assert len(moved) == 4
    assert sorted(placed.values()) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_one_that_is_larger_than_a_share_stays_alone() -> None:
    sizes = {app(1): 1000, app(2): 1}
    assert shares(sizes, {app(1): 1, app(2): 1}, [0, 0, 0], grows=True) == {app(1): 1, app(2): 0}


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 4)), max_size=30),
    st.integers(1, 8),
    st.booleans(),
)
def test_each_is_placed_once_and_nowhere_else(found: list[tuple[int, int]], count: int, grows: bool) -> None:
    sizes = {app(at): size for at, (size, _) in enumerate(found, 1)}
    now = {app(at): where for at, (_, where) in enumerate(found, 1)}
    placed = shares(sizes, now, [0] * count, grows=grows)
    assert placed.keys() == sizes.keys()
    assert all(0 <= number < count for number in placed.values())


def trigger(number: int, home: bytes) -> bytes:
    return keys.trigger_key(number, "application", home)


def test_triggers_of_two_stores_get_numbers_of_their_own() -> None:
    """A number is that of one run: its markers would be taken for those of another one."""
    marker = keys.done_key(7, "application", app(1), 0, 0)
    found = [
        (trigger(7, app(1)), 0, b"a"),
        (marker, 0, b"m"),
        (trigger(7, app(2)), 1, b"b"),
        (trigger(8, app(1)), 0, b"c"),
        (trigger(99, app(2)), 1, b"d"),
    ]
    after = list(renumbered(iter(found)))
    assert [keys.trigger_number(key) for key, _, _ in after] == [7, 7, 8, 9, 99]
    assert [key[8:] for key, _, _ in after] == [key[8:] for key, _, _ in found]


def test_triggers_of_one_store_keep_their_numbers() -> None:
    found = [(trigger(number, app(1)), 0, b"") for number in (3, 4, 4_000)]
    assert list(renumbered(iter(found))) == found


def test_a_fingerprint_shows_each_change() -> None:
    entries = [(keys.META, b"a", b"1"), (keys.META, b"b", b"2"), (keys.ROWS, b"a", b"1")]
    one, other, less, moved = Fingerprint(), Fingerprint(), Fingerprint(), Fingerprint()
    for entry in entries:
        one.add(*entry)
    for entry in reversed(entries):
        other.add(*entry)
    for entry in entries[1:]:
        less.add(*entry)
    for db, key, value in (*entries[:2], (keys.ROWS, b"a1", b"")):
        moved.add(db, key, value)
    assert one.differences(other) == []
    assert one.differences(less) == [keys.META]
    assert one.differences(moved) == [keys.ROWS]


def write(path: Path, *entries: tuple[str, bytes, bytes]) -> Store:
    store = Store.open(path)
    batch = Batch()
    for entry in entries:
        batch.put(*entry)
    store.journal.submit(batch)
    store.journal.flush()
    return store


NAME = codec.encode({"name": "x"})
HOUSE, DEVICE, TABLE, GONE, MADE = (app(number) for number in (16, 17, 18, 19, 20))


async def test_keys_without_their_application_are_found_by_what_they_name(tmp_path: Path) -> None:
    records = [
        (keys.RECORDS, keys.record_key("application", ROOT, HOUSE), NAME),
        (keys.RECORDS, keys.record_key("application", ROOT, MADE), NAME),
        (keys.RECORDS, keys.record_key("device", HOUSE, DEVICE), NAME),
        (keys.RECORDS, keys.record_key("dataTable", HOUSE, TABLE), NAME),
        (keys.META, keys.purge_key(GONE), NAME),
        (keys.META, keys.building_key(MADE), NAME),
    ]
    with write(tmp_path / "data", *records) as store, store.snapshot() as snapshot:
        owners = KeyOwners()
        owners.learn(0, snapshot)
        assert owners.applications == {HOUSE: 0, GONE: 0, MADE: 0}
        assert owners.fixed == {GONE, MADE}, "a job in the root goes on with one, the sweep with the other"
        of_house = [
            (keys.TIMELINE, keys.head_key(DEVICE)),
            (keys.RUNS, keys.block_key(3, DEVICE, 5)),
            (keys.COMMANDS, keys.command_key(DEVICE, 1, 0)),
            (keys.LOGS, keys.log_key(DEVICE, 1, 0)),
            (keys.ROWS, keys.row_key(TABLE, 0, app(1))),
            (keys.CELLS, keys.cell_key(TABLE, 0, 0, keys.cell("x"))),
            (keys.EVENTS, keys.event_detail_key(HOUSE, app(1))),
            (keys.ARRIVALS, keys.latest_counts_key(keys.app_counts_key(HOUSE, 1))),
            (keys.COUNTS, keys.total_key("device", HOUSE)),
            (keys.INDEXES, keys.index_key("application", ROOT, "name@x", keys.sortable("x"), HOUSE)),
            (keys.TRIGGERS, keys.trigger_key(1, "device", DEVICE)),
            (keys.ANSWERS, keys.answers_head_key(keys.answers_prefix(HOUSE, "device", DEVICE))),
            (keys.META, keys.tidy_key(TABLE)),
            (keys.META, keys.sweep_key(TABLE, 1)),
            (keys.META, keys.open_link_key(HOUSE, DEVICE)),
            (keys.META, keys.flow_sweep_key(keys.flow_prefix(HOUSE, app(1)))),
        ]
        for db, key in of_house:
            assert owners.of(db, key, b"") == HOUSE, (db, key)
            if db == keys.ARRIVALS:
                continue  # no turn writes the latest counts itself
            place, id = home_of_key(KINDS, db, key)
            assert place != "root", (db, key)
            assert id in (None, HOUSE, DEVICE), (db, key)
        for value in (HOUSE, HOUSE + app(9)):  # of a text that is unique in the server
            assert owners.of(keys.UNIQUE, b"hash", value) == HOUSE
        for db, key in (
            (keys.RECORDS, keys.record_key("user", ROOT, app(99))),
            (keys.RECORDS, keys.record_key("auditLog", app(99), app(100))),
            (keys.TRIGGERS, keys.trigger_key(1, "root", ROOT)),
        ):
            assert owners.of(db, key, b"") == ROOT
        for db, key in (
            (keys.RECORDS, keys.record_key("apiToken", app(99), app(100))),
            (keys.ROWS, keys.row_key(app(77), 0, app(1))),
        ):
            assert owners.of(db, key, b"") is None


async def test_an_application_is_in_one_store_only(tmp_path: Path) -> None:
    record = (keys.RECORDS, keys.record_key("application", ROOT, HOUSE), NAME)
    owners = KeyOwners()
    with write(tmp_path / "data", record) as store, store.snapshot() as snapshot:
        owners.learn(0, snapshot)
        with pytest.raises(StoreDamaged, match="is in the partitions 0 and 2"):
            owners.learn(2, snapshot)
