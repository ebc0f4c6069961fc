"""The flusher goes on where the system has nothing left for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing
import zstandard

from trunkline.store import codec, flusher, report_items
from trunkline.store.batch import Batch
from trunkline.store.env import Store

DEVICE = b"d" * 12


async def test_what_arrived_is_flushed_also_when_no_thread_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the machine has no memory or no place for one: it would have ended the server."""
    refused: list[object] = []

    async def refuse(*work: object) -> None:
        refused.append(work)
        raise RuntimeError("can't start new thread")

    with Store.open(tmp_path, map_size_bytes=2**26) as store:
        flushing = flusher.Flusher(store, lambda ahead: ahead.head or b"\x80", 3600.0)
        monkeypatch.setattr(flusher, "INLINE_BYTES", 10)
        async with trio.open_nursery() as nursery:
            await nursery.start(store.journal.run)
            batch = Batch()
            for number in range(20):
                batch.report(DEVICE, number, codec.encode({0: number}))
            await store.journal.submit(batch).wait()
            with monkeypatch.context() as without_threads:
                without_threads.setattr(trio.to_thread, "run_sync", refuse)
                await flushing.flush_all()
            nursery.cancel_scope.cancel()
    assert refused
    assert flushing.flushed_rows == 20


async def test_what_arrived_is_flushed_when_there_is_memory_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    whole = zstandard.ZstdCompressor
    failures = 3

    class WithoutMemory:
        """Fails as Zstandard does where it gets no memory."""

        def __init__(self, level: int) -> None:
            self.level = level

        def compress(self, raw: bytes) -> bytes:
            nonlocal failures
            if failures:
                failures -= 1
                raise zstandard.ZstdError("cannot compress: Allocation error : not enough memory")
            return whole(level=self.level).compress(raw)

    with Store.open(tmp_path, map_size_bytes=2**26) as store:
        flushing = flusher.Flusher(store, lambda ahead: ahead.head or b"\x80", 3600.0)
        async with trio.open_nursery() as nursery:
            await nursery.start(store.journal.run)
            batch = Batch()
            batch.report(DEVICE, 1, codec.encode({0: 1}))
            await store.journal.submit(batch).wait()
            with monkeypatch.context() as without_memory:
                without_memory.setattr(zstandard, "ZstdCompressor", WithoutMemory)
                await flushing.flush_all()
            nursery.cancel_scope.cancel()
    assert not failures
    assert flushing.flushed_rows == 1


@pytest.mark.parametrize(
    ("removals", "flushed_s"),
    [
        (flusher.REMOVALS_MAX - 1, 3600.0),
        (flusher.REMOVALS_MAX, flusher.REMOVALS_FLUSH_S),
        (3 * flusher.REMOVALS_MAX, flusher.REMOVALS_FLUSH_S),
    ],
)
async def test_what_was_removed_is_not_read_for_an_hour(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, removals: int, flushed_s: float
) -> None:
    """Each removal in a window costs every reader of the device."""
    with Store.open(tmp_path, map_size_bytes=2**26) as store:
        flushing = flusher.Flusher(store, lambda ahead: ahead.head or b"\x80", 3600.0)
        async with trio.open_nursery() as nursery:
            await nursery.start(store.journal.run)
            nursery.start_soon(flushing.run)
            await trio.testing.wait_all_tasks_blocked()
            for at in range(0, removals, 100):
                batch = Batch()
                for number in range(at, min(at + 100, removals)):
                    batch.report(DEVICE, number, codec.encode({0: number}))
                    batch.report_removal(DEVICE, report_items.removed(number))
                await store.journal.submit(batch).wait()
            await trio.sleep(flushed_s - 1.0)
            assert flushing.flushed_rows == 0
            assert store.arrivals.windows[-1].buffers
            await trio.sleep(2.0)
            assert not store.arrivals.windows[-1].buffers
            nursery.cancel_scope.cancel()
