"""TimeRangeNode: output 1 if a time lies within hours of a day, on the days that are chosen, else output 0.

The time is that at `sourcePath`, without it the `time` of the payload, and is looked at in the zone `timeZoneTemplate`
(UTC). The range includes its start and not its end; one that is not set is 00:00. A range that ends before it starts
goes over midnight, and one that ends where it starts is the whole day. The day that counts is the one of the time
itself: `days` has seven booleans from Sunday on, or `daysPath` leads to an array of numbers from 0 for Sunday.
`branchPath` gets whether the time lies within. A time that is none fails the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from trunkline.actors.core.formulas.dates import parse_date, zone_of
from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.paths import compile_path
from trunkline.actors.core.formulas.values import truth
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import ChoiceSetting, Config, FlagsSetting, PathSetting, TemplateSetting
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    needed_path,
    path_of,
    shortened,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "TimeRangeNode"

_SOURCE_PATH: Final = PathSetting("sourcePath")
_TIME_ZONE: Final = TemplateSetting("timeZoneTemplate")
_START_TIME: Final = TemplateSetting("startTimeTemplate")
_END_TIME: Final = TemplateSetting("endTimeTemplate")
_DAYS_TYPE: Final = ChoiceSetting("daysType", "array", "path")
_DAYS: Final = FlagsSetting(
    "days", "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"
)
_DAYS_PATH: Final = PathSetting("daysPath")
_BRANCH_PATH: Final = PathSetting("branchPath")
FORM: Final = Form(
    "logic", (_SOURCE_PATH, _TIME_ZONE, _START_TIME, _END_TIME, _DAYS_TYPE, _DAYS, _DAYS_PATH, _BRANCH_PATH)
)

_CLOCK: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_WEEK_DAYS: Final = 7
_PAYLOAD_TIME: Final = compile_path("time")


def prepare(config: Config) -> NodeStep:
    start, end = _clock(config, _START_TIME), _clock(config, _END_TIME)
    zone = text_reader(config, _TIME_ZONE)
    is_chosen = _days(config)
    source, branch = path_of(config, _SOURCE_PATH) or _PAYLOAD_TIME, path_of(config, _BRANCH_PATH)

    def step(visit: Visit) -> int:
        value = source.get(visit.payload)
        date = parse_date(value)
        if date is None:
            raise refused(f"config.sourcePath: leads to {shortened(value)}, which is not a valid date.")
        try:
            at = date.astimezone(zone_of(zone(visit) or "UTC"))
        except EvaluationError as error:
            raise refused(f"config.timeZoneTemplate: {error}") from None
        except OverflowError:
            raise refused("config.sourcePath: leads to a date that is not in the years 1 to 9999.") from None
        time = timedelta(hours=at.hour, minutes=at.minute, seconds=at.second, microseconds=at.microsecond)
        first, last = start(visit), end(visit)
        is_within = first <= time < last if first < last else time >= first or time < last
        is_within = is_within and is_chosen(visit, at.isoweekday() % _WEEK_DAYS)
        visit.put(branch, is_within)
        return 1 if is_within else 0

    return step


def _clock(config: Config, setting: TemplateSetting) -> Callable[[Visit], timedelta]:
    """Reads a time of the day."""
    written = text_reader(config, setting)

    def read(visit: Visit) -> timedelta:
        text = written(visit).strip()
        found = _CLOCK.fullmatch(text or "00:00")
        if found is None:
            raise refused(f"config.{setting}: gives {shortened(text)}, not a time such as 17:30.")
        return timedelta(hours=int(found[1]), minutes=int(found[2]))

    return read


def _days(config: Config) -> Callable[[Visit, int], bool]:
    """Tells whether a day of the week is chosen, 0 for Sunday."""
    if choice_of(config, _DAYS_TYPE) == "path":
        path = needed_path(config, _DAYS_PATH)

        def is_listed(visit: Visit, day: int) -> bool:
            listed = path.get(visit.payload)
            if not isinstance(listed, list):
                raise refused(f"config.daysPath: leads to {shortened(listed)}, not to an array of days.")
            return day in listed[:_WEEK_DAYS]

        return is_listed
    days: Any = config[_DAYS] or [True] * _WEEK_DAYS
    if not isinstance(days, list) or len(days) != _WEEK_DAYS:
        raise Unusable("config.days: give an array of seven booleans, Sunday first.")
    chosen = [truth(day) for day in days]
    return lambda _visit, day: chosen[day]
