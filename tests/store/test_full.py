"""A full disk or an exhausted quota: writes fail, reads work, and writes work again when there is room."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from tests.patience import PATIENCE_S
from trunkline.store import codec
from trunkline.store.batch import Batch, Completes
from trunkline.store.commit_group import Group
from trunkline.store.env import Store
from trunkline.store.errors import StoreError, StoreFull
from trunkline.store.flusher import FULL_FLUSH_S, Flusher
from trunkline.store.keys import INDEXES, RECORDS, UNIQUE
from trunkline.store.reserve import RESERVE_BYTES_MIN, RETRY_S

pytestmark = pytest.mark.disk

KIB = 1024
QUOTA = 1024 * KIB

FILL_THE_DISK = """
import json, resource, signal, sys
from pathlib import Path
import trio
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.errors import StoreFull
from trunkline.store.keys import RECORDS

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write beyond the limit is EFBIG and no signal
seen = {}

def put(number):
    batch = Batch()
    batch.put(RECORDS, b"%06d" % number, bytes(4000))
    return batch

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def main():
    with Store.open(Path(sys.argv[1]), map_size_bytes=1 << 30) as store:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.journal.run)
            limit((Path(sys.argv[1]) / "store" / "data.mdb").stat().st_size + 256 * 1024)
            stored = 0
            try:
                while stored < 1000:
                    await store.journal.submit(put(stored)).wait()
                    stored += 1
            except StoreFull as full:
                seen["error"] = str(full)
            seen["stored"] = stored
            seen["epoch"] = store.journal.epoch
            seen["read"] = await store.read(lambda snapshot: snapshot.count(RECORDS, b"", None))
            seen["pending"] = store.journal.get(RECORDS, b"%06d" % stored) is not None
            try:
                await store.journal.submit(put(stored)).wait()
            except StoreFull:
                seen["again"] = store.journal.epoch
            limit(resource.RLIM_INFINITY)
            with trio.fail_after(float(sys.argv[2])):
                while store.journal.submit(put(stored)).done:  # it looks for room once a second
                    await trio.lowlevel.checkpoint()
            for number in range(stored, stored + 100):
                await store.journal.submit(put(number)).wait()
            nursery.cancel_scope.cancel()
    with Store.open(Path(sys.argv[1])) as store, store.snapshot() as snapshot:
        seen["after"] = snapshot.count(RECORDS, b"", None)

trio.run(main)
print(json.dumps(seen))
"""


@pytest.mark.slow
def test_a_full_disk_is_told_and_survived(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILL_THE_DISK, str(tmp_path), str(PATIENCE_S)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True).stdout
    seen = json.loads(output.splitlines()[-1])
    assert 10 < seen["stored"] < 1000
    assert seen["error"].startswith("The disk or the quota of the store is full")
    assert seen["read"] == seen["stored"]
    assert not seen["pending"]
    assert (seen["epoch"], seen["again"]) == (1, 2)
    assert seen["after"] == seen["stored"] + 100


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def small(open_store: Callable[..., Store], clock: Clock) -> Store:
    return open_store(map_size_bytes=128 * KIB, store_size_max_bytes=QUOTA, monotonic_s=clock)


def record(number: int) -> Batch:
    """A record with its index entries: it writes to three databases, like a real one."""
    batch = Batch()
    batch.put(RECORDS, b"%06d" % number, bytes(900))
    batch.put(INDEXES, b"name %06d" % number, b"")
    batch.put(UNIQUE, b"email %06d" % number, b"")
    return batch


def removal(number: int) -> Batch:
    batch = Batch()
    batch.delete(RECORDS, b"%06d" % number)
    batch.delete(INDEXES, b"name %06d" % number)
    batch.delete(UNIQUE, b"email %06d" % number)
    return batch


def committed(store: Store, batch: Batch) -> Group:
    group = store.journal.submit(batch)
    store.journal.flush()
    return group


def fill(store: Store) -> int:
    """Write records until the quota is reached; return how many were stored."""
    for number in range(10_000):
        error = committed(store, record(number)).error
        if error is not None:
            assert isinstance(error, StoreFull)
            return number
    raise AssertionError("the quota was never reached")


def count(store: Store) -> int:
    with store.snapshot() as snapshot:
        return snapshot.count(RECORDS, b"", None)


def file_bytes(store: Store) -> int:
    return (store.directory.path / "store" / "data.mdb").stat().st_size


def test_the_quota_is_told_and_reads_go_on(small: Store) -> None:
    stored = fill(small)
    assert stored > 200
    assert small.journal.epoch == 1
    assert small.journal.get(RECORDS, b"%06d" % stored) is None
    assert small.journal.get(RECORDS, b"%06d" % (stored - 1)) is not None
    assert count(small) == stored
    assert file_bytes(small) <= QUOTA


async def test_waiting_writes_fail_at_the_quota(small: Store, nursery: trio.Nursery) -> None:
    fill(small)
    await nursery.start(small.journal.run)
    big = Batch()
    big.put(RECORDS, b"big", bytes(2 * QUOTA))
    with trio.fail_after(PATIENCE_S), pytest.raises(StoreFull, match="quota"):
        await small.journal.submit(big).wait()


def test_at_the_quota_what_writes_is_refused_before_it_costs_anything(small: Store) -> None:
    stored = fill(small)
    failures, epoch = small.journal.statistics.failures, small.journal.epoch
    group = small.journal.submit(record(stored))
    assert group.done
    assert isinstance(group.error, StoreFull)
    assert small.journal.pending_batches == 0
    assert small.journal.epoch == epoch + 1, "its actor has to reload"
    assert small.journal.statistics.failures == failures


def test_what_completes_something_finds_room_when_nothing_new_does(small: Store) -> None:
    stored = fill(small)

    def completed(completes: Completes) -> int:
        nonlocal stored
        first = stored
        while True:
            batch = record(stored)
            batch.completes = completes
            if committed(small, batch).error is not None:
                return stored - first
            stored += 1

    assert completed(None) == 0
    assert completed("revocation") > 5, "a quarter of the reserve"
    assert completed("revocation") == 0
    assert completed("stored") > 5, "a quarter more"
    assert completed("stored") == 0
    assert completed("deletion") > 5, "a quarter more"
    for number in range(stored):
        assert committed(small, removal(number)).error is None
    assert file_bytes(small) <= QUOTA


def reports(device: int, time_ms: int) -> Batch:
    """A report that can hardly be compressed."""
    batch = Batch()
    value = random.Random(time_ms).randbytes(4000)
    batch.report(bytes([device]) * 12, time_ms, codec.encode({0: value}))
    return batch


async def test_reports_that_were_removed_make_room_soon(
    open_store: Callable[..., Store], autojump_clock: trio.testing.MockClock
) -> None:
    """What has arrived is deleted when it is flushed, which takes room itself. On a full disk that is soon."""
    quota = 4 * QUOTA
    small = open_store(
        map_size_bytes=quota, store_size_max_bytes=quota, monotonic_s=autojump_clock.current_time
    )
    flusher = Flusher(small, lambda ahead: ahead.head or b"\x80", flush_s=1e9)
    async with trio.open_nursery() as nursery:
        await nursery.start(small.journal.run)
        nursery.start_soon(flusher.run)
        stored = 0
        while (await outcome(small, reports(stored % 2, stored))) is None:
            stored += 1
        assert stored > 100
        await trio.sleep(3 * FULL_FLUSH_S)
        wipe = Batch()
        wipe.report_wiped(bytes([0]) * 12)
        assert await outcome(small, wipe) is None
        gives_up_s = time.monotonic() + PATIENCE_S  # the clock of the test goes on while a thread writes
        again = stored
        while again < stored + stored // 4:
            if await outcome(small, reports(1, again)) is None:
                again += 1
            else:
                await trio.sleep(RETRY_S)
            assert time.monotonic() < gives_up_s
        nursery.cancel_scope.cancel()
    with small.snapshot() as snapshot:
        assert sum(map(len, snapshot.points(bytes([0]) * 12))) == 0
        assert sum(map(len, snapshot.points(bytes([1]) * 12))) == stored // 2 + again - stored
    assert file_bytes(small) <= quota


async def outcome(store: Store, batch: Batch) -> StoreError | None:
    """The error of the commit of a batch."""
    group = store.journal.submit(batch)
    with contextlib.suppress(StoreError):
        await group.wait()
    return group.error


@pytest.mark.slow
def test_what_was_deleted_makes_room_again(small: Store, clock: Clock) -> None:
    """Deleting needs new pages itself, which a completely used quota would not have."""
    stored = fill(small)
    for number in range(0, stored, 2):
        assert committed(small, removal(number)).error is None
    clock.now_s += RETRY_S
    for number in range(0, stored // 2, 2):
        assert committed(small, record(number)).error is None
    assert count(small) == stored - -(-stored // 2) + len(range(0, stored // 2, 2))
    assert file_bytes(small) <= QUOTA


@pytest.mark.slow
def test_filling_and_deleting_may_go_on_for_long(small: Store, clock: Clock) -> None:
    last: Any = None
    for _ in range(3):
        stored = fill(small)
        for number in range(stored):
            last = committed(small, removal(number)).error
            assert last is None
        clock.now_s += RETRY_S
    assert count(small) == 0
    assert file_bytes(small) <= QUOTA


@pytest.mark.slow
def test_the_reserve_is_not_used_up_by_and_by(small: Store, clock: Clock) -> None:
    """A client deletes one record now and then, and others write whenever they may: deleting still works."""
    stored = first = fill(small)
    for number in range(300):
        assert committed(small, removal(number)).error is None
        clock.now_s += RETRY_S
        while committed(small, record(stored)).error is None:
            stored += 1
    assert stored > first
    assert file_bytes(small) <= QUOTA


def test_a_store_that_has_room_is_not_tight(store: Store) -> None:
    assert not store.journal._reserve.tight
    assert file_bytes(store) >= store.sizes().used + RESERVE_BYTES_MIN


def test_free_pages_do_not_count_while_a_read_may_need_them(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    small = open_store(map_size_bytes=QUOTA, store_size_max_bytes=QUOTA, monotonic_s=clock)
    fill(small)
    with small.snapshot():
        for number in range(2):
            assert committed(small, removal(number)).error is None
        clock.now_s += RETRY_S
        assert committed(small, record(0)).error is not None
    clock.now_s += RETRY_S
    assert committed(small, record(0)).error is None


def test_reads_that_overlap_do_not_keep_a_store_full(small: Store, clock: Clock) -> None:
    """Queries come all the time, so there may be no moment without an open read."""
    stored = fill(small)
    oldest = ExitStack()
    oldest.enter_context(small.snapshot())
    for number in range(0, stored, 2):
        newer = ExitStack()
        newer.enter_context(small.snapshot())
        oldest.close()
        oldest = newer
        assert committed(small, removal(number)).error is None
    with oldest:
        clock.now_s += RETRY_S
        assert committed(small, record(0)).error is None


FILL_AND_DELETE = """
import json, resource, sys
from pathlib import Path
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.keys import RECORDS

now_s = 0.0

def committed(store, number, delete=False):
    batch = Batch()
    if delete:
        batch.delete(RECORDS, b"%06d" % number)
    else:
        batch.put(RECORDS, b"%06d" % number, bytes(3000))
    group = store.journal.submit(batch)
    store.journal.flush()
    return group.error is None

def fill(store, number):
    global now_s
    now_s += 2.0
    while committed(store, number):
        number += 1
    return number

with Store.open(Path(sys.argv[1]), monotonic_s=lambda: now_s) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 * 2**20, resource.RLIM_INFINITY))
    stored = fill(store, 0)
    deleted = sum(committed(store, number, delete=True) for number in range(stored // 2))
    again = fill(store, stored) - stored
    more = sum(committed(store, number, delete=True) for number in range(stored // 2, stored))
with Store.open(Path(sys.argv[1])) as store, store.snapshot() as snapshot:
    held = snapshot.count(RECORDS, b"", None)
print(json.dumps([stored, deleted, again, more, held]))
"""


@pytest.mark.slow
def test_on_a_full_disk_deleting_works_and_makes_room(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILL_AND_DELETE, str(tmp_path)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True).stdout
    stored, deleted, again, more, held = json.loads(output.splitlines()[-1])
    assert stored > 200
    assert deleted == stored // 2
    assert again > deleted // 2
    assert more == stored - stored // 2
    assert held == again
