"""Snapshots: ranges compared with a simple model, and isolation from later commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.errors import ReadQueueFull
from trunkline.store.keys import LOGS, RECORDS
from trunkline.store.snapshot import STEP_ENTRIES, Snapshot

pytestmark = pytest.mark.disk

KEYS = sorted({bytes(key) for a in range(0, 256, 51) for key in ([a], [a, a], [a, 255])})
bounds = st.binary(max_size=2) | st.sampled_from(KEYS)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("filled"), map_size_bytes=1 << 20) as store:
        batch = Batch()
        for key in KEYS:
            batch.put(RECORDS, key, b"value of " + key)
        for number in range(3 * STEP_ENTRIES):
            batch.put(LOGS, number.to_bytes(4, "big"), b"")
        store.journal.submit(batch)
        store.journal.flush()
        yield store


@given(lo=bounds, hi=st.none() | bounds, reverse=st.booleans(), skip=st.integers(0, 20))
def test_a_range_is_what_a_sorted_list_would_give(
    filled: Store, lo: bytes, hi: bytes | None, reverse: bool, skip: int
) -> None:
    inside = [key for key in KEYS if key >= lo and (hi is None or key < hi)]
    wanted = (inside[::-1] if reverse else inside)[skip:]
    with filled.snapshot() as snapshot:
        assert list(snapshot.keys(RECORDS, lo, hi, reverse=reverse, skip=skip)) == wanted
        found = list(snapshot.range(RECORDS, lo, hi, reverse=reverse, skip=skip))
        assert found == [(key, b"value of " + key) for key in wanted]
        assert snapshot.count(RECORDS, lo, hi) == len(inside)


@pytest.mark.parametrize("reverse", [False, True])
def test_an_empty_database_has_no_range(store: Store, reverse: bool) -> None:
    with store.snapshot() as snapshot:
        assert list(snapshot.range(RECORDS, b"", None, reverse=reverse)) == []
        assert list(snapshot.keys(RECORDS, b"a", b"b", reverse=reverse, skip=1)) == []
        assert snapshot.count(RECORDS, b"", None) == 0


def test_a_scan_checks_regularly_whether_it_was_cancelled(filled: Store) -> None:
    """Also while skipping entries; a cancelled scan ends."""
    asked: list[int] = []

    def step() -> None:
        asked.append(1)
        if len(asked) == 2:
            raise KeyboardInterrupt

    for skip in (0, 2 * STEP_ENTRIES):
        asked.clear()
        with (
            Snapshot(filled.memory_map, on_step=step) as snapshot,
            pytest.raises(KeyboardInterrupt),
        ):
            list(snapshot.keys(LOGS, b"", None, skip=skip))
        assert len(asked) == 2


def test_a_snapshot_does_not_see_later_commits(store: Store) -> None:
    def write(value: bytes) -> None:
        batch = Batch()
        batch.put(RECORDS, b"k", value)
        store.journal.submit(batch)
        store.journal.flush()

    write(b"1")
    with store.snapshot() as before:
        write(b"2")
        with store.snapshot() as after:
            assert (before.get(RECORDS, b"k"), after.get(RECORDS, b"k")) == (b"1", b"2")


def test_a_closed_snapshot_says_so(store: Store) -> None:
    snapshot = store.snapshot()
    snapshot.close()
    snapshot.close()
    assert store.memory_map.oldest_read() is None
    with pytest.raises(ValueError, match="closed"):
        snapshot.get(RECORDS, b"k")


# Long reads in worker threads.


async def test_a_long_read_returns_or_raises_what_the_query_does(filled: Store) -> None:
    assert await filled.read(lambda snapshot: snapshot.get(RECORDS, KEYS[0])) == b"value of " + KEYS[0]

    def fail(snapshot: Snapshot) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await filled.read(fail)
    assert filled.memory_map.oldest_read() is None


async def test_over_the_bound_of_waiting_reads_the_caller_is_told_at_once(
    open_store: Callable[..., Store], nursery: trio.Nursery
) -> None:
    store = open_store(read_threads_max=1, read_queue_length_max=1)
    started = trio.Event()
    finish = trio.Event()

    def slow(snapshot: Snapshot) -> None:
        trio.from_thread.run_sync(started.set)
        trio.from_thread.run(finish.wait)

    nursery.start_soon(store.read, slow)
    await started.wait()
    async with trio.open_nursery() as waiting:
        waiting.start_soon(store.read, lambda snapshot: None)
        await trio.testing.wait_all_tasks_blocked()
        assert store.reads == 2
        with pytest.raises(ReadQueueFull, match="2 long reads"):
            await store.read(lambda snapshot: None)
        finish.set()
    assert await store.read(lambda snapshot: snapshot.count(RECORDS, b"", None)) == 0


async def test_a_cancelled_read_ends_at_its_next_entries_and_closes_its_snapshot(filled: Store) -> None:
    started = trio.Event()
    scope = trio.CancelScope()
    rounds = 0

    def endless(snapshot: Snapshot) -> None:
        nonlocal rounds
        trio.from_thread.run_sync(started.set)
        while True:
            rounds += 1
            for _ in snapshot.keys(LOGS, b"", None):
                pass

    async def read() -> None:
        with scope:
            await filled.read(endless)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await started.wait()
        scope.cancel()
    assert scope.cancelled_caught
    assert filled.reads == 0
    assert filled.memory_map.oldest_read() is None


def test_figures_of_the_file(tmp_path: Path) -> None:
    with Store.open(tmp_path, map_size_bytes=1 << 20, store_size_max_bytes=1 << 22) as store:
        sizes = store.sizes()
    assert 0 < sizes.used <= sizes.map == 1 << 20
    assert sizes.quota == 1 << 22
