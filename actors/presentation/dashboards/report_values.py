"""Blocks that show single values: gauges, bars, shares, indicators and values on a picture."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.queries.exact_sums import means, whole
from trunkline.actors.presentation.dashboards.report import (
    COLORS,
    Address,
    Cell,
    Chart,
    Line,
    Paragraph,
    Part,
    Share,
    Status,
    Table,
    Value,
    number_of,
)
from trunkline.actors.presentation.dashboards.report_formulas import expression_of, status_of
from trunkline.actors.presentation.dashboards.report_scene import Reached, Scene
from trunkline.actors.presentation.dashboards.report_thresholds import (
    marks_of,
    status_of_numbers,
    threshold_of,
)

NOTHING: Final = Paragraph("No data.")


def gauge(scene: Scene, config: Doc) -> list[Part]:
    segment = config.get("segment", {})
    found = values_of(scene, segment, config)
    if not found:
        return [NOTHING]
    status = _status(scene, config, [found]) or status_of_numbers(config, [each.value for each in found])
    labelled = [(label_of(segment, 0, each.device), each) for each in found]
    values = value_parts(scene, labelled, str(config.get("unit", "")))
    parts: list[Part] = [*status, *values]
    low, high = number_of(config.get("gaugeMin")), number_of(config.get("gaugeMax"))
    value = number_of(found[0].value)
    if value is None or low is None or high is None or high <= low or len(found) > 1:
        return parts
    if config.get("displayAsPercentage"):
        parts.append(Value("Share of the range", Share((value - low) / (high - low))))
    if config.get("gaugeType") == "number":
        return parts
    color = next((each.color for each in status if each.color), color_of(segment, 0))
    line = Line(label_of(segment, 0), [(0, value)], color)
    return [Chart("gauge", [line], low=low, high=high, marks=marks_of(config)), *parts]


def value_parts(scene: Scene, found: list[tuple[str, Reached]], unit: str = "") -> list[Part]:
    if not found:
        return [NOTHING]
    if len(found) == 1:
        ((label, each),) = found
        return [Value(label, each.value, each.at, unit)]
    rows: list[tuple[Cell, ...]] = [(label, each.value, each.at) for label, each in found]
    return [Table(("", "Value", "Time"), rows[: scene.bounds.rows_max], len(rows))]


def _of_segments(
    scene: Scene, config: Doc, reached_of: list[list[Reached]] | None = None
) -> list[tuple[str, str, Reached]]:
    """The values of all segments: the label, the colour and the value."""
    found: list[tuple[str, str, Reached]] = []
    segments = config.get("segments", ())
    reached_of = reached_of or [values_of(scene, segment, config) for segment in segments]
    for number, (segment, reached) in enumerate(zip(segments, reached_of, strict=True)):
        for each in reached:
            label = label_of(segment, number, each.device if len(reached) > 1 else "")
            found.append((label, color_of(segment, len(found)), each))
    return found


def bar(scene: Scene, config: Doc) -> list[Part]:
    return _categories(scene, config, "bar")


def pie(scene: Scene, config: Doc) -> list[Part]:
    return _categories(scene, config, "pie")


def _categories(scene: Scene, config: Doc, type: Any) -> list[Part]:
    found = [
        (label, color, value, each.at)
        for label, color, each in _of_segments(scene, config)
        if (value := number_of(each.value)) is not None
    ]
    if not found:
        return [NOTHING]
    mean = mean_of([value for _, _, value, _ in found])
    if type == "pie" and (mean <= 0 or any(value < 0 for _, _, value, _ in found)):
        type = "bar"
    columns = ("", "Value", "Share", "Time") if type == "pie" else ("", "Value", "Time")
    rows: list[tuple[Cell, ...]] = [
        (label, value, *([Share(value / mean / len(found))] if type == "pie" else []), at)
        for label, _, value, at in found
    ]
    table = Table(columns, rows[: scene.bounds.rows_max], len(rows))
    lines, categories = [], []
    for label, color, value, _ in found[: scene.bounds.lines_max]:
        reached = threshold_of(config, value) or {}
        lines.append(Line(label, [(0, value)], reached.get("color") or color))
        categories.append(f"{label}: {reached['label']}" if reached.get("label") else label)
    low, high = _ends(config, [value for *_, value, _ in found]) if type == "bar" else (None, None)
    return [Chart(type, lines, categories, low=low, high=high), table]


def _ends(config: Doc, values: list[float]) -> tuple[float | None, float | None]:
    """Where bars begin and end: as the block says; those of a percentage at 0 and 100, if no value lies beyond."""
    low, high = number_of(config.get("xAxisMin")), number_of(config.get("xAxisMax"))
    if config.get("unit") == "%":
        low = min(0, *values) if low is None else low
        high = max(100, *values) if high is None else high
    return low, high


def indicator(scene: Scene, config: Doc) -> list[Part]:
    reached_of = [values_of(scene, segment, config) for segment in config.get("segments", ())]
    found = [(label, each) for label, _, each in _of_segments(scene, config, reached_of)]
    return [*(_status(scene, config, reached_of) if found else ()), *value_parts(scene, found)]


def overlay(scene: Scene, config: Doc) -> list[Part]:
    found: list[tuple[str, Reached]] = []
    for number, segment in enumerate(config.get("segments", ())):
        named = {"label": segment.get("id"), **segment}
        found += [(label_of(named, number, each.device), each) for each in scene.values(named, named)]
    return [*value_parts(scene, found), *address_parts("Picture", config.get("imageUrl"))]


def mean_of(values: list[float]) -> float:
    """The mean, also of values whose sum is beyond all doubles."""
    return means(np.array(values), whole())[0]


def computed(scene: Scene, segment: Doc, points: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """The points with the results of the expression of the segment, if it has one."""
    if not segment.get("expression"):
        return points
    compute, others = expression_of(segment["expression"]), scene.values_of_templates
    return [(ms, compute({**others, "value": value})) for ms, value in points]


def values_of(scene: Scene, segment: Doc, config: Doc) -> list[Reached]:
    """The value of each device, with the results of the expression of the segment."""
    found = scene.values(segment, config)
    points = computed(scene, segment, [(0, each.value) for each in found])
    return [each._replace(value=value) for each, (_, value) in zip(found, points, strict=True)]


def _status(scene: Scene, config: Doc, found: list[list[Reached]]) -> list[Status]:
    """What the conditions of a block say. `found` are the values of each of its segments."""
    values: Doc = {**scene.values_of_templates}
    firsts = [(number, each[0]) for number, each in enumerate(found) if each]
    for number, each in firsts:
        values |= {f"value-{number}": each.value, f"time-{number}": iso(each.at.ms)}
    if firsts:
        values |= {"value": firsts[0][1].value, "lastUpdated": iso(max(each.at.ms for _, each in firsts))}
    status = status_of(config, values, scene.now_ms)
    return [] if status is None else [status]


def label_of(segment: Doc, number: int, device: str = "") -> str:
    text = str(segment.get("label") or segment.get("attribute") or f"{number + 1}")
    return f"{text}, {device}" if device else text


def color_of(segment: Doc, number: int) -> str:
    given = segment.get("color")
    return given if isinstance(given, str) and given else COLORS[number % len(COLORS)]


def address_parts(label: Literal["Picture", "Page"], url: Any) -> list[Part]:
    return [Address(label, url)] if isinstance(url, str) and url else []
