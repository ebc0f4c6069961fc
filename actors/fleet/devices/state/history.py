"""Reads of one device's history: its states, commands and connection log, and its composite state.

Entries that are too old to be kept (`fleet/devices/state/retention.py`) are not shown, whether they were removed
already or not.

Pure reads of a snapshot, without the device's mailbox: an acknowledged write is committed, so a snapshot that is
opened after the acknowledgement contains it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec
import numpy as np

from trunkline.actors.core.records.expiry import kept_since_ms
from trunkline.actors.core.records.reading import INLINE_BYTES_MAX, Reading
from trunkline.actors.core.runtime.subscription import Missed
from trunkline.actors.core.values.answer_size import AnswerSize
from trunkline.actors.core.values.plain_json import json_bytes
from trunkline.actors.core.values.terms import QueryTime
from trunkline.actors.core.values.timestamps import (
    TIMESTAMP_MS_MAX,
    as_number,
    iso,
    resolve_range,
    resolve_timestamp,
)
from trunkline.actors.fleet.devices.record.messages import History
from trunkline.actors.fleet.devices.record.read_messages import (
    GetCommand,
    GetCompositeState,
    GetLogEntries,
    GetState,
    ReplayCommands,
)
from trunkline.actors.fleet.devices.record.reads import Declared, Opened, open_declared
from trunkline.actors.fleet.devices.state.head import POSITION_SHIFT, Head
from trunkline.actors.fleet.devices.state.log_entries import command_history, shown_command
from trunkline.actors.fleet.devices.state.state_page import states_json
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.columns import Column, Points
from trunkline.store.snapshot import Snapshot
from trunkline.store.sorted_runs import point_at

TimeSpan = tuple[int, int]
"""The first and the last millisecond of a range, both included."""

EVER: Final = (0, keys.TIME_MS_MAX - 1)
"""The range of all points."""

Composite = dict[int, tuple[int, Any]]
"""Attribute number to `(time_ms, value)`."""


# History.


def get_state(reading: Reading, message: GetState) -> msgspec.Raw:
    """Return the states in a range as JSON, newest first by default.

    A state that contains only deleted attributes is left out and does not count towards the limit.
    """
    snapshot, query = reading.snapshot, message.query
    device = open_declared(snapshot, message.application, message.device)
    attributes = device.attributes
    # If attributes were deleted, any number of points may have to be skipped.
    reading.check_time(is_long=attributes.next_number != len(attributes.docs))
    reverse = query.sort_direction == "desc"
    low_ms, high_ms = _span(query, message.now_ms)
    low_ms = max(low_ms, oldest_state_ms(reading, message.now_ms))
    left_bytes = INLINE_BYTES_MAX

    def count(size_bytes: int) -> None:
        nonlocal left_bytes
        left_bytes -= size_bytes
        reading.check_time(is_long=left_bytes < 0)

    found = states_json(
        snapshot.points(message.device, low_ms, high_ms, reverse=reverse, rows=query.limit)
        if low_ms <= high_ms
        else (),
        attributes,
        limit=query.limit,
        reverse=reverse,
        size=reading.answer_size(),
        on_part=count,
    )
    if not found and reading.limits.state_keep_days:
        found += (
            json_bytes(attributes.entry(time_ms, point))
            for time_ms, point in _newest_expired(reading, message)
        )
    return msgspec.Raw(b"[" + b",".join(found) + b"]")


def oldest_state_ms(reading: Reading, now_ms: int) -> int:
    """The time in ms from which states are kept; 0 if all are."""
    return kept_since_ms(reading.limits.state_keep_days, now_ms)


def _newest_expired(reading: Reading, message: GetState) -> Iterator[tuple[int, Mapping[int, Any]]]:
    """Yield the newest point of the device if it is in the range and would be too old, were it not the newest."""
    low_ms, high_ms = _span(message.query, message.now_ms)
    oldest_ms = oldest_state_ms(reading, message.now_ms)
    newest = points(reading.snapshot, message.device, EVER, reverse=True, rows=1)
    for time_ms, point in islice(newest, 1):
        if low_ms <= time_ms <= high_ms and time_ms < oldest_ms:
            yield time_ms, point


_KEEP_DAYS: Final = {
    keys.COMMANDS: "command_keep_days",
    keys.LOGS: "log_keep_days",
}


def _stored(reading: Reading, db: str, message: GetCommand | GetLogEntries) -> Iterator[tuple[bytes, bytes]]:
    """Iterate over the entries in the range of the message, in its order, without its limit."""
    low_ms, high_ms = _span(message.query, message.now_ms)
    low_ms = max(low_ms, kept_since_ms(getattr(reading.limits, _KEEP_DAYS[db]), message.now_ms))
    if low_ms > high_ms:
        return iter(())
    reverse = message.query.sort_direction == "desc"
    low, high = _entry_key(message.device, low_ms), _entry_key(message.device, high_ms + 1)
    return reading.snapshot.range(db, low, high, reverse=reverse)


def _entry_key(device: bytes, time_ms: int) -> bytes:
    return keys.command_key(device, time_ms, 0)


def _is_large(reading: Reading, db: str, message: GetCommand) -> bool:
    """Return whether the entries are too large to be decoded in the event loop. Reads only their sizes."""
    if message.query.limit == 1:
        return False
    left = INLINE_BYTES_MAX
    for _, (_, raw) in zip(range(message.query.limit), _stored(reading, db, message), strict=False):
        left -= len(raw)
        if left < 0:
            return True
    return False


def points(
    snapshot: Snapshot,
    device: bytes,
    span: TimeSpan,
    *,
    reverse: bool = False,
    numbers: Container[int] | None = None,
    rows: int | None = None,
) -> Iterator[tuple[int, Mapping[int, Any]]]:
    """Yield the stored points in `span` as `(time_ms, point)`; with `numbers`, those with a value of these attributes.

    `rows`: so many are wanted.

    Where all of a block is used, `Snapshot.points` is faster.
    """
    if span[0] > span[1]:
        return
    for part in snapshot.points(device, *span, reverse=reverse, numbers=numbers, rows=rows):
        yield from reversed(list(part.rows(numbers))) if reverse else part.rows(numbers)


def get_command(reading: Reading, message: GetCommand) -> list[dict[str, Any]]:
    """Return commands by the time of their arrival, newest first by default."""
    snapshot = reading.snapshot
    reading.check_time(is_long=_is_large(reading, keys.COMMANDS, message))
    open_declared(snapshot, message.application, message.device)
    return [
        command_history(seq, entry, message.now_ms) for _, seq, entry in _log(reading, keys.COMMANDS, message)
    ]


def get_log_entries(reading: Reading, message: GetLogEntries) -> list[dict[str, Any]]:
    """Return changes of the connection, newest first by default."""
    snapshot = reading.snapshot
    open_declared(snapshot, message.application, message.device)
    return [entry | {"time": iso(time_ms)} for time_ms, _, entry in _log(reading, keys.LOGS, message)]


def _log(
    reading: Reading, db: str, message: GetCommand | GetLogEntries
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield the entries with their time and their number."""
    size = reading.answer_size()
    for _, (key, raw) in zip(range(message.query.limit), _stored(reading, db, message), strict=False):
        size.add(len(raw))
        yield *keys.entry_time_seq(key), decode(raw)


def replay_commands(reading: Reading, message: ReplayCommands) -> Missed:
    """Return the commands after `position`, encoded as a stream sends them; at least one if there is any."""
    snapshot = reading.snapshot
    device = open_declared(snapshot, message.application, message.device)
    time_ms, seq = message.position >> POSITION_SHIFT, message.position & ((1 << POSITION_SHIFT) - 1)
    oldest_ms = kept_since_ms(reading.limits.command_keep_days, message.now_ms)
    low = max(keys.command_key(device.id, time_ms, seq) + b"\x00", _entry_key(device.id, oldest_ms))
    missed: list[tuple[int, bytes]] = []
    left_bytes = message.bytes_max
    for key, raw in snapshot.range(keys.COMMANDS, low, keys.prefix_end(device.id)):
        if len(missed) >= message.limit or left_bytes <= 0:
            return Missed(missed, more=True)
        at_ms, number = keys.entry_time_seq(key)
        event = msgspec.json.encode(shown_command(decode(raw)))
        missed.append((at_ms << POSITION_SHIFT | number, event))
        left_bytes -= len(event)
    return Missed(missed, more=False)


def _span(query: History, now_ms: int) -> TimeSpan:
    """Return the range of a history query.

    By default both ends are open: the clock of a device may be ahead of the server's, or may still be in 1970.
    """
    start, duration = query.start, query.duration
    if start is None and query.end is None and duration is None and query.since is None:
        return 0, TIMESTAMP_MS_MAX
    if query.end is None and duration is not None:
        start, duration = -min(duration, TIMESTAMP_MS_MAX), None
    span = resolve_range(
        now_ms,
        start=start,
        end=query.end,
        duration=duration,
        since=query.since,
        default_start=-TIMESTAMP_MS_MAX,
        default_end=TIMESTAMP_MS_MAX,
    )
    return span.start_ms, span.end_ms


# Composite state.


def get_composite_state(reading: Reading, message: GetCompositeState) -> dict[str, Any]:
    """Return the newest value of each attribute in the range."""
    snapshot = reading.snapshot
    reading.check_time(is_long=_composite_is_long(snapshot, message))
    device = open_declared(snapshot, message.application, message.device)
    query = message.query
    span = composite_span(query.start, query.end, message.now_ms)
    names = attribute_names(query.attributes)
    oldest_ms = oldest_state_ms(reading, message.now_ms)
    return composite(snapshot, device, span, names, reading.answer_size(), oldest_ms)


def composite_span(start: QueryTime, end: QueryTime, now_ms: int) -> TimeSpan:
    """Return the range of a composite query.

    The defaults of `start` and `end`, 1 and 0, leave the range open. So an acknowledged report is always included,
    even if the device's clock is a little ahead of the server's or was never set.
    """
    span = resolve_range(now_ms, start=start, end=end)
    return span.start_ms, span.end_ms if as_number(end) else TIMESTAMP_MS_MAX


def attribute_names(attributes: str | None) -> frozenset[str] | None:
    """Return the comma-separated names of a query; None for all."""
    if attributes is None or not attributes.strip():
        return None
    return frozenset(name.strip() for name in attributes.split(",") if name.strip())


def composite(
    snapshot: Snapshot,
    device: Opened | Declared,
    span: TimeSpan,
    names: frozenset[str] | None,
    size: AnswerSize,
    oldest_ms: int,
) -> dict[str, dict[str, Any]]:
    """Return `{name: {value, time}}` of the declared attributes in `names` that have a value in the range."""
    selected = {
        number: name for number, name in device.attributes.names.items() if names is None or name in names
    }
    found = last_values(snapshot, device.id, span, selected, oldest_ms)
    size.add(text_length(value for _, value in found.values()))
    return {
        selected[number]: {"value": value, "time": iso(time_ms)} for number, (time_ms, value) in found.items()
    }


def text_length(values: Iterable[Any]) -> int:
    """Return the number of characters of all texts among these values: the part that makes an answer large."""
    return sum(len(value) for value in values if isinstance(value, str))


def last_values(
    snapshot: Snapshot, device: bytes, span: TimeSpan, numbers: Collection[int], oldest_ms: int
) -> Composite:
    """Return the newest value in `span` of each of the attributes `numbers`.

    The head contains the value of every attribute whose newest report is in the range, however old it is. Points are
    read only for attributes that were reported after its end, and none that are older than `oldest_ms`.
    """
    head = Head.read(snapshot, device)
    found: Composite = {}
    reported_later: set[int] = set()
    for number in numbers:
        newest = head.values.get(number)
        if newest is None or newest[0] < span[0]:
            continue
        if newest[0] > span[1]:
            reported_later.add(number)
        elif len(newest) == 2:
            found[number] = newest
        else:
            found[number] = (newest[0], _long_text(snapshot, device, newest[0], number))
    kept = (max(span[0], oldest_ms), span[1])
    if reported_later and kept[0] <= kept[1]:
        for part in snapshot.points(device, *kept, reverse=True, numbers=reported_later):
            for number in reported_later & part.columns.keys():
                found[number] = _newest(part, number)
            reported_later -= found.keys()
            if not reported_later:
                break
    return found


def _newest(part: Points, number: int) -> tuple[int, Any]:
    """The time and the value of the last row that has the attribute."""
    column = part.columns[number]
    row = len(part) - 1 if column.present is None else int(np.flatnonzero(column.present)[-1])
    integers = None if column.integers is None else column.integers[-1:]
    return int(part.times[row]), Column(None, column.values[-1:], integers).tolist()[0]


def _long_text(snapshot: Snapshot, device: bytes, time_ms: int, number: int) -> Any:
    """Return a value that is too long for the head, from its point."""
    return point_at(snapshot.points(device, time_ms, time_ms, reverse=True, rows=1))[number]


def _composite_is_long(snapshot: Snapshot, message: GetCompositeState) -> bool:
    """Return whether points must be read because there are reports after the end of the range."""
    if not as_number(message.query.end):
        return False
    end_ms = resolve_timestamp(message.query.end, message.now_ms, field="end")
    return Head.read(snapshot, message.device).newest_ms > end_ms
