"""Dates of a zone, counted in units: moved, taken apart, put together, and rounded down, as moment does it.

Weeks begin on Sunday. Years, months and days are those of the calendar of the zone: a day may have 23 or 25 hours, and
one month after 31 January is the last day of February. Hours and shorter units are lengths of time.

Raises `ValueError` or `OverflowError` where a result is not in the years 1 to 9999.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from trunkline.actors.core.formulas.dates import plus_months, week_of

YEAR_MONTHS: Final = 12
QUARTER_MONTHS: Final = 3
WEEK_DAYS: Final = 7


class Unit(NamedTuple):
    """A unit: how it is read from a date, how many months, days or milliseconds it has, and where it starts."""

    read: Callable[[datetime], int]
    start: Callable[[datetime], datetime]
    months: int = 0
    days: int = 0
    milliseconds: int = 0


def plus(at: datetime, unit: Unit, amount: float) -> datetime:
    """Move a date by an amount of a unit. Parts of months and of days are rounded, half away from zero."""
    if unit.months:
        return _settled(plus_months(at, _whole(amount * unit.months)))
    if unit.days:
        return _settled(at + timedelta(days=_whole(amount * unit.days)))
    return (at.astimezone(UTC) + timedelta(milliseconds=amount * unit.milliseconds)).astimezone(at.tzinfo)


def with_part(at: datetime, unit: Unit, value: float) -> datetime:
    """Set a part of a date. What is beyond the range of the part goes over to the next longer unit."""
    amount = math.trunc(value) - unit.read(at)
    if unit.milliseconds:
        # The clock is set, which is not the same as to wait for so long.
        return _settled(at + timedelta(milliseconds=amount * unit.milliseconds))
    return plus(at, unit, amount)


def start_of(at: datetime, unit: Unit) -> datetime:
    """The first moment of the unit that the date lies in."""
    return _settled(unit.start(at))


def _settled(at: datetime) -> datetime:
    """The same for a time that exists: a clock that is put forward leaves out an hour."""
    return at.astimezone(UTC).astimezone(at.tzinfo)


def _whole(amount: float) -> int:
    return int(math.copysign(math.floor(abs(amount) + 0.5), amount))


def _millisecond(at: datetime) -> datetime:
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def _second(at: datetime) -> datetime:
    return at.replace(microsecond=0)


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _day(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _week(at: datetime) -> datetime:
    return _day(at) - timedelta(days=at.isoweekday() % WEEK_DAYS)


def _month(at: datetime) -> datetime:
    return _day(at).replace(day=1)


def _quarter(at: datetime) -> datetime:
    return _month(at).replace(month=at.month - (at.month - 1) % QUARTER_MONTHS)


def _year(at: datetime) -> datetime:
    return _month(at).replace(month=1)


UNITS: Final = {
    "year": Unit(lambda at: at.year, _year, months=YEAR_MONTHS),
    "quarter": Unit(lambda at: (at.month + 2) // QUARTER_MONTHS, _quarter, months=QUARTER_MONTHS),
    "month": Unit(lambda at: at.month - 1, _month, months=1),
    "week": Unit(lambda at: week_of(at)[1], _week, days=WEEK_DAYS),
    "dayOfYear": Unit(lambda at: at.timetuple().tm_yday, _day, days=1),
    "day": Unit(lambda at: at.day, _day, days=1),
    "dayOfWeek": Unit(lambda at: at.isoweekday() % WEEK_DAYS, _day, days=1),
    "hour": Unit(lambda at: at.hour, _hour, milliseconds=3_600_000),
    "minute": Unit(lambda at: at.minute, _minute, milliseconds=60_000),
    "second": Unit(lambda at: at.second, _second, milliseconds=1_000),
    "millisecond": Unit(lambda at: at.microsecond // 1000, _millisecond, milliseconds=1),
}
"""The units by the names that workflows give them. January is the month 0, Sunday the day of the week 0."""
