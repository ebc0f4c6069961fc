"""Keys sort like the values they encode, and can be decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.store import keys

ids = st.binary(min_size=12, max_size=12)
times = st.integers(0, keys.TIME_MS_MAX)
hours = st.integers(0, keys.HOUR_MAX)
seqs = st.integers(0, keys.SEQ_MAX)
numbers = st.one_of(
    st.integers(-(2**64) + 1, 2**64 - 1),
    st.floats(allow_nan=False),
    st.integers(-3, 3),
    st.builds(lambda power, more: 2**power + more, st.integers(50, 63), st.integers(-2, 2)),
)
texts = st.text(max_size=20) | st.text(alphabet="aAbB\x00\x01\x02ßÿ", max_size=6)
values = st.one_of(st.none(), st.booleans(), numbers, texts)


def rank(value: Any) -> tuple[Any, ...]:
    """The order that `sortable` guarantees, written with Python's own comparisons."""
    if value is None:
        return (0,)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, str):
        return (3, value.casefold(), value)
    return (2, value)


@given(values, values)
def test_values_sort_as_they_do_outside(one: Any, other: Any) -> None:
    left, right = rank(one), rank(other)
    assert (keys.sortable(one) < keys.sortable(other)) == (left < right)
    assert (keys.sortable(one) == keys.sortable(other)) == (left == right)


@given(st.text(min_size=0, max_size=300), st.text(min_size=0, max_size=300))
def test_truncation_never_reverses_the_order(one: str, other: str) -> None:
    low, high = sorted((one, other), key=rank)
    assert keys.sortable(low) <= keys.sortable(high)
    assert len(keys.sortable(low)) <= keys.SORTABLE_BYTES_MAX


@given(values, values, ids, ids)
def test_an_index_sorts_by_value_and_then_by_id(one: Any, other: Any, id: bytes, id2: bytes) -> None:
    app = bytes(12)
    left = keys.index_key("device", app, "name", keys.sortable(one), id)
    right = keys.index_key("device", app, "name", keys.sortable(other), id2)
    assert (left < right) == ((rank(one), id) < (rank(other), id2))
    assert left[-12:] == id
    assert keys.record_of_index(left) == keys.record_key("device", app, id)


def test_numbers_larger_than_every_double_are_sortable() -> None:
    big = 10**400
    ordered: list[float | str] = [
        -big,
        -(2**64),
        -1.5,
        -0.0,
        1,
        2**53,
        2**53 + 1,
        2**53 + 2,
        2**64,
        big,
        "",
        "a",
    ]
    encoded = [keys.sortable(value) for value in ordered]
    assert encoded == sorted(encoded)
    assert keys.sortable(0) == keys.sortable(-0.0) == keys.sortable(0.0)
    assert keys.sortable(2**53) < keys.sortable(2**53 + 1) < keys.sortable(float(2**53 + 2))


def test_a_text_sorts_before_every_text_it_is_the_beginning_of() -> None:
    """Also if the longer text continues with the bytes used as terminator and escape."""
    ordered = [
        "",
        "\x00",
        "\x00\x00",
        "\x00\x01",
        "\x01",
        "\x01\x01",
        "\x01\x02",
        "\x02",
        "a",
        "a\x00",
        "a\x00b",
        "a\x01",
        "aa",
    ]
    assert [keys.sortable(text) for text in ordered] == sorted(map(keys.sortable, ordered))


def test_what_has_no_order_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        keys.sortable(float("nan"))
    with pytest.raises(TypeError, match="list"):
        keys.sortable([])  # type: ignore[arg-type]


def test_a_lone_surrogate_is_text_like_any_other() -> None:
    assert keys.sortable("\ud7ff") < keys.sortable("\udc00") < keys.sortable("\ue000")
    assert len(keys.unique_key("device", bytes(12), "name", "\udc00")) == 16


@given(seqs, ids, times, times)
def test_blocks_sort_by_time_and_give_it_back(run: int, device: bytes, one: int, other: int) -> None:
    first, second = keys.block_key(run, device, one), keys.block_key(run, device, other)
    assert (first < second) == (one < other)
    assert (keys.block_first_ms(first), keys.block_device(first)) == (one, device)
    assert first.startswith(keys.run_prefix(run) + device)


@given(ids, ids, hours)
def test_a_device_has_its_timeline_to_itself(device: bytes, other: bytes, hour: int) -> None:
    counts, head = keys.counts_key(device, hour), keys.head_key(device)
    assert counts < head
    if other != device:
        neighbour = keys.head_key(other)
        assert (neighbour < counts) == (neighbour < head) == (other < device)


@given(st.integers(0, 2**56 - 1), ids, hours)
def test_latest_counts_sort_after_what_devices_reported(seq: int, app: bytes, hour: int) -> None:
    latest = keys.latest_counts_key(keys.app_counts_key(app, hour))
    assert keys.arrival_key(seq) < keys.LATEST_COUNTS < latest < keys.ARRIVALS_END
    assert all(db.encode() > keys.ARRIVALS_END for db in keys.DATABASES)
    assert len(keys.app_counts_key(app, hour)) == keys.HOUR_KEY_BYTES


@given(ids, st.tuples(times, seqs), st.tuples(times, seqs))
def test_entries_sort_by_time_and_number(device: bytes, one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (keys.command_key(device, *one) < keys.command_key(device, *other)) == (one < other)
    assert keys.entry_time_seq(keys.command_key(device, *one)) == one
    assert keys.entry_time_seq(keys.log_key(device, *one)) == one


@given(ids, ids, seqs, seqs)
def test_an_event_has_its_detail_and_its_updates_to_itself(
    app: bytes, event: bytes, one: int, other: int
) -> None:
    first, second = keys.event_update_key(app, event, one), keys.event_update_key(app, event, other)
    detail, prefix = keys.event_detail_key(app, event), keys.event_updates_prefix(app, event)
    assert (first < second) == (one < other)
    assert first.startswith(prefix)
    assert second.startswith(prefix)
    assert detail < prefix
    assert all(key.startswith(app + event) for key in (detail, prefix))


@given(ids, hours, hours)
def test_counts_of_an_application_sort_by_hour(app: bytes, one: int, other: int) -> None:
    assert (keys.app_counts_key(app, one) < keys.app_counts_key(app, other)) == (one < other)
    assert len(keys.app_counts_key(app, one)) != len(keys.total_key("a", app))


@pytest.mark.parametrize("number", [-1, 2**63])
def test_numbers_that_would_break_the_order_are_refused(number: int) -> None:
    builders: tuple[Callable[[int], bytes], ...] = (
        lambda time_ms: keys.block_key(1, bytes(12), time_ms),
        lambda time_ms: keys.command_key(bytes(12), time_ms, 0),
        lambda time_ms: keys.log_key(bytes(12), time_ms, 0),
        lambda seq: keys.log_key(bytes(12), 0, seq),
        lambda number: keys.event_update_key(bytes(12), bytes(12), number),
        lambda hour: keys.counts_key(bytes(12), hour),
        lambda hour: keys.app_counts_key(bytes(12), hour),
    )
    for build in builders:
        with pytest.raises(ValueError, match=r"outside of 0 to"):
            build(number)


@given(st.binary(max_size=6), st.binary(max_size=8))
def test_the_end_of_a_prefix_is_the_first_key_without_it(prefix: bytes, key: bytes) -> None:
    end = keys.prefix_end(prefix)
    inside = key >= prefix and (end is None or key < end)
    assert inside == key.startswith(prefix)


def test_records_of_one_kind_and_application_lie_together() -> None:
    app, device = b"a" * 12, b"i" * 12
    prefix = keys.record_prefix("device", app)
    assert keys.record_key("device", app, device) == prefix + device
    assert not keys.record_key("deviceRecipe", app, device).startswith(prefix)
    assert keys.index_prefix("device", app, "name") != keys.index_prefix("device", app, "names")[:-1]


def test_unique_keys_tell_kind_application_field_and_value_apart() -> None:
    app = bytes(12)
    made = {
        keys.unique_key("user", app, "email", "a"),
        keys.unique_key("user", app, "email", "b"),
        keys.unique_key("user", app, "name", "a"),
        keys.unique_key("key", app, "email", "a"),
        keys.unique_key("user", b"x" * 12, "email", "a"),
    }
    assert len(made) == 5


@pytest.mark.parametrize(("kind", "id"), [("", bytes(12)), ("a\x00b", bytes(12)), ("a", b"short")])
def test_parts_that_would_make_keys_ambiguous_are_refused(kind: str, id: bytes) -> None:
    with pytest.raises(ValueError):
        keys.record_key(kind, bytes(12), id)


@pytest.mark.parametrize("key", [b"", b"nothing", b"device\x00short", b"device\x00" + bytes(24)])
def test_a_key_that_is_no_index_key_points_nowhere(key: bytes) -> None:
    with pytest.raises(ValueError):
        keys.record_of_index(key)
