"""The outlines of land for maps of the console: fetched from the npm registry, written to `http/console/map/`.

    .venv/bin/python -m tests.console.land

The data are those of Natural Earth (https://www.naturalearthdata.com/, public domain), countries at 1:50 million, as
the package `world-atlas` (ISC) publishes them. They are made smaller: to hundredths of a degree, without points that
lie so close to the line between their neighbours that nobody would see them. `arcs` are lines as texts of differences
(`_encoded`), `rings` are the lines of each outline; a negative number -1 - n is line n from its end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from math import hypot
from pathlib import Path
from typing import Any, Final

from tests.console.npm_package import fetch

FILE: Final = Path(__file__).parents[2] / "http" / "console" / "map" / "land.json"
PACKAGE: Final = ("world-atlas", "2.0.2")
INTEGRITY: Final = (
    "sha512-IXfV0qwlKXpckz1FhwXVwKRjiIhOnWttOskm5CtxMsjgE/MXAYRHWJqgXOpM8IkcPBoXnyTU5lFHcYa5ChG0LQ=="
)
SHA256: Final = "c43eb0461fc7c1b996f2510268ed316b403b418da0dc0ce5162457b08397b695"
BYTES_MAX: Final = 300_000
STEPS: Final = 100
"""Steps of a degree."""
CLOSE: Final = 1.6
"""Steps that a point may lie beside the line of its neighbours to be left out."""

Point = tuple[int, int]


def main() -> None:
    """Write the file, and the licence of the package beside it."""
    files = fetch(*PACKAGE, INTEGRITY).files
    content = outlines(json.loads(files["countries-50m.json"]))
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(content)
    (FILE.parent / "world-atlas.LICENSE.txt").write_bytes(files["LICENSE"])
    print(len(content), hashlib.sha256(content).hexdigest())  # noqa: T201


def outlines(topology: dict[str, Any]) -> bytes:
    """The file for a topology with the object `countries`."""
    scale, start = topology["transform"]["scale"], topology["transform"]["translate"]
    arcs = [_thinned(_points(arc, scale, start)) for arc in topology["arcs"]]
    (land,) = topology["objects"]["land"]["geometries"]
    rings = [ring for polygon in land["arcs"] for ring in polygon]
    shown = {
        "source": "Natural Earth, 1:50 million, public domain",
        "steps": STEPS,
        "arcs": [_encoded(arc) for arc in arcs],
        "rings": rings,
    }
    return json.dumps(shown, separators=(",", ":")).encode() + b"\n"


def _points(arc: list[list[int]], scale: list[float], start: list[float]) -> list[Point]:
    """The points of a line in steps; neighbours differ."""
    x = y = 0
    points: list[Point] = []
    for across, along in arc:
        x, y = x + across, y + along
        point = (round((x * scale[0] + start[0]) * STEPS), round((y * scale[1] + start[1]) * STEPS))
        if not points or points[-1] != point:
            points.append(point)
    return points


def _thinned(points: list[Point]) -> list[Point]:
    """The points that shape a line (Douglas and Peucker); its ends are among them."""
    kept = {0, len(points) - 1}
    open_parts = [(0, len(points) - 1)]
    while open_parts:
        first, last = open_parts.pop()
        between = range(first + 1, last)
        farthest = max(
            between, key=lambda at: _distance(points[at], points[first], points[last]), default=None
        )
        if farthest is not None and _distance(points[farthest], points[first], points[last]) > CLOSE:
            kept.add(farthest)
            open_parts += [(first, farthest), (farthest, last)]
    return [points[at] for at in sorted(kept)]


def _distance(point: Point, start: Point, end: Point) -> float:
    """How far a point lies from a line, or from its ends where they are one."""
    across, along = end[0] - start[0], end[1] - start[1]
    length = hypot(across, along)
    if length == 0:
        return hypot(point[0] - start[0], point[1] - start[1])
    return abs(across * (start[1] - point[1]) - along * (start[0] - point[0])) / length


def _encoded(points: Iterable[Point]) -> str:
    """A line as a text: the difference of each number to the one before it, doubled and one less if it is negative, in
    digits of 5 bits, the lowest first. A digit is the character of 63 more, or of 95 more if another one follows."""
    before, text = (0, 0), ""
    for point in points:
        for number in (point[0] - before[0], point[1] - before[1]):
            left = number * 2 if number >= 0 else -number * 2 - 1
            while left >= 32:
                text += chr((left & 31) + 95)
                left >>= 5
            text += chr(left + 63)
        before = point
    return text


if __name__ == "__main__":
    main()
