"""Counts of devices per day (of an application or a user) and of payloads (of an application or a device).

Query strings, messages, reads and answers. Pure reads of a snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from trunkline.actors.devices.head import Head
from trunkline.actors.devices.kind import DEVICE
from trunkline.actors.devices.messages import PayloadRange
from trunkline.actors.devices.reads import open_device
from trunkline.actors.records import records
from trunkline.actors.records.kinds import APPLICATION
from trunkline.actors.records.listing import ids_of_facet
from trunkline.actors.records.reading import Reading
from trunkline.actors.values.errors import Invalid
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.structs import Message, Query, View
from trunkline.actors.values.terms import IsoTime, QueryTime
from trunkline.actors.values.timestamps import HOUR_MS, iso, resolve_range
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot

DAY_MS = 24 * HOUR_MS

DEVICE_PAYLOADS = ("deviceCommand", "deviceConnect", "deviceDisconnect", "deviceState", "mqttIn", "mqttOut")
APPLICATION_PAYLOADS = (
    "appFile",
    "dataTable",
    "deviceCreate",
    "deviceCommand",
    "deviceConnect",
    "deviceDisconnect",
    "deviceState",
    "endpoint",
    "event",
    "flowError",
    "inboundEmail",
    "integration",
    "mqttIn",
    "mqttOut",
    "notebook",
    "resourceJob",
    "timer",
    "virtualButton",
    "webhook",
)


# Query strings.


class CountRange(Query, frozen=True):
    """The days that are counted (default: 30 days)."""

    start: QueryTime | None = None
    end: QueryTime | None = None


class PayloadCountRange(Query, frozen=True):
    """The hours that are counted (default: 30 days). `asBytes` is refused: bytes are not measured yet."""

    start: QueryTime = -2592000000
    end: QueryTime = 0
    as_bytes: bool = False


# Messages of reads.


class CountDevices(Message, frozen=True):
    """Devices per day of one application."""

    application: bytes
    query: CountRange
    now_ms: int


class CountMyDevices(Message, frozen=True):
    """Devices per day of all applications of one user."""

    user: bytes
    query: CountRange
    now_ms: int


class CountPayloads(Message, frozen=True):
    """Payloads of one application."""

    application: bytes
    query: PayloadCountRange
    now_ms: int


class CountDevicePayloads(Message, frozen=True):
    """Payloads of one device."""

    application: bytes
    device: bytes
    query: PayloadRange
    now_ms: int


# Reads.


def count_devices(reading: Reading, message: CountDevices) -> dict[str, Any]:
    """Return the devices per day of one application."""
    reading.check_time(is_long=True)
    return _device_counts(reading, [message.application], message.query, message.now_ms)


def count_my_devices(reading: Reading, message: CountMyDevices) -> dict[str, Any]:
    """Return the devices per day of all applications of one user."""
    snapshot = reading.snapshot
    reading.check_time(is_long=True)
    owned = list(ids_of_facet(snapshot, APPLICATION, ROOT, message.user.hex()))
    return _device_counts(reading, owned, message.query, message.now_ms)


def _device_counts(
    reading: Reading, applications: list[bytes], query: CountRange, now_ms: int
) -> dict[str, Any]:
    """Count devices per day. The total of each day is computed backwards from the current number of devices."""
    span = resolve_range(
        now_ms, start=query.start, end=query.end, default_end=0, default_duration=30 * DAY_MS
    )
    first, last = span.start_ms // DAY_MS, span.end_ms // DAY_MS
    snapshot, days_max = reading.snapshot, reading.limits.device_counts_days_max
    if last - first >= days_max:
        raise Invalid(f"start: the range covers more than {days_max} days; ask for a shorter one.")
    created: Counter[int] = Counter()
    deleted: Counter[int] = Counter()
    total = 0
    for application in applications:
        total += records.total(snapshot, DEVICE, application)
        for hour, counts in _hours(snapshot, application, first * 24, 1 << 32):
            created[hour // 24] += counts.get("deviceCreate", 0)
            deleted[hour // 24] += counts.get("deviceDelete", 0)
    newest = max([last, *created, *deleted])
    days = []
    for day in range(newest, first - 1, -1):
        if day <= last:
            days.append(
                {"date": iso(day * DAY_MS), "created": created[day], "deleted": deleted[day], "total": total}
            )
        total -= created[day] - deleted[day]
    return {"start": iso(span.start_ms), "end": iso(span.end_ms), "counts": days[::-1]}


def _hours(
    snapshot: Snapshot, application: bytes, first: int, last: int
) -> Iterable[tuple[int, dict[str, int]]]:
    """Yield `(hour since the epoch, counts)` of an application, from `first` to `last`, both included."""
    low = keys.app_counts_key(application, first)
    high = keys.app_counts_key(application, min(last, (1 << 32) - 1)) + b"\x00"
    for key, raw in snapshot.range(keys.COUNTS, low, high):
        yield int.from_bytes(key[-4:], "big"), decode(raw)


def count_payloads(reading: Reading, message: CountPayloads) -> dict[str, Any]:
    """Return the payloads of one application by kind. The range is extended to whole hours."""
    snapshot = reading.snapshot
    reading.check_time(is_long=True)
    if message.query.as_bytes:
        raise Invalid("asBytes: this server counts payloads and not their bytes; leave it out.")
    first, last = _hour_span(message.query.start, message.query.end, message.now_ms)
    sums: Counter[str] = Counter()
    for _, counts in _hours(snapshot, message.application, first, last):
        sums.update(counts)
    return {name: ({"total": sums[name]} if sums[name] else {}) for name in APPLICATION_PAYLOADS}


def count_device_payloads(reading: Reading, message: CountDevicePayloads) -> dict[str, int]:
    """Return the payloads of one device by kind. The range is extended to whole hours."""
    snapshot = reading.snapshot
    reading.check_time(is_long=True)
    open_device(snapshot, message.application, message.device)
    first, last = _hour_span(message.query.start, message.query.end, message.now_ms)
    sums: Counter[str] = Counter()
    low = keys.counts_key(message.device, first)
    high = keys.counts_key(message.device, last) + b"\x00"
    for _, raw in snapshot.range(keys.TIMELINE, low, high):
        sums.update(decode(raw))
    head = Head.read(snapshot, message.device)
    if first <= head.hour <= last:
        sums.update(head.counts)
    return {name: sums[name] for name in DEVICE_PAYLOADS}


def _hour_span(start: QueryTime, end: QueryTime, now_ms: int) -> tuple[int, int]:
    span = resolve_range(now_ms, start=start, end=end)
    last = min(span.end_ms // HOUR_MS, (1 << 32) - 1)
    return span.start_ms // HOUR_MS, last


# Answers.


class DayCount(View, frozen=True):
    """Devices created and deleted in the day that begins at `date` (UTC), and how many there were at its end."""

    date: IsoTime
    created: int
    deleted: int
    total: int


class DeviceCounts(View, frozen=True):
    """Devices per day."""

    start: IsoTime
    end: IsoTime
    counts: list[DayCount]


class PayloadStats(View, frozen=True):
    """Payloads by kind, and within a kind by source (`total` if no finer source is known)."""

    app_file: dict[str, int]
    data_table: dict[str, int]
    device_create: dict[str, int]
    device_command: dict[str, int]
    device_connect: dict[str, int]
    device_disconnect: dict[str, int]
    device_state: dict[str, int]
    endpoint: dict[str, int]
    event: dict[str, int]
    flow_error: dict[str, int]
    inbound_email: dict[str, int]
    integration: dict[str, int]
    mqtt_in: dict[str, int]
    mqtt_out: dict[str, int]
    notebook: dict[str, int]
    resource_job: dict[str, int]
    timer: dict[str, int]
    virtual_button: dict[str, int]
    webhook: dict[str, int]
