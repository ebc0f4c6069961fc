"""The plant of the demo: its 24 devices, and the records with which they and their recipes are created.

Owns which devices there are, where they are and what belongs to what. No I/O. How they behave is in `demo_devices`.
"""

from __future__ import annotations

from collections.abc import Mapping
from json import JSONDecoder
from typing import Final

from trunkline.bench.demo_device import DemoDevice
from trunkline.bench.demo_devices import (
    ClimateSensor,
    ColdRoom,
    Compressor,
    DoorContact,
    Gateway,
    Mast,
    Meter,
    Pump,
    Truck,
)
from trunkline.bench.demo_incident import COMPRESSOR, FREEZER, STANDBY, Incident
from trunkline.bench.session import Json

GATEWAY: Final = "gateway-dock"
"""The gateway of all radio sensors."""

LOW_BATTERY: Final = "door-4"
"""The device whose battery has to be changed."""

REPORTS_EVERY_S: Final = 20
"""Seconds in which a report is expected of each device."""

_PLANT: Final = (53.540, 8.580)
_TO_HANOVER: Final = (_PLANT, (53.355, 8.640), (53.078, 8.801), (52.920, 9.230), (52.380, 9.740))
_TO_HAMBURG: Final = (_PLANT, (53.480, 9.000), (53.590, 9.470), (53.550, 9.990))


def plant(now_s: float, incident: Incident | None = None) -> list[DemoDevice]:
    """The devices of a demo that runs now; `incident` is part of its past."""
    freezers, chillers, machines, dock = "freezers", "chillers", "machine room", "loading dock"

    def room(name: str, what: str, area: str, target: float) -> ColdRoom:
        return ColdRoom(name, what, area, target=target, incident=incident)

    def door(number: int, battery: float) -> DoorContact:
        about = f"The contact of door {number} of the loading dock."
        return DoorContact(f"door-{number}", about, dock, battery=battery, since_s=now_s)

    def climate(name: str, what: str, battery: float) -> ClimateSensor:
        return ClimateSensor(name, what, dock, battery=battery, since_s=now_s)

    def compressor(name: str, what: str) -> Compressor:
        return Compressor(name, what, machines, incident=incident)

    return [
        room("freezer-1", "Frozen fish, at -22 degrees.", freezers, -22),
        room(FREEZER, f"Frozen vegetables, at -22 degrees, cooled by {COMPRESSOR}.", freezers, -22),
        room("freezer-3", "Ice cream, at -25 degrees.", freezers, -25),
        room("chiller-1", "Milk and cheese, at 4 degrees.", chillers, 4),
        room("chiller-2", "Meat, at 1 degree.", chillers, 1),
        room("chiller-3", "Fruit, at 3 degrees.", chillers, 3),
        compressor("compressor-1", "Cools freezer-1, freezer-3 and the chillers."),
        compressor(COMPRESSOR, f"Cools {FREEZER}."),
        compressor(STANDBY, "The standby: it runs when another compressor does not."),
        Pump("pump-1", "Cooling water of compressor-1.", "pump house"),
        Pump("pump-2", "Cooling water of compressor-2 and compressor-3.", "pump house"),
        Meter("meter-plant", "All energy of the plant.", machines, base=78, by_day=54, incident=incident),
        Meter("meter-cooling", "The energy of the cooling.", machines, base=34, by_day=9, incident=incident),
        Gateway(GATEWAY, "The gateway of the radio sensors of the loading dock.", dock),
        *(door(number, battery) for number, battery in ((1, 91), (2, 84), (3, 77), (4, 14.2))),
        climate("climate-dock", "The air of the loading dock.", 88),
        climate("climate-packing", "The air of the packing hall.", 69),
        Truck("truck-1", "Drives to Hanover and back.", "road", route=_TO_HANOVER),
        Truck("truck-2", "Drives to Hamburg and back.", "road", route=_TO_HAMBURG),
        Mast("weather-mast", "The weather above the roof.", "roof"),
        Meter(
            "meter-dock",
            "Lights, chargers and doors of the loading dock.",
            dock,
            base=6,
            by_day=11,
            incident=None,
        ),
    ]


def recipe_record(model: DemoDevice) -> Json:
    """The body of the call that creates the recipe of a device."""
    return {"name": model.recipe, "description": model.about, "deviceName": model.recipe, **_common(model)}


def device_record(model: DemoDevice, ids: Mapping[str, str]) -> Json:
    """The body of the call that creates a device. `ids` has that of its gateway, if it is a peripheral."""
    common = _common(model)
    common["tags"] = [
        {"key": "site", "value": "Bremerhaven"},
        {"key": "area", "value": model.area},
        {"key": "DeviceRecipe", "value": model.recipe},
        *common["tags"],
    ]
    through = {"gatewayId": ids[GATEWAY]} if model.device_class == "peripheral" else {}
    return {"name": model.name, "description": model.description, **common, **through}


def _common(model: DemoDevice) -> Json:
    """What a recipe gives to its devices."""
    return {
        "deviceClass": model.device_class,
        "expectedIntervalSeconds": REPORTS_EVERY_S,
        "attributes": [_attribute(name, *told) for name, told in model.attributes.items()],
        "tags": [{"key": "command", "value": command_form(*each)} for each in model.commands.items()],
    }


def command_form(name: str, example: str) -> str:
    """The value of a tag: the name of a command, and the fields of its payload with their types."""
    payload: Json = JSONDecoder().raw_decode(example)[0]
    types = {key: "boolean" if isinstance(value, bool) else "number" for key, value in payload.items()}
    return " ".join([name, *(f"{key}:{kind}" for key, kind in types.items())])


def _attribute(name: str, kind: str, unit: str) -> Json:
    return {"name": name, "dataType": kind, **({"attributeTags": {"unit": unit}} if unit else {})}
