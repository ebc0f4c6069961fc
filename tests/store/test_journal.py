"""The promises of the journal: groups, order, callbacks, cancellation."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import structlog.testing
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.store import checksums, codec
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.keys import COUNTS, META, RECORDS, TIMELINE

pytestmark = pytest.mark.disk


def put(key: bytes, value: bytes, db: str = RECORDS) -> Batch:
    batch = Batch()
    batch.put(db, key, value)
    return batch


def added(key: bytes, **counts: int) -> Batch:
    batch = Batch()
    batch.add(COUNTS, key, counts)
    return batch


def stored(store: Store, key: bytes, db: str = RECORDS) -> bytes | None:
    with store.snapshot() as snapshot:
        return snapshot.get(db, key)


# Groups.


async def test_an_acknowledged_write_is_seen_by_every_reader(store: Store, nursery: trio.Nursery) -> None:
    await nursery.start(store.journal.run)
    await store.journal.submit(put(b"k", b"v")).wait()
    assert stored(store, b"k") == b"v"
    assert await store.read(lambda snapshot: snapshot.get(RECORDS, b"k")) == b"v"


async def test_nothing_is_stored_before_the_commit(store: Store) -> None:
    group = store.journal.submit(put(b"k", b"v"))
    assert not group.done
    assert stored(store, b"k") is None
    store.journal.flush()
    assert group.done
    assert stored(store, b"k") == b"v"


async def test_all_that_can_run_join_one_group(store: Store, nursery: trio.Nursery) -> None:
    await nursery.start(store.journal.run)

    async def write(number: int) -> None:
        await store.journal.submit(put(b"%d" % number, b"v")).wait()

    async with trio.open_nursery() as writers:
        for number in range(50):
            writers.start_soon(write, number)
    assert store.journal.statistics.commits == 1
    assert store.journal.statistics.batches == 50
    assert store.journal.statistics.group_sizes[5] == 1  # 32 to 63


async def test_a_batch_is_stored_whole_over_all_databases(store: Store) -> None:
    batch = put(b"k", b"v")
    batch.put(TIMELINE, b"t", b"w")
    batch.add(COUNTS, b"c", {"n": 1})
    store.journal.submit(batch)
    store.journal.flush()
    assert (stored(store, b"k"), stored(store, b"t", TIMELINE)) == (b"v", b"w")
    assert stored(store, b"c", COUNTS) == codec.encode({"n": 1})


async def test_a_batch_may_be_changed_after_it_was_submitted(store: Store) -> None:
    batch = put(b"k", b"v")
    batch.add(COUNTS, b"c", {"n": 1})
    store.journal.submit(batch)
    batch.put(RECORDS, b"k", b"other")
    batch.put(RECORDS, b"more", b"v")
    batch.add(COUNTS, b"c", {"n": 1})
    store.journal.flush()
    assert (stored(store, b"k"), stored(store, b"more")) == (b"v", None)
    assert stored(store, b"c", COUNTS) == codec.encode({"n": 1})


# Order, and reading one's own writes.

Step = tuple[str, bytes, Any]
steps = st.one_of(
    st.tuples(
        st.just("put"), st.sampled_from([b"a", b"b"]), st.dictionaries(st.just("n"), st.integers(0, 9))
    ),
    st.tuples(st.just("delete"), st.sampled_from([b"a", b"b"]), st.none()),
    st.tuples(
        st.just("add"),
        st.sampled_from([b"a", b"b"]),
        st.dictionaries(st.sampled_from("nm"), st.integers(-9, 9)),
    ),
)


def apply(state: dict[bytes, dict[str, int]], step: Step) -> None:
    """A simple model of one step."""
    name, key, value = step
    if name == "put":
        state[key] = dict(value)
    elif name == "delete":
        state.pop(key, None)
    else:
        counters = state.setdefault(key, {})
        for count_name, count in value.items():
            counters[count_name] = counters.get(count_name, 0) + count


def batch_of(part: list[Step]) -> Batch:
    batch = Batch()
    for name, key, value in part:
        if name == "put":
            batch.put(META, key, codec.encode(value))
        elif name == "delete":
            batch.delete(META, key)
        else:
            batch.add(META, key, value)
    return batch


@settings(max_examples=60)
@given(st.lists(st.tuples(st.lists(steps, max_size=4), st.booleans()), max_size=8))
def test_batches_take_effect_in_their_order_before_and_after_the_commit(
    parts: list[tuple[list[Step], bool]],
) -> None:
    def decoded(raw: bytes | None) -> Any:
        return None if raw is None else codec.decode(raw)

    state: dict[bytes, dict[str, int]] = {}
    with TemporaryDirectory() as directory, Store.open(Path(directory), map_size_bytes=256 * 1024) as store:
        for part, commit in parts:
            store.journal.submit(batch_of(part))
            for step in part:
                apply(state, step)
            if commit:
                store.journal.flush()
            for key in (b"a", b"b"):
                assert decoded(store.journal.get(META, key)) == state.get(key)
                if commit:
                    assert decoded(stored(store, key, META)) == state.get(key)
            for low, high in ((b"a", b"b"), (b"a", b"c"), (b"b", b"c"), (b"", b"b")):
                found = [(key, decoded(raw)) for key, raw in store.journal.range(META, low, high)]
                assert found == sorted((key, value) for key, value in state.items() if low <= key < high)


async def test_an_actor_reads_its_own_pending_writes(store: Store) -> None:
    store.journal.submit(put(b"old", b"1"))
    store.journal.submit(added(b"c", n=2))
    store.journal.flush()
    pending = put(b"new", b"2")
    pending.delete(RECORDS, b"old")
    store.journal.submit(pending)
    store.journal.submit(added(b"c", n=3))
    assert store.journal.get(RECORDS, b"new") == b"2"
    assert store.journal.get(RECORDS, b"old") is None
    assert codec.decode(store.journal.get(COUNTS, b"c") or b"") == {"n": 5}
    assert stored(store, b"old") == b"1"


async def test_a_damaged_counter_does_not_keep_others_from_writing(store: Store) -> None:
    store.journal.submit(put(b"c", b"\xff no cbor", COUNTS))
    store.journal.flush()
    store.journal.submit(added(b"c", n=1))
    group = store.journal.submit(put(b"k", b"v"))
    with structlog.testing.capture_logs() as logs:
        store.journal.flush()
    assert group.error is None
    assert stored(store, b"c", COUNTS) == codec.encode({"n": 1})
    assert [entry["event"] for entry in logs] == ["counters cannot be read and start again from zero"]


# Callbacks.


async def test_callbacks_run_after_the_commit_in_order_and_before_waiters(
    store: Store, nursery: trio.Nursery
) -> None:
    await nursery.start(store.journal.run)
    events: list[str] = []

    async def wait() -> None:
        await store.journal.submit(put(b"first", b"v")).wait()
        events.append("waiter")

    async with trio.open_nursery() as waiters:
        waiters.start_soon(wait)
        waiters.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        # The committer has run, so this is a new group with waiters of its own.
        waiters.start_soon(wait)
        for name in ("one", "two", "three"):
            group = store.journal.submit(put(name.encode(), b"v"))

            def seen(name: str = name) -> None:
                assert stored(store, name.encode()) == b"v"
                events.append(name)

            group.then(seen)
        del events[:]
    assert events == ["one", "two", "three", "waiter"]


async def test_a_failing_callback_does_not_affect_others(store: Store, nursery: trio.Nursery) -> None:
    await nursery.start(store.journal.run)
    events: list[str] = []

    def fail() -> None:
        raise RuntimeError("a bug of one actor")

    group = store.journal.submit(put(b"k", b"v"))
    group.then(lambda: events.append("before"))
    group.then(fail)
    group.then(lambda: events.append("after"))
    with structlog.testing.capture_logs() as logs:
        await group.wait()
    assert events == ["before", "after"]
    assert [entry["event"] for entry in logs] == ["a callback after a commit failed"]
    await store.journal.submit(put(b"k2", b"v")).wait()


async def test_a_callback_may_submit_the_next_batch(store: Store, nursery: trio.Nursery) -> None:
    await nursery.start(store.journal.run)
    following: list[Any] = []
    group = store.journal.submit(put(b"k", b"1"))
    group.then(lambda: following.append(store.journal.submit(put(b"k", b"2"))))
    await group.wait()
    assert following[0] is not group
    await following[0].wait()
    assert stored(store, b"k") == b"2"


async def test_a_callback_that_comes_late_runs_at_once(store: Store) -> None:
    group = store.journal.submit(put(b"k", b"v"))
    store.journal.flush()
    events: list[str] = []
    group.then(lambda: events.append("late"))
    assert events == ["late"]


# Cancellation.


async def test_a_cancelled_waiter_does_not_undo_the_write(store: Store, nursery: trio.Nursery) -> None:
    await nursery.start(store.journal.run)
    acknowledged: list[bytes] = []

    async def write(key: bytes, scope: trio.CancelScope) -> None:
        with scope:
            group = store.journal.submit(put(key, b"v"))
            group.then(lambda: acknowledged.append(key))
            await group.wait()

    leaving, staying = trio.CancelScope(), trio.CancelScope()
    async with trio.open_nursery() as writers:
        writers.start_soon(write, b"leaving", leaving)
        writers.start_soon(write, b"staying", staying)
        leaving.cancel()
    assert leaving.cancelled_caught
    assert not staying.cancelled_caught
    assert sorted(acknowledged) == [b"leaving", b"staying"]
    assert stored(store, b"leaving") == stored(store, b"staying") == b"v"
    await store.journal.submit(put(b"next", b"v")).wait()


async def test_a_committer_that_is_cancelled_commits_what_waits(store: Store) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(store.journal.run)
        group = store.journal.submit(put(b"k", b"v"))
        nursery.cancel_scope.cancel()
    assert group.done
    assert group.error is None
    assert stored(store, b"k") == b"v"


async def test_what_was_submitted_before_the_committer_ran_is_committed(
    store: Store, nursery: trio.Nursery
) -> None:
    group = store.journal.submit(put(b"k", b"v"))
    await nursery.start(store.journal.run)
    await group.wait()
    assert stored(store, b"k") == b"v"


def test_closing_commits_what_waits(tmp_path: Path) -> None:
    with Store.open(tmp_path, map_size_bytes=1 << 20) as store:
        group = store.journal.submit(put(b"k", b"v"))
    assert group.done
    with Store.open(tmp_path, map_size_bytes=1 << 20) as store:
        assert stored(store, b"k") == b"v"


async def test_the_figures_count_what_was_written(store: Store) -> None:
    store.journal.submit(put(b"a", b"123"))
    store.journal.submit(added(b"c", n=1))
    batch = put(b"a", b"12345")
    batch.delete(RECORDS, b"b")
    store.journal.submit(batch)
    store.journal.flush()
    figures = store.journal.statistics
    assert (figures.commits, figures.batches, figures.puts, figures.deletes) == (1, 3, 2, 1)
    assert figures.bytes == len(b"a12345") + len(b"c") + len(codec.encode({"n": 1})) + 2 * checksums.BYTES
    assert 0.0 < figures.longest_commit_s == figures.total_commit_s
    assert sum(figures.commit_times) == 1
