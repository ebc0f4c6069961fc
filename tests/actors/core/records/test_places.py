"""Which partition has what: keys, ranges and actors of a directory with several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.partitions import make_partitions
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import encode
from trunkline.store.directory import data_file
from trunkline.store.env import Store
from trunkline.store.errors import StoreError
from trunkline.store.partitions import partition_directory
from trunkline.store.placing import EVERYWHERE

HERE, THERE, USER, NOBODY = (bytes([number]) * 12 for number in (1, 2, 3, 4))


@pytest.fixture
def places(tmp_path: Path) -> Iterator[list[Places]]:
    """The places as each of two owners sees them: HERE is in partition 0, THERE in 1."""
    make_partitions(tmp_path, 2)
    with ExitStack() as held:
        found = []
        for number, application in enumerate((HERE, THERE)):
            store = held.enter_context(Store.open(tmp_path, partition=number))
            batch = Batch()
            batch.put(keys.RECORDS, keys.record_key(APPLICATION.name, ROOT, application), encode({}))
            batch.add(keys.COUNTS, keys.total_key(APPLICATION.name, ROOT), {"n": 1 + number})
            store.journal.submit(batch)
            store.journal.flush()
            assert store.partitions is not None
            found.append(Places(store.partitions, KINDS))
            store.partitions.placing = found[-1]
        yield found


def test_an_application_is_where_its_record_is_and_all_else_in_the_root(places: list[Places]) -> None:
    for each in places:
        assert [each.of_application(id) for id in (HERE, THERE, USER, NOBODY, b"")] == [0, 1, 0, 0, 0]


def test_an_application_that_is_created_is_found(places: list[Places]) -> None:
    root, other = places
    assert root.of_application(NOBODY) == 0
    root.place_new(NOBODY)  # to the partition with the fewest
    assert root.of_application(NOBODY) == 0
    root.place(USER, 1)
    assert root.of_application(USER) == 1
    assert other.of_application(USER) == 0


def test_actors_are_with_their_application_or_in_the_root(places: list[Places]) -> None:
    for own, each in enumerate(places):
        assert each.of_ref(Ref("application", ROOT, THERE)) == 1
        assert each.of_ref(Ref("device", THERE, USER)) == 1
        assert each.of_ref(Ref("dataTable", HERE, THERE)) == 0
        assert [each.of_ref(Ref(kind, ROOT, USER)) for kind in ("user", "org", "userJobs")] == [0, 0, 0]
        assert each.of_ref(Ref("auditLog", ROOT, USER)) == own


@pytest.mark.parametrize(
    ("db", "key", "place"),
    [
        (keys.RECORDS, keys.record_key("application", ROOT, THERE), 1),
        (keys.RECORDS, keys.record_key("device", THERE, USER), 1),
        (keys.RECORDS, keys.record_key("user", ROOT, THERE), 0),
        (keys.RECORDS, keys.record_key("dashboard", USER, THERE), 0),
        (keys.RECORDS, keys.record_key("dashboard", THERE, USER), 1),
        (keys.RECORDS, keys.record_key("auditLog", USER, THERE), EVERYWHERE),
        (keys.INDEXES, keys.index_prefix("application", ROOT, "name"), EVERYWHERE),
        (keys.COUNTS, keys.total_key("application", ROOT), EVERYWHERE),
        (keys.COUNTS, keys.total_key("device", THERE), 1),
        (keys.COUNTS, keys.app_counts_key(THERE, 5), 1),
        (keys.UNIQUE, keys.unique_key("device", THERE, "name", "x"), EVERYWHERE),
        (keys.EVENTS, keys.last_event_change_key(THERE), 1),
        (keys.META, keys.jobs_key(THERE), 1),
        (keys.META, keys.jobs_key(USER), 0),
    ],
)
def test_keys(places: list[Places], db: str, key: bytes, place: int) -> None:
    assert [each.of_key(db, key) for each in places] == [place, place]


def test_what_devices_report_is_only_read_where_it_is(places: list[Places]) -> None:
    for own, each in enumerate(places):
        assert each.of_key(keys.TIMELINE, keys.head_key(THERE)) == own
        assert each.of_range(keys.LOGS, THERE, HERE) == own


def test_a_range_of_one_owner_is_in_one_partition_and_one_of_several_everywhere(places: list[Places]) -> None:
    of_one = keys.record_prefix("device", THERE)
    of_all = keys.kind_prefix("device")
    for each in places:
        assert each.of_range(keys.RECORDS, of_one, keys.prefix_end(of_one)) == 1
        assert each.of_range(keys.RECORDS, of_one + b"\x01", keys.prefix_end(of_one)) == 1
        assert each.of_range(keys.RECORDS, of_one, keys.prefix_end(of_all)) == EVERYWHERE
        assert each.of_range(keys.RECORDS, of_all, keys.prefix_end(of_all)) == EVERYWHERE
        assert each.of_range(keys.META, keys.JOBS_PREFIX, keys.prefix_end(keys.JOBS_PREFIX)) == EVERYWHERE
        assert each.of_range(keys.EVENTS, THERE, keys.prefix_end(THERE)) == 1
        assert each.of_range(keys.COUNTS, THERE, None) == EVERYWHERE


def test_what_is_in_no_readable_partition_is_not_taken_for_one_of_the_root(tmp_path: Path) -> None:
    make_partitions(tmp_path, 2)
    data_file(partition_directory(tmp_path, 1)).write_bytes(b"\xff" * 16_384)
    with Store.open(tmp_path) as store:
        assert store.partitions is not None
        root = Places(store.partitions, KINDS)
        root.place_new(NOBODY)
        assert root.of_application(NOBODY) == 0
        with pytest.raises(StoreError):
            root.of_application(THERE)
