"""The flusher goes on where the system has nothing left for it."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing
import zstandard

from trunkline.store import codec, flusher
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
