"""Summaries of the applications that a user can read over a range of days: devices, payloads and minutes of notebooks.

Query string, message, read and answer. A pure read of a snapshot.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from trunkline.actors.core.records.page import Page, envelope
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.names import listed
from trunkline.actors.core.values.structs import Message, View
from trunkline.actors.core.values.terms import Id, QueryTime
from trunkline.actors.fleet.devices.queries.counts import CountDevices, DeviceCounts, count_devices
from trunkline.actors.platform.applications.messages import IdOrBlank
from trunkline.actors.platform.applications.notebook_minutes import (
    CountNotebookMinutes,
    NotebookMinuteCounts,
    count_notebook_minutes,
)
from trunkline.actors.platform.applications.payload_counts import (
    BreakDownPayloads,
    DayRange,
    PayloadBreakdown,
    PayloadPeriods,
    break_down_payloads,
)
from trunkline.actors.platform.applications.reads import readable_applications

_FIELDS: Final = ("deviceCounts", "notebookMinuteCounts", "payloadCounts")


class PeriodPage(Page, frozen=True):
    """A page of applications, and the days of their summaries (default: 30 days)."""

    sort_field: Literal["name", "id", "creationDate", "ownerId", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None
    org_id: IdOrBlank | None = None
    start: QueryTime | None = None
    end: QueryTime | None = None
    as_bytes: bool = False
    include_non_billable: bool = False
    include: str | None = None
    exclude: str | None = None


class ListPeriodSummaries(Message, frozen=True):
    """The applications that a user can read, with their summaries."""

    user: bytes
    query: PeriodPage
    now_ms: int


def list_period_summaries(reading: Reading, message: ListPeriodSummaries) -> dict[str, Any]:
    """Return a page of the applications that a user can read, each with its counts per day."""
    query = message.query
    fields = _fields(query)
    reading.check_time(is_long=True)
    found, total = readable_applications(reading, message.user, query.org_id, query, query.filter_field)
    items = [
        {
            "id": each.id.hex(),
            "applicationId": each.id.hex(),
            "name": each.doc["name"],
            "summary": {field: _counts(reading, message, field, each.id) for field in fields},
        }
        for each in found
    ]
    return envelope("periodSummaries", items, total, query)


def _counts(reading: Reading, message: ListPeriodSummaries, field: str, application: bytes) -> dict[str, Any]:
    """Return the counts per day of one application under one of the fields."""
    query, now_ms = message.query, message.now_ms
    days = DayRange(start=query.start, end=query.end)
    if field == "deviceCounts":
        return count_devices(reading, CountDevices(application=application, query=days, now_ms=now_ms))
    if field == "notebookMinuteCounts":
        return count_notebook_minutes(reading, CountNotebookMinutes(days, now_ms))
    periods = PayloadPeriods(
        start=query.start,
        end=query.end,
        as_bytes=query.as_bytes,
        include_non_billable=query.include_non_billable,
    )
    return break_down_payloads(
        reading, BreakDownPayloads(application=application, query=periods, now_ms=now_ms)
    )


def _fields(query: PeriodPage) -> list[str]:
    """Return the counts that are shown. Raises `Invalid` for the name of none."""
    chosen: dict[str, frozenset[str] | None] = {}
    for parameter, text in (("include", query.include), ("exclude", query.exclude)):
        names = [name.strip() for name in (text or "").split(",") if name.strip()]
        for name in names:
            if name not in _FIELDS:
                raise Invalid(
                    f"{parameter}: {name[:100]} is not a valid count; give any of {listed(_FIELDS)}."
                )
        chosen[parameter] = frozenset(names) if names else None
    include, exclude = chosen["include"], chosen["exclude"] or frozenset()
    return [name for name in _FIELDS if (include is None or name in include) and name not in exclude]


class PeriodCounts(View, frozen=True):
    """The counts of an application per day."""

    device_counts: DeviceCounts | None = None
    notebook_minute_counts: NotebookMinuteCounts | None = None
    payload_counts: PayloadBreakdown | None = None


class PeriodSummary(View, frozen=True):
    """An application with its counts per day."""

    id: Id
    application_id: Id
    name: str
    summary: PeriodCounts
