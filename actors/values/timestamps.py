"""Moments: how times come in, how they are written, and which range a history query means.

Owns every reading of a time that a caller gives and the one way in which a time is written. Does not own
a clock (`now_ms` is passed in), nor what a time is allowed to mean: that a report may be at most a day ahead
is the device's rule, not this module's.

Inside, a moment is an integer: milliseconds since the epoch, UTC. Reports and queries read numbers
differently, which is why there are two functions: a report's time may be in seconds and says where a value
belongs, while a query's `start` and `end` are always milliseconds in which 0 is now.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import NamedTuple

from trunkline.actors.values.errors import Invalid

MOMENT_MS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999: beyond it there is no ISO text of four-digit years."""

SECONDS_BELOW = 100_000_000_000
"""A report's number below this is in seconds (to the year 5138), from here on in milliseconds (from 1973)."""

DAY_MS = 86_400_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = _EPOCH.toordinal()

_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,30})?)?"
    r"(?P<offset>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][+-]?[0-9]{1,3})?")

_REPORT_FORMS = (
    'give an ISO 8601 text such as 2024-05-01T12:00:00.000Z (also as {"$date": text}), seconds or '
    "milliseconds since 1970 as a number, a negative number for that many milliseconds ago, or leave it out "
    "for now"
)
_QUERY_FORMS = (
    "give a whole number of milliseconds since 1970, 0 for now, or a negative number to count back from now"
)


class MomentError(Invalid, ValueError):
    """A time that cannot be read. Its text is for the caller: field, what was given, what is right."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}.")
        self.field = field
        self.problem = problem


class Range(NamedTuple):
    """A stretch of time, both ends included, so that an entry of this millisecond is part of "until now"."""

    start_ms: int
    end_ms: int

    @property
    def empty(self) -> bool:
        """Whether no millisecond lies in it, as when a client asks for what follows the newest entry."""
        return self.start_ms > self.end_ms


# -- the time of a report ------------------------------------------------------------------------------------


def parse_report_time(value: object, now_ms: int, *, field: str = "time") -> int:
    """Read the time that a state, a command or a connection report carries.

    None is `now_ms`. `{"$date": iso}` and ISO text are absolute. A number, or a text that is a number, is

    - negative: that many milliseconds before `now_ms`;
    - below 1e11: seconds since the epoch, fractions allowed;
    - else milliseconds since the epoch.

    Zero is the first moment of 1970, as any other number of seconds. Fractions of a millisecond are rounded
    in numbers (a float of seconds is seldom exact) and cut off in ISO text (as browsers do).

    Raises MomentError for anything else, and for times before 1970 or after the year 9999.
    """
    if value is None:
        return now_ms
    iso_text = value["$date"] if isinstance(value, dict) and value.keys() == {"$date"} else value
    number = _number_of(value) if isinstance(value, str) else value
    if isinstance(iso_text, str) and not isinstance(number, int | float):
        time_ms = parse_iso(iso_text, field=field)
    elif isinstance(number, bool) or not isinstance(number, int | float) or not _finite(number):
        raise MomentError(field, f"{_shown(value)} is not a time; {_REPORT_FORMS}")
    elif number < 0:
        time_ms = now_ms + round(number)
    else:
        time_ms = round(number * 1000) if number < SECONDS_BELOW else round(number)
    if not 0 <= time_ms <= MOMENT_MS_MAX:
        raise MomentError(field, _outside(value))
    return time_ms


# -- ISO text ------------------------------------------------------------------------------------------------


def parse_iso(text: str, *, field: str = "time") -> int:
    """Read an ISO 8601 date, or date and time, as milliseconds since the epoch.

    A text without an offset is UTC. Digits below the millisecond are cut off. Years 0001 to 9999: a moment
    before 1970 is negative, so that a query may compare with it; who stores a time checks the range.
    """
    complete = text
    # The form that this server writes itself needs no pattern; `fromisoformat` checks its digits.
    if not (len(text) == 24 and text[10] == "T" and text[23] == "Z" and text[7] == "-"):
        match = _ISO.fullmatch(text.strip())
        if match is None:
            raise MomentError(
                field, f"{_shown(text)} is not an ISO 8601 time such as 2024-05-01T12:00:00.000Z"
            )
        complete = match[0].upper()
        if match["offset"] is None:
            complete += "Z" if len(complete) > 10 else "T00:00Z"
    try:
        delta = datetime.fromisoformat(complete) - _EPOCH
    except (ValueError, OverflowError) as error:
        raise MomentError(field, f"{_shown(text)} is no moment of the calendar ({error})") from None
    return delta.days * DAY_MS + delta.seconds * 1000 + delta.microseconds // 1000


def iso(time_ms: int) -> str:
    """Write a moment as `YYYY-MM-DDTHH:MM:SS.mmmZ`.

    Nearly every answer carries a time, most of them of the present second: that text is kept (a tenth of the
    cost of `datetime.isoformat`), and a page of history at least finds its day.
    """
    second, millisecond = divmod(time_ms, 1000)
    return _second_text(second) + _MILLISECONDS[millisecond]


_MILLISECONDS = tuple(f"{millisecond:03}Z" for millisecond in range(1000))
_TWO_DIGITS = tuple(f"{number:02}" for number in range(60))


@lru_cache(maxsize=4096)
def _second_text(second: int) -> str:
    day, rest = divmod(second, 86_400)
    minute, rest = divmod(rest, 60)
    return f"{_day_text(day)}T{_TWO_DIGITS[minute // 60]}:{_TWO_DIGITS[minute % 60]}:{_TWO_DIGITS[rest]}."


@lru_cache(maxsize=4096)
def _day_text(day: int) -> str:
    try:
        return date.fromordinal(day + _EPOCH_ORDINAL).isoformat()
    except (ValueError, OverflowError):
        raise MomentError("time", _outside(day * DAY_MS)) from None


# -- the range of a query ------------------------------------------------------------------------------------


def resolve_range(
    now_ms: int,
    *,
    start: object = None,
    end: object = None,
    duration: object = None,
    since: object = None,
    default_start: int = 1,
    default_end: int = 0,
    default_duration: int | None = None,
) -> Range:
    """Say which stretch of time the parameters of a history query mean; both ends belong to it.

    All are milliseconds, as numbers or as texts of a URL; None and an empty text are "not given". In
    `start`, `end` and `since` 0 is now and a negative number counts back from now. `duration` counts back
    from the end and wins over `start`. `since` excludes its own millisecond ("entries after it"); together
    with another lower bound the later one holds. When no lower bound is given, `default_duration` or else
    `default_start` is one. A range that would begin before 1970 begins there; one that begins after its end
    is `empty`, not an error.

    Raises MomentError, which names the parameter.
    """
    end_ms = resolve_moment(default_end if _absent(end) else end, now_ms, field="end")
    start_ms = 0
    if not _absent(duration):
        start_ms = end_ms - parse_duration(duration, field="duration")
    elif not _absent(start):
        start_ms = resolve_moment(start, now_ms, field="start")
    elif _absent(since):
        if default_duration is None:
            start_ms = resolve_moment(default_start, now_ms, field="start")
        else:
            start_ms = end_ms - default_duration
    if not _absent(since):
        start_ms = max(start_ms, resolve_moment(since, now_ms, field="since") + 1)
    return Range(max(start_ms, 0), end_ms)


def resolve_moment(value: object, now_ms: int, *, field: str) -> int:
    """Read one bound of a query: milliseconds since the epoch, 0 for now, negative to count back from now.

    Counting back to before 1970 gives the epoch: it is how a caller says "everything".
    """
    number = _whole(value, field, _QUERY_FORMS)
    if number > MOMENT_MS_MAX:
        raise MomentError(field, _outside(value))
    return number if number > 0 else max(now_ms + number, 0)


def parse_duration(value: object, *, field: str) -> int:
    """Read a length of time (a duration, a resolution): a whole number of milliseconds, 0 or more."""
    number = _whole(value, field, "give a whole number of milliseconds, 0 or more")
    if not 0 <= number <= MOMENT_MS_MAX:
        raise MomentError(field, f"{_shown(value)} is out of bounds; give 0 to {MOMENT_MS_MAX} milliseconds")
    return number


def _absent(value: object) -> bool:
    return value is None or value == ""


def _whole(value: object, field: str, forms: str) -> int:
    number = _number_of(value) if isinstance(value, str) else value
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        raise MomentError(field, f"{_shown(value)} is not a whole number of milliseconds; {forms}")
    return number


def _finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def _number_of(text: str) -> float | None:
    """Return the number that the text is, an int where it is whole, or None."""
    text = text.strip()
    if _NUMBER.fullmatch(text) is None:
        return None
    return float(text) if "." in text or "e" in text.lower() else int(text)


def _outside(value: object) -> str:
    return f"{_shown(value)} lies outside the years 1970 to 9999; check the unit and the clock"


def _shown(value: object) -> str:
    """Return what was given, short enough for a sentence. Only plain values: a nested one may be any size."""
    if isinstance(value, dict):
        return "an object" if value.keys() != {"$date"} else f'{{"$date": {_shown(value["$date"])}}}'
    if isinstance(value, list):
        return "an array"
    if isinstance(value, int) and value.bit_length() > 1024:
        return "a number of over 300 digits"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


HOUR_MS = 3_600_000
