"""The journal when the disk fails, and at its bounds: every caller gets an error, and nothing is stored in part."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest
import structlog.testing
import trio

from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.errors import JournalFull, StoreBroken, StoreFull
from trunkline.store.keys import RECORDS

pytestmark = pytest.mark.disk


def put(key: bytes, value: bytes) -> Batch:
    batch = Batch()
    batch.put(RECORDS, key, value)
    return batch


def stored(store: Store, key: bytes) -> bytes | None:
    with store.snapshot() as snapshot:
        return snapshot.get(RECORDS, key)


# Failures.


class Disk:
    """A disk that fails with `error` while that is set."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __call__(self) -> float:
        if self.error is not None:
            raise self.error
        return 0.0


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.EIO, "Input/output error"), StoreBroken),
        (OSError(errno.ENOSPC, "No space left on device"), StoreFull),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), StoreFull),
        (OSError(errno.EFBIG, "File too large"), StoreFull),
        (TypeError("no bytes"), StoreBroken),
    ],
)
async def test_a_failed_commit_fails_all_and_leaves_nothing(
    open_store: Callable[..., Store], nursery: trio.Nursery, error: Exception, told: type[Exception]
) -> None:
    disk = Disk()
    store = open_store(sync_delay_s=disk)
    await nursery.start(store.journal.run)
    await store.journal.submit(put(b"k", b"before")).wait()
    assert store.journal.epoch == 0

    disk.error = error
    called: list[str] = []
    failed: list[Exception] = []
    changes = store.journal.record_changes

    async def write(key: bytes) -> None:
        group = store.journal.submit(put(key, b"lost"))
        group.then(lambda: called.append("never"))
        with pytest.raises(told) as caught:
            await group.wait()
        group.then(lambda: called.append("never"))
        failed.append(caught.value)

    with structlog.testing.capture_logs() as logs:
        async with trio.open_nursery() as writers:
            writers.start_soon(write, b"k")
            writers.start_soon(write, b"other")
    assert [entry["event"] for entry in logs if "batch" not in entry["event"]] == ["commits fail"]
    assert len(failed) == 2
    assert failed[0] is not failed[1], "tasks must not share an exception: each adds its own traceback"
    assert called == []
    assert store.journal.epoch == 1
    assert store.journal.record_changes == changes + 3, "the two batches, and that they are not stored"
    assert store.journal.pending_batches == 0
    assert store.journal.get(RECORDS, b"k") == b"before"
    assert store.journal.get(RECORDS, b"other") is None

    disk.error = None
    await store.journal.submit(put(b"k", b"after")).wait()
    assert stored(store, b"k") == b"after"
    assert store.journal.epoch == 1
    assert store.journal.statistics.failures == 1


async def test_a_commit_is_acknowledged_also_where_no_memory_is_left_to_lengthen_the_file(
    open_store: Callable[..., Store], nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def without_memory(file: int, start: int, length: int) -> None:
        asked.append(length)
        raise MemoryError

    store = open_store()
    nursery.start_soon(store.journal.run)
    monkeypatch.setattr(os, "posix_fallocate", without_memory)
    keys = [b"%d" % number for number in range(20)]
    for key in keys:
        await store.journal.submit(put(key, bytes(200_000))).wait()
        assert stored(store, key) == bytes(200_000)
    assert asked


async def test_a_disk_that_stays_full_is_logged_when_it_begins_and_when_it_ends(
    open_store: Callable[..., Store],
) -> None:
    disk = Disk()
    store = open_store(sync_delay_s=disk)
    with structlog.testing.capture_logs() as logs:
        for error in (None, OSError(errno.ENOSPC, "No space left on device"), None):
            disk.error = error
            for number in range(3):
                store.journal.submit(put(b"%d" % number, b"v"))
                store.journal.flush()
    assert [entry["event"] for entry in logs] == ["commits fail", "commits work again"]
    assert store.journal.statistics.failures == store.journal.epoch == 3


# Bounds.


async def test_over_the_bound_of_bytes_the_caller_is_told_at_once(open_store: Callable[..., Store]) -> None:
    store = open_store(journal_bytes_max=4096)
    store.journal.submit(put(b"a", b"x" * 2000))
    before = (store.journal.pending_bytes, store.journal.pending_batches)
    with pytest.raises(JournalFull, match="wait to be stored already"):
        store.journal.submit(put(b"b", b"x" * 2000))
    assert store.journal.get(RECORDS, b"b") is None
    assert (store.journal.pending_bytes, store.journal.pending_batches) == before
    store.journal.flush()
    assert store.journal.pending_bytes == 0
    store.journal.submit(put(b"b", b"x" * 2000))
    with pytest.raises(JournalFull, match="larger than the journal"):
        store.journal.submit(put(b"c", b"x" * 5000))
    assert store.journal.statistics.refused == 2


async def test_over_the_bound_of_batches_the_caller_is_told_at_once(open_store: Callable[..., Store]) -> None:
    store = open_store(journal_batches_max=2)
    store.journal.submit(put(b"a", b"1"))
    store.journal.submit(put(b"b", b"1"))
    with pytest.raises(JournalFull):
        store.journal.submit(put(b"a", b"2"))
    store.journal.flush()
    assert stored(store, b"a") == b"1"
