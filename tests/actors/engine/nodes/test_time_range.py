"""A time is within hours of a day, in the zone and on the days that the node names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.engine.flow_cases import failure, run_node

NIGHT = {"startTimeTemplate": "22:00", "endTimeTemplate": "6:00"}
DAY = {"startTimeTemplate": "09:00", "endTimeTemplate": "{{data.end}}"}
BERLIN = {"timeZoneTemplate": "{{data.zone}}"}
WORKDAYS = [False, True, True, True, True, True, False]


# 21 September 2026 is a Monday.
@pytest.mark.parametrize(
    ("config", "at", "expected"),
    [
        (DAY, "2026-09-21T09:00:00Z", True),
        (DAY, "2026-09-21T08:59:59.999Z", False),
        (DAY, "2026-09-21T16:59:59.999Z", True),
        (DAY, "2026-09-21T17:00:00Z", False),
        ({**DAY, **BERLIN}, "2026-09-21T07:00:00Z", True),
        ({**DAY, **BERLIN}, "2026-09-21T15:00:00Z", False),
        (NIGHT, "2026-09-21T23:00:00Z", True),
        (NIGHT, "2026-09-21T05:59:00Z", True),
        (NIGHT, "2026-09-21T06:00:00Z", False),
        ({}, "2026-09-21T06:00:00Z", True),
        ({"endTimeTemplate": "07:00"}, 1_790_000_000_000, False),
        ({"startTimeTemplate": "07:00"}, 1_790_000_000_000, True),
        ({"days": WORKDAYS}, "2026-09-21T12:00:00Z", True),
        ({"days": WORKDAYS}, "2026-09-20T12:00:00Z", False),
        ({"days": WORKDAYS, **BERLIN}, "2026-09-20T22:30:00Z", True),
        ({**NIGHT, "days": WORKDAYS}, "2026-09-26T03:00:00Z", False),
        ({"daysType": "path", "daysPath": "data.days", "days": [False] * 7}, "2026-09-21T12:00:00Z", True),
        ({"daysType": "path", "daysPath": "data.days"}, "2026-09-22T12:00:00Z", False),
    ],
)
async def test_ranges(config: dict[str, Any], at: Any, expected: bool) -> None:
    given = {**config, "sourcePath": "data.at", "branchPath": "data.within"}
    data = {"at": at, "end": "17:00", "zone": "Europe/Berlin", "days": [0, 1]}
    shown = await run_node("TimeRangeNode", given, data)
    assert (shown["output"], shown["data"]["within"]) == (int(expected), expected)


async def test_without_a_source_it_is_the_time_of_the_payload() -> None:
    config = {**DAY, "endTimeTemplate": "10:00"}
    for at, output in (("2026-09-21T09:30:00Z", 1), ("2026-09-21T10:30:00Z", 0)):
        assert (await run_node("TimeRangeNode", config, payload={"time": at}))["output"] == output


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"startTimeTemplate": "25:00"},
            "config.startTimeTemplate: gives '25:00', not a time such as 17:30.",
        ),
        ({"endTimeTemplate": "{{data.x}} h"}, "config.endTimeTemplate: gives 'h', not a time"),
        ({"timeZoneTemplate": "Mars"}, "config.timeZoneTemplate: There is no time zone 'Mars'"),
        ({"sourcePath": "data.x"}, "config.sourcePath: leads to nothing, which is not a valid date."),
        ({"days": [True]}, "config.days: give an array of seven booleans, Sunday first."),
        ({"daysType": "path"}, "config.daysPath: is not set"),
        ({"daysType": "path", "daysPath": "data.x"}, "config.daysPath: leads to nothing, not to an array"),
    ],
)
async def test_what_does_not_fit_is_refused(config: dict[str, Any], message: str) -> None:
    name, told = await failure("TimeRangeNode", config)
    assert name == "ValidationError"
    assert told.startswith(message)
