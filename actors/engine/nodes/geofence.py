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
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    RESULT,
    ChoiceSetting,
    Config,
    LongTemplateSetting,
    NumberSetting,
    PathSetting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    needed_path,
    needed_text_reader,
    number_reader,
    path_of,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "GeofenceNode"

_GPS_CHECK: Final = TemplateSetting("gpsCheck", is_needed=True)
_GPS_CENTER: Final = TemplateSetting("gpsCenter")
_RADIUS: Final = NumberSetting("radius")
_POLYGON_COORDS: Final = LongTemplateSetting("polygonCoords")
_POLYGON_PATH: Final = PathSetting("polygonPath")
_BRANCH_PATH: Final = PathSetting("branchPath")

CORNERS_MAX: Final = 1_000
"""Corners of a polygon: some milliseconds of work."""

_Check = Callable[[Visit, str], tuple[bool, Any]]
"""Tells whether a place is inside, and the result."""


def prepare(config: Config) -> NodeStep:
    check = _CHECKS[choice_of(config, _CHECK_TYPE)](config)
    place = needed_text_reader(config, _GPS_CHECK)
    result, branch = path_of(config, RESULT), path_of(config, _BRANCH_PATH)

    def step(visit: Visit) -> int:
        is_inside, value = check(visit, place(visit))
        visit.put(result, value)
        visit.put(branch, "inside" if is_inside else "outside")
        return 1 if is_inside else 0

    return step


def _circle(config: Config) -> _Check:
    center, radius = needed_text_reader(config, _GPS_CENTER), number_reader(config, _RADIUS)
    if radius is None:
        raise Unusable("config.radius: is not set; give a number of metres or a template.")

    def check(visit: Visit, place: str) -> tuple[bool, Any]:
        distance = distance_m(center(visit), place)
        return distance <= radius(visit), None if math.isnan(distance) else distance

    return check


def _written_polygon(config: Config) -> _Check:
    corners = needed_text_reader(config, _POLYGON_COORDS)
    return lambda visit, place: _in_polygon("polygonCoords", place, corners(visit).split("\n"))


def _polygon(config: Config) -> _Check:
    corners = needed_path(config, _POLYGON_PATH)
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

_CHECK_TYPE: Final = ChoiceSetting("checkType", *_CHECKS)
FORM: Final = Form(
    "logic",
    (_CHECK_TYPE, _GPS_CHECK, _GPS_CENTER, _RADIUS, _POLYGON_COORDS, _POLYGON_PATH, _BRANCH_PATH, RESULT),
)
