"""A backup is a consistent copy of one moment, made during writes; verify finds every kind of damage."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import lmdb
import pytest
import trio

from tests.backups import back_up
from tests.patience import PATIENCE_S
from trunkline.store import codec, keys
from trunkline.store.backup import PROBLEMS_MAX, backup, verify
from trunkline.store.batch import Batch
from trunkline.store.directory import MANIFEST, STORE
from trunkline.store.env import Store
from trunkline.store.errors import BackupRefused, SecretMissing, StoreBroken
from trunkline.store.migrations import FORMAT

pytestmark = pytest.mark.disk

APP = b"a" * 12


def device(number: int) -> bytes:
    return number.to_bytes(12, "big")


def record(number: int, name: str = "") -> Batch:
    """A record with its index entry, its newest values and its count in the total."""
    index = keys.index_key("device", APP, "name", keys.sortable(name or f"device {number}"), device(number))
    batch = Batch()
    batch.put(
        keys.RECORDS, keys.record_key("device", APP, device(number)), codec.encode({"indexes": [index]})
    )
    batch.put(keys.INDEXES, index, b"")
    batch.put(keys.UNIQUE, keys.unique_key("device", APP, "name", str(number)), device(number))
    batch.put(keys.TIMELINE, keys.head_key(device(number)), codec.encode({"a": 1}))
    batch.add(keys.COUNTS, keys.total_key("device", APP), {"n": 1})
    return batch


def listed(_key: bytes, document: Any) -> list[bytes]:
    """The index keys of a record: in these tests the record lists them itself."""
    found = document.get("indexes", []) if isinstance(document, dict) else []
    return found if isinstance(found, list) else []


def commit(store: Store, batch: Batch) -> None:
    group = store.journal.submit(batch)
    store.journal.flush()
    assert group.error is None


@pytest.fixture
def filled(store: Store) -> Store:
    for number in range(20):
        commit(store, record(number))
    return store


@pytest.fixture
def closed(filled: Store) -> Path:
    """The data directory of a filled store that no process has open."""
    filled.close()
    return filled.directory.path


def tree(path: Path) -> list[str]:
    return sorted(str(entry.relative_to(path)) for entry in path.rglob("*"))


# Copies.


@pytest.mark.slow
async def test_a_backup_beside_running_writes_is_whole(
    store: Store, nursery: trio.Nursery, tmp_path: Path
) -> None:
    """Each batch writes to five databases: a copy with only a part of one would fail verification."""
    large = Batch()
    for number in range(4000):
        large.put(keys.LOGS, b"%04d" % number, codec.encode(bytes(2000)))
    commit(store, large)  # so that a copy takes longer than many commits
    await nursery.start(store.journal.run)
    acknowledged = 0
    writing = True

    async def write(first: int) -> None:
        nonlocal acknowledged
        number = first
        while writing:
            await store.journal.submit(record(number)).wait()
            acknowledged += 1
            number += 1

    async with trio.open_nursery() as writers:
        for writer in range(8):
            writers.start_soon(write, writer * 1_000_000)
        for copy in range(5):
            before = acknowledged
            with trio.fail_after(PATIENCE_S):
                while acknowledged < before + 50:
                    await trio.lowlevel.checkpoint()
                commits = store.journal.statistics.commits
                await trio.to_thread.run_sync(back_up, store.directory.path, tmp_path / f"copy-{copy}")
                assert store.journal.statistics.commits > commits
        writing = False

    sizes = []
    for copy in range(5):
        report = verify(tmp_path / f"copy-{copy}")
        assert report.problems == []
        with Store.open(tmp_path / f"copy-{copy}") as restored, restored.snapshot() as snapshot:
            total = codec.decode(snapshot.get(keys.COUNTS, keys.total_key("device", APP)) or b"")
            assert total == {"n": report.counts[keys.RECORDS]}
            sizes.append(total["n"])
    assert sizes == sorted(sizes)
    assert sizes[0] > 0
    assert sizes[-1] <= acknowledged


def test_a_backup_is_a_data_directory_for_its_owner_only(filled: Store, tmp_path: Path) -> None:
    secret = filled.directory.secret()
    filled.close()
    backup(filled.directory.path, tmp_path / "deep" / "copy")
    copy = tmp_path / "deep" / "copy"
    assert tree(copy) == ["encryption-keys", "manifest.json", "secret", "store", "store/data.mdb"]
    for path in (copy, copy / "store"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (copy / "manifest.json", copy / "secret", copy / "store" / "data.mdb"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert tree(tmp_path / "deep") == [
        "copy",
        "copy/encryption-keys",
        "copy/manifest.json",
        "copy/secret",
        "copy/store",
        "copy/store/data.mdb",
    ]
    with Store.open(copy) as restored:
        assert restored.directory.secret() == secret
        commit(restored, record(99))


def test_a_backup_without_encryption_keys_and_into_an_empty_directory(closed: Path, tmp_path: Path) -> None:
    """They may be elsewhere."""
    (tmp_path / "copy").mkdir()
    (closed / "encryption-keys").unlink()
    backup(closed, tmp_path / "copy")
    assert tree(tmp_path / "copy") == ["manifest.json", "secret", "store", "store/data.mdb"]


def test_a_process_does_not_copy_a_store_that_it_has_open(filled: Store, tmp_path: Path) -> None:
    """A commit that aborts and a copy in the same process would wait for each other."""
    with pytest.raises(StoreBroken, match="already open in this process"):
        backup(filled.directory.path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    commit(filled, record(20))


@pytest.mark.parametrize("taken", ["file", "directory"])
def test_a_target_that_holds_something_is_refused(closed: Path, tmp_path: Path, taken: str) -> None:
    target = tmp_path / "copy"
    if taken == "file":
        target.write_text("mine")
    else:
        target.mkdir()
        (target / "mine").write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(BackupRefused, match="exists and is not empty"):
        backup(closed, target)
    assert tree(tmp_path) == before


def test_a_backup_that_fails_leaves_nothing(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, content: bytes) -> None:
        raise OSError(5, "Input/output error")

    filled.directory.secret()
    filled.close()
    monkeypatch.setattr("trunkline.store.backup.write_private", fail)
    before = tree(tmp_path)
    with pytest.raises(StoreBroken, match=r"backup to .*copy failed"):
        backup(filled.directory.path, tmp_path / "copy")
    assert tree(tmp_path) == before


def test_a_backup_without_a_secret_is_refused(closed: Path, tmp_path: Path) -> None:
    """No server would start on it."""
    (closed / "secret").unlink()
    before = tree(tmp_path)
    with pytest.raises(SecretMissing, match="has data but no file `secret`"):
        backup(closed, tmp_path / "copy")
    assert tree(tmp_path) == before


def test_where_there_is_no_store_there_is_no_backup(tmp_path: Path) -> None:
    for act in (
        lambda: backup(tmp_path / "nothing", tmp_path / "copy"),
        lambda: verify(tmp_path / "nothing"),
    ):
        with pytest.raises(BackupRefused, match="holds no store"):
            act()
    assert tree(tmp_path) == []


# Checks.


def damaged(store: Store, batch: Batch) -> list[str]:
    """Commit the damage and return the problems that verify reports."""
    commit(store, batch)
    report = verify(store, listed)
    assert report.problem_count == len(report.problems)
    assert not report.ok
    return report.problems


def test_a_sound_store_has_no_problem(filled: Store) -> None:
    report = verify(filled)
    assert report.ok
    assert report.format == FORMAT
    assert report.counts == {
        keys.META: 2,
        keys.RECORDS: 20,
        keys.INDEXES: 20,
        keys.UNIQUE: 20,
        keys.TIMELINE: 20,
        keys.COMMANDS: 0,
        keys.LOGS: 0,
        keys.COUNTS: 1,
        keys.ROWS: 0,
        keys.CELLS: 0,
        keys.EVENTS: 0,
        keys.FLOWS: 0,
        keys.ARRIVALS: 0,
        keys.SEGMENTS: 0,
        keys.RUNS: 0,
        keys.TRIGGERS: 0,
        keys.ANSWERS: 0,
        keys.MESSAGES: 0,
    }


def test_an_index_entry_without_its_record_is_found(filled: Store) -> None:
    batch = Batch()
    batch.delete(keys.RECORDS, keys.record_key("device", APP, device(3)))
    problem, counter = damaged(filled, batch)
    assert "points to no record" in problem
    assert counter.endswith("19 are there, 20 are counted.")


def test_a_record_without_its_index_entry_is_found(filled: Store) -> None:
    batch = Batch()
    batch.delete(keys.INDEXES, keys.index_key("device", APP, "name", keys.sortable("device 3"), device(3)))
    (problem,) = damaged(filled, batch)
    assert "its index entry" in problem
    assert "is missing" in problem


def test_an_index_entry_that_its_record_does_not_know_is_found(filled: Store) -> None:
    batch = Batch()
    batch.put(keys.INDEXES, keys.index_key("device", APP, "name", keys.sortable("old"), device(3)), b"")
    (problem,) = damaged(filled, batch)
    assert "does not know of this index entry" in problem


def test_a_record_need_not_list_its_index_entries(filled: Store) -> None:
    batch = Batch()
    batch.put(keys.RECORDS, keys.record_key("device", APP, device(3)), codec.encode({"name": "device 3"}))
    commit(filled, batch)
    assert verify(filled, listed).ok


def test_a_wrong_counter_is_found(filled: Store) -> None:
    batch = Batch()
    batch.add(keys.COUNTS, keys.total_key("device", APP), {"n": 2})
    (problem,) = damaged(filled, batch)
    assert problem.endswith("20 are there, 22 are counted.")


@pytest.mark.parametrize(
    "db", [keys.RECORDS, keys.TIMELINE, keys.COMMANDS, keys.LOGS, keys.COUNTS, keys.META]
)
def test_a_value_that_cannot_be_decoded_is_found(filled: Store, db: str) -> None:
    batch = Batch()
    batch.put(db, b"damaged", b"\xff")
    (problem,) = damaged(filled, batch)
    assert problem.startswith(f"{db} {b'damaged'.hex()}: the value is not valid CBOR")


@pytest.mark.parametrize("value", [[1, 2], {"indexes": 5}, 7])
def test_strange_records_do_not_stop_the_check(filled: Store, value: Any) -> None:
    batch = Batch()
    batch.put(keys.RECORDS, b"strange", codec.encode(value))
    commit(filled, batch)
    assert verify(filled).counts[keys.RECORDS] == 21


def test_a_key_that_is_no_index_key_is_found(filled: Store) -> None:
    batch = Batch()
    batch.put(keys.INDEXES, b"short", b"")
    (problem,) = damaged(filled, batch)
    assert problem.startswith(f"indexes {b'short'.hex()}")


def test_many_problems_are_counted_and_not_all_told(filled: Store) -> None:
    batch = Batch()
    for number in range(PROBLEMS_MAX + 10):
        batch.put(keys.LOGS, b"%d" % number, b"\xff")
    commit(filled, batch)
    report = verify(filled)
    assert len(report.problems) == PROBLEMS_MAX
    assert report.problem_count == PROBLEMS_MAX + 10


def test_a_missing_database_is_found(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    env = lmdb.open(str(tmp_path / "store"), max_dbs=16)
    env.open_db(keys.META.encode())
    env.close()
    report = verify(tmp_path)
    assert "The database records is missing." in report.problems
    assert report.counts == {keys.META: 0, keys.ARRIVALS: 0, keys.MESSAGES: 0}


@pytest.mark.parametrize(
    ("other", "problems"), [(None, []), (b"messagez", ["The database messages is missing."])]
)
def test_a_store_of_a_version_without_messages_is_whole(
    filled: Store, tmp_path: Path, other: bytes | None, problems: list[str]
) -> None:
    """Unless there is a database that may be it, under a name that is damaged."""
    copy = tmp_path / "copy"
    back_up(filled.directory.path, copy)
    with lmdb.open(str(copy / STORE), max_dbs=32) as env:
        with env.begin(write=True) as transaction:
            transaction.drop(env.open_db(keys.MESSAGES.encode(), transaction))
        if other is not None:
            env.open_db(other)
    (copy / MANIFEST).unlink()
    report = verify(copy)
    assert report.problems == problems
    assert len(report.counts) == len(keys.DATABASES) - len(problems)


def test_damage_is_found_in_a_copy_as_well(filled: Store, tmp_path: Path) -> None:
    commit(filled, record(77, name="x"))
    batch = Batch()
    batch.delete(keys.RECORDS, keys.record_key("device", APP, device(77)))
    commit(filled, batch)
    problems = verify(filled).problems
    filled.close()
    backup(filled.directory.path, tmp_path / "copy")
    assert verify(tmp_path / "copy").problems == problems != []


def test_a_file_that_is_no_store_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "data.mdb").write_bytes(b"nothing of the kind" * 1000)
    *_, problem = verify(tmp_path).problems
    assert problem == f"{tmp_path / 'store' / 'data.mdb'} is damaged: meta page 0 is not one of LMDB"
