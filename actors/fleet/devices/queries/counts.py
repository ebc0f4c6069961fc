"""Counts of devices per day, and of the payloads of a device.

Query strings, messages, reads and answers. Pure reads of a snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from trunkline.actors.core.records import records
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Message, View
from trunkline.actors.core.values.terms import IsoTime
from trunkline.actors.core.values.timestamps import iso, resolve_range
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import PayloadRange
from trunkline.actors.fleet.devices.record.reads import open_device
from trunkline.actors.fleet.devices.state.head import Head
from trunkline.actors.platform.applications.payload_counts import (
    DayRange,
    OfApplications,
    Periods,
    hour_span,
    hourly_counts,
)
from trunkline.limits.table import DAY_MS
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot

DEVICE_PAYLOADS = ("deviceCommand", "deviceConnect", "deviceDisconnect", "deviceState", "mqttIn", "mqttOut")


# Query strings.


class DevicePayloadPeriods(PayloadRange, frozen=True):
    """The hours or days that are counted (default: 30 days)."""

    resolution: Literal[86400000, 3600000] = 86400000


# Messages of reads.


class CountDevices(OfApplications, Message, frozen=True, kw_only=True):
    """Devices per day."""

    query: DayRange


class CountDevicePayloads(Message, frozen=True):
    """Payloads of one device."""

    application: bytes
    device: bytes
    query: PayloadRange
    now_ms: int


class BreakDownDevicePayloads(Message, frozen=True):
    """Payloads of one device for each hour or day."""

    application: bytes
    device: bytes
    query: DevicePayloadPeriods
    now_ms: int


# Reads.


def count_devices(reading: Reading, message: CountDevices) -> dict[str, Any]:
    """Return the devices per day, as `DeviceCounts`.

    The total of each day is computed backwards from the current number of devices.
    """
    reading.check_time(is_long=True)
    query = message.query
    span = resolve_range(
        message.now_ms, start=query.start, end=query.end, default_end=0, default_duration=30 * DAY_MS
    )
    first, last = span.start_ms // DAY_MS, span.end_ms // DAY_MS
    snapshot, days_max = reading.snapshot, reading.limits.device_counts_days_max
    if last - first >= days_max:
        raise Invalid(f"start: the range covers more than {days_max} days; ask for a shorter one.")
    created: Counter[int] = Counter()
    deleted: Counter[int] = Counter()
    restored: Counter[int] = Counter()
    total = 0
    for application in message.applications(snapshot):
        total += records.total(snapshot, DEVICE, application)
        for hour, counts in hourly_counts(snapshot, application, first * 24, 1 << 32):
            created[hour // 24] += counts.get("deviceCreate", 0)
            deleted[hour // 24] += counts.get("deviceDelete", 0)
            restored[hour // 24] += counts.get("deviceRestore", 0)
    later = {day for counts in (created, deleted, restored) for day in counts if day > last}
    total -= sum(created[day] + restored[day] - deleted[day] for day in later)
    days = []
    for day in range(last, first - 1, -1):
        days.append(
            {"date": iso(day * DAY_MS), "created": created[day], "deleted": deleted[day], "total": total}
        )
        total -= created[day] + restored[day] - deleted[day]
    return {"start": iso(span.start_ms), "end": iso(span.end_ms), "counts": days[::-1]}


def count_device_payloads(reading: Reading, message: CountDevicePayloads) -> dict[str, int]:
    """Return the payloads of one device by kind. The range is extended to whole hours."""
    reading.check_time(is_long=True)
    open_device(reading.snapshot, message.application, message.device)
    first, last = hour_span(message.query.start, message.query.end, message.now_ms)
    return device_payloads(reading.snapshot, message.device, first, last)


def device_payloads(snapshot: Snapshot, device: bytes, first: int, last: int) -> dict[str, int]:
    """Return the payloads of a device by kind, from the hour `first` to the hour `last`, both included."""
    sums: Counter[str] = Counter()
    for _, counts in _hourly_counts(snapshot, device, first, last):
        sums.update(counts)
    return {name: sums[name] for name in DEVICE_PAYLOADS}


def break_down_device_payloads(reading: Reading, message: BreakDownDevicePayloads) -> dict[str, Any]:
    """Return the payloads of one device for each hour or day."""
    reading.check_time(is_long=True)
    query = message.query
    open_device(reading.snapshot, message.application, message.device)
    periods = Periods.of(reading, query.start, query.end, query.resolution, message.now_ms)
    for hour, counts in _hourly_counts(reading.snapshot, message.device, *periods.hours):
        periods.add(hour, sum(counts.get(kind, 0) for kind in DEVICE_PAYLOADS))
    return periods.shown()


def _hourly_counts(
    snapshot: Snapshot, device: bytes, first: int, last: int
) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield `(hour since the epoch, counts)` of a device; the hour of its head comes last, and maybe twice."""
    low = keys.counts_key(device, first)
    high = keys.counts_key(device, last) + b"\x00"
    for key, raw in snapshot.range(keys.TIMELINE, low, high):
        yield int.from_bytes(key[-4:], "big"), decode(raw)
    head = Head.read(snapshot, device)
    if first <= head.hour <= last:
        yield head.hour, head.counts


# Answers.


class DayCount(View, frozen=True):
    """Devices created and deleted in the day that begins at `date` (UTC), and how many there were at its end.

    A device that is restored counts in `total` again, and not as created.
    """

    date: IsoTime
    created: int
    deleted: int
    total: int


class DeviceCounts(View, frozen=True):
    """Devices per day."""

    start: IsoTime
    end: IsoTime
    counts: list[DayCount]
