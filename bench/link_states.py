"""The states of a load as frames of the link, in CBOR that is made from arrays and not value by value.

Owns the bytes after the number of a frame, which are the same for every device. The states are those of `ledger`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np

from trunkline.bench.ledger import BODIES_MAX

Form = Literal["rows", "columns"]

FORMS: tuple[Form, ...] = ("rows", "columns")
_HEADS = {"rows": b"\x84\x02", "columns": b"\x85\x03"}
_ONE_HEAD = b"\x84\x01"
_SEQUENCE, _TEMPERATURE, _RUNNING = b"\x68sequence", b"\x6btemperature", b"\x67running"
_NAMES = b"\x83" + _SEQUENCE + _TEMPERATURE + _RUNNING
_ROW = np.dtype(
    [
        ("array", "u1"),
        ("ms", "u1"),
        ("time", ">u8"),
        ("uint", "u1"),
        ("sequence", ">u4"),
        ("double", "u1"),
        ("temperature", ">f8"),
        ("running", "u1"),
    ]
)
"""A row of a frame: the heads of its items, and their values in a fixed width."""
_FALSE, _TRUE = 0xF4, 0xF5


def frame_of(form: Form, n: int, number: int, count: int, first_ms: int) -> bytes:
    """Frame ``n`` with ``count`` states from ``number`` on; a single one by rows is a frame of one state."""
    head = _ONE_HEAD if form == "rows" and count == 1 else _HEADS[form]
    return head + b"\x1a" + n.to_bytes(4) + _body_of(form, number, count, first_ms)


@lru_cache(maxsize=BODIES_MAX)
def _body_of(form: Form, number: int, count: int, first_ms: int) -> bytes:
    numbers = np.arange(number, number + count, dtype=np.int64)
    temperatures = numbers * 37 % 1000 / 10
    running = np.where(numbers % 2, _FALSE, _TRUE).astype(np.uint8)
    if form == "columns":
        return _columns(numbers, temperatures, running, first_ms + number)
    rows = np.empty(count, _ROW)
    rows["array"], rows["ms"], rows["uint"], rows["double"] = 0x84, 0x1B, 0x1A, 0xFB
    rows["time"] = numbers + first_ms
    rows["sequence"], rows["temperature"], rows["running"] = numbers, temperatures, running
    data = rows.tobytes()
    if count > 1:
        return _NAMES + _head(0x80, count) + data
    # [1, n, time, {name: value}]: the items of the row stand between the names.
    time, sequence, temperature, last = data[1:10], data[10:15], data[15:24], data[24:]
    return b"".join((time, b"\xa3", _SEQUENCE, sequence, _TEMPERATURE, temperature, _RUNNING, last))


def _columns(numbers: Any, temperatures: Any, running: Any, base_ms: int) -> bytes:
    count = len(numbers)
    return b"".join(
        (
            b"\x1b" + base_ms.to_bytes(8),
            _typed(70, (numbers - numbers[0]).astype("<u4").tobytes()),
            b"\xa3" + _SEQUENCE,
            _typed(70, numbers.astype("<u4").tobytes()),
            _TEMPERATURE,
            _typed(86, temperatures.astype("<f8").tobytes()),
            _RUNNING,
            _head(0x80, count) + running.tobytes(),
        )
    )


def _typed(tag: int, data: bytes) -> bytes:
    return bytes((0xD8, tag)) + _head(0x40, len(data)) + data


def _head(major: int, length: int) -> bytes:
    """The head of an array (0x80) or of bytes (0x40)."""
    return bytes((major | 26,)) + length.to_bytes(4)
