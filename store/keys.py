"""The names of the databases and the layout of every key in them.

Owns the layout of keys; does not own the meaning of values. All layouts are in one module, which is long because
of it, so that no two can overlap unnoticed. Integers are big-endian and text is terminated, so
byte order is the natural order of the encoded values, and a range of keys is a range of times, names or
numbers. `app` and `device` are ids of 12 bytes; times are milliseconds since the epoch.

What devices report is first in ARRIVALS, one value for each commit; then in SEGMENTS, one compressed value for many
commits; and then in RUNS, where the points of a device are blocks (`arrivals.py`, `sorted_runs.py`). TIMELINE has what
is kept for each device beside its points: the payload counts of its hours, and its head (the newest values, which the
API calls the composite state). At the end of ARRIVALS are the latest payload counts of applications, which are not in
COUNTS yet: there they are on a page that each commit of states changes anyway. ARRIVALS is the part of LMDB's unnamed
database before ARRIVALS_END; after it that database lists the names of the others. So a commit of states changes one
page of a tree: with a tree of its own it would change one of that tree and one of the list, where the tree's root is.

The parts of a workflow that lists do not need are in FLOWS; its keys begin with the application and the workflow.
TRIGGERS has what workflows are still to be run for, in the order of arrival, and what these runs have already done.
ANSWERS has the answers of calls with an Idempotency-Key; its keys begin with the application and the owner.
MESSAGES has the retained messages of an application's topics, the wills and sessions of its MQTT clients, and what
waits for them.

The keys of the rows of a data table begin with its id and a generation. Emptying the table starts the next
generation, which costs one write; the sweeper then removes the old one. The head of a table (its counts of
rows) sorts after the rows. CELLS finds rows by the values of their unique columns.

The module is long because the layout of all keys is in one place.

Values are CBOR (`codec.py`), except in INDEXES (empty: all is in the key), UNIQUE and CELLS (the bytes of an id), and
those of open alarms in EVENTS (the bytes of ids).
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

META: Final = "meta"
RECORDS: Final = "records"
INDEXES: Final = "indexes"
UNIQUE: Final = "unique"
TIMELINE: Final = "timeline"
COMMANDS: Final = "commands"
LOGS: Final = "logs"
COUNTS: Final = "counts"
ROWS: Final = "rows"
CELLS: Final = "cells"
EVENTS: Final = "events"
FLOWS: Final = "flows"
ARRIVALS: Final = "arrivals"
ARRIVALS_END: Final = b"\x02"
"""All keys of ARRIVALS are below, the names of all databases above."""
SEGMENTS: Final = "segments"
RUNS: Final = "runs"
TRIGGERS: Final = "triggers"
ANSWERS: Final = "answers"
MESSAGES: Final = "messages"
DATABASES: Final = (
    META,
    RECORDS,
    INDEXES,
    UNIQUE,
    TIMELINE,
    COMMANDS,
    LOGS,
    COUNTS,
    ROWS,
    CELLS,
    EVENTS,
    FLOWS,
    ARRIVALS,
    SEGMENTS,
    RUNS,
    TRIGGERS,
    ANSWERS,
    MESSAGES,
)

ID_BYTES: Final = 12
SORTABLE_BYTES_MAX: Final = 200
"""Longer values are truncated; equal truncated values sort by id. Keeps every key under LMDB's 511 bytes."""
CELL_TEXT_BYTES_MAX: Final = 255
"""Longer texts in CELLS are truncated and followed by a hash; equal truncated texts are in no useful order."""
TIME_MS_MAX: Final = 2**63 - 1
SEQ_MAX: Final = 2**32 - 1
HOUR_MAX: Final = 2**32 - 1

_HOURLY: Final = b"\x08"
_SILENCE: Final = b"\x18"
_WAITING: Final = b"\x20"
_ALARMS: Final = b"\x28"
_HEAD: Final = b"\xff"
_ROW: Final = b"\x10"

_DETAIL: Final = b"\x08"
_UPDATE: Final = b"\x10"
_CHANGE: Final = b"\x18"
_LAST_CHANGE: Final = b"\x20"
_TOLD_ALARMS: Final = b"\x28"
_OPEN_ALARM: Final = b"\x30"
_RANKED_ALARM: Final = b"\x38"

_DEFINITION: Final = b"\x08"
_STORED: Final = b"\x10"
_VERSION: Final = b"\x18"
_USES: Final = b"\x20"
_RUN: Final = b"\x28"
_MINUTE: Final = b"\x30"
_TOTAL: Final = b"\x40"
_STATE: Final = b"\x48"

_ANSWER: Final = b"\x08"
_ANSWER_NUMBER: Final = b"\x10"

_RETAINED: Final = b"\x08"
_RETAINED_HEAD: Final = b"\x10"
_WILL: Final = b"\x18"
_SESSION: Final = b"\x20"
_FILTER: Final = b"\x28"
_QUEUE: Final = b"\x30"
_QUEUE_HEAD: Final = b"\x38"
_MESSAGE: Final = b"\x40"
_REFERENCES: Final = b"\x48"
_RECEIVED: Final = b"\x50"
_ENDED_SESSION: Final = b"\x58"
_AWAY: Final = b"\x60"
_SESSION_COUNT: Final = b"\x68"
_GROUP: Final = b"\x70"

_NULL: Final = b"\x10"
_FALSE: Final = b"\x20\x00"
_TRUE: Final = b"\x20\x01"
_NUMBER: Final = b"\x30"
_TEXT: Final = b"\x40"

NOT_NULL: Final = (b"\x20", b"\x41")
NUMBERS: Final = (b"\x30", b"\x31")
TEXTS: Final = (b"\x40", b"\x41")
"""The range of the bytes of `sortable` for all values of a type: from the first (included) to the second."""

_DOUBLE: Final = struct.Struct(">d")
_BITS: Final = struct.Struct(">Q")
_SIGN: Final = 1 << 63
_EXACT: Final = 2**64


# Records, indexes and unique values.


def record_key(kind: str, app: bytes, id: bytes) -> bytes:
    """The key of a record in RECORDS: kind, 0x00, app, id."""
    return record_prefix(kind, app) + _checked(id)


def record_prefix(kind: str, app: bytes) -> bytes:
    """The common prefix of the keys of all records of a kind in an application."""
    return _word(kind) + _checked(app)


def kind_prefix(kind: str) -> bytes:
    """The common prefix of the keys of all records of a kind, in all applications."""
    return _word(kind)


def is_record_key(key: bytes) -> bool:
    """Whether a key has the form of a key in RECORDS."""
    return len(key) > 2 * ID_BYTES + 1 and key[-2 * ID_BYTES - 1] == 0


def record_of_index(key: bytes) -> bytes:
    """The key in RECORDS of the record that an index key points to. Raises ValueError if it is no index key."""
    end = key.index(b"\x00") + 1 + ID_BYTES
    if len(key) < end + 2 + ID_BYTES:
        raise ValueError("the key is too short for an index")
    return key[:end] + key[-ID_BYTES:]


def index_key(kind: str, app: bytes, field: str, value: bytes, id: bytes) -> bytes:
    """The key in INDEXES of one record's `value` (made by `sortable`); the id is its last 12 bytes."""
    return index_prefix(kind, app, field) + value + _checked(id)


def index_prefix(kind: str, app: bytes, field: str) -> bytes:
    """The common prefix of all keys of one index."""
    return record_prefix(kind, app) + _word(field)


def unique_key(kind: str, app: bytes, field: str, value: str) -> bytes:
    """The key in UNIQUE of a value that must be unique: 16 bytes of a hash, for a value of any length."""
    parts = (_word(kind), _checked(app), _word(field), value.encode("utf-8", "surrogatepass"))
    return hashlib.sha256(b"".join(parts)).digest()[:16]


def sortable(value: bool | float | str | None) -> bytes:
    """Return bytes that sort as values do: null, false, true, numbers by size, text.

    Text sorts by its case-folded form and then by itself, code point by code point. Integers and floats sort
    together; equal numbers have equal bytes; different integers have different bytes up to 2**64. Raises
    ValueError for NaN, TypeError for types without an order.
    """
    if value is None:
        return _NULL
    if value is True:
        return _TRUE
    if value is False:
        return _FALSE
    if isinstance(value, str):
        return (_TEXT + _terminated(value.casefold()) + _terminated(value))[:SORTABLE_BYTES_MAX]
    if isinstance(value, int | float):
        return _NUMBER + _number(value)
    raise TypeError(f"{type(value).__name__} has no place in an index")


def sortable_folded(text: str) -> bytes:
    """The common prefix of the bytes of `sortable` for all texts equal to `text`, ignoring case."""
    return (_TEXT + _terminated(text.casefold()))[:SORTABLE_BYTES_MAX]


def folded_text(value: bytes) -> str | None:
    """The case-folded text of the bytes of `sortable`; None if they are of no text, or of one that was truncated."""
    if value[:1] != _TEXT:
        return None
    folded, end, _ = value[1:].partition(b"\x00")
    if not end:
        return None
    if b"\x01" in folded:
        folded = folded.replace(b"\x01\x01", b"\x00").replace(b"\x01\x02", b"\x01")
    return folded.decode("utf-8", "surrogatepass")


def sortable_start(text: str) -> bytes:
    """The common prefix of the bytes of `sortable` for all texts that begin with `text`, ignoring case."""
    return (_TEXT + _terminated(text.casefold())[:-1])[:SORTABLE_BYTES_MAX]


def _number(value: float) -> bytes:
    """The nearest double, its bits changed so that bytes sort, then the distance of an integer from it."""
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf if value > 0 else -math.inf
    if math.isnan(nearest):
        raise ValueError("NaN has no place in an index")
    bits: int = _BITS.unpack(_DOUBLE.pack(nearest + 0.0))[0]
    bits = bits ^ (2 * _SIGN - 1) if bits & _SIGN else bits | _SIGN
    rest = value - int(nearest) if isinstance(value, int) and -_EXACT < value < _EXACT else 0
    return _BITS.pack(bits) + (rest + 0x8000).to_bytes(2, "big")


def _terminated(text: str) -> bytes:
    """UTF-8 with exactly one 0x00, at its end, so that a text sorts before all longer texts it begins."""
    raw = text.encode("utf-8", "surrogatepass")
    if b"\x00" in raw or b"\x01" in raw:
        raw = raw.replace(b"\x01", b"\x01\x02").replace(b"\x00", b"\x01\x01")
    return raw + b"\x00"


# The timeline of a device.


def arrival_key(seq: int) -> bytes:
    """The key in ARRIVALS of what devices reported in one commit, and in SEGMENTS of all up to that commit.

    Below 2**56, so that it sorts before LATEST_COUNTS.
    """
    return seq.to_bytes(8, "big")


def latest_counts_key(counts: bytes) -> bytes:
    """The key in ARRIVALS of the latest increments of an application's payload counts, given their key in COUNTS.

    Sorts after the keys of all commits.
    """
    return LATEST_COUNTS + counts


LATEST_COUNTS: Final = b"\x01"
"""The common prefix of the keys of `latest_counts_key`."""


def block_key(run: int, device: bytes, first_ms: int) -> bytes:
    """The key in RUNS of a block. The blocks of a device in a run sort by time."""
    return _seq(run) + _checked(device) + _time(first_ms)


def block_device(key: bytes) -> bytes:
    """The device of a block."""
    return key[4:16]


def block_first_ms(key: bytes) -> int:
    """The time of the first point of a block."""
    return int.from_bytes(key[16:24], "big")


def run_prefix(run: int) -> bytes:
    """The common prefix of the keys of all blocks of a run."""
    return _seq(run)


RUNS_KEY: Final = b"runs"
"""The key in META of the list of all runs."""

FLUSHED_KEY: Final = b"settled"
"""The key in META of the number of the last commit whose reports are all in the runs."""

SKIPPED_KEY: Final = b"skipped"
"""The key in META of the last number that no commit has, if there are any: positions in the log of another store."""
LOG_KEY: Final = b"log"
"""In META: up to where in the log of the partition all is written (`log_groups.py`); only where there is a log."""


def counts_key(device: bytes, hour: int) -> bytes:
    """The key in TIMELINE of a device's payload counts in one hour (hours since the epoch)."""
    return _checked(device) + _HOURLY + _hour(hour)


def head_key(device: bytes) -> bytes:
    """The key in TIMELINE of a device's newest values; sorts after all its points and counts."""
    return _checked(device) + _HEAD


def silence_key(device: bytes) -> bytes:
    """The key in TIMELINE of the triggers of inactivity that have fired since the device reported last."""
    return _checked(device) + _SILENCE


def waiting_key(device: bytes) -> bytes:
    """The key in TIMELINE of the commands that wait for a device's acknowledgement."""
    return _checked(device) + _WAITING


def alarms_key(device: bytes) -> bytes:
    """The key in TIMELINE of how the alarm rules of a device stand."""
    return _checked(device) + _ALARMS


# Commands and logs.


def command_key(device: bytes, time_ms: int, seq: int) -> bytes:
    """The key in COMMANDS of one command; `seq` numbers the commands of one millisecond in order."""
    return _checked(device) + _time(time_ms) + _seq(seq)


def log_key(device: bytes, time_ms: int, seq: int) -> bytes:
    """The key in LOGS of one connection log entry."""
    return _checked(device) + _time(time_ms) + _seq(seq)


def entry_time_seq(key: bytes) -> tuple[int, int]:
    """The time and the `seq` of a command or log entry."""
    return int.from_bytes(key[12:20], "big"), int.from_bytes(key[20:24], "big")


# Rows of data tables.


def rows_prefix(table: bytes, generation: int) -> bytes:
    """The common prefix of the keys of all rows of one generation of a table."""
    return generation_prefix(table, generation) + _ROW


def row_key(table: bytes, generation: int, row: bytes) -> bytes:
    """The key in ROWS of one row; the id is its last 12 bytes."""
    return rows_prefix(table, generation) + _checked(row)


def rows_head_key(table: bytes, generation: int) -> bytes:
    """The key in ROWS of the counts of a table; sorts after all rows of the generation."""
    return generation_prefix(table, generation) + _HEAD


def generation_prefix(table: bytes, generation: int) -> bytes:
    """The common prefix of all keys of one generation, in ROWS and in CELLS."""
    return _checked(table) + _seq(generation)


def cells_prefix(table: bytes, generation: int, column: int) -> bytes:
    """The common prefix of the keys of all values of one unique column."""
    return generation_prefix(table, generation) + _seq(column)


def cell_key(table: bytes, generation: int, column: int, value: bytes) -> bytes:
    """The key in CELLS of a value (made by `cell`) of a unique column; the entry's value is the row's id."""
    return cells_prefix(table, generation, column) + value


def cell_column(key: bytes) -> int:
    """The number of the column that a key of CELLS belongs to."""
    return int.from_bytes(key[16:20], "big")


def cell(value: bool | float | str | None) -> bytes:
    """Return bytes that sort as values do: null, false, true, numbers by size, text by code point.

    Equal values have equal bytes and different values different bytes (whole numbers between -2**64 and 2**64).
    Unlike with `sortable` there are no ties, so one key can show that a value is taken. Raises ValueError for
    NaN, TypeError for types without an order.
    """
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogatepass")
        if len(raw) <= CELL_TEXT_BYTES_MAX:
            return _TEXT + raw
        return _TEXT + raw[:CELL_TEXT_BYTES_MAX] + hashlib.sha256(raw).digest()[:16]
    return sortable(value)


def cell_start(text: str) -> bytes:
    """The common prefix of the bytes of `cell` for all texts that begin with `text`, possibly truncated."""
    return _TEXT + text.encode("utf-8", "surrogatepass")[:CELL_TEXT_BYTES_MAX]


# Events: the parts that a list of events does not need are stored apart from their records.


def event_detail_key(app: bytes, event: bytes) -> bytes:
    """The key in EVENTS of an event's message and data."""
    return _checked(app) + _checked(event) + _DETAIL


def event_update_key(app: bytes, event: bytes, number: int) -> bytes:
    """The key in EVENTS of one update of an event. Updates sort by their number, the oldest first."""
    return _checked(app) + _checked(event) + _UPDATE + _seq(number)


def event_updates_prefix(app: bytes, event: bytes) -> bytes:
    """The common prefix of the keys of all updates of an event."""
    return _checked(app) + _checked(event) + _UPDATE


def event_change_key(app: bytes, number: int) -> bytes:
    """The key in EVENTS of the ids of the events that a turn has changed. Turns sort by their number."""
    return _checked(app) + bytes(ID_BYTES) + _CHANGE + number.to_bytes(8, "big")


def last_event_change_key(app: bytes) -> bytes:
    """The key in EVENTS of the number of the last turn that has changed events."""
    return _checked(app) + bytes(ID_BYTES) + _LAST_CHANGE


def told_alarms_key(app: bytes, device: bytes) -> bytes:
    """The key in EVENTS of how often each alarm of a device had opened when the event log was told last."""
    return _checked(app) + bytes(ID_BYTES) + _TOLD_ALARMS + _checked(device)


def open_alarms_prefix(app: bytes) -> bytes:
    """The common prefix of the keys of all open alarms of an application."""
    return _checked(app) + bytes(ID_BYTES) + _OPEN_ALARM


def open_alarm_key(app: bytes, device: bytes, rule: bytes) -> bytes:
    """The key in EVENTS of the id of the event of an open alarm."""
    return open_alarms_prefix(app) + _checked(device) + _checked(rule)


def ranked_alarms_prefix(app: bytes) -> bytes:
    """The common prefix of the keys of open alarms in the order of their list."""
    return _checked(app) + bytes(ID_BYTES) + _RANKED_ALARM


def ranked_alarm_key(app: bytes, rank: int, *, is_new: bool, created_ms: int, event: bytes) -> bytes:
    """The key in EVENTS of the device and the rule of an open alarm. Low ranks, new ones, and the newest sort first."""
    newest = (TIME_MS_MAX - created_ms).to_bytes(8, "big")
    return ranked_alarms_prefix(app) + bytes([rank, not is_new]) + newest + _checked(event)


def is_open_alarm_key(key: bytes) -> bool:
    """Whether a key in EVENTS is one of the two of an open alarm, whose values are ids."""
    return key[ID_BYTES : 2 * ID_BYTES] == bytes(ID_BYTES) and key[2 * ID_BYTES :][:1] in (
        _OPEN_ALARM,
        _RANKED_ALARM,
    )


# Workflows: what is too large for a record that lists scan, the names of versions, and the storage entries.


def flow_prefix(app: bytes, flow: bytes) -> bytes:
    """The common prefix of all keys of a workflow in FLOWS."""
    return _checked(app) + _checked(flow)


def flow_definition_key(app: bytes, flow: bytes, version: bytes) -> bytes:
    """The key in FLOWS of the triggers, nodes and globals of a version; 12 zero bytes stand for `develop`."""
    return flow_prefix(app, flow) + _DEFINITION + _checked(version)


def flow_storage_prefix(app: bytes, flow: bytes, generation: int) -> bytes:
    """The common prefix of the keys of the storage entries of one generation. Clearing begins the next one."""
    return flow_prefix(app, flow) + _STORED + _seq(generation)


def flow_storage_key(app: bytes, flow: bytes, generation: int, name: str) -> bytes:
    """The key in FLOWS of one storage entry."""
    return flow_storage_prefix(app, flow, generation) + cell(name)


def flow_states_prefix(app: bytes, flow: bytes, generation: int) -> bytes:
    """The common prefix of the keys of the states of a workflow's nodes, of one generation of its storage."""
    return flow_prefix(app, flow) + _STATE + _seq(generation)


def flow_state_key(app: bytes, flow: bytes, generation: int, node: str) -> bytes:
    """The key in FLOWS of the state of one node."""
    return flow_states_prefix(app, flow, generation) + cell(node)


def flow_version_key(app: bytes, flow: bytes, name: str) -> bytes:
    """The key in FLOWS of the id of the version of this name."""
    return flow_prefix(app, flow) + _VERSION + cell(name)


def flow_uses_key(app: bytes, flow: bytes) -> bytes:
    """The key in FLOWS of the number of workflows that use this custom node."""
    return flow_prefix(app, flow) + _USES


def flow_runs_prefix(app: bytes, flow: bytes) -> bytes:
    """The common prefix of the keys of all run records of a workflow."""
    return flow_prefix(app, flow) + _RUN


def flow_run_key(app: bytes, flow: bytes, position: int, run: int) -> bytes:
    """The key in FLOWS of the record of a run: its position in the order of ends, and its number."""
    return flow_runs_prefix(app, flow) + _number_of(position) + _number_of(run)


def flow_minutes_prefix(app: bytes, flow: bytes) -> bytes:
    """The common prefix of the keys of all sums of minutes of a workflow."""
    return flow_prefix(app, flow) + _MINUTE


def flow_minute_key(app: bytes, flow: bytes, minute: int, version: bytes) -> bytes:
    """The key in FLOWS of the sums of the runs of a version that ended in a minute (since the epoch)."""
    return flow_minutes_prefix(app, flow) + _hour(minute) + _checked(version)


def flow_totals_prefix(app: bytes, flow: bytes) -> bytes:
    """The common prefix of the keys of the sums of all runs of a workflow."""
    return flow_prefix(app, flow) + _TOTAL


def flow_total_key(app: bytes, flow: bytes, version: bytes) -> bytes:
    """The key in FLOWS of the sums of all runs of a version."""
    return flow_totals_prefix(app, flow) + _checked(version)


def flow_head_key(app: bytes, flow: bytes) -> bytes:
    """The key in FLOWS of the sums of a workflow: its versions, and its storage entries with their bytes."""
    return flow_prefix(app, flow) + _HEAD


# Triggers of workflows, and markers of what their runs have done.

_PLACES: Final = {"root": b"\x00", "application": b"\x01", "device": b"\x02"}
_PLACE_NAMES: Final = {code: place for place, code in _PLACES.items()}


def trigger_key(number: int, place: str, home: bytes) -> bytes:
    """The key in TRIGGERS of a trigger: its number, and the home of the actor that wrote it.

    A turn writes keys of its own home only, and triggers of all homes are in one order.
    """
    if len(home) != ID_BYTES:
        _checked(home)
    return number.to_bytes(8, "big") + _PLACES[place] + home


def done_key(number: int, place: str, home: bytes, node: int, visit: int) -> bytes:
    """The key in TRIGGERS of the marker that a run has done what a node does at its nth visit."""
    return trigger_key(number, place, home) + _seq(node) + _seq(visit)


def trigger_number(key: bytes) -> int:
    """The number of the trigger that a key of TRIGGERS belongs to."""
    return int.from_bytes(key[:8], "big")


def trigger_home(key: bytes) -> tuple[str, bytes]:
    """The home of a key of TRIGGERS: its place and its id."""
    return _PLACE_NAMES[key[8:9]], key[9:21]


TRIGGER_KEY_BYTES: Final = 21
"""The length of the keys of triggers; those of markers are longer."""


# Answers of calls with an Idempotency-Key. Their owner is the actor that stored the effect.

_OWNERS: Final = {"device": b"\x01", "dataTable": b"\x02", "eventLog": b"\x03", "application": b"\x04"}


def answers_prefix(app: bytes, kind: str, owner: bytes) -> bytes:
    """The common prefix of all keys of one owner in ANSWERS; `kind` is that of its actor."""
    return _checked(app) + _OWNERS[kind] + _checked(owner)


ANSWERS_PREFIX_BYTES: Final = 2 * ID_BYTES + 1
"""The length of these prefixes."""


def answer_key(prefix: bytes, digest: bytes) -> bytes:
    """The key in ANSWERS of an answer, given the digest of its caller and its Idempotency-Key."""
    return prefix + _ANSWER + digest


def answer_number_key(prefix: bytes, number: int) -> bytes:
    """The key in ANSWERS of the digest and the time of the nth answer of an owner."""
    return prefix + _ANSWER_NUMBER + _number_of(number)


def answers_head_key(prefix: bytes) -> bytes:
    """The key in ANSWERS of the first and the next number of an owner, and the bytes of its answers."""
    return prefix + _HEAD


def answers_home(key: bytes) -> tuple[str, bytes]:
    """The home of a key of ANSWERS: its place and its id."""
    if key[ID_BYTES : ID_BYTES + 1] == _OWNERS["device"]:
        return "device", key[ID_BYTES + 1 : ANSWERS_PREFIX_BYTES]
    return "application", key[:ID_BYTES]


# Messages of topics.

_TOPIC_BYTES_MAX: Final = 400
"""Longer topics are truncated and followed by a hash, as a key of LMDB has at most 511 bytes."""


def retained_key(app: bytes, topic: str) -> bytes:
    """The key in MESSAGES of the retained message of a topic."""
    raw = topic.encode()
    if len(raw) > _TOPIC_BYTES_MAX:
        raw = raw[:_TOPIC_BYTES_MAX] + hashlib.sha256(raw).digest()
    return retained_prefix(app) + raw


def retained_prefix(app: bytes, beginning: str = "") -> bytes:
    """The common prefix of the keys of retained messages whose topics have this beginning, in the order of topics."""
    return _checked(app) + _RETAINED + beginning.encode()[:_TOPIC_BYTES_MAX]


def retained_head_key(app: bytes) -> bytes:
    """The key in MESSAGES of how many retained messages an application has, and of their bytes."""
    return _checked(app) + _RETAINED_HEAD


def will_key(app: bytes, client: bytes) -> bytes:
    """The key in MESSAGES of the will of a connected MQTT client."""
    return wills_prefix(app) + _checked(client)


def wills_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application."""
    return _checked(app) + _WILL


def session_key(app: bytes, client: bytes) -> bytes:
    """The key in MESSAGES of the session of an MQTT client that outlives its connection."""
    return _checked(app) + _SESSION + _checked(client)


def sessions_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application."""
    return _checked(app) + _SESSION


def session_count_key(app: bytes) -> bytes:
    """The key in MESSAGES of how many sessions an application has."""
    return _checked(app) + _SESSION_COUNT


def group_key(app: bytes, group: bytes) -> bytes:
    """The key in MESSAGES of how many sessions are members of a shared subscription."""
    return _checked(app) + _GROUP + _checked(group)


def filter_key(app: bytes, levels: Sequence[str], client: bytes) -> bytes:
    """The key in MESSAGES of a subscription of a session: the levels of its filter, each with 0x00 behind it."""
    return filter_prefix(app, levels) + b"\x01" + _checked(client)


def filter_prefix(app: bytes, levels: Sequence[str]) -> bytes:
    """The common prefix of the subscriptions whose filters begin with these levels, and of their first bytes."""
    return _checked(app) + _FILTER + "".join(f"{level}\x00" for level in levels).encode()


def queue_key(app: bytes, session: bytes, number: int) -> bytes:
    """The key in MESSAGES of the nth message that waits for a session."""
    return queue_prefix(app, session) + number.to_bytes(8, "big")


def queue_prefix(app: bytes, session: bytes) -> bytes:
    """The common prefix of these keys of one session, in their order."""
    return _checked(app) + _QUEUE + _checked(session)


def queue_head_key(app: bytes, session: bytes) -> bytes:
    """The key in MESSAGES of how many messages wait for a session, of their bytes, and of the next number."""
    return _checked(app) + _QUEUE_HEAD + _checked(session)


def message_key(app: bytes, id: bytes) -> bytes:
    """The key in MESSAGES of a message that waits for several sessions."""
    return _checked(app) + _MESSAGE + _checked(id)


def references_key(app: bytes, id: bytes) -> bytes:
    """The key in MESSAGES of how many sessions it waits for."""
    return _checked(app) + _REFERENCES + _checked(id)


def received_key(app: bytes, session: bytes, packet_id: int) -> bytes:
    """The key in MESSAGES that a session has received a packet with QoS 2, which is not released."""
    return received_prefix(app, session) + packet_id.to_bytes(2, "big")


def received_prefix(app: bytes, session: bytes) -> bytes:
    """The common prefix of these keys of one session."""
    return _checked(app) + _RECEIVED + _checked(session)


def ended_session_key(app: bytes, session: bytes) -> bytes:
    """The key in MESSAGES of a session that has ended, of which there may be messages to remove."""
    return ended_sessions_prefix(app) + _checked(session)


def ended_sessions_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application."""
    return _checked(app) + _ENDED_SESSION


def away_key(app: bytes, until_ms: int, client: bytes) -> bytes:
    """The key in MESSAGES of when the session of a client ends that is away."""
    return away_prefix(app) + _time(until_ms) + _checked(client)


def away_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application, in the order of their times."""
    return _checked(app) + _AWAY


def away_of_key(key: bytes) -> tuple[int, bytes]:
    """When the session of a client ends, and the client."""
    return int.from_bytes(key[ID_BYTES + 1 : ID_BYTES + 9], "big"), key[-ID_BYTES:]


# Counts.

HOUR_KEY_BYTES: Final = ID_BYTES + 4
"""The length of the keys of `app_counts_key`, and of no other key in COUNTS."""


@lru_cache(1024)  # the key is the same for all reports to an application in an hour
def app_counts_key(app: bytes, hour: int) -> bytes:
    """The key in COUNTS of an application's payload counts in one hour."""
    return _checked(app) + _hour(hour)


TOTAL_PREFIX: Final = b"\x00total\x00"


def total_key(kind: str, app: bytes) -> bytes:
    """The key in COUNTS of the number of records of a kind in an application.

    Longer than 16 bytes, so it cannot be mistaken for the counts of an hour.
    """
    return TOTAL_PREFIX + record_prefix(kind, app)


def content_count_key(app: bytes) -> bytes:
    """The key in COUNTS of the bytes of an application's complete contents; sorts after its hours."""
    return _checked(app) + _HEAD + b"contents"


def endpoint_counts_key(app: bytes, hour: int, endpoint: bytes = b"") -> bytes:
    """The key in COUNTS of the requests to an endpoint in one hour; without an endpoint what those of all begin with.

    These sort after the payload counts of all hours.
    """
    return _checked(app) + _HEAD + b"endpoint" + _hour(hour) + endpoint


# Markers of unfinished work.

PURGE_PREFIX: Final = b"purge\x00"


def purge_key(app: bytes) -> bytes:
    """The key in META of the marker that the data of a deleted application is still to be removed."""
    return PURGE_PREFIX + _checked(app)


FOREIGN_PREFIX: Final = b"foreign\x00"


def foreign_key(app: bytes) -> bytes:
    """The key in META of the marker that an application is in another partition, and what this one has of it is void:
    it was copied from there and not taken over, or is left of what was moved."""
    return FOREIGN_PREFIX + _checked(app)


ARRIVED_PREFIX: Final = b"arrived\x00"


def arrived_key(app: bytes) -> bytes:
    """The key in META of the marker that an application was copied as a whole. It belongs here as soon as it is foreign
    in the partition that the value names."""
    return ARRIVED_PREFIX + _checked(app)


BUILDING_PREFIX: Final = b"building\x00"


def building_key(app: bytes) -> bytes:
    """The key in META of the marker that a job builds an application, which has no owner yet."""
    return BUILDING_PREFIX + _checked(app)


JOBS_PREFIX: Final = b"jobs\x00"


def jobs_key(app: bytes) -> bytes:
    """The key in META of the list of an application's open jobs: those that are not finished."""
    return JOBS_PREFIX + _checked(app)


JOB_DATA_PREFIX: Final = b"jobData\x00"


def job_data_key(app: bytes, job: bytes) -> bytes:
    """The key in META of the data that an open job was queued with."""
    return job_data_prefix(app) + _checked(job)


def job_data_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application; the id of a job follows."""
    return JOB_DATA_PREFIX + _checked(app)


UNTOLD_ALARMS_PREFIX: Final = b"untoldAlarms\x00"


def untold_alarms_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application; the id of a device follows."""
    return UNTOLD_ALARMS_PREFIX + _checked(app)


def untold_alarms_key(app: bytes, device: bytes) -> bytes:
    """The key in META of the marker that the event log is to be told how the alarms of a device stand."""
    return untold_alarms_prefix(app) + _checked(device)


CAUSED_ALARMS_PREFIX: Final = b"causedAlarms\x00"


def caused_alarms_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application; the id of a device follows, zeros for no device."""
    return CAUSED_ALARMS_PREFIX + _checked(app)


def caused_alarms_key(app: bytes, device: bytes) -> bytes:
    """The key in META of how the alarm rules about events of a device stand."""
    return caused_alarms_prefix(app) + _checked(device)


ALARM_NOTICES_PREFIX: Final = b"alarmNotices\x00"


def alarm_notices_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application; the id of an event follows."""
    return ALARM_NOTICES_PREFIX + _checked(app)


def alarm_notice_key(app: bytes, event: bytes) -> bytes:
    """The key in META of who is still to be told of the alarm of an event."""
    return alarm_notices_prefix(app) + _checked(event)


REPORT_TIMES_PREFIX: Final = b"reportTimes\x00"


def report_times_key(holder: bytes, dashboard: bytes) -> bytes:
    """The key in META of when the reports of a dashboard are due. `holder` is its parent."""
    return REPORT_TIMES_PREFIX + _checked(holder) + _checked(dashboard)


TIDY_PREFIX: Final = b"tidy\x00"


def tidy_key(table: bytes) -> bytes:
    """The key in META of the marker that rows of a table may contain values of removed columns."""
    return TIDY_PREFIX + _checked(table)


SWEEP_PREFIX: Final = b"sweep\x00"


def sweep_key(table: bytes, generation: int, column: int | None = None) -> bytes:
    """The key in META of the marker that a generation of a table, or the cells of one column in it, is obsolete."""
    prefix = (
        generation_prefix(table, generation) if column is None else cells_prefix(table, generation, column)
    )
    return SWEEP_PREFIX + prefix


FLOW_SWEEP_PREFIX: Final = b"sweepFlow\x00"


def flow_sweep_key(prefix: bytes) -> bytes:
    """The key in META of the marker that all keys of FLOWS with this prefix are obsolete.

    The prefix of a workflow: it is deleted, and its versions are obsolete as well.
    """
    return FLOW_SWEEP_PREFIX + prefix


FLOW_TIMERS_PREFIX: Final = b"flowTimers\x00"


def flow_timers_key(app: bytes, flow: bytes) -> bytes:
    """The key in META of when the timers of a workflow are due."""
    return flow_timers_prefix(app) + _checked(flow)


def flow_timers_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application; the id of a workflow follows."""
    return FLOW_TIMERS_PREFIX + _checked(app)


WEBHOOK_CONNECTION_PREFIX: Final = b"webhookConnection\x00"


def webhook_connection_key(app: bytes, webhook: bytes, connection: bytes) -> bytes:
    """The key in META of a WebSocket connection of a webhook whose end was not told to workflows yet."""
    return webhook_connections_prefix(app) + _checked(webhook) + _checked(connection)


def webhook_connections_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application."""
    return WEBHOOK_CONNECTION_PREFIX + _checked(app)


SCHEDULED_PREFIX: Final = b"scheduled\x00"


def scheduled_key(app: bytes, due_ms: int, id: bytes) -> bytes:
    """The key in META of a press of a button that is due later."""
    return scheduled_prefix(app) + _time(due_ms) + _checked(id)


def scheduled_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application, in the order of their times."""
    return SCHEDULED_PREFIX + _checked(app)


def scheduled_of_key(key: bytes) -> tuple[int, bytes]:
    """When a press is due, and its id."""
    rest = key[len(SCHEDULED_PREFIX) + ID_BYTES :]
    return int.from_bytes(rest[:8], "big"), rest[8:]


EVENT_JOB_PREFIX: Final = b"eventJob\x00"


def event_job_key(app: bytes, job: bytes) -> bytes:
    """The key in META of the progress of a job that changes the events of an application."""
    return event_jobs_prefix(app) + _checked(job)


def event_jobs_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application; the id of a job follows."""
    return EVENT_JOB_PREFIX + _checked(app)


CONTENT_PREFIX: Final = b"content\x00"


def content_key(app: bytes, content: bytes) -> bytes:
    """The key in META of the marker of a content that no complete record names.

    The value is the time in ms when it may be removed: that of the expiry of its upload, or 0 if a record has named it.
    """
    return CONTENT_PREFIX + _checked(app) + _checked(content)


ARCHIVE_PREFIX: Final = b"archive\x00"


def archive_key(app: bytes) -> bytes:
    """The key in META of the days of an application that are archived."""
    return ARCHIVE_PREFIX + _checked(app)


OPEN_LINKS_PREFIX: Final = b"openLink\x00"


def open_link_key(app: bytes, device: bytes) -> bytes:
    """The key in META of the marker that a device has a link."""
    return open_links_prefix(app) + _checked(device)


def open_links_prefix(app: bytes) -> bytes:
    """The common prefix of these keys of one application; the id of a device follows."""
    return OPEN_LINKS_PREFIX + _checked(app)


WAITING_PREFIX: Final = b"waiting\x00"


def waiting_peripheral_key(app: bytes, gateway: bytes, device: bytes) -> bytes:
    """The key in META of the marker that commands wait for a peripheral of this gateway."""
    return waiting_peripherals_prefix(app, gateway) + _checked(device)


def waiting_peripherals_prefix(app: bytes, gateway: bytes = b"") -> bytes:
    """The common prefix of these keys of a gateway, or without one of an application."""
    return WAITING_PREFIX + _checked(app) + gateway


# Ranges.


def prefix_end(prefix: bytes) -> bytes | None:
    """The first key that sorts after all keys with this prefix; None if there is none (to the end)."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None


def _checked(id: bytes) -> bytes:
    if len(id) != ID_BYTES:
        raise ValueError(f"an id has {ID_BYTES} bytes, not {len(id)}")
    return id


def _word(text: str) -> bytes:
    if not text or "\x00" in text:
        raise ValueError(f"{text!r} cannot be part of a key")
    return text.encode("ascii") + b"\x00"


NUMBER_MAX: Final = (1 << 64) - 1
"""The largest number of a trigger or an answer, and the largest position of a run."""


def _number_of(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _time(time_ms: int) -> bytes:
    if not 0 <= time_ms <= TIME_MS_MAX:
        raise ValueError(f"the time {time_ms} lies outside of 0 to 2**63 - 1 milliseconds")
    return time_ms.to_bytes(8, "big")


def _hour(hour: int) -> bytes:
    if not 0 <= hour <= HOUR_MAX:
        raise ValueError(f"the hour {hour} lies outside of 0 to 2**32 - 1")
    return hour.to_bytes(4, "big")


def _seq(seq: int) -> bytes:
    if not 0 <= seq <= SEQ_MAX:
        raise ValueError(f"the number {seq} lies outside of 0 to 2**32 - 1")
    return seq.to_bytes(4, "big")
