"""Older formats are migrated after a copy was made; newer ones are refused and not changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lmdb
import pytest

from trunkline.store import codec, migrations
from trunkline.store.backup import verify
from trunkline.store.batch import Batch
from trunkline.store.checksums import opened, sealed
from trunkline.store.directory import DataDirectory
from trunkline.store.env import Store
from trunkline.store.errors import BackupRefused, FormatUnsupported
from trunkline.store.follower import chain_of
from trunkline.store.keyring import Keyring
from trunkline.store.keys import (
    LOG_KEY,
    META,
    RECORDS,
)
from trunkline.store.log_groups import Mark
from trunkline.store.memory_map import MemoryMap

pytestmark = pytest.mark.disk


def write_format(path: Path, number: Any) -> None:
    """A store that says it is in the format `number`, with one record."""
    Store.open(path, map_size_bytes=128 * 1024).close()
    with lmdb.open(str(path / "store"), max_dbs=16) as env, env.begin(write=True) as transaction:
        for name, key, value in ((META, migrations.FORMAT_KEY, number), (RECORDS, b"k", "old")):
            stored = sealed(key, codec.encode(value))
            transaction.put(key, stored, db=env.open_db(name.encode(), txn=transaction))


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
    """A value without its checksum."""
    return codec.decode(opened(key, stored) or b"")


def append(text: str) -> migrations.Migration:
    """A migration that appends to the value of the one record."""

    def change(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap, _keyring: Keyring) -> None:
        old = plain(b"k", transaction.get(b"k", db=memory_map.handles[RECORDS]) or b"")
        changed = sealed(b"k", codec.encode(f"{old} {text}"))
        transaction.put(b"k", changed, db=memory_map.handles[RECORDS])

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
        long = sealed(b"k", codec.encode("x" * 1_000_000))
        transaction.put(b"k", long, db=memory_map.handles[RECORDS])

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
    with pytest.raises(BackupRefused, match="is full of copies of failed attempts, such as format-1"):
        Store.open(data)
    assert read(data) == (1, "old")


def test_a_store_that_follows_a_log_keeps_its_format(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What other machines write into the log is of the format that they have."""
    with lmdb.open(str(data / "store"), max_dbs=16) as env, env.begin(write=True) as transaction:
        mark = Mark(7, bytes(16), 1, "a").encoded()
        transaction.put(LOG_KEY, sealed(LOG_KEY, mark), db=env.open_db(META.encode(), txn=transaction))
    monkeypatch.setattr(migrations, "FORMAT", 2)
    monkeypatch.setattr(migrations, "MIGRATIONS", {1: append("two")})
    with pytest.raises(
        FormatUnsupported, match=r"and follows a log, .* needs format 2.*`trunkline cluster new-log`"
    ):
        Store.open(data, keeps_log=True)
    assert read(data) == (1, "old")
    assert not (data / "backups").exists()
    with Store.open(data, keeps_log=True, ends_log=True) as store:
        assert chain_of(store.memory_map, 0).place == 7
    assert read(data) == (2, "old two")


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


def test_formats_that_were_never_released_are_refused(tmp_path: Path) -> None:
    write_format(tmp_path, 7)
    with pytest.raises(FormatUnsupported, match="no longer knows the step from format 7"):
        Store.open(tmp_path)
    assert read(tmp_path) == (7, "old")


def test_a_store_whose_points_are_being_moved_by_an_older_program_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path, map_size_bytes=128 * 1024) as store:
        batch = Batch()
        batch.put(META, b"pointsLeft", codec.encode([b"", 0, 0, 0]))
        store.journal.submit(batch)
        store.journal.flush()
    with pytest.raises(FormatUnsupported, match="an older program began to move"):
        Store.open(tmp_path)


def test_the_format_before_opens_as_it_is(tmp_path: Path) -> None:
    """Heads did not name a frame of the link then, and reports were not columns; both are read."""
    device = bytes(range(12))
    with Store.open(tmp_path, map_size_bytes=128 * 1024) as store:
        batch = Batch()
        batch.report(device, 5, codec.encode({0: 0.5}))
        batch.put(META, migrations.FORMAT_KEY, codec.encode(8))
        store.journal.submit(batch)
        store.journal.flush()
    with Store.open(tmp_path) as store, store.snapshot() as snapshot:
        points = [(time, dict(point)) for part in snapshot.points(device) for time, point in part.rows()]
        assert points == [(5, {0: 0.5})]
        assert verify(store).problems == []
    assert verify(tmp_path).format == migrations.FORMAT
    assert [path.name for path in (tmp_path / "backups").iterdir()] == ["format-8"]
