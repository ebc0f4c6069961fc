"""The dashboard of the demo: whether the plant is cold, what the past week was like, and where the trucks are."""

from __future__ import annotations

from typing import Final

from trunkline.bench.demo_rules import BATTERY_LIMIT, CHILLER_LIMIT, FREEZER_LIMIT
from trunkline.bench.session import Json

_DAY_MS: Final = 86_400_000
_HOURS_MS: Final = 10_800_000
_WEEK: Final = "{{dashboard.duration}}"
_GOOD, _BAD, _HIGH = "#2e8b57", "#c4504f", "#d9962b"
_FREEZERS: Final = ("freezer-1", "freezer-2", "freezer-3")
_CHILLERS: Final = ("chiller-1", "chiller-2", "chiller-3")
_SENSORS: Final = (*(f"door-{number}" for number in (1, 2, 3, 4)), "climate-dock", "climate-packing")
_SILENT: Final = '{"expectedBy": {"$lt": "{{dashboard.time}}"}}'
_REPORTING: Final = (
    '{"$or": [{"connectionStatus": "connected"}, {"expectedBy": {"$gte": "{{dashboard.time}}"}}]}'
)


def _one(name: str, attribute: str, **more: object) -> Json:
    """A segment: an attribute of one device."""
    return {"attribute": attribute, "label": name, "query": f'{{"name": "{name}"}}', **more}


def _lines(names: tuple[str, ...], attribute: str, aggregation: str) -> list[Json]:
    return [_one(name, attribute, aggregation=aggregation) for name in names]


def _too_warm(limit: float) -> list[Json]:
    return [{"color": _GOOD, "label": "Cold enough"}, {"value": limit, "color": _BAD, "label": "Too warm"}]


def _block(place: tuple[int, int], size: tuple[int, int], type: str, title: str, config: Json) -> Json:
    """A block of a dashboard: its column and row, its width and height."""
    (column, row), (width, height) = place, size
    at = {"startX": column, "startY": row, "width": width, "height": height}
    return {"blockType": type, **at, "title": title, "config": config}


def _newest(column: int, name: str, limit: float) -> Json:
    config = {
        "displayType": "sparkline",
        "duration": _HOURS_MS,
        "segments": [_one(name, "temperature", aggregation="MEAN")],
        "unit": "°C",
        "precision": 1,
        "thresholds": _too_warm(limit),
    }
    return _block((column, 0), (2, 3), "graph", name, config)


_COURSE: Final = _block(
    (0, 3),
    (5, 4),
    "graph",
    "Freezers in the past week",
    {
        "segments": _lines(_FREEZERS, "temperature", "MAX"),
        "duration": _WEEK,
        "unit": "°C",
        "precision": 1,
        "thresholds": [{"value": FREEZER_LIMIT, "color": _BAD, "label": "Too warm"}],
    },
)
_DEVICES: Final = _block(
    (0, 0),
    (2, 3),
    "device-count",
    "Devices",
    {
        "segments": [{"id": "report", "query": _REPORTING}, {"id": "are silent", "query": _SILENT}],
        "conditions": [
            {"condition": "{{value-1.count}} > 0", "label": "{{value-1.count}} silent", "color": _BAD}
        ],
        "defaultCondition": {"label": "All report", "color": _GOOD},
    },
)
_POWER: Final = _block(
    (5, 3),
    (3, 4),
    "gauge",
    "Power of the plant",
    {
        "segment": {"attribute": "power", "query": '{"name": "meter-plant"}'},
        "gaugeMin": 0,
        "gaugeMax": 200,
        "unit": "kW",
        "precision": 0,
        "thresholds": [
            {"color": _GOOD, "label": "Usual"},
            {"value": 160, "color": _HIGH, "label": "Near the contract"},
            {"value": 180, "color": _BAD, "label": "Above the contract"},
        ],
    },
)
_RUNS: Final = _block(
    (0, 7),
    (4, 3),
    "graph",
    "Which compressor runs",
    {
        "displayType": "timeline",
        "duration": _WEEK,
        "segments": [_one(f"compressor-{number}", "power") for number in (1, 2, 3)],
        "thresholds": [{"label": "stands"}, {"value": 1, "label": "runs"}],
    },
)
_EVENTS: Final = _block(
    (4, 7),
    (4, 3),
    "event-list",
    "Alarms and events",
    {
        "query": "{}",
        "sortField": "creationDate",
        "sortDirection": "desc",
        "columns": [{"type": "level"}, {"type": "subject"}, {"type": "state"}],
    },
)
_TRUCKS: Final = _block(
    (0, 10),
    (4, 5),
    "map",
    "Trucks",
    {
        "attribute": "position",
        "query": '{"tags": {"DeviceRecipe": "Truck"}}',
        "duration": _DAY_MS,
        "includeLines": True,
    },
)
_CHILLED: Final = _block(
    (4, 10),
    (4, 5),
    "graph",
    "Chillers today",
    {
        "segments": _lines(_CHILLERS, "temperature", "MEAN"),
        "duration": _DAY_MS,
        "resolution": 1_800_000,
        "unit": "°C",
        "precision": 1,
        "thresholds": [{"value": CHILLER_LIMIT, "color": _BAD, "label": "Too warm"}],
    },
)
_BATTERIES: Final = _block(
    (0, 15),
    (4, 3),
    "bar",
    "Batteries",
    {
        "segments": [_one(name, "battery") for name in _SENSORS],
        "unit": "%",
        "precision": 0,
        "thresholds": [
            {"color": _BAD, "label": "Change it"},
            {"value": BATTERY_LIMIT, "color": _GOOD, "label": "Good"},
        ],
    },
)
_DOORS: Final = _block(
    (4, 15),
    (4, 3),
    "device-list",
    "Doors of the loading dock",
    {
        "query": '{"tags": {"DeviceRecipe": "Door contact"}}',
        "sortField": "name",
        "additionalAttributes": ["door", "battery"],
    },
)
_NEWEST: Final = [_newest(2 + 2 * at, name, FREEZER_LIMIT) for at, name in enumerate(_FREEZERS)]
DASHBOARD: Final[Json] = {
    "name": "The plant",
    "description": "Is it cold, what was the past week like, and where are the trucks?",
    "refreshRate": 10,
    "duration": 7 * _DAY_MS,
    "blocks": [
        _DEVICES,
        *_NEWEST,
        *(_COURSE, _POWER, _RUNS, _EVENTS, _TRUCKS, _CHILLED, _BATTERIES, _DOORS),
    ],
}


def public_dashboard(application_id: str) -> Json:
    """The dashboard for everybody, of a user: it names the application in each block."""
    blocks = [{**block, "applicationId": application_id} for block in (_DEVICES, *_NEWEST, _COURSE, _POWER)]
    return {
        "name": "The plant for everybody",
        "description": "What everybody may see of the plant.",
        "public": True,
        "duration": 7 * _DAY_MS,
        "blocks": blocks,
    }
