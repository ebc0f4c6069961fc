"""Blocks keep every value exactly, are small, and damage in them raises ValueError and nothing else."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.store.point_series import random_series, rows_of_points, shown, slow_series
from trunkline.store import codec, column_codec
from trunkline.store.column_sections import pack_whole, squeeze
from trunkline.store.columns import MERGES, REPLACES, Points, Row


@given(rows_of_points(rows_min=1))
def test_a_block_keeps_every_row(rows: list[Row]) -> None:
    raw = column_codec.encode(Points.of(rows))
    assert shown(column_codec.decode(raw).marked_rows()) == shown(rows)
    assert column_codec.header(raw) == (len(rows), rows[0][0], rows[-1][0], any(row[2] for row in rows))


@given(rows_of_points(rows_min=1), st.sets(st.integers(-3, 40)))
def test_only_wanted_columns_are_decoded(rows: list[Row], wanted: set[int]) -> None:
    points = column_codec.decode(column_codec.encode(Points.of(rows)), wanted)
    assert set(points.columns) == {number for row in rows for number in row[1]} & wanted
    chosen = [(time, {key: point[key] for key in point if key in wanted}, mark) for time, point, mark in rows]
    assert shown(points.marked_rows()) == shown(chosen)


@given(rows_of_points(rows_min=1, rows_max=70))
def test_the_last_row_is_read_alone(rows: list[Row]) -> None:
    raw = column_codec.encode(Points.of(rows))
    last = column_codec.last_row(raw)
    assert last is not None
    assert shown([last]) == shown(rows[-1:])


@given(rows_of_points(rows_min=1), st.randoms(use_true_random=False))
def test_damage_before_the_last_row_is_a_value_error(rows: list[Row], chance: random.Random) -> None:
    raw = column_codec.encode(Points.of(rows))
    for _ in range(10):
        try:
            last = column_codec.last_row(damaged(raw, chance))
        except ValueError:
            continue
        assert last is None or type(last[1]) is dict


def test_a_long_last_row_is_not_written_twice() -> None:
    rows = [(time, {1: "x" * 5_000}, MERGES) for time in range(40)]
    assert column_codec.last_row(column_codec.encode(Points.of(rows))) is None


def block(*values: object) -> list[Row]:
    """Rows with these values of one attribute, often enough that they are stored as a column."""
    return [(time, {1: values[time % len(values)]}, MERGES) for time in range(300)]


@pytest.mark.parametrize(
    "rows",
    [
        block(0.1, -0.0, 0.0, 5e-324, 1e-310, 1.7976931348623157e308),
        block(*[number / 100 for number in range(200)], -0.0, float("inf"), float("nan"), 0.1 + 0.2),
        block(float("nan"), float("inf"), -float("inf")),
        block(-(2**63), 2**63 - 1, 0),
        block(2**64, -(2**100), 1),
        block(1, 1.0, True),
        block(2**53, -(2**53), 0.5),
        block("", "\x00", "grün", "x" * 5_000),
        block(None, {"a": [1, 1.0, True, None, {}]}, []),
        [(1_000 * time, {}, MERGES) for time in range(40)],
        [(1_000 * time, {1: time}, REPLACES) for time in range(40)],
        [(time, {1: 1}, MERGES) for time in (*range(-(2**63), -(2**63) + 40), 2**63 - 1)],
        [(time, {1: time * 0.1}, MERGES) for time in range(column_codec.ROWS_MAX)],
    ],
)
def test_extreme_values_are_kept(rows: list[Row]) -> None:
    raw = column_codec.encode(Points.of(rows))
    assert shown(column_codec.decode(raw).marked_rows()) == shown(rows)


def test_blocks_of_sensors_are_small() -> None:
    """In bytes of 1,000 points with three numbers each, their times included."""
    assert len(column_codec.encode(Points.of(random_series(1_000)))) <= 6_900
    assert len(column_codec.encode(Points.of(slow_series(1_000)))) <= 3_100


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([], "1 to 65535 rows"),
        ([(time, {}, MERGES) for time in range(column_codec.ROWS_MAX + 1)], "1 to 65535 rows"),
        ([(5, {}, MERGES), (5, {}, MERGES)], "must ascend"),
        ([(-time, {}, MERGES) for time in range(50)], "must ascend"),
        ([(5, {1: "\ud800"}, MERGES)], "surrogates not allowed"),
        ([(time, {1: "\ud800"}, MERGES) for time in range(50)], "surrogates not allowed"),
    ],
)
def test_what_is_no_block_is_refused(rows: list[Row], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        column_codec.encode(Points.of(rows))


@pytest.mark.parametrize("raw", [b"", b"\x10", b"\x20" + bytes(40), b"\x10" + bytes(40), b"\xff" * 60])
def test_other_bytes_are_no_block(raw: bytes) -> None:
    with pytest.raises(ValueError, match="block"):
        column_codec.header(raw)
    with pytest.raises(ValueError, match="block"):
        column_codec.decode(raw)


def damaged(raw: bytes, chance: random.Random) -> bytes:
    """The block with some bytes changed, left out or added; most often where the head and the directory are."""
    changed = bytearray(raw)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at = chance.randrange(min(len(changed), chance.choice([20, 100, len(changed)])))
        match chance.randrange(5):
            case 0 | 1:
                changed[at] ^= 1 << chance.randrange(8)
            case 2:
                changed[at] = chance.choice([0, 0x1A, 0x1B, 0x3B, 0x7F, 0x9B, 0xFF])
            case 3:
                del changed[at : at + chance.randint(1, 9)]
            case 4:
                changed[at:at] = chance.randbytes(chance.randint(1, 9))
        changed = changed or bytearray(1)
    return bytes(changed)


@given(rows_of_points(rows_min=1), st.randoms(use_true_random=False))
def test_damage_is_a_value_error(rows: list[Row], chance: random.Random) -> None:
    """Or it is not seen, and then the points are whole: this layer has no checksum, the store has one."""
    raw = column_codec.encode(Points.of(rows))
    for _ in range(10):
        try:
            points = column_codec.decode(damaged(raw, chance))
        except ValueError:
            continue
        assert len(list(points.marked_rows())) == len(points.times) == len(points)
        for column in points.columns.values():
            assert len(column.values) == len(points) if column.present is None else column.present.sum()


TIMES = [0, 0, 1, 0]
"""What the directory says about the times 0 to 39: no section, all differences are 1, the first is 0."""


def forged(directory: object, *sections: bytes, marked: bool = False) -> bytes:
    """A block of 40 rows with this directory and these sections."""
    named = codec.encode(directory)
    head = column_codec._HEAD.pack(0x13 if marked else 0x12, 40, 0, 39)
    return b"".join([head, column_codec._LENGTH.pack(len(named)), named, *sections])


def swapped_times() -> tuple[list[int], bytes]:
    sections: list[bytes] = []
    times = np.arange(40)
    times[[7, 8]] = times[[8, 7]]
    return pack_whole(times, sections), sections[0]


LONG = squeeze(bytes(10_000))
HUGE = zstandard.ZstdCompressor().compress(bytes(1 << 25))


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (forged([swapped_times()[0]], swapped_times()[1]), "times are not those of its head"),
        (forged([[0, 0, 2, 0]]), "times are not those of its head"),
        (forged([TIMES, 1, len(LONG), [1, None, [len(LONG), 1, 0]]], LONG), "has another size"),
        (forged([TIMES, 1, 99, [1, None, [99, 8, 0]]], bytes(98)), "longer than it can be"),
        (forged([TIMES, 1, 0, [1, None, [0, 9, 0]]]), "impossible width"),
        (forged([TIMES, 1, 0, [4, None, len(HUGE), 1 << 25, [0, 0, 0]]], HUGE), "impossible size"),
        (forged([TIMES, 1, 2, [4, None, 2, 2, [0, 0, -1]]], b"\x81\x01"), "no index"),
        (forged([TIMES, 1, 2, [4, None, 2, 2, [0, 0, 1]]], b"\x81\x01"), "out of range"),
        (forged([TIMES, 1, 0, [2, None, None, 7, [0, 0, 0], 0]]), "wrong scale"),
        (forged([TIMES, 1, 0, [9, None, 0]]), "no known type"),
        (forged([TIMES, "1", 0, [1, None, [0, 0, 0]]]), "no number"),
        (forged([TIMES, 1, -1, [1, None, [0, 0, 0]]]), "no length"),
        (forged([["a", 0, 1, 0]]), "unsupported operand"),
        (forged({}), "damaged"),
        (forged([TIMES, [0, 0, 3]], marked=True), "no known mark"),
        (forged([TIMES, [0, 0, 2], 1, 0, [1, None, [0, 0, 0]]], marked=True), "that removes has values"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_forged_directories_are_refused(raw: bytes, why: str) -> None:
    assert column_codec.decode(forged([TIMES])).times.tolist() == list(range(40))
    with pytest.raises(ValueError, match=why):
        column_codec.decode(raw)


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([0, {}], "another number of rows"),
        ([0, {"a": 1}, 0, 5, {}, 0], "by number"),
        ([0, {}, 0, 5, {}, 3], "no known mark"),
        ([0, {1: 1}, 2, 5, {}, 0], "that removes has values"),
        ([0, {}, 0, 4, {}, 0], "times are not those"),
        ([5, {}, 0, 0, {}, 0], "times are not those"),
        ([0, {}, 0, 5.0, {}, 0], "times are not those"),
    ],
)
def test_forged_rows_are_refused(items: list[object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        column_codec.decode(column_codec._HEAD.pack(0x11, 2, 100, 105) + codec.encode(items))


def test_threads_encode_and_decode_at_the_same_time() -> None:
    raw = column_codec.encode(Points.of(random_series(20_000)))
    right: list[bool] = []

    def work() -> None:
        right.extend(column_codec.encode(column_codec.decode(raw)) == raw for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert right == [True] * 40
