"""The newest places of the devices of a block, in columns, for a client that draws them as points on a map.

Each has a level: the threshold that a further value of the device has reached, or else the health of the device.
Reading them is linear in the devices, of which a block has at most `dashboard_places_max`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from msgspec import UNSET

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.fleet.devices.queries.selection import select
from trunkline.actors.fleet.devices.record.reads import Opened
from trunkline.actors.fleet.devices.state.history import composite_span, last_values, oldest_state_ms
from trunkline.actors.fleet.devices.state.signs_of_life import life_of
from trunkline.actors.presentation.dashboards.report import Category, Places, number_of
from trunkline.actors.presentation.dashboards.report_places import place_of
from trunkline.actors.presentation.dashboards.report_scene import Scene
from trunkline.actors.presentation.dashboards.report_thresholds import threshold_of

_HEALTH: Final = {
    "connected": Category("connected", "#2f8a57"),
    "reporting": Category("reporting", "#3b82c4"),
    "neverSeen": Category("never seen", "#7d8590"),
    "silent": Category("silent", "#c4504f"),
}
_GREY: Final = "#7d8590"


def newest_places(scene: Scene, config: Doc) -> Places:
    """The newest place of each device that has one, in the order of the names."""
    attribute, other = config["attribute"], config.get("valueAttribute")
    limits = replace(scene.reading.limits, selected_devices_max=scene.bounds.places_max)
    reading = Reading(scene.reading.snapshot, limits, in_loop=False, system=scene.reading.system)
    application = scene.application("data.lastValueQuery")
    choice = scene.choice(application, config)
    found = select(
        reading,
        application,
        choice.get("device_ids", UNSET),
        choice.get("device_tags", UNSET),
        choice.get("device_query", UNSET),
        default_all=True,
    )
    span = composite_span(1, scene.now_ms, scene.now_ms)
    oldest_ms = oldest_state_ms(reading, scene.now_ms)
    levels = _Levels(config if other else {})
    rows = []
    for device in found:
        numbers = {
            number: name
            for name in (attribute, other)
            if name and (number := device.attributes.number(name)) is not None
        }
        read = {
            numbers[number]: (ms, value)
            for number, (ms, value) in last_values(
                reading.snapshot, device.id, span, numbers, oldest_ms
            ).items()
        }
        ms, place = read.get(attribute, (0, None))
        point = place_of(place)
        if point is None:
            continue
        _, value = read.get(other, (0, None))
        level = levels.of_value(value) if levels.has_thresholds else levels.of_health(scene, device)
        rows.append((str(device.found.doc["name"]), device.id.hex(), ms, point, level, value))
    rows.sort(key=lambda row: row[:2])
    return Places(
        names=[row[0] for row in rows],
        ids=[row[1] for row in rows],
        times=[row[2] for row in rows],
        points=[(longitude, latitude) for *_, (latitude, longitude), _, _ in rows],
        levels=[row[4] for row in rows],
        values=[row[5] for row in rows] if other else [],
        categories=levels.categories,
    )


class _Levels:
    """The categories of the places of a block, the least grave first."""

    def __init__(self, config: Doc) -> None:
        self._config = config
        self.has_thresholds = bool(config.get("thresholds"))
        self.categories = list(_HEALTH.values())
        self._health = {name: number for number, name in enumerate(_HEALTH)}
        if self.has_thresholds:
            ordered = sorted(config["thresholds"], key=lambda each: each.get("value", float("-inf")))
            self._numbers = {id(each): number for number, each in enumerate(ordered, 1)}
            named = [Category(each.get("label", ""), each.get("color") or _GREY) for each in ordered]
            self.categories = [Category("no level", _GREY), *named]

    def of_value(self, value: Any) -> int:
        reached = threshold_of(self._config, number_of(value))
        return 0 if reached is None else self._numbers[id(reached)]

    def of_health(self, scene: Scene, device: Opened) -> int:
        life = life_of(scene.reading.snapshot, device.id, device.found.doc)
        return self._health[life.health(scene.now_ms)]
