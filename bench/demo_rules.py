"""The alarm rules of the demo, and whom they tell."""

from __future__ import annotations

from typing import Final

from trunkline.bench.session import Json

FREEZER_LIMIT: Final = -18.0
CHILLER_LIMIT: Final = 7.0
BATTERY_LIMIT: Final = 15.0
"""Degrees, degrees, percent: outside of them a device is not as it should be."""


def _too_warm(room: str, description: str, limit: float, hysteresis: float) -> Json:
    """A rule that cold rooms of a kind must not be too warm for ten minutes."""
    return {
        "name": f"{room.capitalize()} too warm",
        "description": description,
        "severity": "critical",
        "condition": {
            "type": "attribute",
            "attribute": "temperature",
            "comparison": "above",
            "value": limit,
            "hysteresis": hysteresis,
        },
        "durationSeconds": 600,
        "deviceTags": [{"key": "area", "value": f"{room}s"}],
    }


FREEZER_RULE: Final = _too_warm(
    "freezer", "Above -18 degrees for ten minutes. Frozen goods are lost above -12 degrees.", FREEZER_LIMIT, 2
)
CHILLER_RULE: Final = _too_warm("chiller", "Above 7 degrees for ten minutes.", CHILLER_LIMIT, 1)
BATTERY_RULE: Final[Json] = {
    "name": "Battery has to be changed",
    "description": "Below 15 percent a sensor lasts for two more weeks.",
    "severity": "error",
    "condition": {
        "type": "attribute",
        "attribute": "battery",
        "comparison": "below",
        "value": BATTERY_LIMIT,
        "hysteresis": 5,
    },
    "deviceTags": [
        {"key": "DeviceRecipe", "value": "Door contact"},
        {"key": "DeviceRecipe", "value": "Climate sensor"},
    ],
}
ALARM_GROUP: Final[Json] = {
    "name": "night shift",
    "description": "Who is told of alarms at night.",
    "emails": ["night.shift@example.com"],
}
OTHER_GROUP: Final[Json] = {
    "name": "management",
    "description": "No rule tells it yet.",
    "emails": ["management@example.com"],
}
TRIPPED_RULE: Final[Json] = {
    "name": "Compressor has tripped",
    "description": "So that the next time it is known before a freezer is warm.",
    "severity": "critical",
    "condition": {"type": "attribute", "attribute": "fault", "comparison": "differs", "value": "none"},
    "deviceTags": [{"key": "DeviceRecipe", "value": "Compressor"}],
}
RULES: Final = (FREEZER_RULE, CHILLER_RULE, BATTERY_RULE)
"""The rules that there were before the incident; that of compressors is what was learned from it."""


def tripped_rule(group: str) -> Json:
    """The rule that was learned from the incident; `group` is the id of the group that it tells."""
    return {**TRIPPED_RULE, "notify": {"steps": [{"groupIds": [group]}], "tellsEnd": True}}
