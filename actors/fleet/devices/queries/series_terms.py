"""The terms of a time series query: aggregations, resolutions, points, and why one is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast, get_args

from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.core.values.timestamps import parse_duration
from trunkline.actors.fleet.devices.queries.samples import Value

Point = tuple[int, dict[str, Value]]
"""A time in milliseconds, and the values (or aggregates) of attributes at that time."""

AggregationType = Literal[
    "FIRST",
    "LAST",
    "COUNT",
    "MAX",
    "MIN",
    "MEDIAN",
    "MEAN",
    "SUM",
    "STD_DEV",
    "NONE",
    "TIMEATVALUE",
]
Order = Literal["asc", "desc"]


class SeriesError(Invalid, ValueError):
    """An invalid aggregation. The text is a sentence for the caller."""


class SeriesTooLarge(SeriesError):
    """More values than one query may keep at a time. The text says how to request less."""

    type = PayloadTooLarge.type

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the query {problem}; "
            "ask for a shorter range, a coarser resolution, fewer attributes, fewer devices or a lower limit."
        )


FULL = "finds more data than one answer may hold"


def too_many(points_max: int) -> SeriesTooLarge:
    return SeriesTooLarge(f"needs more than {points_max} values at a time")


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregation of the values in a bucket. `value` is the one that TIMEATVALUE compares with, else None."""

    type: AggregationType
    value: Value | None = None


def parse_aggregation(value: object, *, field: str = "aggregation") -> Aggregation:
    """Read an aggregation from JSON: its name, or `{type, options}` with `options.value` for TIMEATVALUE."""
    name, options = value, None
    if isinstance(value, dict):
        if not {"type"} <= value.keys() <= {"type", "options"}:
            raise SeriesError(f"{field}: an object has a type and may have options, nothing else.")
        name, options = value["type"], value.get("options")
    if not isinstance(name, str) or name not in get_args(AggregationType):
        shown = repr(name[:40]) if isinstance(name, str) else "this"
        raise SeriesError(f"{field}: {shown} is none; give one of {', '.join(get_args(AggregationType))}.")
    kind = cast("AggregationType", name)
    if kind != "TIMEATVALUE":
        if options:
            raise SeriesError(f"{field}.options: {kind} has no options.")
        return Aggregation(kind)
    if not isinstance(options, dict) or options.keys() != {"value"}:
        raise SeriesError(f"{field}.options: TIMEATVALUE needs exactly one option, the value to look for.")
    target = options["value"]
    if not isinstance(target, str | int | float) or (isinstance(target, float) and not math.isfinite(target)):
        raise SeriesError(f"{field}.options.value: give a string, a number or a boolean.")
    return Aggregation(kind, target)


def parse_resolution(value: object, *, field: str = "resolution") -> int | None:
    """Read a resolution in whole milliseconds. None, an empty text and 0 give None: the whole range."""
    return None if value is None or value == "" else parse_duration(value, field=field) or None
