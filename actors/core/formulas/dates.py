"""Dates as texts, by the formats of moment: `YYYY-MM-DD HH:mm:ss.SSSZ`, `[text]`, `LLL`, `from now`.

A date is a number of milliseconds since 1970 or an ISO 8601 text, read as UTC where it names no offset. Zones are those
of the IANA data base. English is served in full; in other languages the names of months and days, of Babel.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from babel import Locale, UnknownLocaleError

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.price import spend
from trunkline.actors.core.formulas.values import UNDEFINED, to_text

FORMAT_CHARS_MAX: Final = 1024
"""Characters of a format."""

NAME_CHARS_MAX: Final = 100
"""Characters of the name of a time zone or of a language."""

FORMATS_KEPT: Final = 128
INVALID: Final = "Invalid date"
"""What the text of no date is, as in moment."""

DEFAULT_FORMAT: Final = "YYYY-MM-DDTHH:mm:ssZ"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ISO: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,30}))?)?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})?)?)?)?"
)
_TOKEN: Final = re.compile(
    r"\[[^\[]*\]|\\?(?:[Hh]mm(?:ss)?|Mo|MM?M?M?|Do|DDDo|DD?D?D?|ddd?d?|do?|w[ow]?|W[oW]?|Qo?|N{1,5}|YYYYYY|YYYYY|YYYY|YY"
    r"|y{2,4}|yo?|gg(?:ggg?)?|GG(?:GGG?)?|e|E|a|A|hh?|HH?|kk?|mm?|ss?|S{1,9}|x|X|zz?|ZZ?|LTS|LT|LL?L?L?|l{1,4}|.)",
    re.DOTALL,
)
_LONG: Final = re.compile(r"\[[^\[]*\]|\\?(?:LTS|LT|LL?L?L?|l{1,4})")
_LONG_FORMS: Final = {
    "LTS": "h:mm:ss A",
    "LT": "h:mm A",
    "L": "MM/DD/YYYY",
    "LL": "MMMM D, YYYY",
    "LLL": "MMMM D, YYYY h:mm A",
    "LLLL": "dddd, MMMM D, YYYY h:mm A",
    "l": "M/D/YYYY",
    "ll": "MMM D, YYYY",
    "lll": "MMM D, YYYY h:mm A",
    "llll": "ddd, MMM D, YYYY h:mm A",
}
_Part = Callable[[datetime], str]


def parse_date(value: Any) -> datetime | None:
    """The date of milliseconds or of an ISO text, in UTC; None if it is none, or not in the years 1 to 9999."""
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    try:
        return _EPOCH + timedelta(milliseconds=math.trunc(value))
    except OverflowError:
        return None


def is_date_text(value: str) -> bool:
    """Whether a text is an ISO date."""
    return _parse_text(value) is not None


def _parse_text(text: str) -> datetime | None:
    if len(text) > FORMAT_CHARS_MAX:
        return None
    found = _ISO.fullmatch(text.strip())
    if found is None:
        return None
    fields = [int(found[name] or least) for name, least in _FIELDS]
    offset = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
    milliseconds = int((found["part"] or "").ljust(3, "0")[:3])
    try:
        read = datetime(*fields, tzinfo=UTC) + timedelta(milliseconds=milliseconds)  # type: ignore[arg-type,misc]
        return read + offset if found["sign"] == "-" else read - offset
    except (ValueError, OverflowError):
        return None


_FIELDS: Final = (("year", 1), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))


def format_date(value: Any, form: Any = UNDEFINED, *, tz: Any = UNDEFINED, locale: Any = UNDEFINED) -> str:
    """Write a date in a format, a zone and a language. Raises `EvaluationError` for a zone that does not exist."""
    parsed = parse_date(value)
    if parsed is None:
        return INVALID
    zone = zone_of(_option(tz, "UTC"))
    try:
        local = parsed.astimezone(zone)
    except OverflowError:
        return INVALID
    return written_date(local, _option(form, DEFAULT_FORMAT), _option(locale, "en"))


def written_date(local: datetime, form: str, language: str = "en") -> str:
    """Write a date of a zone in a format."""
    _check_format(form)
    _check_name(language, "language")
    spend(len(form) // 8)
    return "".join([part(local) for part in _compile(form, language)])


def format_relative(value: Any, to: Any, *, locale: Any = UNDEFINED) -> str:
    """How long a date is before or after another one: "3 hours ago"."""
    if _option(locale, "en").partition("-")[0] != "en":
        raise EvaluationError("formatDateRelative is served in English only.")
    parsed, other = parse_date(value), parse_date(to)
    if parsed is None or other is None:
        return INVALID
    text = _duration(parsed, other)
    return f"in {text}" if parsed > other else f"{text} ago"


def _option(value: Any, default: str) -> str:
    return to_text(value) if value is not UNDEFINED and value is not None and value != "" else default


def _check_name(name: str, noun: str) -> None:
    """Refuse what is too long for a name, before it is looked up."""
    if len(name) > NAME_CHARS_MAX:
        raise EvaluationError(f"There is no {noun} {name[:NAME_CHARS_MAX]!r}...; names are shorter.")


def zone_of(name: str) -> tzinfo:
    """The time zone of a name. Raises `EvaluationError` if there is none."""
    _check_name(name, "time zone")
    return _zone_of(name)


@lru_cache(maxsize=FORMATS_KEPT)
def _zone_of(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"There is no time zone {name!r}; give one such as Europe/Berlin.") from None


@lru_cache(maxsize=FORMATS_KEPT)
def _compile(form: str, language: str) -> tuple[_Part, ...]:
    tokens = tokens_of(form)
    english = language.replace("_", "-").partition("-")[0] == "en"
    names = _ENGLISH if english else _names(language)
    if not english and any(token in _LONG_FORMS for token in _LONG.findall(form)):
        raise EvaluationError(
            f"The date formats L to LLLL and LT are served in English only, not in {language!r}."
        )
    parts: list[_Part] = []
    for token in tokens:
        part = _PARTS.get(token) or names.get(token)
        if part is not None and not english and token.endswith("o"):
            raise EvaluationError(
                f"Ordinal numbers such as Do are served in English only, not in {language!r}."
            )
        parts.append(part or _constant(unescaped(token)))
    return tuple(parts)


def tokens_of(form: str) -> list[str]:
    """The tokens of a format, with `L` to `LLLL` and `LT` expanded. Raises `EvaluationError` if it is too long."""
    _check_format(form)
    return _TOKEN.findall(_LONG.sub(lambda found: _LONG_FORMS.get(found[0], found[0]), form))


def _check_format(form: str) -> None:
    if len(form) > FORMAT_CHARS_MAX:
        given = f"this one has {len(form)}"
        raise EvaluationError(f"A date format has at most {FORMAT_CHARS_MAX} characters; {given}.")


def unescaped(token: str) -> str:
    """The text that a token stands for, if it stands for itself."""
    if token.startswith("[") and token.endswith("]"):
        return token[1:-1]
    return token.removeprefix("\\") if len(token) > 1 else token


def _constant(text: str) -> _Part:
    return lambda _: text


def _names(language: str) -> dict[str, _Part]:
    """The names of months and days in another language. Raises `EvaluationError` if Babel does not know it."""
    try:
        locale = Locale.parse(language.replace("-", "_"))
    except (UnknownLocaleError, ValueError, TypeError):
        raise EvaluationError(f"There is no language {language!r}.") from None
    months, days = locale.months["format"], locale.days["format"]
    return {
        "MMMM": lambda at: str(months["wide"][at.month]),
        "MMM": lambda at: str(months["abbreviated"][at.month]),
        "dddd": lambda at: str(days["wide"][at.weekday()]),
        "ddd": lambda at: str(days["abbreviated"][at.weekday()]),
        "dd": lambda at: str(days["short"][at.weekday()]),
    }


MONTHS: Final = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
DAYS: Final = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_ENGLISH: Final[dict[str, _Part]] = {
    "MMMM": lambda at: MONTHS[at.month - 1],
    "MMM": lambda at: MONTHS[at.month - 1][:3],
    "dddd": lambda at: DAYS[at.weekday()],
    "ddd": lambda at: DAYS[at.weekday()][:3],
    "dd": lambda at: DAYS[at.weekday()][:2],
}


def _ordinal(number: int) -> str:
    last = 0 if number % 100 // 10 == 1 else number % 10
    return f"{number}{('th', 'st', 'nd', 'rd')[last] if last < 4 else 'th'}"


def _sunday_first(at: datetime) -> int:
    return at.isoweekday() % 7


def week_of(at: datetime) -> tuple[int, int]:
    """Year and number of the week that begins on Sunday; the first week holds the first of January."""
    day = at.date()
    start = _week_start(day.year)
    if day.year < date.max.year and day >= (following := _week_start(day.year + 1)):
        return day.year + 1, (day - following).days // 7 + 1
    return day.year, (day - start).days // 7 + 1


def _week_start(year: int) -> date:
    first = date(year, 1, 1)
    back = first.isoweekday() % 7
    return first - timedelta(days=back) if first.toordinal() > back else first


def _day_of_year(at: datetime) -> int:
    return at.timetuple().tm_yday


def _quarter(at: datetime) -> int:
    return (at.month + 2) // 3


def _twelve(at: datetime) -> int:
    return at.hour % 12 or 12


def _offset(at: datetime, between: str) -> str:
    seconds = int((at.utcoffset() or timedelta()).total_seconds())
    # Whole minutes, rounded to the nearest as moment does for the offsets of the time before zones.
    minutes = math.floor(abs(seconds) / 60 + 0.5)
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02}{between}{minutes % 60:02}"


def _milliseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _zone_name(at: datetime) -> str:
    return at.tzname() or ""


_PARTS: Final[dict[str, _Part]] = {
    "M": lambda at: str(at.month),
    "Mo": lambda at: _ordinal(at.month),
    "MM": lambda at: f"{at.month:02}",
    "Q": lambda at: str(_quarter(at)),
    "Qo": lambda at: _ordinal(_quarter(at)),
    "D": lambda at: str(at.day),
    "Do": lambda at: _ordinal(at.day),
    "DD": lambda at: f"{at.day:02}",
    "DDD": lambda at: str(_day_of_year(at)),
    "DDDo": lambda at: _ordinal(_day_of_year(at)),
    "DDDD": lambda at: f"{_day_of_year(at):03}",
    "d": lambda at: str(_sunday_first(at)),
    "do": lambda at: _ordinal(_sunday_first(at)),
    "e": lambda at: str(_sunday_first(at)),
    "E": lambda at: str(at.isoweekday()),
    "w": lambda at: str(week_of(at)[1]),
    "wo": lambda at: _ordinal(week_of(at)[1]),
    "ww": lambda at: f"{week_of(at)[1]:02}",
    "W": lambda at: str(at.isocalendar().week),
    "Wo": lambda at: _ordinal(at.isocalendar().week),
    "WW": lambda at: f"{at.isocalendar().week:02}",
    "Y": lambda at: f"{at.year:04}",
    "YY": lambda at: f"{at.year % 100:02}",
    "YYYY": lambda at: f"{at.year:04}",
    "YYYYY": lambda at: f"{at.year:05}",
    "YYYYYY": lambda at: f"+{at.year:06}",
    "y": lambda at: str(at.year),
    "yo": lambda at: _ordinal(at.year),
    "yy": lambda at: f"{at.year:02}",
    "yyy": lambda at: f"{at.year:03}",
    "yyyy": lambda at: f"{at.year:04}",
    "N": lambda _: "AD",
    "NN": lambda _: "AD",
    "NNN": lambda _: "AD",
    "NNNN": lambda _: "Anno Domini",
    "NNNNN": lambda _: "AD",
    "gg": lambda at: f"{week_of(at)[0] % 100:02}",
    "gggg": lambda at: f"{week_of(at)[0]:04}",
    "ggggg": lambda at: f"{week_of(at)[0]:05}",
    "GG": lambda at: f"{at.isocalendar().year % 100:02}",
    "GGGG": lambda at: f"{at.isocalendar().year:04}",
    "GGGGG": lambda at: f"{at.isocalendar().year:05}",
    "A": lambda at: "AM" if at.hour < 12 else "PM",
    "a": lambda at: "am" if at.hour < 12 else "pm",
    "H": lambda at: str(at.hour),
    "HH": lambda at: f"{at.hour:02}",
    "h": lambda at: str(_twelve(at)),
    "hh": lambda at: f"{_twelve(at):02}",
    "k": lambda at: str(at.hour or 24),
    "kk": lambda at: f"{at.hour or 24:02}",
    "m": lambda at: str(at.minute),
    "mm": lambda at: f"{at.minute:02}",
    "s": lambda at: str(at.second),
    "ss": lambda at: f"{at.second:02}",
    "hmm": lambda at: f"{_twelve(at)}{at.minute:02}",
    "hmmss": lambda at: f"{_twelve(at)}{at.minute:02}{at.second:02}",
    "Hmm": lambda at: f"{at.hour}{at.minute:02}",
    "Hmmss": lambda at: f"{at.hour}{at.minute:02}{at.second:02}",
    "Z": lambda at: _offset(at, ":"),
    "ZZ": lambda at: _offset(at, ""),
    "z": _zone_name,
    "zz": _zone_name,
    "X": lambda at: str(_milliseconds(at) // 1000),
    "x": lambda at: str(_milliseconds(at)),
}


def _fraction(digits: int) -> _Part:
    return lambda at: f"{at.microsecond // 1000:03}".ljust(digits, "0")[:digits]


_PARTS.update({"S" * digits: _fraction(digits) for digits in range(1, 10)})


def _duration(one: datetime, other: datetime) -> str:
    """The length of a time in words, by the thresholds of moment."""
    start, end = sorted((one, other))
    months, rest = _months_between(start, end)
    seconds = rest.total_seconds()
    days = seconds / 86400 + _round(months * 146097 / 4800)
    whole_months = months + seconds / 86400 * 4800 / 146097
    for count, most, single, many in (
        (days * 86400, 44, "a few seconds", "a few seconds"),
        (days * 1440, 44, "a minute", "{} minutes"),
        (days * 24, 21, "an hour", "{} hours"),
        (days, 25, "a day", "{} days"),
        (whole_months, 10, "a month", "{} months"),
    ):
        number = _round(count)
        if number <= most:
            return single if number <= 1 else many.format(number)
    years = _round(whole_months / 12)
    return "a year" if years <= 1 else f"{years} years"


def _round(number: float) -> int:
    return math.floor(number + 0.5)


def _months_between(start: datetime, end: datetime) -> tuple[int, timedelta]:
    """Whole months and what is left."""
    months = (end.year - start.year) * 12 + end.month - start.month
    if plus_months(start, months) > end:
        months -= 1
    return months, end - plus_months(start, months)


def plus_months(at: datetime, months: int) -> datetime:
    """The same day of a later month, or its last day."""
    years, month = divmod(at.month - 1 + months, 12)
    last = monthrange(at.year + years, month + 1)[1]
    return at.replace(year=at.year + years, month=month + 1, day=min(at.day, last))
