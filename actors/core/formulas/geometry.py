"""Places on the earth: texts such as "39.1,-84.5", latitude before longitude, in degrees.

Also in degrees, minutes and seconds (37°19'56.39"N,122°1'52.38"W), and as sentences GLL and GGA of NMEA 0183.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.price import spend
from trunkline.actors.core.formulas.values import UNDEFINED, to_number, to_text

EARTH_RADIUS_M: Final = 6_371_008.8
"""The mean radius of the earth, of IUGG. The distance on this sphere is within 0.6 % of the one on the ellipsoid."""

DECIMALS_MAX: Final = 20
PLACE_CHARS_MAX: Final = 256
"""Characters of a text that may be a place."""

_DEGREES: Final = r"""\s*(\d{1,3})\s*°\s*(\d{1,2})\s*['′]\s*(\d{1,2}(?:\.\d+)?)\s*["″]\s*"""
_SECONDS: Final = re.compile(f"{_DEGREES}([NS])\\s*,{_DEGREES}([EW])\\s*", re.ASCII | re.IGNORECASE)
_NMEA: Final = re.compile(
    r"\$[A-Z]{2}(?:GLL|GGA,[0-9.]*),(\d{2})(\d{2}(?:\.\d+)?),([NS]),(\d{3})(\d{2}(?:\.\d+)?),([EW]),.*",
    re.ASCII,
)


def parse_place(value: Any) -> tuple[float, float] | None:
    """Latitude and longitude of a text, or None if it is no place."""
    if not isinstance(value, str) or len(value) > PLACE_CHARS_MAX:
        return None
    latitude, comma, longitude = value.partition(",")
    if not comma or not latitude.strip() or not longitude.strip():
        return None
    place = float(to_number(latitude)), float(to_number(longitude))
    if math.isnan(place[0]):
        place = _in_other_forms(value)
    return place if abs(place[0]) <= 90 and abs(place[1]) <= 180 else None


def _in_other_forms(text: str) -> tuple[float, float]:
    """The place of a text in minutes and seconds or of NMEA; NaN if it is none."""
    found = _SECONDS.fullmatch(text)
    if found is not None:
        north, north_minutes, north_seconds, south, east, east_minutes, east_seconds, west = found.groups()
    else:
        found = _NMEA.fullmatch(text.strip())
        if found is None:
            return math.nan, math.nan
        north, north_minutes, south, east, east_minutes, west = found.groups()
        north_seconds = east_seconds = "0"
    return (
        _degrees(north, north_minutes, north_seconds, south in "Ss"),
        _degrees(east, east_minutes, east_seconds, west in "Ww"),
    )


def _degrees(degrees: str, minutes: str, seconds: str, is_negative: bool) -> float:
    if float(minutes) >= 60 or float(seconds) >= 60:
        return math.nan
    value = int(degrees) + float(minutes) / 60 + float(seconds) / 3600
    return -value if is_negative else value


def format_gps(value: Any, form: Any = "decimal", decimals: Any = 6) -> str:
    """Write a place with a number of decimals. What is no place stays as it is."""
    if form not in ("", "decimal"):
        raise EvaluationError(f"formatGps: the format {to_text(form)} is not served; decimal is.")
    place = parse_place(value)
    if place is None:
        return "" if value is None or value is UNDEFINED else to_text(value)
    wanted = float(to_number(decimals))
    width = int(min(max(wanted, 0), DECIMALS_MAX)) if not math.isnan(wanted) else 6
    return f"{place[0]:.{width}f},{place[1]:.{width}f}"


def distance_m(one: Any, other: Any) -> float:
    """Metres between two places along a great circle (haversine); NaN if one is no place."""
    start, end = parse_place(one), parse_place(other)
    if start is None or end is None:
        return math.nan
    latitude, longitude = math.radians(start[0]), math.radians(start[1])
    to_latitude, to_longitude = math.radians(end[0]), math.radians(end[1])
    half_chord = (
        math.sin((to_latitude - latitude) / 2) ** 2
        + math.cos(latitude) * math.cos(to_latitude) * math.sin((to_longitude - longitude) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, half_chord)))


def is_point_inside(value: Any, corners: Any) -> bool:
    """Whether a place is inside of a polygon of places, on a flat map. Corners that are no places are left out."""
    place = parse_place(value)
    if place is None or not isinstance(corners, list):
        return False
    spend(4 * len(corners))
    polygon = [each for each in map(parse_place, corners) if each is not None]
    latitude, longitude = place
    inside = False
    for position, (to_latitude, to_longitude) in enumerate(polygon):
        from_latitude, from_longitude = polygon[position - 1]
        if (from_latitude > latitude) == (to_latitude > latitude):
            continue
        share = (latitude - from_latitude) / (to_latitude - from_latitude)
        if longitude < from_longitude + share * (to_longitude - from_longitude):
            inside = not inside
    return inside
