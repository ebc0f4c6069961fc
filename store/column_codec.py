"""The bytes of a block: the points of one device, each column compressed on its own.

A block begins with a head: the kind (one byte: version of the format, layout of the body, whether there are marks),
the number of rows, the first and the last time. A block of a few rows has them as CBOR after it, because arrays cost
more there than they save. In other blocks follow the length of a directory, the directory (CBOR), the sections with the
bytes that it describes, and the last row once more as CBOR: its values and its mark. So who wants only the newest point
decodes only that. A long one is left out, and blocks of earlier versions do not have it; those did not look there.

Numbers are stored as decimals where that is exact: whole numbers that are divided by a power of ten. A few that are
no such decimals (-0.0 for example) are stored beside them as they are.

The reader checks lengths before it allocates. Whatever is wrong with a block is a ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Container
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import zstandard

from trunkline.store import codec
from trunkline.store.column_sections import (
    Sections,
    from_planes,
    pack_bits,
    pack_values,
    pack_whole,
    planes,
    squeeze,
    unpack_bits,
    unpack_values,
    unpack_whole,
)
from trunkline.store.columns import MERGES, REMOVES, REPLACES, Column, Points, Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS_MAX: Final = 65_535
"""Most rows of a block: their number and their indexes have two bytes."""

_ROWS: Final = 0x10
_COLUMNS: Final = 0x12
_MARKED: Final = 0x01
"""Kinds: version 1 in the higher four bits. The lowest bit says that the rows have marks."""

_HEAD: Final = struct.Struct(">BHqq")
_LENGTH: Final = struct.Struct(">I")

_CBOR_ROWS_MAX: Final = 32
"""Blocks with fewer rows are written as rows of CBOR."""

_SCALE_MAX: Final = 6
_SAMPLE: Final = 32
_LAST_BYTES_MAX: Final = 4096
"""A longer last row is not written once more."""

_EXCEPTIONS: Final = 16
"""A column is stored as decimals if at most one of so many values is no such decimal."""


class Header(NamedTuple):
    """What the first bytes of a block say: its rows, their first and last time in ms, and whether they have marks."""

    rows: int
    first_ms: int
    last_ms: int
    has_marks: bool


class _Type:
    """Types of columns in the directory."""

    BOOLS: Final = 0
    WHOLE: Final = 1
    DECIMALS: Final = 2
    DOUBLES: Final = 3
    VALUES: Final = 4


def header(raw: bytes) -> Header:
    """Return what the head of a block says. Raises ValueError if this is no block."""
    if len(raw) < _HEAD.size or raw[0] & ~_MARKED not in (_ROWS, _COLUMNS):
        raise ValueError("this is not a block of points, or its format is newer than this version")
    kind, rows, first_ms, last_ms = _HEAD.unpack_from(raw)
    if not rows or last_ms - first_ms < rows - 1:
        raise ValueError("the block has a damaged head: its rows do not fit between its times")
    return Header(rows, first_ms, last_ms, bool(kind & _MARKED))


def encode(points: Points) -> bytes:
    """Return the block of 1 to ROWS_MAX points.

    Raises ValueError for other numbers of points, for times that do not ascend, and for texts that are no Unicode.
    """
    rows = len(points)
    if not 0 < rows <= ROWS_MAX:
        raise ValueError(f"a block has 1 to {ROWS_MAX} rows, not {rows}")
    if rows < _CBOR_ROWS_MAX:
        return _encode_rows(list(points.marked_rows()))
    times, marks = points.times, points.marks
    if not (times[1:] > times[:-1]).all():
        raise ValueError("the times of a block must ascend")
    sections: list[bytes] = []
    directory: list[Any] = [pack_whole(times, sections)]
    marked = marks is not None and bool(marks.any())
    if marked:
        assert marks is not None
        directory.append(pack_whole(marks.astype(np.int64), sections))
    for number, column in points.columns.items():
        if not len(column.values):
            continue
        before = len(sections)
        described = _describe(column, sections)
        directory += [number, sum(map(len, sections[before:])), described]
    named = codec.encode(directory)
    kind = _COLUMNS | _MARKED if marked else _COLUMNS
    head = _HEAD.pack(kind, rows, int(times[0]), int(times[-1]))
    return b"".join([head, _LENGTH.pack(len(named)), named, *sections, _encode_last(points)])


def decode(raw: bytes, numbers: Container[int] | None = None) -> Points:
    """Return the points of a block; with `numbers`, with these attributes only. All rows are returned in any case.

    Raises ValueError if this is no block, or a damaged one.
    """
    head = header(raw)
    try:
        if raw[0] & ~_MARKED == _ROWS:
            return _decode_rows(raw, head, numbers)
        return _decode_columns(raw, head, numbers)
    except (ArithmeticError, LookupError, TypeError, struct.error, zstandard.ZstdError) as error:
        # The directory comes from the disk: with a wrong length, type or number in it, the work on it fails so.
        raise ValueError(f"the block is damaged: {error}") from error


def last_row(raw: bytes) -> Row | None:
    """Return the last row of a block; None if it must be decoded with all others. Raises ValueError as `decode`."""
    head = header(raw)
    try:
        if raw[0] & ~_MARKED == _ROWS:
            last = codec.decode(raw[_HEAD.size :])[-2:]
            point, mark = last if head.has_marks else (last[1], MERGES)
        else:
            directory, end = _directory(raw)
            fixed = 2 if head.has_marks else 1
            end += sum(part[0] for part in directory[:fixed]) + sum(directory[fixed + 1 :: 3])
            if end == len(raw):
                return None
            point, mark = codec.decode(raw[end:])
    except (LookupError, TypeError, ValueError, struct.error) as error:
        raise ValueError(f"the block is damaged: {error}") from error
    if type(point) is not dict or mark not in (MERGES, REPLACES, REMOVES) or (mark == REMOVES and point):
        raise ValueError("the block is damaged: its last row is none")
    return head.last_ms, point, mark


def _encode_last(points: Points) -> bytes:
    """The last row once more; nothing if it is long."""
    point: dict[int, Any] = {}
    for number, column in points.columns.items():
        if column.present is None or column.present[-1]:
            value = column.values[-1]
            if not isinstance(column.values, list):
                value = value.item()
                if column.integers is not None and column.integers[-1]:
                    value = int(value)
            point[number] = value
    mark = MERGES if points.marks is None else int(points.marks[-1])
    raw = codec.encode([point, mark])
    return raw if len(raw) <= _LAST_BYTES_MAX else b""


def _directory(raw: bytes) -> tuple[list[Any], int]:
    """The directory of a block, and where it ends."""
    (length,) = _LENGTH.unpack_from(raw, _HEAD.size)
    begin = _HEAD.size + _LENGTH.size
    return codec.decode(raw[begin : begin + length]), begin + length


def _encode_rows(rows: list[Row]) -> bytes:
    first_ms = rows[0][0]
    before = first_ms - 1
    marked = any(row[2] for row in rows)
    items: list[Any] = []
    for time, point, mark in rows:
        if time <= before:
            raise ValueError("the times of a block must ascend")
        items += (time - first_ms, point, mark) if marked else (time - first_ms, point)
        before = time
    kind = _ROWS | _MARKED if marked else _ROWS
    return _HEAD.pack(kind, len(rows), first_ms, before) + codec.encode(items)


def _decode_rows(raw: bytes, head: Header, numbers: Container[int] | None) -> Points:
    items = codec.decode(raw[_HEAD.size :])
    step = 3 if head.has_marks else 2
    if type(items) is not list or len(items) != head.rows * step:
        raise ValueError("the block is damaged: it has another number of rows than its head says")
    offsets, points = items[::step], items[1::step]
    marks = items[2::step] if head.has_marks else [MERGES] * head.rows
    if set(map(type, points)) != {dict} or not {type(key) for point in points for key in point} <= {int}:
        raise ValueError("the block is damaged: a row does not have its values by number")
    if set(map(type, marks)) != {int} or not 0 <= min(marks) <= max(marks) <= REMOVES:
        raise ValueError("the block is damaged: a row has no known mark")
    if head.has_marks and any(mark == REMOVES and point for point, mark in zip(points, marks, strict=True)):
        raise ValueError("the block is damaged: a row that removes has values")
    if (
        set(map(type, offsets)) != {int}
        or offsets != sorted(set(offsets))
        or offsets[0] != 0
        or head.first_ms + offsets[-1] != head.last_ms
    ):
        raise ValueError("the block is damaged: its times are not those of its head")
    if numbers is not None:
        points = [{key: value for key, value in point.items() if key in numbers} for point in points]
    times = [head.first_ms + offset for offset in offsets]
    return Points.of(list(zip(times, points, marks, strict=True)))


def _decode_columns(raw: bytes, head: Header, numbers: Container[int] | None) -> Points:
    rows = head.rows
    directory, begin = _directory(raw)
    sections = Sections(raw, begin)
    fixed = 2 if head.has_marks else 1
    times = unpack_whole(directory[0], rows, sections)
    if times[0] != head.first_ms or times[-1] != head.last_ms or not (times[1:] > times[:-1]).all():
        raise ValueError("the block is damaged: its times are not those of its head")
    marks = removes = None
    if head.has_marks:
        unpacked = unpack_whole(directory[1], rows, sections)
        if unpacked.min() < MERGES or unpacked.max() > REMOVES:
            raise ValueError("the block is damaged: a row has no known mark")
        marks = unpacked.astype(np.uint8)
        removes = marks == REMOVES
    columns = {}
    for number, length, described in zip(
        directory[fixed::3], directory[fixed + 1 :: 3], directory[fixed + 2 :: 3], strict=True
    ):
        if type(number) is not int or length < 0:
            raise ValueError("the block is damaged: a column has no number or no length")
        end = sections.at + length
        if numbers is None or number in numbers:
            column = columns[number] = _restore(described, rows, sections)
            if (
                removes is not None
                and (removes if column.present is None else column.present & removes).any()
            ):
                raise ValueError("the block is damaged: a row that removes has values")
        sections.at = end
    return Points(times, columns, marks)


def _describe(column: Column, sections: list[bytes]) -> list[Any]:
    """Append the sections of a column and return what the directory says about it."""
    present = None if column.present is None else pack_bits(column.present, sections)
    values = column.values
    if isinstance(values, list):
        return [_Type.VALUES, present, *pack_values(values, sections)]
    match values.dtype.kind:
        case "b":
            return [_Type.BOOLS, present, pack_bits(values, sections)]
        case "i":
            return [_Type.WHOLE, present, pack_whole(values, sections)]
    integers = None if column.integers is None else pack_bits(column.integers, sections)
    scaled = _scaled(values)
    if scaled is None:
        sections.append(squeeze(planes(_differing_bits(values), 8)))
        return [_Type.DOUBLES, present, integers, len(sections[-1])]
    scale, whole, others = scaled
    packed = pack_whole(whole, sections)
    sections += [others.astype("<u2").tobytes(), values[others].astype("<f8").tobytes()]
    return [_Type.DECIMALS, present, integers, scale, packed, len(others)]


def _restore(described: list[Any], rows: int, sections: Sections) -> Column:
    """Return the column that the directory describes so."""
    kind, present_length, *more = described
    present = None if present_length is None else unpack_bits(present_length, rows, sections)
    count = rows if present is None else int(np.count_nonzero(present))
    match kind, more:
        case _Type.BOOLS, [length]:
            return Column(present, unpack_bits(length, count, sections))
        case _Type.WHOLE, [packed]:
            return Column(present, unpack_whole(packed, count, sections))
        case _Type.DECIMALS, [integers_length, scale, packed, others_count]:
            integers = None if integers_length is None else unpack_bits(integers_length, count, sections)
            if not (0 <= scale <= _SCALE_MAX and 0 <= others_count <= count):
                raise ValueError("the block is damaged: a column has a wrong scale or too many exceptions")
            values = unpack_whole(packed, count, sections).astype(np.float64)
            if scale:
                values /= 10.0**scale
            if others_count:
                others = np.frombuffer(sections.take(2 * others_count, 2 * others_count), "<u2")
                values[others] = np.frombuffer(sections.take(8 * others_count, 8 * others_count), "<f8")
            return Column(present, values, integers)
        case _Type.DOUBLES, [integers_length, length]:
            integers = None if integers_length is None else unpack_bits(integers_length, count, sections)
            bits = from_planes(sections.take(length, 8 * count), count, 8)
            return Column(present, np.bitwise_xor.accumulate(bits).view(np.float64), integers)
        case _Type.VALUES, [length, size, packed]:
            return Column(present, unpack_values(length, size, packed, count, sections))
    raise ValueError("the block is damaged: a column has no known type")


def _scaled(values: NDArray[np.float64]) -> tuple[int, NDArray[np.int64], NDArray[np.int64]] | None:
    """Return a scale, the values times ten to its power as whole numbers, and the indexes of those that differ.

    None if there is no such scale for nearly all of them.
    """
    bits = values.view(np.int64)
    fewest = len(values) // _EXCEPTIONS + 1
    best = None
    with np.errstate(all="ignore"):  # infinities and NaN are exceptions
        for scale in _likely_scales(values):
            power = 10.0**scale
            whole = np.rint(values * power) + 0.0  # -0.0 is no whole number: it becomes 0.0 and differs
            differ = (whole / power).view(np.int64) != bits
            differ |= ~(np.abs(whole) < 2.0**62)
            count = int(np.count_nonzero(differ))
            if count < fewest:
                fewest = count
                best = scale, whole, differ
                if not count:
                    break
    if best is None:
        return None
    scale, whole, differ = best
    others = np.flatnonzero(differ)
    whole[others] = 0.0
    return scale, whole.astype(np.int64), others


@cache
def _powers() -> NDArray[np.float64]:
    """The powers of ten up to the largest scale, as a column."""
    return np.array([[10.0**scale] for scale in range(_SCALE_MAX + 1)], np.float64)


def _likely_scales(values: NDArray[np.float64]) -> list[int]:
    """The scales that fit most of a sample of the values: to try all of them takes longer than everything else."""
    sample = values[:: -(-len(values) // _SAMPLE)]
    scaled = np.rint(sample * _powers()) / _powers()
    fitting = np.count_nonzero(scaled == sample, axis=1)
    return np.flatnonzero(2 * fitting > len(sample)).tolist()


def _differing_bits(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the bits of each value that differ from those of the value before it."""
    bits = np.ascontiguousarray(values).view(np.uint64)
    differing = bits.copy()
    differing[1:] ^= bits[:-1]
    return differing
