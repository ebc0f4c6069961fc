"""What the blocks of a dashboard show at a moment, as texts, tables and charts; and a report of all of them.

It knows neither HTML nor mail nor how a chart is drawn. Times are `Moment`s, so that the renderer writes them, and
numbers, as the reader of the report expects them.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import msgspec

COLORS: Final = ("#3b82c4", "#e07b39", "#4ba35d", "#c4504f", "#8b6bb8", "#8c6d5a", "#d57fb5", "#7d8590")
"""Told apart on light and on dark, also by most people who see colours differently."""


class Moment(NamedTuple):
    """A time in ms since the epoch."""

    ms: int


class Share(NamedTuple):
    """A share of a whole, from 0 to 1."""

    value: float


Cell = str | int | float | bool | Moment | Share | None


RowKind = Literal["", "dashboard", "device", "event", "flow"]


class Table(NamedTuple):
    """Rows of cells. `total` is the number of all rows, of which the first are shown.

    If each row is about a record, `of` is its kind, and `ids` are the ids.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    total: int = 0
    of: RowKind = ""
    ids: tuple[str, ...] = ()


class Paragraph(NamedTuple):
    """A text. `is_problem`: it says why something is missing."""

    text: str
    is_problem: bool = False


class Value(NamedTuple):
    """One value with the time from which it is, and its unit."""

    label: str
    value: Cell
    at: Moment | None = None
    unit: str = ""


class Status(NamedTuple):
    """What the conditions of a block say of its values, and its colour as in CSS."""

    text: str
    color: str


class Address(NamedTuple):
    """A picture or a page at an address, or a picture within the address (`data:`). A report does not load it."""

    label: Literal["Picture", "Page"]
    url: str

    @property
    def text(self) -> str:
        """The address in words."""
        return f"{self.label}: {'(within the dashboard)' if self.url.startswith('data:') else self.url}"


class Line(msgspec.Struct, frozen=True):
    """A series of a chart: its points are (x, y), on a graph x is a time in ms. `axis`: the id of its vertical axis."""

    label: str
    points: list[tuple[float, float]]
    color: str = ""
    style: str = "line"
    weight: float = 2
    axis: str = ""


class Chart(msgspec.Struct, frozen=True):
    """What a picture shows.

    `categories` are the names of the bars or sectors, `marks` are lines across the values, `span` is the range of a
    graph in ms, `low` and `high` are that of the values. On a timeline a point is a time and the number of the category
    that was from then on.
    """

    type: Literal["graph", "timeline", "bar", "pie", "gauge", "map", "plane"]
    lines: list[Line]
    categories: list[str] = []
    low: float | None = None
    high: float | None = None
    marks: list[Line] = []
    span: tuple[int, int] | None = None


class Category(msgspec.Struct, frozen=True):
    """What a level of a place means, and its colour as in CSS."""

    label: str
    color: str


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The newest places of devices, in columns: points are (longitude, latitude), a level is the number of a category.

    `values` are those by which the levels are chosen; none if there is no such attribute. Only for clients: a report
    has a chart and a table of them.
    """

    names: list[str]
    ids: list[str]
    times: list[int]
    points: list[tuple[float, float]]
    levels: list[int]
    values: list[Any]
    categories: list[Category]


Part = Table | Paragraph | Value | Status | Address | Chart | Places


class Section(NamedTuple):
    """One block of the dashboard."""

    title: str
    description: str
    parts: list[Part]

    @property
    def charts(self) -> int:
        """How many charts it has."""
        return sum(isinstance(part, Chart) for part in self.parts)

    @property
    def characters(self) -> int:
        """About how many characters it has."""
        tables = [part for part in self.parts if isinstance(part, Table)]
        texts = [part.text for part in self.parts if isinstance(part, Paragraph)]
        cells = sum(len(str(cell)) for table in tables for row in table.rows for cell in row)
        return len(self.description) + sum(map(len, texts)) + cells

    def without_charts(self) -> Section:
        """The section without its charts. What they show is in its tables."""
        return self._replace(parts=[part for part in self.parts if not isinstance(part, Chart)])


class Report(NamedTuple):
    """A report about the moment `at`, in the time zone, the locale and the colours of its reader."""

    title: str
    message: str
    sections: list[Section]
    at: Moment
    timezone: str
    locale: str
    theme: Literal["light", "dark"]

    @property
    def charts(self) -> list[Chart]:
        """All charts in their order."""
        return [part for section in self.sections for part in section.parts if isinstance(part, Chart)]


def number_of(value: Any) -> float | None:
    """A value as a number, None if it is none. True is 1."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return float(value)
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if found - found == 0 else None
