"""GeofenceNode: output 1 if a place is inside of an area, output 0 if it is outside or cannot be told.

`checkType` is `radius` (within `radius` metres of `gpsCenter`), `polygonCoords` (a place in each line of a template)
or `polygon` (an array of places at `polygonPath`). `resultPath` gets the distance in metres, null where a place is
none, or whether the place is inside of the polygon. `branchPath` gets "inside" or "outside".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from trunkline.actors.core.formulas.geometry import distance_m, is_point_inside
from trunkline.actors.engine.tools import (
    Config,
    Unusable,
    choice_of,
    needed_path,
    needed_text_reader,
    number_reader,
    path_of,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "GeofenceNode"
CORNERS_MAX: Final = 1_000
"""Corners of a polygon: some milliseconds of work."""

_Check = Callable[[Visit, str], tuple[bool, Any]]
"""Tells whether a place is inside, and the result."""


def prepare(config: Config) -> NodeStep:
    check = _CHECKS[choice_of(config, "checkType", tuple(_CHECKS))](config)
    place = needed_text_reader(config, "gpsCheck")
    result, branch = path_of(config, "resultPath"), path_of(config, "branchPath")

    def step(visit: Visit) -> int:
        is_inside, value = check(visit, place(visit))
        visit.put(result, value)
        visit.put(branch, "inside" if is_inside else "outside")
        return 1 if is_inside else 0

    return step


def _circle(config: Config) -> _Check:
    center, radius = needed_text_reader(config, "gpsCenter"), number_reader(config, "radius")
    if radius is None:
        raise Unusable("config.radius: is not set; give a number of metres or a template.")

    def check(visit: Visit, place: str) -> tuple[bool, Any]:
        distance = distance_m(center(visit), place)
        return distance <= radius(visit), None if math.isnan(distance) else distance

    return check


def _written_polygon(config: Config) -> _Check:
    corners = needed_text_reader(config, "polygonCoords")
    return lambda visit, place: _in_polygon("polygonCoords", place, corners(visit).split("\n"))


def _polygon(config: Config) -> _Check:
    corners = needed_path(config, "polygonPath")
    return lambda visit, place: _in_polygon("polygonPath", place, corners.get(visit.payload))


def _in_polygon(field: str, place: str, corners: Any) -> tuple[bool, Any]:
    if isinstance(corners, list) and len(corners) > CORNERS_MAX:
        raise refused(
            f"config.{field}: a polygon has at most {CORNERS_MAX} corners; this one has {len(corners)}."
        )
    is_inside = is_point_inside(place, corners)
    return is_inside, is_inside


_CHECKS: Final[dict[str, Callable[[Config], _Check]]] = {
    "radius": _circle,
    "polygonCoords": _written_polygon,
    "polygon": _polygon,
}
