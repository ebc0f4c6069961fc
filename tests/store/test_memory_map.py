"""The map grows under load without an error for writers or concurrent readers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest
import trio
import trio.testing

from tests.patience import PATIENCE_S
from trunkline.store.batch import Batch
from trunkline.store.directory import data_file
from trunkline.store.env import Store
from trunkline.store.errors import StoreBroken
from trunkline.store.keys import RECORDS
from trunkline.store.memory_map import MemoryMap
from trunkline.store.snapshot import Snapshot

pytestmark = pytest.mark.disk

KIB = 1024
TINY = 128 * KIB


@pytest.fixture
def tiny(open_store: Callable[..., Store]) -> Store:
    return open_store(map_size_bytes=TINY)


def put(number: int, size: int = 1000) -> Batch:
    batch = Batch()
    batch.put(RECORDS, b"%06d" % number, b"%06d" % number + bytes(size))
    return batch


def sound(snapshot: Snapshot) -> int:
    """Read everything, check each value, and return the number of entries."""
    entries = 0
    for key, value in snapshot.range(RECORDS, b"", None):
        assert value[:6] == key
        entries += 1
    return entries


async def test_the_map_grows_without_an_error_to_any_caller(tiny: Store, nursery: trio.Nursery) -> None:
    await nursery.start(tiny.journal.run)

    async def write(first: int) -> None:
        for number in range(first, first + 20):
            await tiny.journal.submit(put(number)).wait()

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as writers:
            for first in range(0, 1000, 20):
                writers.start_soon(write, first)
    with tiny.snapshot() as snapshot:
        assert sound(snapshot) == 1000
    assert tiny.journal.statistics.growths >= 3
    assert tiny.journal.statistics.failures == 0
    assert tiny.journal.epoch == 0


@pytest.mark.slow
async def test_reads_go_on_in_worker_threads_while_the_map_grows(tiny: Store, nursery: trio.Nursery) -> None:
    await nursery.start(tiny.journal.run)
    writing = True
    reads = 0

    async def read() -> None:
        nonlocal reads
        seen = 0
        while writing:
            entries = await tiny.read(sound)
            assert entries >= seen
            seen = entries
            reads += 1

    async def write(first: int) -> None:
        for number in range(first, first + 20):
            await tiny.journal.submit(put(number)).wait()

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as readers:
            for _ in range(4):
                readers.start_soon(read)
            async with trio.open_nursery() as writers:
                for first in range(0, 1000, 20):
                    writers.start_soon(write, first)
            writing = False
    assert reads > 4
    assert tiny.journal.statistics.growths >= 3
    assert tiny.journal.statistics.failures == 0


async def test_the_map_waits_for_a_read_that_is_open_and_new_reads_wait_for_the_map(
    tiny: Store, nursery: trio.Nursery
) -> None:
    await nursery.start(tiny.journal.run)
    reading, finish = trio.Event(), trio.Event()
    grown_at_second_read: list[int] = []

    def slow(snapshot: Snapshot) -> int:
        trio.from_thread.run_sync(reading.set)
        trio.from_thread.run(finish.wait)
        return sound(snapshot)

    def second(snapshot: Snapshot) -> None:
        grown_at_second_read.append(tiny.journal.statistics.growths)

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as tasks:
            tasks.start_soon(tiny.read, slow)
            await reading.wait()
            group = tiny.journal.submit(put(0, size=2 * TINY))
            await trio.testing.wait_all_tasks_blocked()
            assert not group.done, "the map must not move under an open read"
            assert tiny.journal.get(RECORDS, b"000000") is not None
            tasks.start_soon(tiny.read, second)
            while not held_readers(tiny.memory_map):
                await trio.lowlevel.checkpoint()
            # What is submitted meanwhile joins the group that waits.
            assert tiny.journal.submit(put(1)) is group
            finish.set()
            await group.wait()
    assert tiny.journal.statistics.growths >= 1
    assert grown_at_second_read[0] >= 1
    with tiny.snapshot() as snapshot:
        assert sound(snapshot) == 2


def held_readers(memory_map: MemoryMap) -> int:
    """The threads that wait: for the growth of the map or, in a flush, for the last read."""
    return len(memory_map._lock._waiters)  # type: ignore[attr-defined]


async def test_a_snapshot_of_the_loop_only_delays_the_growth(tiny: Store, nursery: trio.Nursery) -> None:
    await nursery.start(tiny.journal.run)
    with trio.fail_after(PATIENCE_S):
        with tiny.snapshot() as snapshot:
            group = tiny.journal.submit(put(0, size=2 * TINY))
            await trio.testing.wait_all_tasks_blocked()
            assert not group.done
            with tiny.snapshot() as another:  # not held back: it could not be waited for
                assert sound(another) == sound(snapshot) == 0
        await group.wait()


async def test_a_flush_while_the_committer_waits_leaves_the_committer_alive(
    tiny: Store, nursery: trio.Nursery
) -> None:
    await nursery.start(tiny.journal.run)
    snapshot = tiny.snapshot()
    group = tiny.journal.submit(put(0, size=2 * TINY))
    await trio.testing.wait_all_tasks_blocked()

    def close() -> None:
        until(lambda: held_readers(tiny.memory_map) > 0)  # the flush waits, and is the only one to be told
        snapshot.close()

    closer = threading.Thread(target=close)
    closer.start()
    tiny.journal.flush()
    closer.join()
    assert group.error is None
    with trio.fail_after(PATIENCE_S):
        await tiny.journal.submit(put(1, size=8 * TINY)).wait()


async def test_a_cancelled_committer_grows_the_map_for_what_waits(tiny: Store) -> None:
    snapshot = tiny.snapshot()
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            await nursery.start(tiny.journal.run)
            group = tiny.journal.submit(put(0, size=2 * TINY))
            await trio.testing.wait_all_tasks_blocked()
            assert not group.done
            snapshot.close()
            nursery.cancel_scope.cancel()
    assert group.error is None
    assert tiny.journal.get(RECORDS, b"000000") is not None


def test_a_flush_that_must_wait_for_a_read_in_a_thread_does(tiny: Store) -> None:
    opened, close = threading.Event(), threading.Event()

    def read() -> None:
        with Snapshot(tiny.memory_map, wait=True) as snapshot:
            opened.set()
            assert close.wait(PATIENCE_S)
            assert sound(snapshot) == 0

    reader = threading.Thread(target=read)
    reader.start()
    assert opened.wait(PATIENCE_S)
    group = tiny.journal.submit(put(0, size=2 * TINY))

    def release() -> None:
        until(lambda: held_readers(tiny.memory_map) > 0)
        close.set()

    releaser = threading.Thread(target=release)
    releaser.start()
    tiny.journal.flush()
    for thread in (reader, releaser):
        thread.join()
    assert group.error is None


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0)


def test_a_flush_does_not_wait_for_ever(tiny: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.store.journal.FLUSH_WAIT_S", 0.0)
    with tiny.snapshot():
        group = tiny.journal.submit(put(0, size=2 * TINY))
        tiny.journal.flush()
    assert isinstance(group.error, StoreBroken)
    assert tiny.journal.epoch == 1
    group = tiny.journal.submit(put(0, size=2 * TINY))
    tiny.journal.flush()
    assert group.error is None


def test_without_address_space_the_old_map_stays_in_use(tiny: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """LMDB would be left with no map at all, and the next read would end the process."""
    monkeypatch.setattr(MemoryMap, "larger_size", lambda self: 1 << 60)
    group = tiny.journal.submit(put(0, size=2 * TINY))
    tiny.journal.flush()
    assert isinstance(group.error, StoreBroken)
    assert "address space" in str(group.error)
    with tiny.snapshot() as snapshot:
        assert sound(snapshot) == 0
    group = tiny.journal.submit(put(0, size=10))
    tiny.journal.flush()
    assert group.error is None


def test_a_store_larger_than_the_configured_map_opens_all_the_same(tmp_path: Path) -> None:
    with Store.open(tmp_path, map_size_bytes=TINY) as store:
        store.journal.submit(put(0, size=8 * TINY))
        store.journal.flush()
    with Store.open(tmp_path, map_size_bytes=TINY) as store:
        with store.snapshot() as snapshot:
            assert sound(snapshot) == 1
        group = store.journal.submit(put(1, size=8 * TINY))
        store.journal.flush()
        assert group.error is None


def test_commits_are_synced(tiny: Store) -> None:
    """LMDB's own switches for it. Without them, a power cut loses what was acknowledged, or the file."""
    flags = tiny.memory_map.env.flags()
    assert flags["sync"]
    assert flags["metasync"]
    assert not flags["writemap"]
    assert not flags["map_async"]


def test_the_size_of_a_page_is_what_sizes_are_rounded_to(tiny: Store) -> None:
    assert tiny.memory_map.size_bytes == TINY
    assert tiny.memory_map.env.stat()["psize"] == 4096


@pytest.fixture
def frozen_reader(tiny: Store) -> Iterator[lmdb.Transaction[bytes]]:
    transaction = tiny.memory_map.begin_read(wait=False)
    yield transaction
    tiny.memory_map.end_read(transaction)


def test_the_map_is_never_resized_under_an_open_read(
    tiny: Store, frozen_reader: lmdb.Transaction[bytes]
) -> None:
    assert not tiny.memory_map.resize(4 * TINY)
    assert tiny.memory_map.size_bytes == TINY


def test_memory_of_the_process_does_not_get_into_the_file(tmp_path: Path) -> None:
    """LMDB takes new pages from the heap. What was there before may be a password that was never stored."""
    secret = b"never-stored-secret "
    with Store.open(tmp_path, map_size_bytes=1 << 24) as store:
        for number in range(20):
            for _ in [secret * size for size in range(190, 230) for _ in range(10)]:
                pass  # freed when the loop ends: blocks of about a page
            batch = Batch()
            for index in range(50):
                batch.put(RECORDS, b"%d %d" % (number, index), b"v" * 300)
            store.journal.submit(batch)
            store.journal.flush()
    assert secret not in data_file(tmp_path).read_bytes()


@pytest.mark.parametrize("size_bytes", [2**62, 10**20])
def test_a_map_for_which_there_is_no_address_space_is_told(
    open_store: Callable[..., Store], size_bytes: int
) -> None:
    with pytest.raises(StoreBroken, match=r"no address space for .* Give a smaller map_size_bytes"):
        open_store(map_size_bytes=size_bytes)
