"""Older formats are migrated after a copy was made; newer ones are refused and not changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lmdb
import pytest

from trunkline.store import codec, migrations, point_migration
from trunkline.store.backup import verify
from trunkline.store.batch import Batch
from trunkline.store.checksums import BYTES, opened, sealed
from trunkline.store.directory import DataDirectory
from trunkline.store.env import Store
from trunkline.store.errors import BackupRefused, FormatUnsupported
from trunkline.store.keyring import Keyring
from trunkline.store.keys import (
    ARRIVALS,
    COUNTS,
    DATABASES,
    META,
    RECORDS,
    RUNS,
    RUNS_KEY,
    SEGMENTS,
    TIMELINE,
    app_counts_key,
    arrival_key,
    counts_key,
    head_key,
    latest_counts_key,
)
from trunkline.store.memory_map import MemoryMap

pytestmark = pytest.mark.disk


def write_format(path: Path, number: Any) -> None:
    """A store that says it is in the format `number`, with one record, as before there were checksums."""
    Store.open(path, map_size_bytes=128 * 1024).close()
    with lmdb.open(str(path / "store"), max_dbs=16) as env, env.begin(write=True) as transaction:
        for name, key, value in ((META, migrations.FORMAT_KEY, number), (RECORDS, b"k", "old")):
            transaction.put(key, codec.encode(value), db=env.open_db(name.encode(), txn=transaction))


def read(path: Path) -> tuple[Any, Any]:
    """The format of a store and its one record, without opening it as a `Store`."""
    env = lmdb.open(str(path / "store"), max_dbs=16, readonly=True, lock=False)
    try:
        with env.begin() as transaction:
            meta, records = (env.open_db(name.encode(), txn=transaction) for name in (META, RECORDS))
            number = transaction.get(migrations.FORMAT_KEY, db=meta)
            value = transaction.get(b"k", db=records)
    finally:
        env.close()
    return plain(migrations.FORMAT_KEY, number or b""), plain(b"k", value or b"")


def plain(key: bytes, stored: bytes) -> Any:
    """A value that may have a checksum."""
    value = opened(key, stored)
    return codec.decode(stored if value is None else value)


def append(text: str) -> migrations.Migration:
    """A migration that appends to the value of the one record."""

    def change(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap, _keyring: Keyring) -> None:
        old = codec.decode(transaction.get(b"k", db=memory_map.handles[RECORDS]) or b"")
        transaction.put(b"k", codec.encode(f"{old} {text}"), db=memory_map.handles[RECORDS])

    return change


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_format(tmp_path / "data", 1)
    return tmp_path / "data"


def test_a_new_store_is_in_our_format_and_needs_no_copy(tmp_path: Path) -> None:
    Store.open(tmp_path, map_size_bytes=128 * 1024).close()
    assert verify(tmp_path).format == migrations.FORMAT
    Store.open(tmp_path, map_size_bytes=128 * 1024).close()
    assert not (tmp_path / "backups").exists()


def test_an_older_format_is_copied_and_brought_forward_step_by_step(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "FORMAT", 3)
    monkeypatch.setattr(migrations, "MIGRATIONS", {1: append("two"), 2: append("three")})
    Store.open(data).close()
    assert read(data) == (3, "old two three")
    copy = data / "backups" / "format-1"
    assert read(copy) == (1, "old")
    assert (copy / "secret").read_bytes() == (data / "secret").read_bytes()
    Store.open(data).close()
    assert [path.name for path in (data / "backups").iterdir()] == ["format-1"]


def test_a_migration_that_needs_more_room_gets_it(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def grow(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap, _keyring: Keyring) -> None:
        transaction.put(b"k", codec.encode("x" * 1_000_000), db=memory_map.handles[RECORDS])

    monkeypatch.setattr(migrations, "FORMAT", 2)
    monkeypatch.setattr(migrations, "MIGRATIONS", {1: grow})
    Store.open(data, map_size_bytes=128 * 1024).close()
    assert len(read(data)[1]) == 1_000_000


def test_a_migration_that_fails_leaves_the_step_before_and_the_copy(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap, _keyring: Keyring) -> None:
        transaction.put(b"k", codec.encode("half"), db=memory_map.handles[RECORDS])
        raise RuntimeError("a bug")

    monkeypatch.setattr(migrations, "FORMAT", 3)
    monkeypatch.setattr(migrations, "MIGRATIONS", {1: append("two"), 2: fail})
    with pytest.raises(RuntimeError, match="a bug"):
        Store.open(data)
    assert read(data) == (2, "old two")
    assert read(data / "backups" / "format-1") == (1, "old")
    DataDirectory.open(data).close()  # it was given up

    monkeypatch.setattr(migrations, "MIGRATIONS", {2: append("three")})
    Store.open(data).close()
    assert read(data) == (3, "old two three")
    assert read(data / "backups" / "format-2") == (2, "old two")


def test_a_copy_of_an_earlier_try_is_never_overwritten(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = data / "backups" / "format-1"
    earlier.mkdir(parents=True)
    (earlier / "kept").write_text("")
    monkeypatch.setattr(migrations, "FORMAT", 2)
    monkeypatch.setattr(migrations, "MIGRATIONS", {1: append("two")})
    Store.open(data).close()
    assert read(data / "backups" / "format-1-1") == (1, "old")
    assert (earlier / "kept").exists()


def test_too_many_copies_of_failed_migrations_refuse_the_next_one(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1000):
        (data / "backups" / (f"format-1-{number}" if number else "format-1")).mkdir(parents=True)
    monkeypatch.setattr(migrations, "FORMAT", 2)
    monkeypatch.setattr(migrations, "MIGRATIONS", {1: append("two")})
    with pytest.raises(BackupRefused, match="is full of copies of failed migrations"):
        Store.open(data)
    assert read(data) == (1, "old")


def test_a_newer_format_is_refused_with_a_sentence_and_left_alone(tmp_path: Path) -> None:
    newer = migrations.FORMAT + 1
    write_format(tmp_path, newer)
    with pytest.raises(
        FormatUnsupported,
        match=rf"is in format {newer}, this program knows formats up to {migrations.FORMAT}\. Use a newer",
    ):
        Store.open(tmp_path)
    assert read(tmp_path) == (newer, "old")
    assert not (tmp_path / "backups").exists()


def test_an_older_format_without_a_way_forward_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "FORMAT", 3)
    monkeypatch.setattr(migrations, "MIGRATIONS", {2: append("three")})
    with pytest.raises(FormatUnsupported, match="no longer knows the step from format 1"):
        Store.open(data)
    assert read(data) == (1, "old")


@pytest.mark.parametrize("number", ["1", None, 1.5, True, [1]])
def test_a_format_that_is_no_number_is_refused(tmp_path: Path, number: Any) -> None:
    write_format(tmp_path, number)
    with pytest.raises(FormatUnsupported, match="does not say in which format"):
        Store.open(tmp_path)


def test_data_without_a_format_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path, map_size_bytes=128 * 1024) as store:
        batch = Batch()
        batch.delete(META, migrations.FORMAT_KEY)
        batch.put(RECORDS, b"k", b"")
        store.journal.submit(batch)
        store.journal.flush()
    with pytest.raises(FormatUnsupported, match="does not say in which format"):
        Store.open(tmp_path)


def test_a_damaged_format_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path, map_size_bytes=128 * 1024) as store:
        batch = Batch()
        batch.put(META, migrations.FORMAT_KEY, b"\xff")
        store.journal.submit(batch)
        store.journal.flush()
    with pytest.raises(FormatUnsupported, match="does not say in which format"):
        Store.open(tmp_path)


def test_a_store_of_format_2_gets_checksums(tmp_path: Path) -> None:
    """Also values that are empty, longer than a page, and so many that pages split."""
    before = [db for db in DATABASES if db not in (TIMELINE, ARRIVALS, SEGMENTS, RUNS)]
    values = {b"%d" % number: bytes(number % 40) for number in range(3000)} | {b"long": b"x" * 9000}
    with Store.open(tmp_path, map_size_bytes=1024 * 1024) as store:
        batch = Batch()
        for db in before:
            batch.put_all(db, {key: codec.encode(value) for key, value in values.items()})
        store.journal.submit(batch)
        store.journal.flush()
    with lmdb.open(str(tmp_path / "store"), max_dbs=16, map_size=2**28) as env:
        handles = {db: env.open_db(db.encode()) for db in before}
        with env.begin(write=True) as transaction:
            for db, handle in handles.items():
                for key, value in list(transaction.cursor(handle)):
                    transaction.put(key, value[:-BYTES], db=handle)
                    assert db != META or opened(key, value) is not None
            transaction.put(migrations.FORMAT_KEY, codec.encode(2), db=handles[META])
    with Store.open(tmp_path) as store, store.snapshot() as snapshot:
        for db in before:
            found = {key: codec.decode(value) for key, value in snapshot.range(db, b"", None)}
            assert found.pop(migrations.FORMAT_KEY, migrations.FORMAT) == migrations.FORMAT
            found.pop(migrations.KEY_KEY, None)
            found.pop(RUNS_KEY, None)
            assert found == values


# Format 5: points in runs.

DEVICE = bytes(range(12))
OTHER = bytes(range(1, 13))
AHEAD_MS = 4990


def format_4(path: Path) -> dict[bytes, dict[int, dict[int, Any]]]:
    """A store of format 4 with 5,000 points of one device, of which ten are newer than its head, and few of another."""
    points: dict[bytes, dict[int, dict[int, Any]]] = {
        DEVICE: {time_ms: {0: time_ms / 4, 1: f"text {time_ms % 7}"} for time_ms in range(5000)},
        OTHER: {time_ms: {2: True} for time_ms in (7, 9)},
    }
    heads = {DEVICE: AHEAD_MS - 1, OTHER: 9}
    Store.open(path, map_size_bytes=128 * 1024).close()
    with lmdb.open(str(path / "store"), max_dbs=32, map_size=2**26) as env:
        handles = {db: env.open_db(db.encode()) for db in DATABASES if db != ARRIVALS}
        with env.begin(write=True) as transaction:
            for db in (SEGMENTS, RUNS):
                transaction.drop(handles[db])
            for device, of in points.items():
                stored = {device + b"\x10" + time_ms.to_bytes(8, "big"): each for time_ms, each in of.items()}
                head = [0, heads[device], 0, 0, 0]
                for key, value in {**stored, head_key(device): head, counts_key(device, 3): {"n": 1}}.items():
                    transaction.put(key, sealed(key, codec.encode(value)), db=handles[TIMELINE])
            format_ = sealed(migrations.FORMAT_KEY, codec.encode(4))
            transaction.put(migrations.FORMAT_KEY, format_, db=handles[META])
    return points


def all_points(store: Store) -> dict[bytes, dict[int, dict[int, Any]]]:
    with store.snapshot() as snapshot:
        return {
            device: {time: dict(point) for part in snapshot.points(device) for time, point in part.rows()}
            for device in (DEVICE, OTHER)
        }


class Cut(Exception):
    """The power is cut."""


@pytest.mark.parametrize("parts", [0, 1, 2, 3, 4, 5])
def test_points_are_moved_in_parts_and_a_power_cut_between_them_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """A part is one transaction, so a cut at any other place is the same as one before the part."""
    points = format_4(tmp_path)
    monkeypatch.setattr(point_migration, "PART_POINTS", 1200)
    move, left = point_migration._move_part, iter([True] * parts + [False])

    def cut(*arguments: Any) -> bool:
        if not next(left):
            raise Cut
        return move(*arguments)

    monkeypatch.setattr(point_migration, "_move_part", cut)
    try:
        Store.open(tmp_path).close()
        assert parts > 4, "the move takes five parts"
    except Cut:
        assert read_format(tmp_path) == migrations.FORMAT, "an older program refuses it"
    monkeypatch.setattr(point_migration, "_move_part", move)
    with Store.open(tmp_path) as store:
        assert all_points(store) == points
        assert verify(store).problems == []
        with store.snapshot() as snapshot:
            assert [time for time, _ in snapshot.head(DEVICE).reports] == list(range(AHEAD_MS, 5000))
            assert snapshot.get(TIMELINE, counts_key(DEVICE, 3)) is not None
            assert snapshot.count(TIMELINE, b"", None) == 4, "a head and counts of each device"
            assert snapshot.get(META, point_migration.MARKER) is None
    assert [path.name for path in (tmp_path / "backups").iterdir()] == ["format-4"]
    with Store.open(tmp_path) as store:
        assert all_points(store) == points


def read_format(path: Path) -> Any:
    with (
        lmdb.open(str(path / "store"), max_dbs=32, readonly=True, lock=False) as env,
        env.begin() as transaction,
    ):
        meta = env.open_db(META.encode(), txn=transaction)
        return plain(migrations.FORMAT_KEY, transaction.get(migrations.FORMAT_KEY, db=meta) or b"")


# Format 6: arrivals in LMDB's unnamed database.


def test_what_has_arrived_is_moved_to_the_unnamed_database(tmp_path: Path) -> None:
    """A chunk, the latest counts of an application, and one more chunk after the start."""
    counts = app_counts_key(DEVICE, 3)
    with Store.open(tmp_path, map_size_bytes=128 * 1024) as store:
        report(store, 5, 0.5, counts)
    with lmdb.open(str(tmp_path / "store"), max_dbs=32, map_size=2**26) as env:
        named, unnamed, meta = env.open_db(b"arrivals"), env.open_db(), env.open_db(META.encode())
        with env.begin(write=True) as transaction:
            for key, prefix in ((arrival_key(1), b""), (latest_counts_key(counts), b"\xff")):
                stored = transaction.pop(key, db=unnamed)
                value = opened(key, stored or b"")
                before = prefix + counts if prefix else key
                transaction.put(before, sealed(before, value or b""), db=named)
            format_ = sealed(migrations.FORMAT_KEY, codec.encode(5))
            transaction.put(migrations.FORMAT_KEY, format_, db=meta)
    with Store.open(tmp_path) as store:
        report(store, 6, 1.5, counts)
        assert all_points(store) == {DEVICE: {5: {0: 0.5}, 6: {0: 1.5}}, OTHER: {}}
        with store.snapshot() as snapshot:
            assert codec.decode(snapshot.get(COUNTS, counts) or b"") == {"n": 2}
        assert verify(store).problems == []
    assert verify(tmp_path).problems == []
    with (
        lmdb.open(str(tmp_path / "store"), max_dbs=32, readonly=True) as env,
        pytest.raises(lmdb.NotFoundError),
    ):
        env.open_db(b"arrivals", create=False)


def report(store: Store, time_ms: int, value: float, counts: bytes) -> None:
    """Commit a report of the device, counted for its application."""
    batch = Batch()
    batch.report(DEVICE, time_ms, codec.encode({0: value}))
    batch.add(COUNTS, counts, {"n": 1})
    store.journal.submit(batch)
    store.journal.flush()
