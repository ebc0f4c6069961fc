"""The timeline of a block: when which value was, for values of any type."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.presentation.dashboards.report import Cell, Chart, Line, Moment, Part, Table, number_of
from trunkline.actors.presentation.dashboards.report_scene import Scene
from trunkline.actors.presentation.dashboards.report_thresholds import threshold_of
from trunkline.actors.presentation.dashboards.report_values import NOTHING, computed, label_of

_CATEGORIES_MAX: Final = 24
"""More cannot be told apart; all further values are one category."""
_FURTHER: Final = "other values"
_TEXT_MAX: Final = 64


def timeline(scene: Scene, config: Doc) -> list[Part]:
    """A chart with a line for each device, whose points are changes of its value, and the newest changes as a table.

    A number that has reached a threshold with a word is shown as this word.
    """
    bounds = scene.bounds
    lines: list[Line] = []
    categories: dict[str, int] = {}
    rows: list[tuple[int, str, str]] = []
    duration_ms = scene.graph_ms(config)
    for number, segment in enumerate(config.get("segments", ())):
        attribute = segment.get("attribute")
        if not attribute:
            raise Invalid("The segment names no attribute.")
        tracks = scene.tracks(segment, [attribute], duration_ms, newest_max=bounds.line_points_max)
        for device, points in tracks:
            read = [(ms, data[attribute]) for ms, data in points if attribute in data]
            changes = _changes([(ms, _word(config, value)) for ms, value in computed(scene, segment, read)])
            if not changes:
                continue
            label = label_of(segment, number, device.name if len(tracks) > 1 else "")
            rows += [(ms, label, word) for ms, word in changes[-bounds.rows_max :]]
            if len(lines) < bounds.lines_max:
                lines.append(Line(label, [(float(ms), _number(categories, word)) for ms, word in changes]))
    if not lines:
        return [NOTHING]
    span = (scene.now_ms - duration_ms, scene.now_ms)
    rows.sort(reverse=True)
    shown: list[tuple[Cell, ...]] = [(label, word, Moment(ms)) for ms, label, word in rows[: bounds.rows_max]]
    return [
        Chart("timeline", lines, list(categories), span=span),
        Table(("", "Value", "Since"), shown, len(rows)),
    ]


def _word(config: Doc, value: Any) -> str:
    """A value as a text; that of its threshold if it is a number that has one."""
    reached = None if isinstance(value, bool) else threshold_of(config, number_of(value))
    if reached is not None and reached.get("label"):
        return str(reached["label"])
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text[:_TEXT_MAX]


def _changes(points: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The points at which the value became another one, the first among them."""
    return points[:1] + [after for before, after in pairwise(points) if before[1] != after[1]]


def _number(categories: dict[str, int], word: str) -> float:
    """The number of a category. It is added if it is new and there is room."""
    if word not in categories:
        if len(categories) < _CATEGORIES_MAX:
            categories[word] = len(categories)
        else:
            word = _FURTHER
            categories.setdefault(word, len(categories))
    return float(categories[word])
