"""Counts of payloads over a set of applications: sums by kind, and sums for each hour or day.

Owns the hourly counts of applications as they are read, and the shapes of the answers. The counts are written by the
actors in whose turns payloads come in, in the same batch (`keys.app_counts_key`). Pure reads of a snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec

from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.listing import ids_of_facet
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message, Query, View
from trunkline.actors.core.values.terms import IsoTime, QueryTime
from trunkline.actors.core.values.timestamps import HOUR_MS, iso, resolve_range
from trunkline.actors.people.organizations.membership import applications_of, find_membership
from trunkline.limits.table import DAY_MS
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot

APPLICATION_PAYLOADS: Final = (
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

NOT_BILLABLE: Final = frozenset(
    {"appFile", "dataTable", "deviceCreate", "event", "flowError", "notebook", "resourceJob"}
)
"""The kinds that are no message of a device, a person or another system, but follow from what the application does.
Breakdowns leave them out, unless the caller includes them."""


# Query strings.


class DayRange(Query, frozen=True):
    """The days that are counted (default: 30 days)."""

    start: QueryTime | None = None
    end: QueryTime | None = None


class PayloadCountRange(Query, frozen=True):
    """The hours that are counted (default: 30 days). `asBytes` is refused: bytes are not measured."""

    start: QueryTime = -2592000000
    end: QueryTime = 0
    as_bytes: bool = False


class PayloadPeriods(DayRange, frozen=True):
    """The hours or days that are counted (default: 30 days). `asBytes` is refused: bytes are not measured."""

    resolution: Literal[86400000, 3600000] = 86400000
    as_bytes: bool = False
    include_non_billable: bool = False


# Messages of reads.


class OfApplications(msgspec.Struct, frozen=True, kw_only=True):
    """What a read is about: one application, all of a user, or those of an organization that the user may read."""

    application: bytes | None = None
    org: bytes | None = None
    user: bytes | None = None
    now_ms: int

    def applications(self, snapshot: Snapshot) -> list[bytes]:
        """The ids of the applications."""
        if self.application is not None:
            return [self.application]
        assert self.user is not None
        if self.org is None:
            return list(ids_of_facet(snapshot, APPLICATION, ROOT, self.user.hex()))
        membership = find_membership(snapshot, self.org, self.user)
        return [] if membership is None else applications_of(snapshot, membership)


class CountPayloads(OfApplications, Message, frozen=True, kw_only=True):
    """Payloads by kind."""

    query: PayloadCountRange


class BreakDownPayloads(OfApplications, Message, frozen=True, kw_only=True):
    """Payloads for each hour or day."""

    query: PayloadPeriods


# Reads.


def count_payloads(reading: Reading, message: CountPayloads) -> dict[str, Any]:
    """Return the payloads by kind, as `PayloadStats`. The range is extended to whole hours."""
    reading.check_time(is_long=True)
    query = message.query
    check_as_bytes(as_bytes=query.as_bytes)
    first, last = hour_span(query.start, query.end, message.now_ms)
    sums: Counter[str] = Counter()
    for application in message.applications(reading.snapshot):
        for _, counts in hourly_counts(reading.snapshot, application, first, last):
            sums.update(counts)
    return {name: ({"total": sums[name]} if sums[name] else {}) for name in APPLICATION_PAYLOADS}


def break_down_payloads(reading: Reading, message: BreakDownPayloads) -> dict[str, Any]:
    """Return the payloads for each hour or day, as `PayloadBreakdown`.

    The range is extended to whole periods. Raises `Invalid` for one that is too long.
    """
    reading.check_time(is_long=True)
    query = message.query
    check_as_bytes(as_bytes=query.as_bytes)
    periods = Periods.of(reading, query.start, query.end, query.resolution, message.now_ms)
    kinds = counted_kinds(include_non_billable=query.include_non_billable)
    for application in message.applications(reading.snapshot):
        for hour, counts in hourly_counts(reading.snapshot, application, *periods.hours):
            periods.add(hour, sum(counts.get(kind, 0) for kind in kinds))
    return periods.shown()


def counted_kinds(*, include_non_billable: bool) -> frozenset[str]:
    """The kinds of payloads in a breakdown."""
    kinds = frozenset(APPLICATION_PAYLOADS)
    return kinds if include_non_billable else kinds - NOT_BILLABLE


def check_as_bytes(*, as_bytes: bool) -> None:
    """Raise `Invalid` if bytes are requested."""
    if as_bytes:
        raise Invalid("asBytes: this server counts payloads and not their bytes; leave it out.")


def hourly_counts(
    snapshot: Snapshot, application: bytes, first: int, last: int
) -> Iterator[tuple[int, dict[str, int]]]:
    """Yield `(hour since the epoch, counts)` of an application, from `first` to `last`, both included."""
    low = keys.app_counts_key(application, first)
    high = keys.app_counts_key(application, min(last, keys.HOUR_MAX)) + b"\x00"
    for key, raw in snapshot.range(keys.COUNTS, low, high):
        # The number of bytes of the contents (`keys.content_count_key`) lies among the last of all possible hours.
        if len(key) == keys.HOUR_KEY_BYTES:
            yield int.from_bytes(key[-4:], "big"), decode(raw)


def hour_span(start: QueryTime, end: QueryTime, now_ms: int) -> tuple[int, int]:
    """Return the first and the last hour of a range, in hours since the epoch."""
    span = resolve_range(now_ms, start=start, end=end)
    return span.start_ms // HOUR_MS, min(span.end_ms // HOUR_MS, keys.HOUR_MAX)


class Periods(NamedTuple):
    """The periods of a breakdown: consecutive days or hours in UTC, each with a sum."""

    start_ms: int
    end_ms: int
    length_ms: int
    first: int
    sums: list[int]

    @classmethod
    def of(
        cls,
        reading: Reading,
        start: QueryTime | None,
        end: QueryTime | None,
        length_ms: int,
        now_ms: int,
    ) -> Periods:
        """Return the periods that a range touches (by default the last 30 days); `Invalid` if it is too long."""
        span = resolve_range(now_ms, start=start, end=end, default_duration=30 * DAY_MS)
        days_max = reading.limits.device_counts_days_max
        if span.end_ms // DAY_MS - span.start_ms // DAY_MS >= days_max:
            raise Invalid(f"start: the range covers more than {days_max} days; ask for a shorter one.")
        first, last = span.start_ms // length_ms, span.end_ms // length_ms
        return cls(span.start_ms, span.end_ms, length_ms, first, [0] * (last - first + 1))

    @property
    def hours(self) -> tuple[int, int]:
        """The first and the last hour of the periods, in hours since the epoch."""
        hours = self.length_ms // HOUR_MS
        return self.first * hours, (self.first + len(self.sums)) * hours - 1

    def add(self, hour: int, number: int) -> None:
        """Add to the sum of the period that the hour belongs to."""
        self.sums[hour * HOUR_MS // self.length_ms - self.first] += number

    def shown(self) -> dict[str, Any]:
        """Return the periods as `PayloadBreakdown`, the oldest first."""
        begin_ms = self.first * self.length_ms
        return {
            "start": iso(self.start_ms),
            "end": iso(self.end_ms),
            "counts": [
                {"date": iso(begin_ms + place * self.length_ms), "value": number}
                for place, number in enumerate(self.sums)
            ],
        }


# Answers.


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


class PeriodCount(View, frozen=True):
    """The payloads of the hour or day that begins at `date` (UTC)."""

    date: IsoTime
    value: int


class PayloadBreakdown(View, frozen=True):
    """Payloads per hour or day."""

    start: IsoTime
    end: IsoTime
    counts: list[PeriodCount]
