"""The time format of a column: one format is chosen for the whole column, and times without a zone are UTC.

Owns the known formats (ISO 8601 also with slashes, epoch seconds and milliseconds, common local orders) and the
choice among them. If two formats fit and give different times (03/04/2010), none is guessed: the user must name
one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal, InvalidOperation

from trunkline.bench.errors import BenchError

SAMPLE_MAX = 1000
"""Cells: a sample of at most about this size, spread over the column, is used to choose the format."""

FEW = 20
"""Cells: a format that fits none of about this many is not considered."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DIGITS = re.compile(r"-?[0-9]{1,19}(?:\.[0-9]{1,9})?")
_YEAR_FIRST = re.compile(r"\d{4}[-/]\d{1,2}[-/]\d{1,2}\b.*")
_EPOCH_UNITS = (
    ("seconds", 0, 1e11),
    ("milliseconds", 3, 1e14),
    ("microseconds", 6, 1e17),
    ("nanoseconds", 9, float("inf")),
)
"""Unit, its decimals of a second, and the number from which a finer unit is assumed (always the year 5138)."""

_MONTH_FIRST, _DAY_FIRST = "month/day/year (UTC)", "day/month/year (UTC)"
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_DAYS = (
    ("year-month-day (UTC)", "%Y-%m-%d"),
    ("year/month/day (UTC)", "%Y/%m/%d"),
    (_MONTH_FIRST, "%m/%d/%Y"),
    (_DAY_FIRST, "%d/%m/%Y"),
    ("day.month.year (UTC)", "%d.%m.%Y"),
    ("month name, day, year (UTC)", "%b %d %Y"),
    ("month name, day, year (UTC)", "%B %d %Y"),
    ("month name, day, year (UTC)", "%b %d, %Y"),
    ("day, month name, year (UTC)", "%d %b %Y"),
    ("day-month name-year (UTC)", "%d-%b-%Y"),
)


@dataclass(frozen=True, slots=True)
class TimeReader:
    """One time format; ``read`` returns epoch milliseconds, or None if a text does not fit."""

    label: str
    parse: Callable[[str], int | None]

    def read(self, text: str) -> int | None:
        """Epoch milliseconds, rounded down; None if the text does not fit."""
        try:
            return self.parse(text)
        except (ValueError, OverflowError, InvalidOperation):
            return None

    @classmethod
    def choose(cls, cells: Sequence[str], *, time_format: str | None = None) -> TimeReader:
        """The format that fits most cells. Raises BenchError if none fits, or two give different times."""
        if time_format is not None:
            return cls(f"{time_format!r} (UTC where no zone is written)", _by_format(time_format))
        present = [cell for cell in cells if cell]
        sample = present[:: max(1, len(present) // SAMPLE_MAX)]
        readers = _readers(sample)
        scores = [sum(reader.read(cell) is not None for cell in sample) for reader in readers]
        best = max(scores, default=0)
        if best * 2 <= len(sample):
            example = next(iter(present), "")
            raise BenchError(
                f"The times look like {example!r}, which is not a known format; give it with "
                f"--time-format (as in Python's strptime, for example '%Y-%m-%d %H:%M')."
            )
        chosen = readers[scores.index(best)]
        for other in readers:
            if {chosen.label, other.label} == {_MONTH_FIRST, _DAY_FIRST}:
                _refuse_ambiguous(present, chosen, other)
        return chosen


def _refuse_ambiguous(cells: Sequence[str], chosen: TimeReader, other: TimeReader) -> None:
    """Raise BenchError if the other order of day and month fits every cell too, with different times."""
    differs = next((cell for cell in cells if chosen.read(cell) != other.read(cell)), None)
    if differs is not None and all(other.read(cell) is not None for cell in cells):
        raise BenchError(
            f"{differs!r} may be {chosen.label} or {other.label}; say which with --time-format, "
            "for example '%d/%m/%Y %H:%M'."
        )


def _readers(sample: Sequence[str]) -> list[TimeReader]:
    """The candidate formats: those that fit at least one of a few cells."""
    if sample and all(_DIGITS.fullmatch(cell) for cell in sample):
        return [_digits_reader(sample)]
    few = sample[:: max(1, len(sample) // FEW)]
    readers = [TimeReader("ISO 8601, dashes or slashes (UTC where no zone is written)", _iso)]
    readers += (TimeReader(label, _by_format(day + clock)) for label, day in _DAYS for clock in _CLOCKS)
    return [reader for reader in readers if any(reader.read(cell) is not None for cell in few)]


def _digits_reader(sample: Sequence[str]) -> TimeReader:
    lengths = {len(cell) for cell in sample}
    dates = TimeReader("YYYYMMDD (UTC)", _by_format("%Y%m%d"))
    if lengths == {4}:
        return TimeReader("years (UTC)", _by_format("%Y"))
    if lengths == {8} and all(dates.read(cell) is not None for cell in sample):
        return dates
    largest = max(abs(float(cell)) for cell in sample)
    unit, digits = next((unit, digits) for unit, digits, limit in _EPOCH_UNITS if largest < limit)
    return TimeReader(f"{unit} since 1970", _since_epoch(digits))


def _since_epoch(digits: int) -> Callable[[str], int | None]:
    """A parser of decimal numbers in units of ``10**-digits`` seconds, exact."""

    def parse(text: str) -> int:
        return int(Decimal(text).scaleb(3 - digits).to_integral_value(ROUND_FLOOR))

    return parse


def _iso(text: str) -> int:
    if _YEAR_FIRST.fullmatch(text):
        text = text.replace("/", "-", 2)
    return _to_ms(datetime.fromisoformat(text))


def _by_format(pattern: str) -> Callable[[str], int | None]:
    def parse(text: str) -> int:
        return _to_ms(datetime.strptime(text, pattern))  # noqa: DTZ007 - no zone means UTC here

    return parse


def _to_ms(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MILLISECOND
