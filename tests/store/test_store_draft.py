"""A new store is written in order, grows as needed, and says its format; a store that no server has is opened whole."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import trio

from trunkline.store import codec, keys, migrations
from trunkline.store.batch import Batch
from trunkline.store.checksums import sealed
from trunkline.store.directory import DATA_FILE, KEYS_FILE, data_file
from trunkline.store.env import Store
from trunkline.store.errors import FormatUnsupported, SecretMissing, StoreDamaged, StoreError, StoreFull
from trunkline.store.flusher import Flusher
from trunkline.store.keyring import Keyring
from trunkline.store.memory_map import MemoryMap
from trunkline.store.offline_store import OfflineStore, verified_entries
from trunkline.store.report_items import Ahead
from trunkline.store.store_draft import StoreDraft

MAP_BYTES = 1 << 24


def draft(path: Path, size_bytes: int = MAP_BYTES) -> StoreDraft:
    return StoreDraft(path / "new", size_bytes=size_bytes, batch_bytes=1 << 14)


def row(number: int) -> bytes:
    return number.to_bytes(24, "big")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """The file begins smaller than what is written, and each batch is a part of it."""
    new, value = draft(tmp_path, 1 << 18), b"x" * 500
    for number in range(2000):
        new.put(keys.ROWS, row(number), value)
    keyring = Keyring.new()
    new.finish(keyring, divided=False)
    with new.snapshot() as snapshot:
        assert list(verified_entries(snapshot, keys.ROWS)) == [(row(n), value) for n in range(2000)]
    migrations.check_keyring(new.memory_map, keyring, "keys")
    assert migrations.stored_format(new.memory_map) == migrations.FORMAT
    new.close()


@pytest.mark.parametrize("room_bytes", [16_000, 300_000])
def test_a_disk_that_becomes_full_is_told_as_such(tmp_path: Path, room_bytes: int) -> None:
    """LMDB calls it an I/O error where a write was cut short."""
    new = draft(tmp_path)

    def fill() -> None:
        for number in range(2000):
            new.put(keys.ROWS, row(number), b"x" * 500)

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    size_bytes = (new.folder / DATA_FILE).stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes + room_bytes, before[1]))
    try:
        with pytest.raises(StoreFull, match=r"The disk is full, so the writing of .* failed"):
            fill()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    new.close()


@pytest.mark.parametrize("second", [1, 2])
def test_a_key_that_comes_twice_or_too_late_is_an_error(tmp_path: Path, second: int) -> None:
    new = draft(tmp_path)
    for number in (1, 2, second):
        new.put(keys.ROWS, row(number), b"")
    with pytest.raises(StoreDamaged, match="Two partitions have the same key in rows"):
        new.finish(Keyring.new(), divided=False)
    new.close()


def test_a_key_that_comes_twice_is_an_error_where_the_order_is_free(tmp_path: Path) -> None:
    new = draft(tmp_path)
    for value in (b"1", b"2"):
        new.put(keys.META, b"key", value)
    with pytest.raises(StoreDamaged, match="Two partitions have the same key in meta"):
        new.finish(Keyring.new(), divided=False)
    new.close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with some entries."""

    async def write() -> None:
        with Store.open(tmp_path / "data") as store:
            batch = Batch()
            for number in range(500):
                batch.put(keys.EVENTS, row(number), codec.encode("x" * 100))
            store.journal.submit(batch)

    trio.run(write)
    return tmp_path / "data"


def offline(data: Path, keyring: Keyring | None = None) -> OfflineStore:
    found = keyring or Keyring.read(data / KEYS_FILE)
    return OfflineStore(data, map_size_bytes=MAP_BYTES, keyring=found, keys_file=data / KEYS_FILE)


def test_a_store_of_an_older_format_is_refused(data: Path) -> None:
    memory_map = MemoryMap(data / "store", size_bytes=MAP_BYTES, size_max_bytes=None, read_only=False)
    with memory_map.env.begin(write=True) as transaction:
        value = sealed(migrations.FORMAT_KEY, codec.encode(migrations.FORMAT - 1))
        transaction.put(migrations.FORMAT_KEY, value, db=memory_map.handles[keys.META])
    memory_map.close(0)
    with pytest.raises(FormatUnsupported, match="Start a server on it once"):
        offline(data)


def test_a_store_whose_key_is_missing_is_refused(data: Path) -> None:
    with pytest.raises(SecretMissing, match="does not hold the encryption key"):
        offline(data, Keyring.new())


def test_a_damaged_store_is_refused(data: Path) -> None:
    content = bytearray(data_file(data).read_bytes())
    at = content.rindex(row(250)) // 4096 * 4096
    content[at : at + 4096] = bytes(4096)
    data_file(data).write_bytes(content)
    with pytest.raises(StoreDamaged, match="Nothing was changed; restore a backup"):
        offline(data)


def test_a_changed_value_is_found(data: Path) -> None:
    content = data_file(data).read_bytes()
    at = content.rindex(row(250)) + len(row(250)) + 20
    data_file(data).write_bytes(content[:at] + b"y" + content[at + 1 :])
    store = offline(data)
    with store.snapshot() as snapshot, pytest.raises(StoreDamaged, match="is not what was written"):
        list(verified_entries(snapshot, keys.EVENTS))
    store.close()


async def test_what_was_reported_is_flushed(data: Path) -> None:
    """No chunk is left, and no segment, which have reports of many devices."""
    device = b"d" * 12
    with Store.open(data) as store:
        for number in range(3):
            batch = Batch()
            batch.report(device, number, codec.encode({1: number}))
            store.journal.submit(batch)
            store.journal.flush()
    closed = offline(data)
    before = closed.flushed_seq
    await closed.flush(lambda ahead: ahead.head or b"\x80")
    assert closed.flushed_seq == before == 3
    with closed.snapshot() as snapshot:
        assert snapshot.count(keys.ARRIVALS, b"", None) == snapshot.count(keys.SEGMENTS, b"", None) == 0
        assert snapshot.count(keys.RUNS, b"", None) == 1
    assert [run.rows for run in closed.runs()] == [3]
    closed.close()


async def test_a_flush_that_fails_ends_with_a_sentence(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server would try it again for ever."""

    async def fail(self: Flusher, _batch: Batch) -> None:
        self._tell_failure("The disk is full.")

    monkeypatch.setattr(Flusher, "_commit", fail)
    store = offline(data)

    def advance(_ahead: Ahead) -> bytes:
        return b"\x80"

    with pytest.raises((StoreError, ExceptionGroup)) as raised:
        await store.flush(advance)
    told = raised.value
    while isinstance(told, ExceptionGroup):
        (told,) = told.exceptions
    assert str(told) == "What devices reported cannot be flushed: The disk is full."
    store.close()
