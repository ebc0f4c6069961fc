"""What has arrived of one device is decoded as far as a reader needs it, whatever the order of its times."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from trunkline.store import codec, device_arrivals, report_items
from trunkline.store.arrival_window import Buffer
from trunkline.store.arrivals import Arrivals
from trunkline.store.batch import Batch
from trunkline.store.columns import Points
from trunkline.store.env import Store
from trunkline.store.report_items import Reports, head_item, reported, wiped
from trunkline.store.reports_at_once import points_at_once

DEVICE = bytes([1]) * 12
POINTS = 2000
BEGIN_MS = 1_700_000_000_000


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Store]:
    with Store.open(path, map_size_bytes=2**26) as store:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.journal.run)
            yield store
            nursery.cancel_scope.cancel()


async def report(store: Store, times: list[int], *, head: bool = False) -> None:
    batch = Batch()
    for time_ms in times:
        batch.report(DEVICE, time_ms, codec.encode({0: time_ms, 1: 0.5}))
    if head:
        batch.report_head(DEVICE, head_item(b"head"))
    await store.journal.submit(batch).wait()


class Decoded:
    """Counts the reports that are decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reports = self.at_once = 0
        really = report_items.decoded

        def decoded(raw: bytes) -> list[Any]:
            found = really(raw)
            self.reports += len(found) // 2
            return found

        def at_once(raw: bytes, *more: Any) -> Points | None:
            found = points_at_once(raw, *more)
            if found is not None:
                self.reports += len(found)
                self.at_once += len(found)
            return found

        monkeypatch.setattr(device_arrivals, "decoded", decoded)
        monkeypatch.setattr(device_arrivals, "points_at_once", at_once)

    def taken(self) -> int:
        count, self.reports = self.reports, 0
        return count


def newest(store: Store, count: int) -> list[int]:
    """The times of the newest points."""
    found: list[int] = []
    with store.snapshot() as snapshot:
        for part in snapshot.points(DEVICE, reverse=True, rows=count):
            found += reversed([time_ms for time_ms, _ in part.rows()])
            if len(found) >= count:
                break
    return found[:count]


@pytest.mark.parametrize("each", [1, 500])
@pytest.mark.parametrize("outlier_ms", [None, -5000, 10**9])
async def test_a_page_decodes_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, each: int, outlier_ms: int | None
) -> None:
    """Also after a late report, a report of a clock that was ahead, and after a restart, but for the first read."""
    times = list(range(BEGIN_MS, BEGIN_MS + POINTS))
    decoded = Decoded(monkeypatch)
    async with opened(tmp_path) as store:
        for start in range(0, POINTS, each):
            await report(store, times[start : start + each], head=start % 10 == 0)
            if outlier_ms is not None and start == POINTS // 2:
                times.append(BEGIN_MS + outlier_ms)
                await report(store, times[-1:])
        times.sort()
        expected = times[::-1]
        assert newest(store, 1) == expected[:1]
        assert decoded.taken() < 50
        assert newest(store, 100) == expected[:100]
        assert decoded.taken() < 400
        assert newest(store, POINTS + 1) == expected
    async with opened(tmp_path) as store:
        assert newest(store, 1) == expected[:1]
        decoded.taken()
        assert newest(store, 1) == expected[:1]
        assert decoded.taken() < 100
        with store.snapshot() as snapshot:
            found = [
                time_ms
                for part in snapshot.points(DEVICE, times[700], times[799])
                for time_ms, _ in part.rows()
            ]
        assert found == times[700:800]
        assert decoded.taken() < 400
        await report(store, [BEGIN_MS + POINTS])
        assert newest(store, 2) == sorted([BEGIN_MS + POINTS, *expected[:2]])[:0:-1][:2]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("late_at", [None, 100])
async def test_a_page_in_the_middle_decodes_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late_at: int | None, reverse: bool
) -> None:
    """Without a table of all spans, also for times after those that came late."""
    times = list(range(BEGIN_MS, BEGIN_MS + POINTS))
    decoded = Decoded(monkeypatch)
    async with opened(tmp_path) as store:
        for start in range(0, POINTS, 50):
            if start == late_at:
                await report(store, [BEGIN_MS - 1])
            await report(store, times[start : start + 50])
        monkeypatch.delattr(device_arrivals.DeviceArrivals, "_spans")
        for count in (1, 100):
            with store.snapshot() as snapshot:
                parts = list(
                    snapshot.points(DEVICE, times[700], times[699 + count], reverse=reverse, rows=count)
                )
            parts.sort(key=lambda part: part.first_ms)
            assert [time_ms for part in parts for time_ms, _ in part.rows()] == times[700 : 700 + count]
            assert decoded.taken() < count + 60


async def test_times_without_any_order_are_read_in_order(tmp_path: Path) -> None:
    times = list(range(BEGIN_MS, BEGIN_MS + POINTS))
    random.Random(1).shuffle(times)
    async with opened(tmp_path) as store:
        for start in range(0, POINTS, 100):
            await report(store, times[start : start + 100])
        assert newest(store, POINTS) == sorted(times, reverse=True)
        with store.snapshot() as snapshot:
            found = [time_ms for part in snapshot.points(DEVICE) for time_ms, _ in part.rows()]
        assert found == sorted(times)


@pytest.mark.parametrize("late_at", [None, 1500])
async def test_recent_reports_are_read_as_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late_at: int | None
) -> None:
    """Nearly all of them: not the first few, and not a late one with its neighbours."""
    times = list(range(BEGIN_MS, BEGIN_MS + POINTS))
    decoded = Decoded(monkeypatch)
    async with opened(tmp_path) as store:
        for place, time_ms in enumerate(times):
            await report(store, [time_ms], head=place % 16 == 0)
            if place == late_at:
                await report(store, [BEGIN_MS + 700])
        with store.snapshot() as snapshot:
            found = [time_ms for part in snapshot.points(DEVICE) for time_ms, _ in part.rows()]
        assert found == times
        assert decoded.at_once > 0.9 * POINTS


def state_of(buffer: Buffer) -> list[Any]:
    return [
        bytes(buffer.data),
        buffer.commits.tolist(),
        buffer.spans.tolist(),
        buffer.head_at,
        buffer.late_ms,
    ]


@pytest.mark.parametrize("more", [[b"late"], [b"head"], [b"wiped"], [b"late"] * 40])
def test_a_commit_that_failed_leaves_nothing(more: list[bytes]) -> None:
    items = {
        b"late": reported(5, codec.encode({0: 1})),
        b"head": head_item(b"head"),
        b"wiped": wiped(),
    }
    arrivals = Arrivals(2**20)
    for number in range(3):
        reports = Reports()
        reports.items.append(reported(10 + number, codec.encode({0: number})))
        arrivals.committed(arrivals.stage({DEVICE: reports}))
    window = arrivals.windows[0]
    before, size_bytes = state_of(window.buffers[DEVICE]), arrivals.size_bytes
    reports = Reports()
    reports.items += [items[each] for each in more]
    reports.has_head = more != [b"late"] * len(more)
    arrivals.stage({DEVICE: reports, bytes([2]) * 12: reports})
    assert arrivals.size_bytes > size_bytes
    arrivals.undo()
    assert state_of(window.buffers[DEVICE]) == before
    assert list(window.buffers) == [DEVICE]
    assert arrivals.size_bytes == size_bytes


@pytest.mark.parametrize("new", [False, True])
def test_what_cannot_be_appended_as_a_whole_is_not_appended(
    new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where no memory is left for the last of it: it would be read, and stored with the next flush."""
    arrivals, other = Arrivals(1 << 20, 0), bytes([2]) * 12

    def of(time_ms: int) -> Reports:
        reports = Reports()
        reports.items.append(reported(time_ms, codec.encode({0: time_ms})))
        return reports

    if not new:
        arrivals.committed(arrivals.stage({DEVICE: of(1), other: of(1)}))
    window = arrivals.windows[-1]

    def memory() -> tuple[Any, ...]:
        held = {
            device: (bytes(buffer.data), list(buffer.commits), list(buffer.spans), buffer.late_ms)
            for device, buffer in window.buffers.items()
        }
        return held, window.size_bytes, arrivals.seq

    before = memory()
    append, calls = Buffer.append, iter(range(2))

    def out_of_memory(self: Buffer, number: int, entries: Any) -> int:
        grown = append(self, number, entries)
        if next(calls):
            raise MemoryError
        return grown

    with monkeypatch.context() as patched:
        patched.setattr(Buffer, "append", out_of_memory)
        with pytest.raises(MemoryError):
            arrivals.stage({DEVICE: of(2), other: of(2)})
    assert memory() == before
    arrivals.committed(arrivals.stage({DEVICE: of(3), other: of(3)}))
    assert {len(buffer.commits) for buffer in window.buffers.values()} == {2 if new else 4}
