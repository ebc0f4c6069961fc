"""The frames that clients of the link send, decoded (docs/reference/device-link.md).

Owns their form: whatever is wrong with it is `Malformed`, and says where. Does not own what the values mean, which the
device knows (`actors/fleet/devices/`), nor when a frame may come (`session.py`).

Many states become columns at once, so that nothing after it works value by value: rows are turned by `zip`, the types
of a column are checked as a set, and typed arrays stay the bytes that they are.

The file is long because each part of each kind of frame has a refusal of its own.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec import UNSET

from trunkline.actors.core.values import cbor
from trunkline.actors.core.values.timestamps import TIMESTAMP_MS_MAX
from trunkline.actors.fleet.devices.record.messages import StateReport
from trunkline.actors.fleet.devices.state.link_messages import Columns, Values, report_time, typed_values
from trunkline.http.calls.json_problem import json_problem
from trunkline.http.link.uniform_rows import UniformRows, uniform_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

N_MAX: Final = 2**53 - 1
SESSION_MAX: Final = 2**64 - 1
NAMES_MAX: Final = 256
"""The attributes that a device may declare."""
NAME_CHARS_MAX: Final = 255
COMMAND_ID_MAX: Final = 2**32 - 1

_DEVICE: Final = re.compile(r"[0-9A-Fa-f]{24}", re.ASCII)
_ROWS_HEADS: Final = (b"\x84\x02", b"\x85\x02")
_WITH_OPTIONS: Final = 0x85

_ARRAYS: Final = {
    64: "u1",
    69: "<u2",
    70: "<u4",
    71: "<u8",
    72: "i1",
    77: "<i2",
    78: "<i4",
    79: "<i8",
    85: "<f4",
    86: "<f8",
}
"""The typed arrays of RFC 8746 in little-endian order or of single bytes, by tag."""
_PLAIN: Final = frozenset({int, float, bool, str, type(None)})


class Malformed(Exception):
    """A frame that is not as it must be. The message is for the client."""


class Hello(msgspec.Struct, frozen=True):
    """The first frame."""

    session: int
    token: str | None
    nearest: bool = False
    """Whether the client connects elsewhere if it is told so."""


class States(msgspec.Struct, frozen=True):
    """One state, or many; `device` is a peripheral for which they are."""

    n: int
    body: StateReport | Columns
    device: bytes | None
    backlog: bool

    @property
    def count(self) -> int:
        """The number of states."""
        return len(self.body) if isinstance(self.body, Columns) else 1


class Received(msgspec.Struct, frozen=True):
    """A command has arrived; `device` is the peripheral that it is for."""

    command: int
    device: bytes | None


Frame = Hello | States | Received


def decode_frame(data: bytes, *, text: bool) -> Frame:
    """Decode a frame in CBOR, or with `text` in JSON. Raises `Malformed`."""
    if not text and data[:2] in _ROWS_HEADS:
        uniform = uniform_rows(data)
        if uniform is not None:
            return _uniform_rows(data, uniform)
    frame = _from_json(data) if text else _from_cbor(data)
    kind = frame[0] if type(frame) is list and frame else None
    if type(kind) is not int or not 0 <= kind < len(_KINDS):
        raise Malformed(
            f"a frame is an array that begins with its kind, a number from 0 to {len(_KINDS) - 1}"
        )
    return _KINDS[kind](frame)


def _from_json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Malformed(f"the frame is not valid JSON: {json_problem(error, data)}") from None


def _from_cbor(data: bytes) -> Any:
    try:
        return cbor.decode_item(data)
    except cbor.NotOneItem as problem:
        raise Malformed(f"the frame is not CBOR that a frame may have: {problem}") from None


# The kinds.


def _hello(frame: list[Any]) -> Hello:
    facts = _map(frame, 1, "hello", 2)
    _known(facts, ("session", "token", "nearest"), "hello")
    session, token, nearest = facts.get("session"), facts.get("token"), facts.get("nearest", False)
    if type(session) is not int or not 0 <= session <= SESSION_MAX:
        raise Malformed(f"hello: session must be a number from 0 to {SESSION_MAX}")
    if token is not None and type(token) is not str:
        raise Malformed("hello: token must be text")
    if type(nearest) is not bool:
        raise Malformed("hello: nearest must be true or false")
    return Hello(session, token, nearest)


def _one(frame: list[Any]) -> States:
    n, options = _numbered(frame, 4, "[1, n, time or null, {name: value}, options]")
    time_ms, data = frame[2], frame[3]
    if time_ms is not None and (type(time_ms) is not int or not 0 <= time_ms <= TIMESTAMP_MS_MAX):
        raise Malformed(f"time: {_TIME}, or null for now")
    if type(data) is not dict:
        raise Malformed("the values must be a map of name to value")
    _check_names(data)
    if not set(map(type, data.values())) <= _PLAIN:
        raise _no_value(list(data), list(data.values()), "")
    body = StateReport(
        data=data,
        time=None if time_ms is None else report_time(time_ms),
        meta=options.get("meta", UNSET),
        flow_version=options.get("flowVersion", UNSET),
    )
    return _states(n, body, options)


def _rows(frame: list[Any]) -> States:
    n, options = _numbered(frame, 4, "[2, n, [name...], [[time, value...]...], options]")
    names, rows = _row_names(frame[2]), frame[3]
    if type(rows) is not list or not rows:
        raise Malformed("rows: must be an array of at least one row")
    times, *columns = _turned(rows, len(names) + 1)
    body = Columns(
        names=names,
        times=_checked_times(_whole(times, "rows: the time of each"), 0),
        columns=tuple(_plain_column(name, column) for name, column in zip(names, columns, strict=True)),
        flow_version=options.get("flowVersion", UNSET),
    )
    return _states(n, body, options)


def _turned(rows: list[Any], length: int) -> list[tuple[Any, ...]]:
    """The columns of rows of so many elements."""
    if set(map(type, rows)) == {list}:
        with contextlib.suppress(ValueError):  # they differ in length
            columns = list(zip(*rows, strict=True))
            if len(columns) == length:
                return columns
    at = next(at for at, row in enumerate(rows) if type(row) is not list or len(row) != length)
    raise Malformed(f"rows[{at}]: must be an array of its time and {length - 1} values, one for each name")


def _uniform_rows(data: bytes, rows: UniformRows) -> States:
    """A frame of rows that were read as arrays."""
    frame: list[Any] = [2, rows.n, rows.names, None]
    if data[0] == _WITH_OPTIONS:
        frame.append(_from_cbor(data[rows.end :]))
    elif rows.end != len(data):
        raise Malformed("after the frame there are more bytes; a message is one item of CBOR")
    n, options = _numbered(frame, 4, "")
    times, *columns = rows.columns
    body = Columns(
        names=_row_names(rows.names),
        times=_checked_times(times, 0),
        columns=tuple(columns),
        flow_version=options.get("flowVersion", UNSET),
    )
    return _states(n, body, options)


def _row_names(names: Any) -> tuple[str, ...]:
    if type(names) is not list:
        raise Malformed("names: must be an array of texts")
    _check_names(names)
    if len(set(names)) < len(names):
        raise Malformed("names: one of them appears twice")
    return tuple(names)


def _columns(frame: list[Any]) -> States:
    n, options = _numbered(frame, 5, "[3, n, time, deltas, {name: column}, options]")
    base_ms, deltas, columns = frame[2:5]
    if type(base_ms) is not int or not 0 <= base_ms <= TIMESTAMP_MS_MAX:
        raise Malformed(f"time: {_TIME}")
    times = _checked_times(_deltas(deltas), base_ms)
    if type(columns) is not dict:
        raise Malformed("the columns must be a map of name to column")
    _check_names(columns)
    body = Columns(
        names=tuple(columns),
        times=times,
        columns=tuple(_column(name, column, len(times)) for name, column in columns.items()),
        flow_version=options.get("flowVersion", UNSET),
    )
    return _states(n, body, options)


def _received(frame: list[Any]) -> Received:
    if not 2 <= len(frame) <= 3:
        raise Malformed("a received command is [4, id] or [4, id, device]")
    command = frame[1]
    if type(command) is not int or not 0 <= command <= COMMAND_ID_MAX:
        raise Malformed("the id of a received command must be the number that came with it")
    return Received(command, _device(frame[2]) if len(frame) == 3 else None)


_KINDS: Final[tuple[Callable[[list[Any]], Frame], ...]] = (_hello, _one, _rows, _columns, _received)


# Parts of frames.


def _numbered(frame: list[Any], length: int, form: str) -> tuple[int, dict[str, Any]]:
    """The number of a frame and its options, which are element `length` if there are any."""
    if not length <= len(frame) <= length + 1:
        raise Malformed(f"this kind of frame is {form}")
    n = frame[1]
    if type(n) is not int or not 0 < n <= N_MAX:
        raise Malformed(f"n: must be a number from 1 to {N_MAX}")
    if len(frame) == length:
        return n, {}
    options = _map(frame, length, "options", length + 1)
    _known(options, ("device", "backlog", "flowVersion", *(("meta",) if frame[0] == 1 else ())), "options")
    if type(options.get("backlog", False)) is not bool:
        raise Malformed("options: backlog must be true or false")
    version = options.get("flowVersion", "-")
    if type(version) is not str or not 0 < len(version) <= NAME_CHARS_MAX:
        raise Malformed(f"options: flowVersion must be a text of 1 to {NAME_CHARS_MAX} characters")
    return n, options


def _states(n: int, body: StateReport | Columns, options: dict[str, Any]) -> States:
    device = _device(options["device"]) if "device" in options else None
    return States(n, body, device, options.get("backlog", False))


def _device(value: Any) -> bytes:
    if type(value) is not str or _DEVICE.fullmatch(value) is None:
        raise Malformed("device: must be an id of 24 hexadecimal digits")
    return bytes.fromhex(value)


def _map(frame: list[Any], at: int, noun: str, length: int) -> dict[str, Any]:
    if len(frame) != length or type(frame[at]) is not dict:
        raise Malformed(f"{noun}: must be a map, the last element of the frame")
    found: dict[str, Any] = frame[at]
    return found


def _known(facts: dict[str, Any], names: tuple[str, ...], noun: str) -> None:
    for name in facts:
        if name not in names:
            raise Malformed(f"{noun}: {_shown(name)} is not known; it may have {', '.join(names)}")


def _check_names(names: Any) -> None:
    if not 0 < len(names) <= NAMES_MAX:
        raise Malformed(f"names: must be 1 to {NAMES_MAX}")
    if set(map(type, names)) != {str}:
        raise Malformed("names: must be texts")


# Times.

_TIME: Final = "must be a whole number of milliseconds since 1970, before the year 10000"


def _whole(values: Sequence[Any], place: str) -> NDArray[np.int64]:
    if not values:
        raise Malformed(f"{place}: there is none; a frame has at least one state")
    if set(map(type, values)) != {int}:
        at = next(at for at, value in enumerate(values) if type(value) is not int)
        raise Malformed(f"{place} {_TIME}; state {at} has {_shown(values[at])}")
    try:
        return np.array(values, np.int64)
    except OverflowError:
        raise Malformed(f"{place} {_TIME}") from None


def _deltas(value: Any) -> NDArray[np.int64]:
    if type(value) is list:
        return _whole(value, "deltas: each")
    array = _typed_array(value, "deltas")
    if array is None or array.dtype.kind == "f":
        raise Malformed("deltas: must be an array, or a typed array, of whole numbers")
    if not len(array):
        raise Malformed("deltas: there is none; a frame has at least one state")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and array.max() > TIMESTAMP_MS_MAX:
        raise Malformed(f"deltas: each {_TIME} when it is added to the time of the frame")
    return array.astype(np.int64)


def _checked_times(deltas: NDArray[np.int64], base_ms: int) -> NDArray[np.int64]:
    low, high = int(deltas.min()) + base_ms, int(deltas.max()) + base_ms
    if low < 0 or high > TIMESTAMP_MS_MAX:
        outside = low if low < 0 else high
        at = int(np.flatnonzero(deltas == outside - base_ms)[0])
        raise Malformed(f"the time of state {at} {_TIME}; it is {outside}")
    return deltas + base_ms if base_ms else deltas


# Columns.


def _column(name: str, value: Any, count: int) -> Values:
    typed = _typed_array(value, name)
    if typed is None and type(value) is not list:
        raise Malformed(f"{_shown(name)}: must be an array of values, or a typed array")
    column = _plain_column(name, value) if typed is None else typed
    if len(column) != count:
        raise Malformed(f"{_shown(name)}: has {len(column)} values for {count} states; give null for none")
    return column


def _plain_column(name: str, values: Sequence[Any]) -> Values:
    column = typed_values(values)
    if column is None:
        raise _no_value([name] * len(values), values, "state ")
    return column


def _typed_array(value: Any, place: str) -> NDArray[Any] | None:
    """The numbers of a typed array, None if the value is none."""
    if type(value) is not cbor.Tag:
        return None
    of, raw = _ARRAYS.get(value.tag), value.value
    if of is None:
        raise Malformed(
            f"{_shown(place)}: tag {value.tag} is not a typed array of the link; "
            f"these are {', '.join(map(str, _ARRAYS))}"
        )
    width = int(of[-1])
    if type(raw) is not bytes or len(raw) % width:
        raise Malformed(f"{_shown(place)}: a typed array of tag {value.tag} has {width} bytes a number")
    return np.frombuffer(raw, of)


def _no_value(names: Sequence[str], values: Sequence[Any], noun: str) -> Malformed:
    at = next(at for at, value in enumerate(values) if type(value) not in _PLAIN)
    place = f"{_shown(names[at])}, {noun}{at}" if noun else _shown(names[at])
    return Malformed(f"{place}: a value is a number, a text, true, false or null")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:60])
    if isinstance(value, int | float) and abs(value) < 1e300:
        return repr(value)[:60]
    return f"a {type(value).__name__}"
