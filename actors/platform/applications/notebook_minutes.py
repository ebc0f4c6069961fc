"""The minutes that notebooks ran, for each day. This server runs no notebooks, so every day has zeros."""

from __future__ import annotations

from typing import Any

from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.structs import Message, Query, View
from trunkline.actors.core.values.terms import IsoTime, QueryTime
from trunkline.actors.platform.applications.payload_counts import Periods
from trunkline.limits.table import DAY_MS

NO_RUNS = {"awaitingCompletion": 0, "minutesThisPeriod": 0, "runsThisPeriod": 0}
"""The executions of notebooks in the summary of an application."""
_NONE = {"minutes": 0, "completed": 0, "canceled": 0, "errored": 0, "timeout": 0}


class MinuteRange(Query, frozen=True):
    """The days that are counted (default: 30 days)."""

    start: QueryTime | None = None
    end: QueryTime | None = None


class CountNotebookMinutes(Message, frozen=True):
    """The minutes of notebooks of one application."""

    application: bytes
    query: MinuteRange
    now_ms: int


class CountMyNotebookMinutes(Message, frozen=True):
    """The minutes of notebooks of all applications of one user."""

    user: bytes
    query: MinuteRange
    now_ms: int


def count_notebook_minutes(reading: Reading, message: CountNotebookMinutes) -> dict[str, Any]:
    """Return the minutes of notebooks of one application."""
    return notebook_minutes(reading, message.query.start, message.query.end, message.now_ms)


def count_my_notebook_minutes(reading: Reading, message: CountMyNotebookMinutes) -> dict[str, Any]:
    """Return the minutes of notebooks of all applications of one user."""
    return notebook_minutes(reading, message.query.start, message.query.end, message.now_ms)


def notebook_minutes(
    reading: Reading, start: QueryTime | None, end: QueryTime | None, now_ms: int
) -> dict[str, Any]:
    """Return the days of the range (by default the last 30 days) as `NotebookMinuteCounts`."""
    shown = Periods.of(reading, start, end, DAY_MS, now_ms).shown()
    return {**shown, "counts": [{"date": day["date"], **_NONE} for day in shown["counts"]]}


class NotebookDay(View, frozen=True):
    """The minutes of the day that begins at `date` (UTC), and how the runs ended."""

    date: IsoTime
    minutes: int
    completed: int
    canceled: int
    errored: int
    timeout: int


class NotebookMinuteCounts(View, frozen=True):
    """Minutes of notebooks per day."""

    start: IsoTime
    end: IsoTime
    counts: list[NotebookDay]
