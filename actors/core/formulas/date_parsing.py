"""Texts read as dates by the formats of moment, forgiving as it is: each token takes the next place where it fits.

What a format does not name is the start of the day in UTC; a format without year, month or day takes them from now.
Tokens of weeks, numbers of weekdays, eras and names of zones are refused: they do not make a date on their own here.
"""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from trunkline.actors.core.formulas.dates import DAYS, FORMATS_KEPT, MONTHS, parse_date, tokens_of, unescaped
from trunkline.actors.core.formulas.errors import EvaluationError

DATE_CHARS_MAX: Final = 256
"""Characters of a text that may be a date."""

_Fields = dict[str, int]
_Read = Callable[[str, _Fields], None]
_Part = tuple[re.Pattern[str], _Read | None]
_UNITS: Final = ("year", "month", "day", "hour", "minute", "second", "millisecond")
_PIVOT: Final = 68
"""Two digits of a year up to here are of this century."""


def parse_in_format(text: str, form: str, now: datetime) -> datetime | None:
    """The date in UTC of a text in a format; None if it is none. Raises `EvaluationError` for a format it cannot use.

    A text without an offset is in UTC.
    """
    if len(text) > DATE_CHARS_MAX:
        return None
    fields: _Fields = {}
    at = 0
    for pattern, read in _compile(form):
        found = pattern.search(text, at)
        if found is None:
            continue
        at = found.end()
        if read is not None:
            read(found[0], fields)
    if not fields:
        return None
    if "instant" in fields:
        return parse_date(fields["instant"])
    try:
        return _date_of(fields, now)
    except (ValueError, OverflowError):
        return None


def _date_of(fields: _Fields, now: datetime) -> datetime:
    """The date of the fields that were read. Raises `ValueError` if one is beyond its range."""
    if "day of year" in fields:
        year = fields.get("year", now.year)
        if not 1 <= fields["day of year"] <= 365 + isleap(year):
            raise ValueError
        first = datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=fields["day of year"] - 1)
        fields |= {"year": year, "month": first.month, "day": first.day}
    current, least = (now.year, now.month, now.day), (1, 1, 1, 0, 0, 0, 0)
    # The units before the first one that was read are those of now, the others are the first of their kind.
    begun = next((place for place, unit in enumerate(_UNITS) if unit in fields), len(_UNITS))
    year, month, day, hour, minute, second, millisecond = (
        fields.get(unit, current[place] if place < min(begun, 3) else least[place])
        for place, unit in enumerate(_UNITS)
    )
    if "afternoon" in fields:
        hour = hour + 12 if fields["afternoon"] and hour < 12 else hour
        hour = 0 if not fields["afternoon"] and hour == 12 else hour
    is_midnight = hour == 24 and not (minute or second or millisecond)
    if not 1 <= day <= monthrange(year, month)[1]:
        raise ValueError
    made = datetime(year, month, day, 0 if is_midnight else hour, minute, second, millisecond * 1000, UTC)
    return made + timedelta(days=is_midnight, minutes=-fields.get("offset", 0))


@lru_cache(maxsize=FORMATS_KEPT)
def _compile(form: str) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    for token in tokens_of(form):
        if token in _REFUSED:
            raise EvaluationError(f"A date cannot be read by {token} in the format {form!r}.")
        parts.append(_PARTS.get(token) or (re.compile(re.escape(unescaped(token))), None))
    return tuple(parts)


def _number(unit: str) -> _Read:
    def read(text: str, fields: _Fields) -> None:
        fields[unit] = int(text)

    return read


def _year(text: str, fields: _Fields) -> None:
    number = int(text)
    short = len(text) == 2
    fields["year"] = number + (0 if not short else 1900 if number > _PIVOT else 2000)


def _quarter(text: str, fields: _Fields) -> None:
    fields["month"] = (int(text) - 1) * 3 + 1


def _month(text: str, fields: _Fields) -> None:
    short = text[:3].capitalize()
    fields["month"] = next(place for place, name in enumerate(MONTHS, start=1) if name.startswith(short))


def _ordinal(text: str, fields: _Fields) -> None:
    fields["day"] = int(text[:-2])


def _fraction(text: str, fields: _Fields) -> None:
    fields["millisecond"] = int(text.ljust(3, "0")[:3])


def _half(text: str, fields: _Fields) -> None:
    fields["afternoon"] = text[0] in "pP"


def _offset(text: str, fields: _Fields) -> None:
    if text in ("Z", "z"):
        fields["offset"] = 0
        return
    digits = text[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    fields["offset"] = -minutes if text[0] == "-" else minutes


def _clock(has_seconds: bool) -> _Read:
    """Reads digits without anything between: 930 or 1530, 93015 or 153015."""

    def read(text: str, fields: _Fields) -> None:
        digits = text
        if has_seconds:
            digits, fields["second"] = digits[:-2], int(digits[-2:])
        fields["hour"], fields["minute"] = int(digits[:-2]), int(digits[-2:])

    return read


def _midnight_as_zero(text: str, fields: _Fields) -> None:
    fields["hour"] = int(text) % 24 if int(text) <= 24 else int(text)


def _seconds(text: str, fields: _Fields) -> None:
    fields["instant"] = round(float(text) * 1000)


def _ignored(_text: str, _fields: _Fields) -> None:
    """A name of a weekday: the date says more."""


def _part(pattern: str, read: _Read) -> _Part:
    return re.compile(pattern, re.IGNORECASE | re.ASCII), read


_TWO: Final = r"\d{1,2}"
_NAMES: Final = "|".join([*MONTHS, *(name[:3] for name in MONTHS)])
_WEEKDAYS: Final = "|".join([*DAYS, *(name[:3] for name in DAYS), *(name[:2] for name in DAYS)])
_REFUSED: Final = frozenset(
    (
        "w",
        "wo",
        "ww",
        "W",
        "Wo",
        "WW",
        "d",
        "do",
        "e",
        "E",
        "gg",
        "gggg",
        "ggggg",
        "GG",
        "GGGG",
        "GGGGG",
        "N",
        "NN",
        "NNN",
        "NNNN",
        "NNNNN",
        "z",
        "zz",
        "Qo",
        "Mo",
        "DDDo",
        "yo",
    )
)
_PARTS: Final[dict[str, _Part]] = {
    **dict.fromkeys(("YYYY", "y", "yyyy"), _part(r"\d{1,4}", _year)),
    **dict.fromkeys(("YYYYY", "YYYYYY", "yyy", "Y"), _part(r"[+-]?\d{1,6}", _number("year"))),
    **dict.fromkeys(("YY", "yy"), _part(_TWO, _year)),
    "Q": _part(r"\d", _quarter),
    **dict.fromkeys(("M", "MM"), _part(_TWO, _number("month"))),
    **dict.fromkeys(("MMM", "MMMM"), _part(_NAMES, _month)),
    **dict.fromkeys(("D", "DD"), _part(_TWO, _number("day"))),
    "Do": _part(r"\d{1,2}(?:st|nd|rd|th)", _ordinal),
    "DDD": _part(r"\d{1,3}", _number("day of year")),
    "DDDD": _part(r"\d{3}", _number("day of year")),
    **dict.fromkeys(("dd", "ddd", "dddd"), _part(_WEEKDAYS, _ignored)),
    **dict.fromkeys(("H", "HH", "h", "hh"), _part(_TWO, _number("hour"))),
    **dict.fromkeys(("k", "kk"), _part(_TWO, _midnight_as_zero)),
    **dict.fromkeys(("m", "mm"), _part(_TWO, _number("minute"))),
    **dict.fromkeys(("s", "ss"), _part(_TWO, _number("second"))),
    **dict.fromkeys(("hmm", "Hmm"), _part(r"\d{3,4}", _clock(False))),
    **dict.fromkeys(("hmmss", "Hmmss"), _part(r"\d{5,6}", _clock(True))),
    **dict.fromkeys(("S", "SS", "SSS"), _part(r"\d{1,3}", _fraction)),
    **dict.fromkeys(["S" * digits for digits in range(4, 10)], _part(r"\d+", _fraction)),
    **dict.fromkeys(("a", "A"), _part(r"[ap]\.?m?\.?", _half)),
    **dict.fromkeys(("Z", "ZZ"), _part(r"Z|[+-]\d\d:?\d\d", _offset)),
    "x": _part(r"[+-]?\d{1,20}", _number("instant")),
    "X": _part(r"[+-]?\d{1,17}(?:\.\d{1,3})?", _seconds),
}
