"""The log of reports: every report is in it once, in the order of the commits, at the position that it had at first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import trio

from tests.patience import PATIENCE_S
from trunkline.store import codec, keys, state_columns
from trunkline.store.arrival_chunks import Chunk
from trunkline.store.backup import verify
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.flusher import Flusher
from trunkline.store.report_items import BACKLOG, head_item, removed
from trunkline.store.report_log import chunks_from, commit_of, end_of, reports

ONE, TWO, THREE = (bytes([number]) * 12 for number in (1, 2, 3))
Seen = list[tuple[int, bytes, int, Any]]


class Follower:
    """Follows the commits of a store, as streams do."""

    def __init__(self) -> None:
        self.seen: Seen = []

    def follow(self, chunk: Chunk) -> None:
        """Note the reports of a commit."""
        self.seen += read(chunk)


def read(chunk: Chunk) -> Seen:
    """The reports of a commit."""
    return [
        (position, device, time_ms, point)
        for device, position, time_ms, point in reports(chunk, lambda _device: True)
    ]


def log_from(store: Store, seq: int = 0) -> Seen:
    """All reports that are kept."""
    with store.snapshot() as snapshot:
        return [each for chunk in chunks_from(snapshot, seq) for each in read(chunk)]


@asynccontextmanager
async def opened(path: Path, follower: Follower) -> AsyncIterator[tuple[Store, Flusher]]:
    """A store that commits, and whose commits are followed."""
    with Store.open(path, map_size_bytes=2**26) as store:
        store.journal.follower = follower.follow
        async with trio.open_nursery() as nursery:
            await nursery.start(store.journal.run)
            yield store, Flusher(store, lambda ahead: ahead.head or b"\x80", 3600.0)
            nursery.cancel_scope.cancel()


async def report(store: Store, number: int) -> None:
    """A commit with several devices, a head between their reports, and a removal."""
    batch = Batch()
    batch.report_removal(TWO, removed(number))
    batch.report(ONE, number, codec.encode({0: number}))
    batch.report_head(ONE, head_item(b"\x80"))
    batch.report(TWO, number, codec.encode({0: number}))
    batch.report(ONE, number + 1, codec.encode({0: "x" * number}))
    for extra in range(number % 40):
        batch.report(THREE, extra, codec.encode({0: extra}))
    await store.journal.submit(batch).wait()


async def test_a_report_has_the_same_position_in_its_commit_and_wherever_the_log_keeps_it(
    tmp_path: Path,
) -> None:
    follower = Follower()
    async with opened(tmp_path, follower) as (store, flusher):
        for number in range(90):
            await report(store, number)
            if number in (20, 50):
                await flusher._pack()
        positions = [each[0] for each in follower.seen]
        assert positions == sorted(set(positions))
        assert len(positions) == 90 * 3 + sum(number % 40 for number in range(90))
        assert log_from(store) == follower.seen
        assert log_from(store, 40) == [each for each in follower.seen if commit_of(each[0]) >= 40]
        await flusher.flush_all()
        assert log_from(store) == follower.seen, "it is kept until the next window is flushed"
        assert verify(store).problems == []
    async with opened(tmp_path, follower) as (store, _):
        assert log_from(store) == follower.seen
        assert not store.arrivals.windows[-1].buffers, "what is flushed is not loaded again"
        await report(store, 90)
        assert log_from(store) == follower.seen


async def test_the_log_keeps_the_window_that_was_flushed_last(tmp_path: Path) -> None:
    follower = Follower()
    async with opened(tmp_path, follower) as (store, flusher):
        for number in range(3):
            await report(store, number)
        await flusher.flush_all()
        await report(store, 3)
        await flusher.flush_all()
        assert log_from(store) == [each for each in follower.seen if commit_of(each[0]) == 4]
        await flusher.flush_all()
        assert log_from(store) == [], "an hour without reports"
        with store.snapshot() as snapshot:
            assert snapshot.newest_seq() == 4
        assert await store.read(lambda snapshot: snapshot.newest_seq()) == 4


async def test_no_position_is_given_twice_when_nothing_is_left_of_the_log(tmp_path: Path) -> None:
    follower = Follower()
    for _ in range(3):
        async with opened(tmp_path, follower) as (store, flusher):
            before = end_of(store.arrivals.seq)
            await report(store, 1)
            assert all(position > before for position, *_ in follower.seen[-4:])
            await flusher.flush_all()
            await flusher.flush_all()
            with store.snapshot() as snapshot:
                assert not list(snapshot.keys(keys.SEGMENTS, b"", None))
    positions = [each[0] for each in follower.seen]
    assert positions == sorted(set(positions))


async def test_backlogs_are_left_out_also_beside_live_reports_of_the_same_commit(tmp_path: Path) -> None:
    follower = Follower()
    async with opened(tmp_path, follower) as (store, flusher):
        batch = Batch()
        batch.report(ONE, 1, codec.encode({0: "live"}))
        for part in range(2):
            batch.report(ONE, 2, BACKLOG)
            for number in range(2, 40):
                batch.report(ONE, number, codec.encode({0: number}))
            batch.report_head(ONE, head_item(b"\x80"))
            batch.report(ONE, 100 + part, codec.encode({0: "live"}))
            batch.report(TWO, part, codec.encode({0: "live"}))
        await store.journal.submit(batch).wait()
        assert [each[1:3] for each in follower.seen] == [(ONE, 1), (ONE, 100), (ONE, 101), (TWO, 0), (TWO, 1)]
        await flusher.flush_all()
        assert log_from(store) == follower.seen
        with store.snapshot() as snapshot:
            rows = [row for part in snapshot.points(ONE) for row in part.rows()]
        assert [time_ms for time_ms, _ in rows] == [1, *range(2, 40), 100, 101]
        assert all(point for _, point in rows), "the mark of a backlog is no point"


async def test_states_in_columns_have_positions_like_all_others(tmp_path: Path) -> None:
    follower = Follower()
    async with opened(tmp_path, follower) as (store, flusher):
        batch = Batch()
        columns = state_columns.encoded(np.arange(5, 45), {0: np.arange(40), 1: "x"})
        batch.report(ONE, 1, codec.encode({0: 1}))
        batch.report_item(ONE, columns)
        batch.report(TWO, 2, codec.encode({0: 2}))
        batch.report(THREE, 5, BACKLOG)
        batch.report_item(THREE, columns)
        batch.report_head(THREE, head_item(b"\x80"))
        await store.journal.submit(batch).wait()
        assert [each[1:3] for each in follower.seen] == [
            (ONE, 1),
            *((ONE, time_ms) for time_ms in range(5, 45)),
            (TWO, 2),
        ]
        positions = [each[0] for each in follower.seen]
        assert positions == sorted(set(positions))
        await flusher.flush_all()
        assert log_from(store) == follower.seen
        with store.snapshot() as snapshot:
            rows = [row for part in snapshot.points(THREE) for row in part.rows()]
        assert rows == [(time_ms, {0: time_ms - 5, 1: "x"}) for time_ms in range(5, 45)]


async def test_a_commit_that_fails_is_followed_by_nobody(tmp_path: Path) -> None:
    follower = Follower()
    async with opened(tmp_path, follower) as (store, _):
        await report(store, 1)
        seen = list(follower.seen)
        batch = Batch()
        batch.report(ONE, 1, b"")
        batch.put(keys.RECORDS, b"key", b"value")
        store.journal._sync_delay_s = _fail
        group = store.journal.submit(batch)
        with trio.fail_after(PATIENCE_S):
            while not group.done:
                await trio.lowlevel.checkpoint()
        assert group.error is not None
        store.journal._sync_delay_s = None
        await report(store, 2)
        assert follower.seen[: len(seen)] == seen
        assert {commit_of(each[0]) for each in follower.seen} == {1, 2}


def _fail() -> float:
    raise OSError(5, "input/output error")
