"""Timestamps: parsing, formatting, and the time range of a history query.

Owns the parsing of all times that callers give and the one format in which times are written. Does not own
a clock (`now_ms` is passed in), nor rules about times: that a report may be at most a day ahead is a rule of
the device.

Internally, a timestamp is an integer: milliseconds since the epoch, UTC. Reports and queries interpret numbers
differently, so there are two functions: the time of a report may be in seconds, while numbers in `start` and `end`
of a query are always milliseconds, and 0 means now. Both take ISO text.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import NamedTuple

from trunkline.actors.core.values.errors import Invalid
from trunkline.limits.table import DAY_MS

TIMESTAMP_MS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999, the last year that ISO text writes with four digits."""

SECONDS_BELOW = 100_000_000_000
"""Numbers in reports below this are seconds (up to the year 5138), the others milliseconds (from 1973 on)."""

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = _EPOCH.toordinal()

_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,30})?)?"
    r"(?P<offset>[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{0,30})?(?:[eE][+-]?[0-9]{1,3})?")

_REPORT_FORMS = (
    'give an ISO 8601 text such as 2024-05-01T12:00:00.000Z (also as {"$date": text}), seconds or '
    "milliseconds since 1970 as a number, a negative number for that many milliseconds ago, or leave it out "
    "for now"
)
_QUERY_FORMS = (
    "give an ISO 8601 text such as 2024-05-01T12:00:00.000Z, a number of milliseconds since 1970, 0 for now, or "
    "a negative number to count back from now"
)


class TimestampError(Invalid, ValueError):
    """A time that cannot be parsed. The message is for the caller: field, given value, accepted forms."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}.")
        self.field = field
        self.problem = problem


class TimeRange(NamedTuple):
    """A range of time that includes both ends, so that "until now" includes entries of this millisecond."""

    start_ms: int
    end_ms: int

    @property
    def empty(self) -> bool:
        """Whether the range contains no millisecond, as when a client asks for entries after the newest one."""
        return self.start_ms > self.end_ms


# -- the time of a report ------------------------------------------------------------------------------------


def parse_report_time(value: object, now_ms: int, *, field: str = "time") -> int:
    """Parse the time of a state, a command or a connection report.

    None is `now_ms`. `{"$date": iso}` and ISO text are absolute. A number, or a text that is a number, is

    - negative: that many milliseconds before `now_ms`;
    - below 1e11: seconds since the epoch, fractions allowed;
    - else milliseconds since the epoch.

    Zero is a number of seconds like any other: the start of 1970. Fractions of a millisecond are rounded in
    numbers (a float of seconds is seldom exact) and truncated in ISO text (as browsers do).

    Raises TimestampError for anything else, and for times before 1970 or after the year 9999.
    """
    if value is None:
        return now_ms
    iso_text = value["$date"] if isinstance(value, dict) and value.keys() == {"$date"} else value
    number = _number_of(value) if isinstance(value, str) else value
    if isinstance(iso_text, str) and not isinstance(number, int | float):
        time_ms = parse_iso(iso_text, field=field)
    elif isinstance(number, bool) or not isinstance(number, int | float) or not _finite(number):
        raise TimestampError(field, f"{_shown(value)} is not a time; {_REPORT_FORMS}")
    elif number < 0:
        time_ms = now_ms + round(number)
    else:
        time_ms = round(number * 1000) if number < SECONDS_BELOW else round(number)
    if not 0 <= time_ms <= TIMESTAMP_MS_MAX:
        raise TimestampError(field, _outside(value))
    return time_ms


# -- ISO text ------------------------------------------------------------------------------------------------


def parse_iso(text: str, *, field: str = "time", forms: str = "") -> int:
    """Parse an ISO 8601 date, or date and time, as milliseconds since the epoch.

    `forms` are the accepted forms for the message, if there are others than ISO text.

    A text without an offset is UTC. Digits below the millisecond are truncated. Years 0001 to 9999: times before
    1970 are negative, so that queries can compare with them. Callers that store a time check its range.
    """
    complete = text
    # The form that this server itself writes needs no pattern; `fromisoformat` checks its digits.
    if not (len(text) == 24 and text[10] == "T" and text[23] == "Z" and text[7] == "-"):
        match = _ISO.fullmatch(text.strip())
        if match is None:
            right = f"a time; {forms}" if forms else "an ISO 8601 time such as 2024-05-01T12:00:00.000Z"
            if _ISO.fullmatch(text.strip().replace(" ", "+")):
                right += "; in a URL, the + of an offset is written %2B"
            raise TimestampError(field, f"{_shown(text)} is not {right}")
        complete = match[0].upper()
        if match["offset"] is None:
            complete += "Z" if len(complete) > 10 else "T00:00Z"
    try:
        delta = datetime.fromisoformat(complete) - _EPOCH
    except (ValueError, OverflowError) as error:
        raise TimestampError(field, f"{_shown(text)} is not a valid date and time ({error})") from None
    return delta.days * DAY_MS + delta.seconds * 1000 + delta.microseconds // 1000


def iso(time_ms: int) -> str:
    """Format a timestamp as `YYYY-MM-DDTHH:MM:SS.mmmZ`.

    Nearly every answer contains a time, usually of the current second, so the texts of seconds are cached (a
    tenth of the cost of `datetime.isoformat`), and those of days for pages of history.
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
        raise TimestampError("time", _outside(day * DAY_MS)) from None


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
) -> TimeRange:
    """Return the time range that the parameters of a history query select; both ends are included.

    All are milliseconds, as numbers or as texts of a URL; None and an empty text mean "not given". In
    `start`, `end` and `since` 0 is now, a negative number counts back from now, and ISO text is taken too.
    `duration` counts back from the end and takes precedence over `start`. `since` excludes its own millisecond
    ("entries after it"); together with another lower bound the later one applies. If no lower bound is given,
    `default_duration` or else `default_start` applies. A range that would begin before 1970 begins there; one that
    begins after its end is `empty`, not an error. 1 as `start`, the default, is the beginning of 1970 as well: 0 is
    now, and everything includes what a device without a clock reported.

    Raises TimestampError, which names the parameter.
    """
    end_ms = resolve_timestamp(default_end if _absent(end) else end, now_ms, field="end")
    start_ms = 0
    if not _absent(duration):
        start_ms = end_ms - parse_duration(duration, field="duration")
    elif not _absent(start):
        start_ms = _resolve_start(start, now_ms)
    elif _absent(since) and default_duration is not None:
        start_ms = end_ms - default_duration
    elif _absent(since):
        start_ms = _resolve_start(default_start, now_ms)
    if not _absent(since):
        start_ms = max(start_ms, resolve_timestamp(since, now_ms, field="since") + 1)
    return TimeRange(max(start_ms, 0), end_ms)


def _resolve_start(start: object, now_ms: int) -> int:
    start_ms = resolve_timestamp(start, now_ms, field="start")
    return 0 if as_number(start) == 1 else start_ms


def resolve_timestamp(value: object, now_ms: int, *, field: str) -> int:
    """Parse one bound of a query: ISO text, or milliseconds since the epoch; 0 is now, a negative number counts back.

    Fractions of a millisecond are rounded in numbers and truncated in ISO text, as in reports. Times before 1970 give
    the epoch, so that callers can ask for everything.
    """
    number = as_number(value)
    if isinstance(number, str):
        return max(parse_iso(number, field=field, forms=_QUERY_FORMS), 0)
    milliseconds = _whole(number)
    if milliseconds is None:
        raise TimestampError(field, f"{_shown(value)} is not a time; {_QUERY_FORMS}")
    if milliseconds > TIMESTAMP_MS_MAX:
        raise TimestampError(field, _outside(value))
    return milliseconds if milliseconds > 0 else max(now_ms + milliseconds, 0)


def parse_duration(value: object, *, field: str) -> int:
    """Parse a length of time (a duration, a resolution): a number of milliseconds, 0 or more.

    Fractions are rounded, but only 0 gives 0, which may have a meaning of its own.
    """
    number = as_number(value)
    milliseconds = _whole(number)
    if milliseconds is None or not isinstance(number, int | float):
        raise TimestampError(
            field, f"{_shown(value)} is not a length of time; give a number of milliseconds, 0 or more"
        )
    if not 0 <= number <= TIMESTAMP_MS_MAX:
        raise TimestampError(
            field, f"{_shown(value)} is out of bounds; give 0 to {TIMESTAMP_MS_MAX} milliseconds"
        )
    return milliseconds if number == 0 else max(milliseconds, 1)


def parse_width(resolution: object) -> int:
    """Parse the width of the spans for which counts by minute are added up: milliseconds, and at least a minute.

    Raises `Invalid` for 0.
    """
    width = parse_duration(resolution, field="resolution")
    if width == 0:
        raise Invalid(
            "resolution: 0 is not a valid width of a bucket; give milliseconds, such as 3600000 for an hour."
        )
    return max(width, MINUTE_MS)


def as_number(value: object) -> object:
    """Return the number that a text represents; any other value as it is."""
    if not isinstance(value, str):
        return value
    number = _number_of(value)
    return value if number is None else number


def _absent(value: object) -> bool:
    return value is None or value == ""


def _whole(number: object) -> int | None:
    """Return a number as an integer, rounded; None if it is not a finite number."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not _finite(number):
        return None
    return round(number)


def check_cutoff(cutoff_ms: int, now_ms: int, *, field: str) -> None:
    """Raise `Invalid` for a time before which tokens are not valid, if it lies in the future.

    The next millisecond does not: only so do the tokens of this one end.
    """
    if cutoff_ms > now_ms + 1:
        raise Invalid(
            f"{field}: {iso(cutoff_ms)} lies ahead of the server's {iso(now_ms)}; nobody could log in until then."
        )


def _finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def _number_of(text: str) -> float | None:
    """Return the number that a text represents, as an int if it is whole, or None."""
    text = text.strip()
    if _NUMBER.fullmatch(text) is None:
        return None
    return float(text) if "." in text or "e" in text.lower() else int(text)


def _outside(value: object) -> str:
    return f"{_shown(value)} lies outside the years 1970 to 9999; check the unit and the clock"


def _shown(value: object) -> str:
    """Return the given value, shortened for a message. Objects and arrays are only named: they may be large."""
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
