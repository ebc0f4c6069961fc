"""A place is inside of a circle or of a polygon, or outside."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.engine.flow_cases import failure, run_node
from trunkline.actors.core.formulas.geometry import parse_place
from trunkline.actors.engine.nodes.geofence import CORNERS_MAX

HOME = {"gpsCheck": "{{data.at}}", "gpsCenter": "39.1,-84.5", "radius": "{{data.radius}}"}
SQUARE = ["39.11,-84.52", "39.11,-84.50", "39.09,-84.50", "39.09,-84.52"]
LINES = {"checkType": "polygonCoords", "gpsCheck": "{{data.at}}", "polygonCoords": "\n".join(SQUARE)}
PATH = {"checkType": "polygon", "gpsCheck": "{{data.at}}", "polygonPath": "data.corners"}


@pytest.mark.parametrize(
    ("config", "at", "is_inside"),
    [
        (HOME, "39.1,-84.5", True),
        (HOME, "39.104,-84.5", True),
        (HOME, "39.105,-84.5", False),
        (HOME, "39°6'0.0\"N,84°30'0.0\"W", True),
        (HOME, "somewhere", False),
        (HOME, None, False),
        (LINES, "39.10,-84.51", True),
        (LINES, "39.10,-84.53", False),
        (LINES, "somewhere", False),
        (PATH, "39.10,-84.51", True),
        (PATH, "39.12,-84.51", False),
        ({**PATH, "polygonPath": "data.gone"}, "39.10,-84.51", False),
    ],
)
async def test_areas(config: dict[str, Any], at: Any, is_inside: bool) -> None:
    given = {**config, "branchPath": "data.branch", "resultPath": "data.result"}
    shown = await run_node("GeofenceNode", given, {"at": at, "radius": 500, "corners": SQUARE})
    assert shown["output"] == int(is_inside)
    assert shown["data"]["branch"] == ("inside" if is_inside else "outside")
    if config is not HOME:
        assert shown["data"]["result"] is is_inside
    elif at is None or at == "somewhere":
        assert shown["data"]["result"] is None
    else:
        assert (shown["data"]["result"] <= 500) is is_inside


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"gpsCenter": "0,0", "radius": 1}, "config.gpsCheck: is not set"),
        ({"gpsCheck": "0,0", "radius": 1}, "config.gpsCenter: is not set"),
        ({"gpsCheck": "0,0", "gpsCenter": "0,0"}, "config.radius: is not set; give a number of metres"),
        (
            {"gpsCheck": "0,0", "gpsCenter": "0,0", "radius": "far"},
            "config.radius: gives 'far', not a number.",
        ),
        (
            {"checkType": "cube", "gpsCheck": "0,0"},
            "config.checkType: is 'cube'; give one of radius, polygonC",
        ),
        ({"checkType": "polygon", "gpsCheck": "0,0"}, "config.polygonPath: is not set"),
        ({"checkType": "polygonCoords", "gpsCheck": "0,0"}, "config.polygonCoords: is not set"),
        (PATH, f"config.polygonPath: a polygon has at most {CORNERS_MAX} corners; this one has 1001."),
    ],
)
async def test_what_does_not_fit_is_refused(config: dict[str, Any], message: str) -> None:
    name, told = await failure("GeofenceNode", config, {"corners": ["0,0"] * (CORNERS_MAX + 1)})
    assert name == "ValidationError"
    assert told.startswith(message)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("37.33233141,-122.0312186", (37.33233141, -122.0312186)),
        (" 37.5 , -122 ", (37.5, -122)),
        ("37°19'56.39\"N,122°1'52.38\"W", (37.332331, -122.031217)),
        ("$GPGLL,3719.940,N,12201.873,W,225444,A,*1C", (37.332333, -122.031217)),
        ("$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47", (48.1173, 11.516667)),
        ("$GPGGA,123519,4807.038,S,01131.000,W,1", (-48.1173, -11.516667)),
        ("91,0", None),
        ("0,181", None),
        ("37°60'0\"N,122°1'52.38\"W", None),
        ("$GPRMC,3719.940,N,12201.873,W,225444,A,*1C", None),
        ("1,2,3", None),
        (",", None),
        (12, None),
    ],
)
def test_places_have_several_forms(text: Any, expected: tuple[float, float] | None) -> None:
    assert parse_place(text) == (None if expected is None else pytest.approx(expected, abs=1e-6))
