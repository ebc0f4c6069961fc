"""Real measurements from CSV files: devices, their attributes, and rows with a time.

Owns reading the files and deciding the type of each column, from all rows of the file and not only the first
ones. Does not own sending. Unusable rows are counted by reason, so that a replay can account for every row.

Everything is kept in memory (about 150 bytes a row), because the data read back is compared with it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trunkline.bench.errors import BenchError
from trunkline.bench.time_formats import TimeReader

ROWS_MAX = 2_000_000
"""Rows: one replay; about 300 MB of memory."""

ATTRIBUTES_MAX = 256
"""Attributes: the API's bound for a device."""

DEVICE_NAME_CHARS_MAX = 255
"""Characters: the API's bound for a device's name."""

DAY_MS = 86_400_000
"""Milliseconds: the API accepts no state further in the future."""

Value = str | float | bool

_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)?(?:\.\d*)?(?:[eE][+-]?\d{1,3})?")
_BOOLEANS = {"true": True, "false": False}
_MISSING = frozenset({"", "-", "na", "n/a", "nan", "null", "none"})
_EXACT_INTEGER_MAX = 2**53


@dataclass(slots=True)
class DeviceSeries:
    """The measurements of one device, by time; ``attributes`` maps names to API types."""

    name: str
    attributes: dict[str, str]
    times: list[int] = field(default_factory=list)
    rows: list[dict[str, Value]] = field(default_factory=list)

    def sort(self) -> None:
        """Sort by time; rows of one time keep the order of the file."""
        order = sorted(range(len(self.times)), key=self.times.__getitem__)
        self.times = [self.times[n] for n in order]
        self.rows = [self.rows[n] for n in order]

    @property
    def repeated(self) -> int:
        """Rows with the time of an earlier row: the later one overwrites the values that both have."""
        return len(self.times) - len(set(self.times))


@dataclass(slots=True)
class Measurements:
    """All devices of the files, the counts of rows, and notes on the columns."""

    series: dict[str, DeviceSeries] = field(default_factory=dict)
    rows_read: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Rows that will be sent."""
        return sum(len(one.times) for one in self.series.values())

    @property
    def values(self) -> int:
        """Single values in those rows."""
        return sum(len(row) for one in self.series.values() for row in one.rows)

    @property
    def repeated(self) -> int:
        """Rows that overwrite an earlier row of the same device and time."""
        return sum(one.repeated for one in self.series.values())


def read_measurements(
    paths: Sequence[Path],
    *,
    time_column: str,
    device_column: str | None = None,
    time_format: str | None = None,
    now_ms: int,
) -> Measurements:
    """Read CSV files; without ``device_column`` each file is one device, named like the file.

    Raises BenchError if a file or a column cannot be used at all.
    """
    found = Measurements()
    for path in paths:
        header, rows = _load(path, ROWS_MAX - found.rows_read)
        found.rows_read += len(rows)
        time_at = _position(header, time_column, path)
        device_at = None if device_column is None else _position(header, device_column, path)
        reader = TimeReader.choose([row[time_at] for row in rows], time_format=time_format)
        found.notes.append(f"{path.name}: the times in {time_column!r} are read as {reader.label}.")
        columns = _columns(header, rows, {time_at, device_at}, found, path)
        for row in rows:
            _take_row(found, row, columns, path.stem, time_at, device_at, reader, now_ms)
    for one in found.series.values():
        one.sort()
        if len(one.attributes) > ATTRIBUTES_MAX:
            raise BenchError(
                f"{one.name!r} would have {len(one.attributes)} attributes; {ATTRIBUTES_MAX} are allowed."
            )
    return found


@dataclass(frozen=True, slots=True)
class _Column:
    at: int
    name: str
    kind: str

    def value(self, text: str) -> Value | None:
        if self.kind == "string":
            return text or None
        if text.lower() in _MISSING:
            return None
        if self.kind == "boolean":
            return _BOOLEANS[text.lower()]
        number = float(text)
        return int(text) if number.is_integer() and text.lstrip("+-").isdigit() else number


def _take_row(
    found: Measurements,
    row: list[str],
    columns: list[_Column],
    stem: str,
    time_at: int,
    device_at: int | None,
    reader: TimeReader,
    now_ms: int,
) -> None:
    time_ms = reader.read(row[time_at])
    device = stem if device_at is None else row[device_at]
    values = {c.name: value for c in columns if (value := c.value(row[c.at])) is not None}
    if (reason := _unusable(time_ms, device, values, now_ms)) is not None:
        found.skipped[reason] += 1
        return
    assert time_ms is not None
    series = found.series.get(device)
    if series is None:
        series = found.series[device] = DeviceSeries(device, {})
    for column in columns:
        if column.name in values:
            known = series.attributes.setdefault(column.name, column.kind)
            if known != column.kind:
                raise BenchError(
                    f"{device!r} has {column.name!r} as {known} in one file and {column.kind} in another."
                )
    series.times.append(time_ms)
    series.rows.append(values)


def _unusable(time_ms: int | None, device: str, values: dict[str, Value], now_ms: int) -> str | None:
    if time_ms is None:
        return "no readable time"
    if time_ms < 2:
        return "before 1970 (the API counts times from there)"
    if time_ms > now_ms + DAY_MS:
        return "more than a day ahead (the API refuses these)"
    if not device or len(device) > DEVICE_NAME_CHARS_MAX:
        return f"no device name of 1 to {DEVICE_NAME_CHARS_MAX} characters"
    return None if values else "no values"


def _load(path: Path, rows_max: int) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            delimiter = max(",;\t|", key=first.count)
            lines = _lines(csv.reader(file, delimiter=delimiter, strict=True))
            header = [name.strip() for name in next(lines, [])]
            if not header:
                raise BenchError(f"{path} is empty; its first line should name the columns.")
            if len(set(header)) < len(header):
                raise BenchError(f"{path} names a column twice: {', '.join(header)}.")
            rows: list[list[str]] = []
            for line in lines:
                if len(line) > len(header):
                    raise BenchError(
                        f"{path}: row {len(rows) + 2} has {len(line)} cells for {len(header)} columns."
                    )
                if len(rows) >= rows_max:
                    raise BenchError(f"{path}: one replay takes at most {ROWS_MAX} rows; split the file.")
                rows.append([cell.strip() for cell in line] + [""] * (len(header) - len(line)))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise BenchError(f"{path} cannot be read as CSV in UTF-8: {problem}.") from problem
    if not rows:
        raise BenchError(f"{path} has a header and no rows.")
    return header, rows


def _lines(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    return (line for line in reader if line)


def _position(header: list[str], name: str, path: Path) -> int:
    if name not in header:
        raise BenchError(f"{path} has no column {name!r}; it has: {', '.join(header)}.")
    return header.index(name)


def _columns(
    header: list[str], rows: list[list[str]], taken: set[int | None], found: Measurements, path: Path
) -> list[_Column]:
    columns: list[_Column] = []
    names: set[str] = set()
    for at, title in enumerate(header):
        if at in taken:
            continue
        kind = _kind({row[at] for row in rows})
        if kind is None:
            found.notes.append(f"{path.name}: column {title!r} has no values and is left out.")
            continue
        name = base = re.sub(r"[^0-9a-zA-Z_-]", "_", title)[:250] or f"column_{at + 1}"
        suffix = 2
        while name in names:
            name, suffix = f"{base}_{suffix}", suffix + 1
        names.add(name)
        if name != title:
            found.notes.append(f"{path.name}: column {title!r} becomes attribute {name!r}.")
        columns.append(_Column(at, name, kind))
    if not columns:
        raise BenchError(f"{path} has no column with values beside the time and the device.")
    return columns


def _kind(cells: set[str]) -> str | None:
    """The API type that can hold every cell of a column without loss, or None if all cells are empty."""
    present = {cell for cell in cells if cell.lower() not in _MISSING}
    if not present:
        return "string" if any(cells) else None
    if all(cell.lower() in _BOOLEANS for cell in present):
        return "boolean"
    return "number" if all(_is_number(cell) for cell in present) else "string"


def _is_number(text: str) -> bool:
    """Whether a float can hold it: no leading zeros (they mark codes), no integer beyond 2**53."""
    if not _NUMBER.fullmatch(text) or not any(digit in text for digit in "0123456789"):
        return False
    try:
        number = float(text)
    except ValueError:
        return False
    return abs(number) <= _EXACT_INTEGER_MAX or ("e" in text.lower() and abs(number) < float("inf"))
