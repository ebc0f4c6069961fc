"""Thresholds: the colour and the word for a number of a block, and the lines that show them on a chart.

Owns what a number means to a block. Does not own how a client or a report draws it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.presentation.dashboards.report import Line, Status, number_of


def threshold_of(config: Doc, value: float | None) -> Doc | None:
    """The highest threshold that a number has reached, None if it has reached none or is none."""
    if value is None:
        return None
    reached = [each for each in config.get("thresholds", ()) if _start(each) <= value]
    return max(reached, key=_start, default=None)


def status_of_numbers(config: Doc, values: Iterable[object]) -> list[Status]:
    """What the thresholds of a block say of the highest of its numbers; nothing if they say nothing."""
    numbers = [number for value in values if (number := number_of(value)) is not None]
    found = threshold_of(config, max(numbers, default=None))
    if found is None or not (found.get("label") or found.get("color")):
        return []
    return [Status(found.get("label", ""), found.get("color", ""))]


def marks_of(config: Doc) -> list[Line]:
    """A line across a chart for each threshold that has a value."""
    return [
        Line(each.get("label", ""), [(0.0, float(each["value"]))], each.get("color", ""))
        for each in config.get("thresholds", ())
        if "value" in each
    ]


def _start(threshold: Doc) -> float:
    return float(threshold.get("value", -math.inf))
