"""Counting: devices per day and payloads per hour, of an application, of a device, of a user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from trunkline.actors.applications.messages import CountRange
from trunkline.actors.devices.head import HOUR_MS, Head
from trunkline.actors.devices.reads import open_device
from trunkline.actors.messages.reads import CountDevicePayloads, CountDevices, CountMyDevices, CountPayloads
from trunkline.actors.records import records
from trunkline.actors.records.kinds import APPLICATION, DEVICE
from trunkline.actors.values.errors import Invalid
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.timestamps import iso, resolve_range
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot

DAY_MS = 24 * HOUR_MS
SPAN_DAYS_MAX = 366

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


def count_devices(snapshot: Snapshot, message: CountDevices) -> dict[str, Any]:
    """Devices per day of one application."""
    return _device_counts(snapshot, [message.application], message.query, message.now_ms)


def count_my_devices(snapshot: Snapshot, message: CountMyDevices) -> dict[str, Any]:
    """Devices per day of all applications of one user."""
    owner = message.user.hex()
    owned = [id for id, doc in records.scan(snapshot, APPLICATION, ROOT) if doc["ownerId"] == owner]
    return _device_counts(snapshot, owned, message.query, message.now_ms)


def _device_counts(
    snapshot: Snapshot, applications: list[bytes], query: CountRange, now_ms: int
) -> dict[str, Any]:
    """The total of each day is counted backwards from the devices that there are now."""
    span = resolve_range(
        now_ms, start=query.start, end=query.end, default_end=0, default_duration=30 * DAY_MS
    )
    first, last = span.start_ms // DAY_MS, span.end_ms // DAY_MS
    if last - first >= SPAN_DAYS_MAX:
        raise Invalid(f"start: the range covers more than {SPAN_DAYS_MAX} days; ask for a shorter one.")
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
    """`(hour since the epoch, counters)` of an application, both ends included."""
    low = keys.app_counts_key(application, first)
    high = keys.app_counts_key(application, min(last, (1 << 32) - 1)) + b"\x00"
    for key, raw in snapshot.range(keys.COUNTS, low, high):
        yield int.from_bytes(key[-4:], "big"), decode(raw)


def count_payloads(snapshot: Snapshot, message: CountPayloads) -> dict[str, Any]:
    """Payloads of one application in whole hours, by kind."""
    if message.query.as_bytes:
        raise Invalid("asBytes: this server counts payloads and not their bytes; leave it out.")
    first, last = _hour_span(message.query.start, message.query.end, message.now_ms)
    sums: Counter[str] = Counter()
    for _, counts in _hours(snapshot, message.application, first, last):
        sums.update(counts)
    return {name: ({"total": sums[name]} if sums[name] else {}) for name in APPLICATION_PAYLOADS}


def count_device_payloads(snapshot: Snapshot, message: CountDevicePayloads) -> dict[str, int]:
    """Payloads of one device in whole hours, by kind."""
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


def _hour_span(start: int, end: int, now_ms: int) -> tuple[int, int]:
    span = resolve_range(now_ms, start=start, end=end)
    last = min(span.end_ms // HOUR_MS, (1 << 32) - 1)
    return span.start_ms // HOUR_MS, last
