"""Dates are moved, rounded, compared, taken apart and written, in the zone that the node names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.engine.flow_cases import NOW_MS, failure, run_node

NEW_YORK = "America/New_York"
CASES = [
    # The clock of New York is put forward at 02:00 on 8 March 2026, and back at 02:00 on 1 November 2026.
    ("add", {"unit": "month", "numberValue": "1"}, "2026-01-31T10:00:00Z", "2026-02-28T10:00:00+00:00"),
    ("add", {"unit": "year"}, "2024-02-29T00:00:00Z", "2025-02-28T00:00:00+00:00"),
    ("add", {"numberValue": 2}, "2024-02-29T00:00:00Z", "2026-02-28T00:00:00+00:00"),
    ("add", {"unit": "quarter"}, "2026-11-30T00:00:00Z", "2027-02-28T00:00:00+00:00"),
    ("add", {"unit": "days"}, "2026-03-07T17:00:00Z", "2026-03-08T17:00:00+00:00"),
    ("add", {"unit": "day", "timezone": NEW_YORK}, "2026-03-07T17:00:00Z", "2026-03-08T12:00:00-04:00"),
    ("add", {"unit": "day", "timezone": NEW_YORK}, "2026-03-07T07:30:00Z", "2026-03-08T03:30:00-04:00"),
    ("add", {"unit": "hour", "timezone": NEW_YORK}, "2026-03-08T06:30:00Z", "2026-03-08T03:30:00-04:00"),
    ("add", {"unit": "hour", "timezone": NEW_YORK}, "2026-11-01T05:30:00Z", "2026-11-01T01:30:00-05:00"),
    ("add", {"unit": "hour", "numberValue": "0.5"}, "2026-01-01T00:00:00Z", "2026-01-01T00:30:00+00:00"),
    ("add", {"unit": "month", "numberValue": "1.5"}, "2026-01-01T00:00:00Z", "2026-03-01T00:00:00+00:00"),
    ("add", {"unit": "week", "numberValue": "{{data.n}}"}, 0, "1970-01-15T00:00:00+00:00"),
    ("add", {"unit": "second", "numberValue": "{{data.n}}"}, 500, "1970-01-01T00:00:02+00:00"),
    (
        "add",
        {"unit": "millisecond", "resultFormatString": "ss.SSS"},
        "2026-01-01T00:00:00.998Z",
        "00.999",
    ),
    ("subtract", {"unit": "month"}, "2026-03-31T00:00:00Z", "2026-02-28T00:00:00+00:00"),
    ("subtract", {"unit": "minute", "numberValue": "-5"}, 0, "1970-01-01T00:05:00+00:00"),
    ("format", {"resultFormatString": "YYYY-MM-DD HH:mm"}, "2026-09-21", "2026-09-21 00:00"),
    ("format", {"timezone": NEW_YORK}, "2026-09-21T00:00:00Z", "2026-09-20T20:00:00-04:00"),
    ("format", {"resultFormatString": "{{data.form}}", "timezone": "{{data.zone}}"}, 0, "Thursday 1 am"),
    ("getDatePart", {"unit": "year"}, "2026-09-21T01:02:03.004Z", 2026),
    ("getDatePart", {"unit": "quarter"}, "2026-09-21T01:02:03.004Z", 3),
    ("getDatePart", {"unit": "month"}, "2026-09-21T01:02:03.004Z", 8),
    ("getDatePart", {"unit": "week"}, "2026-09-21T01:02:03.004Z", 39),
    ("getDatePart", {"unit": "dayOfYear"}, "2026-09-21T01:02:03.004Z", 264),
    ("getDatePart", {"unit": "day"}, "2026-09-21T01:02:03.004Z", 21),
    ("getDatePart", {"unit": "dayOfWeek"}, "2026-09-21T01:02:03.004Z", 1),
    ("getDatePart", {"unit": "hour", "timezone": NEW_YORK}, "2026-09-21T01:02:03.004Z", 21),
    ("getDatePart", {"unit": "minute"}, "2026-09-21T01:02:03.004Z", 2),
    ("getDatePart", {"unit": "second"}, "2026-09-21T01:02:03.004Z", 3),
    ("getDatePart", {"unit": "millisecond"}, "2026-09-21T01:02:03.004Z", 4),
    ("setDatePart", {"unit": "year", "numberValue": 2025}, "2024-02-29", "2025-02-28T00:00:00+00:00"),
    ("setDatePart", {"unit": "month", "numberValue": 1}, "2026-01-31", "2026-02-28T00:00:00+00:00"),
    ("setDatePart", {"unit": "day", "numberValue": 32}, "2026-01-05", "2026-02-01T00:00:00+00:00"),
    ("setDatePart", {"unit": "dayOfWeek", "numberValue": 0}, "2026-09-21", "2026-09-20T00:00:00+00:00"),
    ("setDatePart", {"unit": "dayOfYear", "numberValue": 1}, "2026-09-21", "2026-01-01T00:00:00+00:00"),
    ("setDatePart", {"unit": "week", "numberValue": 1}, "2026-09-21", "2025-12-29T00:00:00+00:00"),
    ("setDatePart", {"unit": "quarter", "numberValue": 1}, "2026-09-21", "2026-03-21T00:00:00+00:00"),
    (
        "setDatePart",
        {"unit": "hour", "numberValue": 9, "timezone": NEW_YORK},
        "2026-03-08T05:30:00Z",
        "2026-03-08T09:30:00-04:00",
    ),
    ("setDatePart", {"unit": "minute", "numberValue": 90.9}, "2026-01-01", "2026-01-01T01:30:00+00:00"),
    ("daysInMonth", {}, "2024-02-10", 29),
    ("startOfTime", {"unit": "year"}, "2026-08-21T01:02:03.004Z", "2026-01-01T00:00:00+00:00"),
    ("startOfTime", {"unit": "quarter"}, "2026-08-21T01:02:03.004Z", "2026-07-01T00:00:00+00:00"),
    ("startOfTime", {"unit": "month"}, "2026-08-21T01:02:03.004Z", "2026-08-01T00:00:00+00:00"),
    ("startOfTime", {"unit": "week"}, "2026-08-21T01:02:03.004Z", "2026-08-16T00:00:00+00:00"),
    ("startOfTime", {"unit": "hour"}, "2026-08-21T01:02:03.004Z", "2026-08-21T01:00:00+00:00"),
    ("startOfTime", {"unit": "minute"}, "2026-08-21T01:02:03.004Z", "2026-08-21T01:02:00+00:00"),
    ("startOfTime", {"unit": "second"}, "2026-08-21T01:02:03.004Z", "2026-08-21T01:02:03+00:00"),
    ("startOf", {"unit": "day", "timezone": NEW_YORK}, "2026-08-21T01:02:03Z", "2026-08-20T00:00:00-04:00"),
    (
        "startOfTime",
        {"unit": "hour", "timezone": NEW_YORK},
        "2026-11-01T06:40:00Z",
        "2026-11-01T01:00:00-05:00",
    ),
    # At midnight of 6 September 2026 the clock of Santiago is put forward: the day starts at one.
    (
        "startOfTime",
        {"unit": "day", "timezone": "America/Santiago"},
        "2026-09-06T12:00:00Z",
        "2026-09-06T01:00:00-03:00",
    ),
    ("toArray", {}, "2026-08-21T01:02:03.004Z", [2026, 7, 21, 1, 2, 3, 4]),
    (
        "toObject",
        {"timezone": NEW_YORK},
        "2026-08-21T01:02:03.004Z",
        {
            "years": 2026,
            "months": 7,
            "date": 20,
            "hours": 21,
            "minutes": 2,
            "seconds": 3,
            "milliseconds": 4,
        },
    ),
    ("unixTimestampSeconds", {"timezone": NEW_YORK}, "1970-01-01T00:00:01.999Z", 1),
    ("unixTimestampMilliseconds", {}, "1969-12-31T23:59:59.999Z", -1),
]


@pytest.mark.parametrize(("operation", "config", "source", "expected"), CASES)
async def test_operations(operation: str, config: dict[str, Any], source: Any, expected: Any) -> None:
    given = {
        "numberValue": 1,
        **config,
        "operation": operation,
        "sourcePath": "data.at",
        "resultPath": "data.r",
    }
    data = {"at": source, "n": 2, "form": "dddd h a", "zone": "Europe/Berlin"}
    shown = await run_node("DateTimeNode", given, data)
    assert shown["data"]["r"] == expected
    assert shown["output"] == 0


@pytest.mark.parametrize(
    ("source", "other", "form", "expected"),
    [
        ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "", 86_400_000),
        ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "", 0),
        ("2026-01-01T00:00:00Z", "02.01.2026 00:00:01", "DD.MM.YYYY HH:mm:ss", -86_401_000),
        ("2026-03-08T12:00:00Z", 1_772_884_800_000, "", 86_400_000),
    ],
)
async def test_a_difference_is_in_milliseconds(source: Any, other: Any, form: str, expected: int) -> None:
    config = {
        "operation": "diff",
        "sourcePath": "data.at",
        "diffDataPath": "data.other",
        "diffDataFormatString": form,
        "resultPath": "data.r",
        "timezone": NEW_YORK,
        "unit": "year",
    }
    shown = await run_node("DateTimeNode", config, {"at": source, "other": other})
    assert shown["data"]["r"] == expected


async def test_without_a_source_it_is_the_time_of_the_run_and_without_a_result_nothing_changes() -> None:
    config = {"operation": "unixTimestampMilliseconds", "sourcePath": "", "resultPath": "data.r"}
    assert (await run_node("DateTimeNode", config))["data"] == {"r": NOW_MS}
    assert (await run_node("DateTimeNode", {**config, "resultPath": ""}))["data"] == {}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"operation": "teleport"}, "config.operation: is 'teleport'; give one of add, subtract, format"),
        ({"operation": "add"}, "config.numberValue: is not set; give a number"),
        ({"operation": "add", "numberValue": "x"}, "config.numberValue: gives 'x', not a number."),
        ({"operation": "add", "numberValue": 1, "unit": "eon"}, "config.unit: is 'eon'; give one of year"),
        ({"operation": "diff"}, "config.diffDataPath: is not set"),
        (
            {"operation": "add", "numberValue": "1e300"},
            "config.operation: the result is not in the years 1 to",
        ),
        (
            {"operation": "add", "numberValue": "1e300", "unit": "day"},
            "config.operation: the result is not in",
        ),
        ({"operation": "add", "numberValue": "Infinity", "unit": "second"}, "config.operation: the result"),
        ({"operation": "setDatePart", "numberValue": 0}, "config.operation: the result is not in the years"),
        (
            {"operation": "format", "timezone": "Mars/Olympus"},
            "config.timezone: There is no time zone 'Mars/",
        ),
        (
            {"operation": "format", "sourcePath": "data.x"},
            "config.sourcePath: leads to nothing, which is not a valid date.",
        ),
        (
            {"operation": "format", "resultFormatString": "Y" * 1025},
            "config.resultFormatString: A date format has",
        ),
        ({"operation": "format", "sourcePath": "data"}, "config.sourcePath: leads to {"),
        (
            {"operation": "format", "sourcePath": "data.t", "sourceFormatString": "MM/DD/YYYY"},
            "config.sourcePath: leads to 'soon', which is not a valid date in the format 'MM/DD/YYYY'.",
        ),
        (
            {"operation": "format", "sourcePath": "data.t", "sourceFormatString": "GGGG-[W]WW"},
            "config.sourceFormatString: A date cannot be read by GGGG",
        ),
    ],
)
async def test_what_does_not_fit_is_refused(config: dict[str, Any], message: str) -> None:
    name, told = await failure("DateTimeNode", config, {"t": "soon"})
    assert name == "ValidationError"
    assert told.startswith(message)
