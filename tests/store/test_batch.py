"""A batch is plain data and keeps only the final result for each key."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.store import codec
from trunkline.store.batch import KEY_BYTES_MAX, Batch
from trunkline.store.keys import (
    COUNTS,
    DATABASES,
    INDEXES,
    META,
    RECORDS,
    ROWS,
    purge_key,
    sweep_key,
)

dbs = st.sampled_from(DATABASES)
keys = st.binary(min_size=1, max_size=3)
operations = st.one_of(
    st.tuples(st.just("put"), dbs, keys, st.binary(max_size=10)),
    st.tuples(st.just("put_all"), dbs, st.dictionaries(keys, st.binary(max_size=10), max_size=3)),
    st.tuples(st.just("delete"), dbs, keys),
    st.tuples(st.just("delete_all"), dbs, st.lists(keys, max_size=3)),
    st.tuples(st.just("add"), dbs, keys, st.dictionaries(st.text(max_size=3), st.integers())),
)


def build(steps: list[tuple[Any, ...]]) -> Batch:
    batch = Batch()
    for name, *arguments in steps:
        getattr(batch, name)(*arguments)
    return batch


def model(steps: list[tuple[Any, ...]]) -> dict[tuple[str, bytes], Any]:
    """A simple model of the steps: bytes, None, increments, or increments on top of bytes."""
    state: dict[tuple[str, bytes], Any] = {}
    singly: list[tuple[Any, ...]] = []
    for name, db, *rest in steps:
        if name == "put_all":
            singly += [("put", db, *item) for item in rest[0].items()]
        elif name == "delete_all":
            singly += [("delete", db, key) for key in rest[0]]
        else:
            singly.append((name, db, *rest))
    for name, db, key, *rest in singly:
        if name == "put":
            state[db, key] = (rest[0], {})
        elif name == "delete":
            state[db, key] = (None, {})
        else:
            base, increments = state.get((db, key), ("unknown", {}))
            merged = dict(increments)
            for count_name, count in rest[0].items():
                merged[count_name] = merged.get(count_name, 0) + count
            state[db, key] = (base, merged)
    return state


def meaning(batch: Batch) -> dict[tuple[str, bytes], Any]:
    state: dict[tuple[str, bytes], Any] = {}
    for db, writes in batch.writes.items():
        for key, value in writes.items():
            state[db, key] = (value, {})
    for db, increments in batch.increments.items():
        for key, counts in increments.items():
            state[db, key] = (state.get((db, key), ("unknown", {}))[0], counts)
    return state


@given(st.lists(operations, max_size=12))
def test_a_batch_means_its_steps_in_their_order(steps: list[tuple[Any, ...]]) -> None:
    assert meaning(build(steps)) == model(steps)


@given(st.lists(operations, max_size=12))
def test_a_batch_survives_its_plain_form(steps: list[tuple[Any, ...]]) -> None:
    batch = build(steps)
    again = Batch.from_plain(codec.decode(codec.encode(batch.to_plain())))
    assert again == batch
    assert again.mostly_deletes() == batch.mostly_deletes()
    assert bool(again) == bool(batch) == bool(model(steps))


@given(st.lists(operations, max_size=8), st.lists(operations, max_size=8))
def test_extend_appends_the_operations_of_the_other_batch(
    one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]
) -> None:
    batch = build(one)
    batch.extend(build(other))
    assert meaning(batch) == model(one + other)


@given(st.lists(operations, max_size=12))
def test_the_size_is_never_less_than_what_is_held(steps: list[tuple[Any, ...]]) -> None:
    batch = build(steps)
    held = sum(
        len(key) + len(value or b"") for writes in batch.writes.values() for key, value in writes.items()
    )
    assert batch.size_bytes >= held


def test_a_batch_that_deletes_data_is_known() -> None:
    """A changed record replaces an index entry; that is no deletion."""
    batch = Batch()
    batch.put(RECORDS, b"record", b"")
    batch.delete(INDEXES, b"old")
    batch.put(INDEXES, b"new", b"")
    assert not batch.deletes_data()
    for db, key, value in (
        (RECORDS, b"gone", None),
        (ROWS, b"gone", None),
        (META, purge_key(bytes(12)), b""),
        (META, sweep_key(bytes(12), 1), b""),
    ):
        other = Batch()
        other.extend(batch)
        if value is None:
            other.delete(db, key)
        else:
            other.put(db, key, value)
        assert other.deletes_data()


def test_only_a_batch_that_mostly_deletes_frees_room() -> None:
    batch = Batch()
    batch.put(RECORDS, b"a", b"1")
    assert not batch.mostly_deletes()
    batch.delete(RECORDS, b"b")
    assert batch.mostly_deletes()
    batch.put(RECORDS, b"c", b"1")
    assert not batch.mostly_deletes()


@pytest.mark.parametrize("key", [b"", b"k" * (KEY_BYTES_MAX + 1)])
def test_a_key_that_lmdb_would_refuse_is_refused_at_once(key: bytes) -> None:
    """At the commit it would make the whole group fail."""
    for steps in (
        [("put", RECORDS, key, b"")],
        [("put_all", RECORDS, {b"fine": b"", key: b""})],
        [("delete", RECORDS, key)],
        [("delete_all", RECORDS, [b"fine", key])],
        [("add", COUNTS, key, {"n": 1})],
    ):
        with pytest.raises(ValueError, match="1 to 511 bytes"):
            build(steps)


@pytest.mark.parametrize(
    "step",
    [
        ("put", RECORDS, b"k", "text"),
        ("put", RECORDS, b"k", bytearray(b"x")),
        ("put", RECORDS, "text", b"v"),
        ("put_all", RECORDS, {b"k": b"v", b"l": "text"}),
        ("put_all", RECORDS, {b"k": b"v", "text": b"v"}),
        ("add", COUNTS, b"k", {"n": 1.5}),
        ("add", COUNTS, b"k", {1: 1}),
    ],
)
def test_what_is_not_bytes_or_counts_is_refused_at_once(step: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        build([step])


def test_an_unknown_database_is_refused_at_once() -> None:
    steps: list[tuple[Any, ...]] = [
        ("put", "nowhere", b"k", b"v"),
        ("put_all", "nowhere", {b"k": b"v"}),
        ("delete", "nowhere", b"k"),
        ("add", "nowhere", b"k", {}),
    ]
    for step in steps:
        with pytest.raises(ValueError, match="not a database"):
            build([step])


@pytest.mark.parametrize(
    "plain", [[1], [["records", b"k"]], [["records", "k", b"v"]], [["counts", b"k", {"n": "1"}]]]
)
def test_what_is_no_batch_is_not_taken_for_one(plain: list[Any]) -> None:
    with pytest.raises(ValueError, match="not an entry of a batch"):
        Batch.from_plain(plain)


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        (("put", META, b"k", b"1"), ("put", META, b"k", b"2"), (META, b"k")),
        (("put", META, b"k", b"1"), ("delete", META, b"k"), (META, b"k")),
        (("put", META, b"k", b"1"), ("put", META, b"k", b"1"), None),
        (("put", META, b"k", b"1"), ("put", META, b"l", b"2"), None),
        (("put", META, b"k", b"1"), ("put", RECORDS, b"k", b"2"), None),
        (("add", COUNTS, b"k", {"n": 1}), ("add", COUNTS, b"k", {"n": 1}), None),
        (("add", COUNTS, b"k", {"n": 1}), ("put", COUNTS, b"k", b"1"), (COUNTS, b"k")),
        (("put", COUNTS, b"k", b"1"), ("add", COUNTS, b"k", {"n": 1}), (COUNTS, b"k")),
    ],
)
def test_a_conflict_is_a_key_of_which_one_write_would_be_lost(
    first: tuple[Any, ...], second: tuple[Any, ...], conflict: tuple[str, bytes] | None
) -> None:
    assert build([first]).conflict(build([second])) == conflict
