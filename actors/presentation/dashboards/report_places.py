"""The places of devices in a report: a chart and a table."""

from __future__ import annotations

from typing import Any, Literal

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.devices.record.reads import tags_as_object
from trunkline.actors.presentation.dashboards.report import (
    COLORS,
    Cell,
    Chart,
    Line,
    Moment,
    Paragraph,
    Part,
    number_of,
)
from trunkline.actors.presentation.dashboards.report_lists import chosen, table
from trunkline.actors.presentation.dashboards.report_scene import Scene


def placed(
    scene: Scene, type: Literal["map", "plane"], tracks: list[tuple[str, list[tuple[int, Any]]]]
) -> list[Part]:
    """A chart and a table of places: the name of each device, and when it was where."""
    bounds = scene.bounds
    lines: list[Line] = []
    rows: list[tuple[Cell, ...]] = []
    for name, points in tracks:
        places = [(ms, place) for ms, value in points if (place := place_of(value)) is not None]
        if not places:
            continue
        step = -(-len(places) // bounds.line_points_max)
        # East is to the right: longitude is x.
        turned = [(b, a) if type == "map" else (a, b) for _, (a, b) in places[::step]]
        lines.append(Line(name, turned, COLORS[len(lines) % len(COLORS)]))
        ms, (a, b) = places[-1]
        # Five digits are about a metre.
        shown: tuple[Cell, Cell] = (f"{a:.5f}", f"{b:.5f}") if type == "map" else (a, b)
        rows.append((name, *shown, Moment(ms), len(places)))
    if not rows:
        return [Paragraph("No data.")]
    names = ("Latitude", "Longitude") if type == "map" else ("x", "y")
    return [
        Chart(type, lines[: bounds.lines_max]),
        *table(scene, ("Device", *names, "Time", "Places"), rows),
    ]


def places_of_tags(scene: Scene, config: Doc) -> list[Part]:
    """The places that devices have as a tag."""
    key = config.get("locationTagKey")
    if not key:
        raise Invalid("The block names no attribute and no tag for the place.")
    tracks = []
    for device in chosen(scene, config):
        values = tags_as_object(device["tags"]).get(key)
        if values:
            tracks.append((str(device["name"]), [(int(device["lastUpdated"]), values[0])]))
    return placed(scene, "map", tracks)


def place_of(value: Any) -> tuple[float, float] | None:
    """Two numbers: of a text `latitude,longitude`, or of a pair."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or len(parts) < 2:
        return None
    a, b = number_of(parts[0]), number_of(parts[1])
    return None if a is None or b is None else (a, b)
