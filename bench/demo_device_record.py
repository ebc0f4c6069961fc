"""What a device of the demo is created with: its attributes with their units, and its tags.

Owns the units, and the tags from which the console makes the forms of commands. No I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from json import JSONDecoder
from typing import Final

from trunkline.bench.demo_devices import DemoDevice
from trunkline.bench.session import Json

UNITS: Final[Mapping[str, str]] = {
    "temperature": "°C",
    "target": "°C",
    "humidity": "%",
    "vent": "%",
    "flow": "l/min",
    "pressure": "bar",
    "level": "%",
    "speed": "km/h",
    "heading": "°",
    "charge": "%",
    "power": "W",
    "energy": "kWh",
    "voltage": "V",
    "wind": "m/s",
    "direction": "°",
    "light": "lx",
    "rain": "mm/h",
}
"""The units of attributes, which have the same name in all devices."""


def device_record(model: DemoDevice) -> Json:
    """The body of the call that creates it."""
    return {
        "name": model.name,
        "description": model.description,
        "attributes": [_attribute(name, kind) for name, kind in model.attributes.items()],
        "tags": [
            {"key": "demo", "value": "yes"},
            {"key": "place", "value": model.place},
            *({"key": "command", "value": command_form(*each)} for each in model.commands.items()),
        ],
    }


def command_form(name: str, example: str) -> str:
    """The value of a tag: the name of a command, and the fields of its payload with their types."""
    payload: Json = JSONDecoder().raw_decode(example)[0]
    types = {key: "boolean" if isinstance(value, bool) else "number" for key, value in payload.items()}
    return " ".join([name, *(f"{key}:{kind}" for key, kind in types.items())])


def _attribute(name: str, kind: str) -> Json:
    unit = UNITS.get(name)
    return {"name": name, "dataType": kind, **({"attributeTags": {"unit": unit}} if unit else {})}
