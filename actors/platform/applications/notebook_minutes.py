"""The minutes that notebooks ran, for each day. This server runs no notebooks, so every day has zeros."""

from __future__ import annotations

from typing import Any

from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.structs import Message, View
from trunkline.actors.core.values.terms import IsoTime
from trunkline.actors.platform.applications.payload_counts import DayRange, Periods
from trunkline.limits.table import DAY_MS

NO_RUNS = {"awaitingCompletion": 0, "minutesThisPeriod": 0, "runsThisPeriod": 0}
"""The executions of notebooks in the summary of an application."""
_NONE = {"minutes": 0, "completed": 0, "canceled": 0, "errored": 0, "timeout": 0}


class CountNotebookMinutes(Message, frozen=True):
    """The minutes of notebooks: of a notebook, of an application, of all of a user or of an organization."""

    query: DayRange
    now_ms: int


def count_notebook_minutes(reading: Reading, message: CountNotebookMinutes) -> dict[str, Any]:
    """Return the days of the range (by default the last 30 days) as `NotebookMinuteCounts`."""
    query = message.query
    shown = Periods.of(reading, query.start, query.end, DAY_MS, message.now_ms).shown()
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
