"""Many states of a device as one item of the arrivals: their times, and a column for each attribute.

Owns the form of the item, which takes about as many bytes as the frame that brought it, and no work for each state.
Does not own where it stands among other items (`report_items.py`).

After the key stands an array of CBOR: the first and the last time in ms, the distances of all times from the first one,
then for each attribute its number and its values. Numbers of the same type are a typed array of RFC 8746, booleans a
string of bytes, other values an array with null where a state does not have the attribute. Anything else is the value
of all states. The states stand in the order in which they were reported; their times may be in any order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from trunkline.store import codec
from trunkline.store.columns import Column, Points, Times

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEY: Final = -3
"""Stands where the time of another item would be."""
FIRST_BYTE: Final = 0x22

_HEAD = struct.Struct(">BBHBQBQ")
_ARRAY: Final = 0x99
_WHOLE: Final = 0x1B
_TYPED = struct.Struct(">BBBI").pack
_TAG: Final = 0xD8
_BYTES: Final = 0x5A
_FEW: Final = 24

_DTYPES: Final = {
    64: "|u1",
    69: "<u2",
    70: "<u4",
    71: "<u8",
    72: "|i1",
    77: "<i2",
    78: "<i4",
    79: "<i8",
    85: "<f4",
    86: "<f8",
}
_TAGS: Final = {dtype: tag for tag, dtype in _DTYPES.items()}
_UNSIGNED: Final = (("|u1", 2**8 - 1), ("<u2", 2**16 - 1), ("<u4", 2**32 - 1))
_SIGNED: Final = (("|i1", 2**7 - 1), ("<i2", 2**15 - 1), ("<i4", 2**31 - 1))
_LONG: Final = 8

Values: TypeAlias = "NDArray[Any] | Sequence[Any] | str"
"""The values of an attribute: an array, one value for each state (None: it has none), or a text that all have."""


def encoded(times: Times, columns: Mapping[int, Values]) -> bytes:
    """The item of states: one time in ms for each, and by attribute number the values. Arrays are of `_DTYPES` or bool.

    Each state has at least one value.
    """
    first_ms, last_ms = int(times.min()), int(times.max())
    head = _HEAD.pack(FIRST_BYTE, _ARRAY, 3 + 2 * len(columns), _WHOLE, first_ms, _WHOLE, last_ms)
    parts = [head, _typed((times - first_ms).astype("<u4" if last_ms - first_ms < 1 << 32 else "<u8"))]
    for number, values in columns.items():
        parts.append(bytes((number,)) if 0 <= number < _FEW else codec.encode(number))
        if not isinstance(values, np.ndarray):
            parts.append(codec.encode(values))
        elif values.dtype.kind == "b":
            parts.append(codec.encode(values.tobytes()))
        else:
            parts.append(_typed(_narrowed(values)))
    return b"".join(parts)


def range_of(item: bytes) -> tuple[int, int]:
    """The first and the last time of an item."""
    _, _, _, _, first_ms, _, last_ms = _HEAD.unpack_from(item)
    return first_ms, last_ms


def _typed(values: NDArray[Any]) -> bytes:
    raw = values.tobytes()
    return _TYPED(_TAG, _TAGS[values.dtype.str], _BYTES, len(raw)) + raw


def _narrowed(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers of 64 bits in a shorter type, if they all fit."""
    if values.dtype.kind == "f" or values.itemsize < _LONG:
        return values
    low, high = int(values.min()), int(values.max())
    for dtype, bound in _UNSIGNED if low >= 0 else _SIGNED:
        if -bound <= low and high <= bound:
            return values.astype(dtype)
    return values


class StateColumns:
    """The states of a decoded item. Raises ValueError if it is none."""

    __slots__ = ("_columns", "times")

    def __init__(self, value: Any) -> None:
        try:
            first_ms, _, distances, *columns = value
            self.times: Times = _array(distances).astype(np.int64) + first_ms
            self._columns: dict[int, Any] = dict(zip(columns[::2], columns[1::2], strict=True))
        except (TypeError, AttributeError, LookupError) as error:
            raise ValueError(f"an item is damaged that has states as columns: {error}") from error

    def rows(self) -> list[tuple[int, dict[int, Any]]]:
        """Time and values of each state, in the order in which they were reported."""
        return rows(self.times, self._columns)

    def points(self) -> Points | None:
        """The points of the states; None if the times of two are the same."""
        times, order = self.times, None
        if not (times[1:] > times[:-1]).all():
            order = np.argsort(times)
            times = times[order]
            if not (times[1:] > times[:-1]).all():
                return None
        columns = {number: self._column(self._columns[number], order) for number in sorted(self._columns)}
        return Points(times, columns)

    def _column(self, raw: Any, order: NDArray[np.int64] | None) -> Column:
        if isinstance(raw, codec.Tag | bytes):
            values = _array(raw)
            if values.dtype.kind == "u" and values.itemsize == _LONG and values.max() > np.iinfo("i8").max:
                whole = values.tolist()
                return Column(None, whole if order is None else [whole[at] for at in order.tolist()])
            if values.dtype.kind != "b":
                values = values.astype("f8" if values.dtype.kind == "f" else "i8", copy=False)
            if len(values) != len(self.times):
                raise ValueError(
                    "an item is damaged: a column has another number of values than there are times"
                )
            return Column(None, values if order is None else values[order])
        listed = _values(raw, len(self.times))
        if order is not None:
            listed = [listed[at] for at in order.tolist()]
        if None in listed:
            present = np.array([value is not None for value in listed])
            return Column.of([value for value in listed if value is not None], present)
        return Column.of(list(listed))


def rows(times: Times, columns: Mapping[int, Any]) -> list[tuple[int, dict[int, Any]]]:
    """Time and values of each state, where the columns are those of `encoded`, or as they are decoded."""
    points: list[dict[int, Any]] = [{} for _ in range(len(times))]
    for number, column in columns.items():
        for point, value in zip(points, _values(column, len(times)), strict=True):
            if value is not None:
                point[number] = value
    return list(zip(times.tolist(), points, strict=True))


def _values(raw: Any, count: int) -> Sequence[Any]:
    """The values of a column, one for each of so many states; None for none."""
    values: Sequence[Any]
    if isinstance(raw, codec.Tag | bytes):
        values = _array(raw).tolist()
    elif isinstance(raw, np.ndarray):
        values = raw.tolist()
    else:
        values = raw if isinstance(raw, list | tuple) else [raw] * count
    if len(values) != count:
        raise ValueError("an item is damaged: a column has another number of values than there are times")
    return values


def _array(raw: Any) -> NDArray[Any]:
    if isinstance(raw, bytes):
        return np.frombuffer(raw, np.bool_)
    return np.frombuffer(raw.value, _DTYPES[raw.tag])


def rows_of(found: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """The pairs of decoded items (`report_items.py`), with a pair for each state of those that have many."""
    for key, value in found:
        if key == KEY:
            yield from StateColumns(value).rows()
        else:
            yield key, value
