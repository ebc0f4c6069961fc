"""What devices report reads the same wherever it is: in chunks, segments, windows or runs, in every mixture.

The module is long because the model of the timeline and the laws that use it are in one place.
"""

from __future__ import annotations

import itertools
import math
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import cbor2
import lmdb
import numpy as np
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rounds import examples
from trunkline.store import (
    arrival_window,
    arrivals,
    codec,
    column_codec,
    compaction,
    device_arrivals,
    keys,
    sorted_runs,
)
from trunkline.store import flusher as flusher_module
from trunkline.store.backup import verify
from trunkline.store.batch import Batch
from trunkline.store.directory import data_file
from trunkline.store.env import Store
from trunkline.store.errors import JournalFull, StoreDamaged
from trunkline.store.flusher import Flusher
from trunkline.store.report_items import Ahead, head_item, removed, replaced
from trunkline.store.sorted_runs import runs_of
from trunkline.store.state_columns import encoded

Point = dict[int, Any]
Shown = dict[bytes, dict[int, Point]]

DEVICES = [bytes([number]) * 12 for number in (1, 2, 3)]


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are as small as can be, and follow each other at once."""
    monkeypatch.setattr(flusher_module, "REST_SHARE", 0)


def advance(ahead: Ahead) -> bytes:
    """The heads of these tests are the sorted times of all reports."""
    times = set() if ahead.head is None else set(codec.decode(ahead.head))
    return codec.encode(sorted(times | {time_ms for time_ms, _ in ahead.reports}))


@asynccontextmanager
async def opened(path: Path, **given: Any) -> AsyncIterator[tuple[Store, Flusher]]:
    """A store that commits, with a flusher whose steps are as small as can be."""
    with Store.open(path, map_size_bytes=2**26, **given) as store:
        flusher = Flusher(store, advance, 3600.0)
        flusher.now_s = itertools.count().__next__
        async with trio.open_nursery() as nursery:
            await nursery.start(store.journal.run)
            yield store, flusher
            nursery.cancel_scope.cancel()


def shown(store: Store, devices: Sequence[bytes], low_ms: int = 0, high_ms: int = keys.TIME_MS_MAX) -> Shown:
    """The points of devices in a range. Asserts that both directions agree."""
    found: Shown = {}
    with store.snapshot() as snapshot:
        for device in devices:
            parts = [list(part.rows()) for part in snapshot.points(device, low_ms, high_ms)]
            rows = list(itertools.chain(*parts))
            back = [
                list(part.rows()) for part in snapshot.points(device, low_ms, high_ms, reverse=True, rows=3)
            ]
            assert list(itertools.chain(*reversed(back))) == rows
            newest_first = snapshot.points(device, low_ms, high_ms, reverse=True, rows=1)
            alone = [row for part in newest_first for row in reversed(list(part.rows()))]
            assert alone == rows[::-1]
            assert [time_ms for time_ms, _ in rows] == sorted({time_ms for time_ms, _ in rows})
            found[device] = {time_ms: dict(point) for time_ms, point in rows}
    return found


class Model:
    """The points of all devices, kept the naive way."""

    def __init__(self) -> None:
        self.points: Shown = {device: {} for device in DEVICES}

    def apply(self, batch: Batch, step: tuple[Any, ...]) -> None:
        """Do a step here, and put it into the batch."""
        match step:
            case ("report", device, time_ms, point):
                batch.report(device, time_ms, codec.encode(point))
                self.points[device][time_ms] = {**self.points[device].get(time_ms, {}), **point}
            case ("columns", device, states):
                batch.report_item(device, encoded(*columns_of(states)))
                for time_ms, point in states:
                    before = self.points[device].get(time_ms, {})
                    self.points[device][time_ms] = {**before, **point}
            case ("replace", device, time_ms, point):
                batch.report_removal(device, replaced(time_ms, codec.encode(point)))
                self.points[device][time_ms] = point
            case ("remove", device, time_ms):
                batch.report_removal(device, removed(time_ms))
                self.points[device].pop(time_ms, None)
            case ("wipe", device):
                batch.report_wiped(device)
                self.points[device].clear()


def columns_of(states: list[tuple[int, Point]]) -> tuple[Any, dict[int, Any]]:
    """The times and the columns of states, in arrays where that is possible."""
    columns: dict[int, Any] = {}
    for number in {number for _, point in states for number in point}:
        values = [point.get(number) for _, point in states]
        types = set(map(type, values))
        is_array = len(types) == 1 and types <= {int, float, bool}
        columns[number] = np.array(values) if is_array else values
    return np.array([time_ms for time_ms, _ in states], np.int64), columns


devices = st.sampled_from([DEVICES[0], DEVICES[0], DEVICES[1]])
times = st.integers(0, 9)
points = st.dictionaries(st.integers(0, 2), st.integers(0, 3) | st.sampled_from([0.5, True, "x"]), min_size=1)
changes = (
    st.tuples(st.just("report"), devices, times, points)
    | st.tuples(st.just("report"), devices, times, points)
    | st.tuples(st.just("columns"), devices, st.lists(st.tuples(times, points), min_size=1, max_size=6))
    | st.tuples(st.just("replace"), devices, times, points)
    | st.tuples(st.just("remove"), devices, times)
    | st.tuples(st.just("wipe"), devices)
)
plans = st.lists(
    st.lists(changes, min_size=1, max_size=8)
    | st.sampled_from(["flush", "flush", "some", "pack", "open again"]),
    min_size=6,
    max_size=30,
)


@pytest.mark.slow
@given(
    plan=plans,
    low_ms=times,
    high_ms=times,
    span_bytes=st.sampled_from([1, 30, 512]),
    as_rows=st.sampled_from([1, 3, 32]),
    at_once_bytes=st.sampled_from([0, 40, 4096]),
)
@settings(max_examples=examples(40))
async def test_points_are_the_fold_of_all_reports(
    plan: list[Any], low_ms: int, high_ms: int, span_bytes: int, as_rows: int, at_once_bytes: int
) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_runs, "BLOCK_ROWS", 4)
        patch.setattr(column_codec, "_CBOR_ROWS_MAX", as_rows)
        patch.setattr(arrival_window, "_SPAN_BYTES", span_bytes)
        patch.setattr(arrivals, "_PIECE_ITEMS", 2)
        patch.setattr(device_arrivals, "_STEPS", (1, 2))
        patch.setattr(device_arrivals, "_AT_ONCE", 4)
        patch.setattr(device_arrivals, "_AT_ONCE_BYTES_MIN", at_once_bytes)
        patch.setattr(compaction, "BLOCK_ROWS", 4)
        patch.setattr(compaction, "GROUP_RUNS", 2)
        patch.setattr(compaction, "SMALLEST_ROWS", 3)
        rest = iter(plan)
        is_open = True
        while is_open:
            is_open = False
            async with opened(Path(directory)) as (store, flusher):
                assert shown(store, DEVICES) == model.points
                for step in rest:
                    if step == "open again":
                        is_open = True
                        break
                    if step == "flush":
                        await flusher.flush_all()
                    elif step == "some":  # the compaction that is due may be left in the middle
                        await flusher._pack(close=True)
                        await flusher._work()
                        await flusher._work()
                    elif step == "pack":
                        await flusher._pack()
                    else:
                        batch = Batch()
                        for each in step:
                            model.apply(batch, each)
                        await store.journal.submit(batch).wait()
                        within = {
                            device: {time: point for time, point in of.items() if low_ms <= time <= high_ms}
                            for device, of in model.points.items()
                        }
                        assert shown(store, DEVICES, low_ms, high_ms) == within
                assert shown(store, DEVICES) == model.points
                assert verify(store).problems == []


def reports_of(number: int) -> Iterator[tuple[Any, ...]]:
    """What a batch says in the test of power cuts: reports in order, late ones, corrections and removals."""
    for device in DEVICES:
        for offset in range(6):
            yield "report", device, 10 * number + offset, {0: number, 1: offset + 0.5}
        yield "report", device, 7 * number, {2: f"late {number}"}
        yield "columns", device, [(10 * number + offset, {0: offset, 3: "x"}) for offset in (9, 8, 7, 4, 8)]
        if number % 3 == 2:
            yield "remove", device, 10 * (number - 2) + 1
            yield "replace", device, 10 * (number - 1) + 2, {0: "replaced"}
    if number == 11:
        yield "wipe", DEVICES[2]


async def test_a_power_cut_at_any_step_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each commit of the flusher the files are copied as they are before its sync, and opened."""
    monkeypatch.setattr(sorted_runs, "BLOCK_ROWS", 8)
    monkeypatch.setattr(compaction, "BLOCK_ROWS", 8)
    monkeypatch.setattr(compaction, "GROUP_RUNS", 4)
    monkeypatch.setattr(flusher_module, "STEP_BYTES", 100)
    model, copies = Model(), list[Path]()
    flushing = False

    def cut() -> float:
        if flushing:
            copies.append(tmp_path / f"copy {len(copies)}")
            shutil.copytree(tmp_path / "data", copies[-1])
        return 0.0

    async with opened(tmp_path / "data", sync_delay_s=cut) as (store, flusher):
        for number in range(13):
            batch = Batch()
            for step in reports_of(number):
                model.apply(batch, step)
            await store.journal.submit(batch).wait()
            flushing = number >= 11
            await flusher.flush_all()
            flushing = False
            if number == 11:
                before = shown(store, DEVICES)
        with store.snapshot() as snapshot:
            assert len(runs_of(snapshot)) < 4, "runs became one"
        assert flusher.compacted_rows
    assert len(copies) > 20
    for number, copy in enumerate(copies):
        async with opened(copy) as (store, flusher):
            found = shown(store, DEVICES)
            assert found in (before, model.points), f"after commit {number}"
            assert verify(store).problems == []
            await flusher.flush_all()
            assert shown(store, DEVICES) == found
            assert verify(store).problems == []
        shutil.rmtree(copy)


async def test_a_window_that_is_closed_during_a_compaction_is_flushed_before_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_runs, "BLOCK_ROWS", 8)
    monkeypatch.setattr(compaction, "BLOCK_ROWS", 8)
    monkeypatch.setattr(compaction, "GROUP_RUNS", 4)
    model = Model()
    async with opened(tmp_path) as (store, flusher):

        async def close(number: int) -> None:
            batch = Batch()
            for step in reports_of(number):
                model.apply(batch, step)
            await store.journal.submit(batch).wait()
            await flusher._pack(close=True)

        for number in range(4):
            await close(number)
            assert await flusher._work()
        assert await flusher._work()
        assert flusher._compaction is not None, "the compaction takes several steps"
        await close(4)
        flushed = flusher.flushed_rows
        assert await flusher._work()
        assert flusher.flushed_rows > flushed
        assert not flusher.compacted_rows
        assert shown(store, DEVICES) == model.points
        await flusher.flush_all()
        assert flusher.compacted_rows
        with store.snapshot() as snapshot:
            assert len(runs_of(snapshot)) == 2
        assert shown(store, DEVICES) == model.points
        assert verify(store).problems == []


async def test_a_snapshot_stays_what_it_was_while_all_is_flushed(tmp_path: Path) -> None:
    model = Model()
    async with opened(tmp_path) as (store, flusher):
        for number in range(3):
            batch = Batch()
            for step in reports_of(number):
                model.apply(batch, step)
            await store.journal.submit(batch).wait()
            if number == 0:
                await flusher.flush_all()
        expected = {
            device: {time: dict(point) for time, point in of.items()} for device, of in model.points.items()
        }
        with store.snapshot() as snapshot:
            batch = Batch()
            model.apply(batch, ("wipe", DEVICES[0]))
            model.apply(batch, ("report", DEVICES[1], 5, {0: "later"}))
            await store.journal.submit(batch).wait()
            await flusher.flush_all()
            for device in DEVICES:
                rows = {time: dict(point) for part in snapshot.points(device) for time, point in part.rows()}
                assert rows == expected[device]
        assert shown(store, DEVICES) == model.points


async def test_a_head_is_found_wherever_it_is(tmp_path: Path) -> None:
    """Before and after its window is flushed, with and without reports that came after it."""
    device = DEVICES[0]
    said: list[int] = []

    def times_of(store: Store) -> list[int]:
        with store.snapshot() as snapshot:
            times: list[int] = codec.decode(advance(snapshot.head(device)))
        return times

    for life in range(2):
        async with opened(tmp_path) as (store, flusher):
            for number in range(12):
                batch = Batch()
                said.append(100 * life + number)
                batch.report(device, said[-1], codec.encode({0: number}))
                if number % 4 == 1:
                    batch.report_head(device, head_item(codec.encode(said)))
                await store.journal.submit(batch).wait()
                assert times_of(store) == said
                if number % 5 == 3:
                    await flusher.flush_all()
                    assert times_of(store) == said


@pytest.mark.parametrize("length", [1, 300, 900, 1800, 5000])
async def test_the_chunks_are_listed_in_one_page_whatever_their_size(tmp_path: Path, length: int) -> None:
    async with opened(tmp_path) as (store, _):
        for number in range(60 if length > 100 else 5):
            batch = Batch()
            batch.report(DEVICES[0], number, codec.encode({0: "x" * length}))
            await store.journal.submit(batch).wait()
        with store.memory_map.env.begin() as transaction:
            assert transaction.stat(store.memory_map.handles[keys.ARRIVALS])["depth"] == 1
        before = shown(store, DEVICES)
        assert verify(store).problems == []
    async with opened(tmp_path) as (store, _):
        assert shown(store, DEVICES) == before


async def test_reports_are_refused_while_too_much_waits_to_be_flushed(tmp_path: Path) -> None:
    async with opened(tmp_path, arrivals_bytes_max=20_000) as (store, flusher):
        batch = Batch()
        for number in range(400):
            batch.report(DEVICES[0], number, codec.encode({0: number, 1: "x" * 40}))
        await store.journal.submit(batch).wait()
        with pytest.raises(JournalFull, match="wait to be written into runs"):
            store.journal.submit(batch)
        await flusher.flush_all()
        await store.journal.submit(batch).wait()
        assert len(shown(store, DEVICES[:1])[DEVICES[0]]) == 400


async def test_the_arrivals_are_packed_and_flushed_when_there_are_enough(tmp_path: Path) -> None:
    """Without anybody asking for it: the task of the flusher does it."""
    async with (
        opened(tmp_path, arrival_window_bytes=30_000) as (store, flusher),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(flusher.run)
        await trio.testing.wait_all_tasks_blocked()
        await flusher.flush_all()  # the task still waits for the next ones
        for number in range(600):
            batch = Batch()
            batch.report(DEVICES[number % 3], number, codec.encode({0: number}))
            await store.journal.submit(batch).wait()
        for _ in range(1000):
            if flusher.flushed_rows:
                break
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
        assert sum(map(len, shown(store, DEVICES).values())) == 600
        for low_ms, high_ms in ((0, 10), (100, 420), (595, 597), (599, 1000), (700, 900)):
            times = range(low_ms, min(high_ms, 599) + 1)
            found = shown(store, DEVICES, low_ms, high_ms)
            assert sorted(time_ms for of in found.values() for time_ms in of) == list(times)


async def test_few_arrivals_are_flushed_after_a_time_however_often_they_are_packed(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    with Store.open(tmp_path, map_size_bytes=2**26) as store:
        flusher = Flusher(store, advance, 100.0)
        async with trio.open_nursery() as nursery:
            await nursery.start(store.journal.run)
            nursery.start_soon(flusher.run)
            for number in range(220):
                batch = Batch()
                batch.report(DEVICES[0], number, codec.encode({0: number}))
                await store.journal.submit(batch).wait()
                await trio.sleep(1)
            assert 200 <= flusher.flushed_rows < 220, "every hundred seconds; they are packed every eighty"
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("db", "change"),
    [
        (keys.ARRIVALS, lambda raw: raw[:-3]),
        (keys.ARRIVALS, lambda raw: raw + b"\x01"),
        (keys.SEGMENTS, lambda raw: raw[:-3]),
        (keys.SEGMENTS, lambda raw: b"\x00" + raw[1:]),
        (keys.RUNS, lambda raw: raw[:-3]),
        (keys.RUNS, lambda raw: b"\x00" + raw[1:]),
    ],
)
async def test_what_was_written_wrongly_is_found(
    tmp_path: Path, db: str, change: Callable[[bytes], bytes]
) -> None:
    """A value with a right checksum that is no chunk, segment or block is damage, and never anything else."""
    async with opened(tmp_path) as (store, flusher):
        for number in range(2):
            batch = Batch()
            for step in reports_of(number):
                Model().apply(batch, step)
            await store.journal.submit(batch).wait()
            if db == keys.RUNS:
                await flusher.flush_all()
        if db == keys.SEGMENTS:
            await flusher._pack()
        with store.snapshot() as snapshot:
            key, raw = next((bytes(key), raw) for key, raw in snapshot.range(db, b"", None))
        batch = Batch()
        batch.put(db, key, change(raw))
        await store.journal.submit(batch).wait()
        assert any(problem.startswith(f"{db} {key.hex()}: ") for problem in verify(store).problems)
        if db == keys.RUNS:
            with pytest.raises(StoreDamaged, match=r"the block is damaged"):
                shown(store, DEVICES)
    if db != keys.RUNS:
        with pytest.raises(StoreDamaged):
            Store.open(tmp_path)


@pytest.mark.parametrize("db", [keys.ARRIVALS, keys.SEGMENTS])
async def test_reports_that_look_flushed_because_their_number_has_changed_are_found(
    tmp_path: Path, db: str
) -> None:
    async with opened(tmp_path) as (store, flusher):
        batch = Batch()
        batch.report(DEVICES[0], 1, codec.encode({0: 1}))
        await store.journal.submit(batch).wait()
        if db == keys.SEGMENTS:
            await flusher._pack()
    with (
        lmdb.open(str(data_file(tmp_path).parent), max_dbs=32) as env,
        env.begin(db=None if db == keys.ARRIVALS else env.open_db(db.encode()), write=True) as transaction,
    ):
        value = transaction.pop(keys.arrival_key(1))
        assert value is not None
        transaction.put(keys.arrival_key(0), value)
    with pytest.raises(StoreDamaged, match=f"{db} 0000000000000000 is not what was written"):
        Store.open(tmp_path)


async def test_the_newest_point_of_a_flushed_device_is_read_without_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as (store, flusher):
        for begin in (0, 100):
            batch = Batch()
            for time_ms in range(begin, begin + 60):
                batch.report(DEVICES[0], time_ms, codec.encode({0: time_ms, 1: 0.5, 2: True}))
            batch.report(DEVICES[1], begin, codec.encode({0: begin}))
            await store.journal.submit(batch).wait()
            await flusher.flush_all()
        monkeypatch.delattr(sorted_runs.Block, "points")
        with store.snapshot() as snapshot:
            for device, expected in ((DEVICES[0], {0: 159, 1: 0.5, 2: True}), (DEVICES[1], {0: 100})):
                part = next(snapshot.points(device, reverse=True, rows=1))
                assert list(part.rows()) == [(159 if device == DEVICES[0] else 100, expected)]


async def test_blocks_of_earlier_versions_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not have the last row apart."""
    monkeypatch.setattr(column_codec, "_LAST_BYTES_MAX", 0)
    model = Model()
    async with opened(tmp_path) as (store, flusher):
        batch = Batch()
        for time_ms in range(100):
            model.apply(batch, ("report", DEVICES[0], time_ms, {0: time_ms}))
        await store.journal.submit(batch).wait()
        await flusher.flush_all()
        assert shown(store, DEVICES) == model.points
        assert verify(store).problems == []


@pytest.mark.parametrize("value", [math.nan, -math.inf, {"a": [math.nan]}, cbor2.undefined])
@pytest.mark.parametrize("count", [1, 100])
async def test_what_is_unequal_to_itself_is_no_damage(tmp_path: Path, value: Any, count: int) -> None:
    async with opened(tmp_path) as (store, flusher):
        batch = Batch()
        for time_ms in range(count):
            batch.report(DEVICES[0], time_ms, codec.encode({0: time_ms, -1: value}))
        await store.journal.submit(batch).wait()
        await flusher.flush_all()
        assert verify(store).problems == []
