"""What each type of block shows, in a report and in the answer to a client that draws it.

A block that cannot be read (a query that is too large, an application that the caller does not reach) becomes a
section that says so; the others are not affected. Expressions, conditions and the templates of rows are those of
workflows (`report_formulas.py`); in other texts only paths are filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

import msgspec
import structlog

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import DomainError, Invalid, Overloaded
from trunkline.actors.core.values.template import fill_all
from trunkline.actors.presentation.dashboards import report_lists as lists
from trunkline.actors.presentation.dashboards import report_rows as records
from trunkline.actors.presentation.dashboards import report_values as values
from trunkline.actors.presentation.dashboards.report import (
    Chart,
    Line,
    Moment,
    Paragraph,
    Part,
    Section,
    Table,
    Value,
    number_of,
)
from trunkline.actors.presentation.dashboards.report_fleet_places import newest_places
from trunkline.actors.presentation.dashboards.report_places import placed, places_of_tags
from trunkline.actors.presentation.dashboards.report_scene import Scene
from trunkline.actors.presentation.dashboards.report_thresholds import marks_of, status_of_numbers
from trunkline.actors.presentation.dashboards.report_timeline import timeline
from trunkline.actors.presentation.dashboards.report_values import (
    NOTHING,
    address_parts,
    color_of,
    computed,
    label_of,
    mean_of,
    value_parts,
)
from trunkline.limits.table import DAY_MS
from trunkline.store.errors import StoreError

_log = structlog.get_logger("trunkline.reports")

QUERY_FIELDS: Final = frozenset({"query"})
"""Fields whose texts are JSON: a value of the context stays a value in them."""
SEARCH_FIELDS: Final = frozenset({"filter", "searchParam"})
"""Fields whose texts narrow what is shown; a blank one does not."""
LATER_FIELDS: Final = frozenset(
    {"conditions", "defaultCondition", "deviceTags", "expression", "rowTemplate", "tags"}
)
"""Fields whose texts are for values: of a row, of a point, or of the block. Tags are filled in by the `Scene`."""


def section_of(scene: Scene, block: Doc) -> Section:
    """The section of a block. Raises only what concerns all blocks, such as `StoreError`."""
    type = block["blockType"]
    try:
        scene.parameters.check(block)
        block = fill_all(
            block,
            scene.values_of_templates,
            queries=QUERY_FIELDS,
            searches=SEARCH_FIELDS,
            later=LATER_FIELDS,
        )
        config = block.get("config", {})
        parts = _PARTS[type](scene, config)
    except Overloaded:
        raise
    except DomainError as refusal:
        config, parts = {}, [Paragraph(refusal.message, is_problem=True)]
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 - a bug in one block must not prevent the report
        _log.exception("block of a report failed", type=type)
        config, parts = (
            {},
            [Paragraph("The server failed to show this; the fault is logged.", is_problem=True)],
        )
    title = block.get("title") or config.get("title") or _TITLES.get(type, "")
    return Section(str(title), str(block.get("description", "")), parts)


# Values over time.


def _graph(scene: Scene, config: Doc) -> list[Part]:
    if config.get("displayType") == "timeline":
        return timeline(scene, config)
    bounds = scene.bounds
    found: list[Line] = []
    rows: list[tuple[Any, ...]] = []
    for number, segment in enumerate(config.get("segments", ())):
        tracks = [track for track in scene.series(segment, config) if track.points]
        for track in tracks:
            points = [(float(ms), value) for ms, value in _numbers(computed(scene, segment, track.points))]
            if segment.get("cumulative"):
                points = _summed(points)
            label = label_of(segment, number, track.device if len(tracks) > 1 else "")
            rows.append((label, *_summary([value for _, value in points])))
            style = segment.get("graphType", "line")
            if style == "line" and str(segment.get("lineType", "")).startswith("step"):
                style = "step"
            color = color_of(segment, len(found))
            if len(found) < bounds.lines_max:
                weight = float(segment.get("lineWeight", 2) or 0)
                line = Line(label, points, color, style, weight, str(segment.get("yAxisId") or ""))
                found.append(_thinned(line, bounds.line_points_max))
    span = (scene.now_ms - scene.graph_ms(config), scene.now_ms)
    return _with_picture(scene, config, found, rows, span)


def _with_picture(
    scene: Scene, config: Doc, lines: list[Line], rows: list[tuple[Any, ...]], span: tuple[int, int]
) -> list[Part]:
    if not any(line.points for line in lines):
        return [NOTHING]
    axes = config.get("yAxes", ())
    drawn = [
        Line(str(mark.get("label", "")), [(0.0, y) for y in _ends(mark)], mark.get("color", ""), mark["type"])
        for mark in config.get("decorators", ())
        if _ends(mark)
    ] + marks_of(config)
    low = next((number_of(axis.get("min")) for axis in axes if axis.get("min") is not None), None)
    high = next((number_of(axis.get("max")) for axis in axes if axis.get("max") is not None), None)
    chart = Chart("graph", lines, low=low, high=high, marks=drawn, span=span)
    if config.get("displayType") == "sparkline":
        return [*_newest(config, lines), chart]
    if scene.bounds.downsampled:
        left = len(rows) - len(lines)
        return [chart, Paragraph(f"{left} more series are not shown.")] if left else [chart]
    columns = ("Series", "Values", "Minimum", "Mean", "Maximum", "Last")
    return [chart, Table(columns, rows[: scene.bounds.rows_max], len(rows))]


def _newest(config: Doc, lines: list[Line]) -> list[Part]:
    """The newest value of each line, and what the thresholds say of them."""
    ends = [(line.label, *line.points[-1]) for line in lines if line.points]
    status = status_of_numbers(config, [value for _, _, value in ends])
    unit = str(config.get("unit", ""))
    return [*status, *(Value(label, value, Moment(round(ms)), unit) for label, ms, value in ends)]


def _ends(mark: Doc) -> list[float]:
    values = [number_of(mark.get(name)) for name in ("y1", "y2")]
    return [value for value in values if value is not None]


def _numbers(points: list[tuple[int, Any]]) -> list[tuple[int, float]]:
    pairs = [(ms, number_of(value)) for ms, value in points]
    return [(ms, value) for ms, value in pairs if value is not None]


def _summed(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    total, found = 0.0, []
    for ms, value in points:
        total += value
        found.append((ms, total))
    return found


def _summary(values: list[float]) -> tuple[Any, ...]:
    if not values:
        return (0, None, None, None, None)
    return (len(values), min(values), mean_of(values), max(values), values[-1])


def _thinned(line: Line, points_max: int) -> Line:
    """The line with every n-th point, so that it has at most `points_max`."""
    step = -(-len(line.points) // points_max)
    points = line.points if step <= 1 else line.points[::step]
    return msgspec.structs.replace(line, points=points)


# Places.


def _map(scene: Scene, config: Doc) -> list[Part]:
    attribute = config.get("attribute")
    if not attribute:
        return places_of_tags(scene, config)
    duration_ms = 0 if config.get("compositeResult") else scene.duration_ms(config)
    places: list[tuple[str, list[tuple[int, Any]]]]
    if not duration_ms and scene.bounds.places_max:
        return _newest_places(scene, config)
    if duration_ms:
        resolution_ms = number_of(config.get("resolution"))
        bucket_ms = round(resolution_ms) if resolution_ms else None
        node = config if bucket_ms is None else {**config, "aggregation": "LAST"}
        newest_max = scene.bounds.line_points_max
        tracks = scene.tracks(node, [attribute], duration_ms, bucket_ms, newest_max=newest_max)
        places = [
            (device.name, [(ms, data.get(attribute)) for ms, data in points]) for device, points in tracks
        ]
    else:
        found = scene.last_values(config, attribute)
        places = [(each.device, [(each.at.ms, each.value)]) for each in found]
    return placed(scene, "map", places)


def _newest_places(scene: Scene, config: Doc) -> list[Part]:
    found = newest_places(scene, config)
    if not found.names:
        return [NOTHING]
    tracks = zip(found.names, found.times, found.points, strict=True)
    first = islice(tracks, scene.bounds.rows_max)
    rows: list[tuple[Any, ...]] = [(name, f"{b:.5f}", f"{a:.5f}", Moment(ms)) for name, ms, (a, b) in first]
    columns = ("Device", "Latitude", "Longitude", "Time")
    return [found, Table(columns, rows, len(found.names), "device", tuple(found.ids[: len(rows)]))]


def _plane(scene: Scene, config: Doc) -> list[Part]:
    x, y = config.get("xAttribute"), config.get("yAttribute")
    if not (x and y):
        raise Invalid("The block names no attributes for the position.")
    duration_ms = 0 if config.get("compositeResult") else scene.duration_ms(config)
    newest_max = scene.bounds.line_points_max
    tracks = scene.tracks(config, [x, y], duration_ms or DAY_MS, None, newest_max=newest_max)
    places = []
    for device, points in tracks:
        pairs = [(ms, (data[x], data[y])) for ms, data in points if x in data and y in data]
        places.append((device.name, pairs if duration_ms else pairs[-1:]))
    return [*placed(scene, "plane", places), *address_parts("Picture", config.get("imageUrl"))]


# What a client draws, and what acts.


def _custom(scene: Scene, config: Doc) -> list[Part]:
    """The results of the queries: what a client draws of them is its own program."""
    parts: list[Part] = []
    for number, segment in enumerate(config.get("segments", ())):
        type = segment.get("queryType")
        if type == "time-series":
            parts += _graph(scene, {**segment, "segments": [segment]})
        elif type == "gauge":
            found = scene.values(segment, segment)
            parts += value_parts(scene, [(label_of(segment, number, each.device), each) for each in found])
        elif type == "data-table":
            parts += records.rows(scene, {**segment, **records.row_options(segment)})
        elif type == "device-info":
            parts += lists.devices(scene, {**segment, "additionalAttributes": segment.get("attributes")})
        elif type == "events":
            parts += records.events(scene, segment)
    return parts or [Paragraph("A client draws this block.")]


def _input(scene: Scene, config: Doc) -> list[Part]:
    rows: list[tuple[Any, ...]] = []
    for control in config.get("controls", ()):
        value = control.get("defaultValue")
        query = control.get("defaultQuery", {})
        if query.get("attribute"):
            found = scene.values(query, query)
            value = found[0].value if found else value
        if control["type"] == "help":
            rows.append(("Note", str(control.get("help", ""))))
        else:
            rows.append((str(control.get("label") or control.get("templateId") or control["type"]), value))
    return [Table(("Control", "Value"), rows[: scene.bounds.rows_max], len(rows))] if rows else [NOTHING]


def _image(scene: Scene, config: Doc) -> list[Part]:
    if config.get("imageSource") == "attribute" and config.get("deviceId") and config.get("attribute"):
        found = scene.last_values({"deviceIds": [config["deviceId"]]}, config["attribute"])
        if not found:
            return [NOTHING]
        return [*address_parts("Picture", found[0].value), Value("Time of the picture", found[0].at)]
    return address_parts("Picture", config.get("imageUrl")) or [NOTHING]


def _frame(_scene: Scene, config: Doc) -> list[Part]:
    return address_parts("Page", config.get("url")) or [NOTHING]


def _header(_scene: Scene, config: Doc) -> list[Part]:
    content = config.get("content")
    return [Paragraph(str(content))] if content else []


_PARTS: Final[Mapping[str, Callable[[Scene, Doc], list[Part]]]] = {
    "application-list": lists.applications,
    "bar": values.bar,
    "custom-chart": _custom,
    "custom-html": _custom,
    "dashboard-list": lists.dashboards,
    "data-table": records.rows,
    "device-count": lists.device_counts,
    "device-list": lists.devices,
    "device-log": lists.device_log,
    "device-state-table": lists.states,
    "event-list": records.events,
    "gauge": values.gauge,
    "graph": _graph,
    "heatmap": _map,
    "iframe": _frame,
    "image": _image,
    "image-overlay": values.overlay,
    "indicator": values.indicator,
    "input": _input,
    "map": _map,
    "open-event-indicator": records.open_events,
    "pie": values.pie,
    "position-chart": _plane,
    "section-header": _header,
    "workflow-list": lists.workflows,
}
_TITLES: Final[Mapping[str, str]] = {
    "application-list": "Applications",
    "dashboard-list": "Dashboards",
    "data-table": "Rows",
    "device-count": "Number of devices",
    "device-list": "Devices",
    "device-log": "Connections",
    "device-state-table": "States",
    "event-list": "Events",
    "input": "Controls",
    "map": "Map",
    "open-event-indicator": "Open events",
    "workflow-list": "Workflows",
}
"""The headings of blocks without a title."""
