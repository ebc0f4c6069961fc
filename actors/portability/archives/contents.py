"""What the files of an archive contain: the rows of a device's day, of the events of a day, and of data tables.

Owns the columns and the rows; reads one snapshot, in a worker thread. Does not own the files (`writing.py`).

A state is written completely: the values of all declared attributes, its `meta` and its `flowVersion`. Columns that are
not attributes come first or begin with `$`, which no attribute does; an attribute with the name of one of the first
columns gets a `$` as well. So the columns of a file have different names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from itertools import chain
from typing import Any, Final, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.unreadable import UNREADABLE
from trunkline.actors.core.values.ids import row_created_ms
from trunkline.actors.core.values.plain_json import json_bytes
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.data.events.reads import EventPresenter
from trunkline.actors.data.tables.columns import UPDATED
from trunkline.actors.data.tables.pages import open_rows
from trunkline.actors.fleet.devices.record.attributes import FLOW_VERSION, META
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.fleet.devices.state.history import points
from trunkline.actors.people.accounts.reach import has_tag
from trunkline.actors.portability.archives.manifest import What
from trunkline.actors.portability.archives.tables import Column
from trunkline.limits.table import DAY_MS
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.errors import StoreDamaged
from trunkline.store.snapshot import Snapshot

FAILURES: Final = (*UNREADABLE, StoreDamaged)
"""What a stored value raises that cannot be read."""

Rows = Iterator[list[Any]]

_TIMES: Final = (Column("deviceId", "id"), Column("time", "milliseconds"), Column("date", "time"))
_COMMANDS: Final = (
    *_TIMES,
    Column("name", "string"),
    Column("givenTime", "milliseconds"),
    Column("payload", "json"),
)
_CONNECTIONS: Final = (
    *_TIMES,
    Column("connected", "boolean"),
    Column("disconnectReason", "string"),
    Column("messagesFromClient", "number"),
    Column("messagesToClient", "number"),
    Column("ipAddress", "string"),
)
_EVENT_TIMES: Final = ("creationDate", "lastUpdated")
_EVENT_TEXTS: Final = (
    "level", "state", "subject", "message", "deviceId", "deviceName", "sourceType", "sourceId", "sourceName",
)  # fmt: skip
_EVENT_VALUES: Final = ("eventTags", "data", "updates")
_EVENTS: Final = (
    Column("id", "id"),
    *(Column(name, "time") for name in _EVENT_TIMES),
    *(Column(name, "string") for name in _EVENT_TEXTS),
    *(Column(name, "json") for name in _EVENT_VALUES),
)


class Part(NamedTuple):
    """The content of one file: its columns, and its rows, which are read from the snapshot one by one."""

    what: What
    columns: tuple[Column, ...]
    rows: Rows


# Devices.


def _selects(config: Doc, id: str, tags: list[Mapping[str, str]]) -> bool:
    """Whether a configuration selects a device."""
    mode = config.get("mode", "all")
    if mode == "all":
        return True
    named = id in config["deviceIds"] or has_tag(tags, config.get("deviceTags", ()))
    return named if mode == "whitelist" else not named


def device_ids(snapshot: Snapshot, application: bytes, after: bytes) -> Iterator[bytes]:
    """Yield the id of each device after the id `after`, in the order of ids.

    With deleted devices, which can be restored: their data is still there.
    """

    def stored(kind: str) -> Iterator[bytes]:
        prefix = keys.record_prefix(kind, application)
        for key in snapshot.keys(keys.RECORDS, prefix + after + b"\x00", keys.prefix_end(prefix)):
            yield bytes(key[-keys.ID_BYTES :])

    return merge(stored(DEVICE.name), stored(DELETED_DEVICE.name))


def selected_device(snapshot: Snapshot, application: bytes, device: bytes, config: Doc) -> Doc | None:
    """The record of a device; None if the configuration does not select it."""
    for kind in (DEVICE, DELETED_DEVICE):
        found = records.find(snapshot, kind, application, device)
        if found is not None:
            return found.doc if _selects(config, device.hex(), found.doc["tags"]) else None
    return None


def next_day_of(snapshot: Snapshot, device: bytes, day: int) -> int | None:
    """The first day from `day` on for which the device has a state, a command or an entry of its connection log."""
    days = []
    low_ms, high_ms = day * DAY_MS, keys.TIME_MS_MAX
    for part in snapshot.points(device, low_ms, high_ms, numbers=()):
        days.append(part.first_ms // DAY_MS)
        break
    for db in (keys.COMMANDS, keys.LOGS):
        low, high = (keys.command_key(device, time_ms, 0) for time_ms in (low_ms, high_ms))
        for key in snapshot.keys(db, low, high):
            days.append(keys.entry_time_seq(key)[0] // DAY_MS)
            break
    return min(days, default=None)


def device_parts(snapshot: Snapshot, device: bytes, doc: Doc, day: int) -> Iterator[Part]:
    """Yield what a device has for a day, in the order of the names, which is that of the manifest."""
    span = (day * DAY_MS, (day + 1) * DAY_MS - 1)
    kinds: tuple[tuple[What, tuple[Column, ...], Rows], ...] = (
        ("commands", _COMMANDS, _commands(snapshot, device, span)),
        ("connections", _CONNECTIONS, _connections(snapshot, device, span)),
        ("states", state_columns(doc), _states(snapshot, device, doc, span)),
    )
    for what, columns, rows in kinds:
        first = next(rows, None)
        if first is not None:
            yield Part(what, columns, chain((first,), rows))


def state_columns(doc: Doc) -> tuple[Column, ...]:
    """The columns of the states of a device."""
    taken = {column.name for column in _TIMES}
    return (
        *_TIMES,
        *(
            Column(f"${each['name']}" if each["name"] in taken else each["name"], each["dataType"])
            for each in doc["attributes"]
        ),
        Column("$meta", "json"),
        Column("$flowVersion", "string"),
    )


def _states(snapshot: Snapshot, device: bytes, doc: Doc, span: tuple[int, int]) -> Rows:
    id, numbers = device.hex(), [each["n"] for each in doc["attributes"]]
    for time_ms, point in points(snapshot, device, span):
        values = [point.get(number) for number in numbers]
        if any(value is not None for value in values):
            meta = _json(point[META]) if META in point else None
            yield [id, time_ms, time_ms, *values, meta, point.get(FLOW_VERSION)]


def _entries(
    snapshot: Snapshot, db: str, device: bytes, span: tuple[int, int]
) -> Iterator[tuple[list[Any], Doc]]:
    low, high = keys.command_key(device, span[0], 0), keys.command_key(device, span[1] + 1, 0)
    for key, raw in snapshot.range(db, low, high):
        time_ms = keys.entry_time_seq(key)[0]
        yield [device.hex(), time_ms, time_ms], decode(raw)


def _commands(snapshot: Snapshot, device: bytes, span: tuple[int, int]) -> Rows:
    for before, entry in _entries(snapshot, keys.COMMANDS, device, span):
        payload = _json(entry["payload"]) if "payload" in entry else None
        yield [*before, entry["name"], entry["time"], payload]


def _connections(snapshot: Snapshot, device: bytes, span: tuple[int, int]) -> Rows:
    names = [column.name for column in _CONNECTIONS[len(_TIMES) + 1 :]]
    for before, entry in _entries(snapshot, keys.LOGS, device, span):
        yield [*before, bool(entry["connected"]), *(entry.get(name) for name in names)]


# Events.


def events_from(snapshot: Snapshot, application: bytes, first_ms: int, end_ms: int | None) -> Iterator[bytes]:
    """Yield the ids of the events that were created from `first_ms` on and before `end_ms`, the oldest first."""
    prefix = keys.index_prefix(EVENT.name, application, "creationDate")
    end = keys.prefix_end(prefix) if end_ms is None else prefix + keys.sortable(end_ms)
    for key in snapshot.keys(keys.INDEXES, prefix + keys.sortable(first_ms), end):
        yield bytes(key[-keys.ID_BYTES :])


def next_event_day(snapshot: Snapshot, application: bytes, day: int) -> int | None:
    """The first day from `day` on in which an event was created; None if there is none.

    The answer is `day` if the next event cannot be read: then no day is passed over.
    """
    for id in events_from(snapshot, application, day * DAY_MS, None):
        try:
            found = records.find(snapshot, EVENT, application, id)
        except FAILURES:
            return day
        if found is not None:
            return int(found.doc["creationDate"]) // DAY_MS
    return None


def event_part(snapshot: Snapshot, application: bytes, first_ms: int, end_ms: int | None) -> Part:
    """The events that were created from `first_ms` on and before `end_ms`, with all their updates."""

    def rows() -> Rows:
        presenter = EventPresenter(snapshot, application, None)
        for id in events_from(snapshot, application, first_ms, end_ms):
            found = records.find(snapshot, EVENT, application, id)
            if found is not None:
                shown = presenter.show(found)
                yield [
                    shown["id"],
                    *(found.doc[name] for name in _EVENT_TIMES),
                    *(shown.get(name) for name in _EVENT_TEXTS),
                    *(_json(shown[name]) if name in shown else None for name in _EVENT_VALUES),
                ]

    return Part("events", _EVENTS, rows())


# Data tables.


def table_part(snapshot: Snapshot, application: bytes, table: bytes) -> Part:
    """All rows of a data table, in order of creation. Raises `NotFound` if there is no such table."""
    reader = open_rows(snapshot, application, table)
    docs = reader.table.columns.docs
    columns = (
        Column("id", "id"),
        Column("createdAt", "time"),
        Column("updatedAt", "time"),
        *(Column(doc["name"], doc["dataType"]) for doc in docs),
    )
    numbers = [number for _, number in reader.table.columns.shown]

    def rows() -> Rows:
        for id, values in reader.created():
            created_ms = row_created_ms(id)
            updated_ms = values.get(UPDATED, created_ms)
            yield [id.hex(), created_ms, updated_ms, *(values.get(number) for number in numbers)]

    return Part("rows", columns, rows())


def _json(value: Any) -> str:
    return json_bytes(value).decode()
