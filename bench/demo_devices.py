"""Six simulated devices: greenhouse, well pump, delivery van, power meter, cold store, weather mast.

Owns their behaviour: what they report over time and how they execute commands. No I/O and no clock: a step is
given the seconds that passed, and all randomness comes from the generator passed in, so a test can replay a
demo.

Each model is a very simple physical simulation (things warm up, drain, drift and brake), so that its graph looks
realistic and the effect of a command is seen within seconds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from random import Random
from typing import ClassVar

Value = str | float | bool
State = dict[str, Value]


class DemoDevice(ABC):
    """One simulated device: its description, one step of its simulation, and the commands that it executes."""

    name: ClassVar[str]
    description: ClassVar[str]
    place: ClassVar[str]
    attributes: ClassVar[Mapping[str, str]]
    commands: ClassVar[Mapping[str, str]]

    def __init__(self, random: Random) -> None:
        self.random = random
        self.clock_s = random.uniform(0, 600)

    def step(self, passed_s: float) -> State:
        """Advance by ``passed_s`` seconds (at most a minute) and return the state to report."""
        passed_s = min(max(passed_s, 0.0), 60.0)
        self.clock_s += passed_s
        return self.live(passed_s)

    @abstractmethod
    def live(self, passed_s: float) -> State:
        """Advance the simulation by ``passed_s`` seconds and return the state to report."""

    @abstractmethod
    def obey(self, name: str, payload: object) -> str | None:
        """Execute a command and return what was done, or None if the command is not understood."""

    def noise(self, spread: float) -> float:
        """A small measuring error."""
        return self.random.gauss(0, spread)


class Greenhouse(DemoDevice):
    """Heats towards a target; the vent opens if it is too warm."""

    name = "greenhouse-north"
    description = "Climate of a greenhouse with a heater and a vent."
    place = "greenhouse"
    attributes: ClassVar = {
        "temperature": "number",
        "humidity": "number",
        "target": "number",
        "heater": "boolean",
        "vent": "number",
    }
    commands: ClassVar = {
        "setTarget": '{"value": 24} (5 to 40 degrees)',
        "switch": '{"on": false} (the heater)',
    }

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.temperature, self.humidity, self.target, self.enabled = 18.0, 62.0, 21.0, True

    def live(self, passed_s: float) -> State:
        heating = self.enabled and self.temperature < self.target
        vent = min(100.0, max(0.0, (self.temperature - self.target - 0.5) * 40))
        outside = 11 + 3 * math.sin(self.clock_s / 300)
        gain = (0.12 if heating else 0.0) - (0.004 + vent * 0.0004) * (self.temperature - outside)
        self.temperature += gain * passed_s
        self.humidity += (70 - vent * 0.25 - self.humidity) * 0.01 * passed_s
        return {
            "temperature": round(self.temperature + self.noise(0.05), 2),
            "humidity": round(self.humidity + self.noise(0.2), 1),
            "target": self.target,
            "heater": heating,
            "vent": round(vent, 1),
        }

    def obey(self, name: str, payload: object) -> str | None:
        if name == "setTarget" and (value := number_in(payload, "value", 5, 40)) is not None:
            self.target = value
            return f"target is {value:g} degrees"
        if name == "switch" and (on := boolean_in(payload, "on")) is not None:
            self.enabled = on
            return f"heater is {'enabled' if on else 'off'}"
        return None


class Pump(DemoDevice):
    """Fills a tank between two levels; does nothing when switched off."""

    name = "well-pump"
    description = "A well pump that keeps a tank filled."
    place = "well"
    attributes: ClassVar = {"running": "boolean", "flow": "number", "pressure": "number", "level": "number"}
    commands: ClassVar = {"switch": '{"on": false}', "setTarget": '{"value": 80} (upper mark in percent)'}

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.level, self.running, self.enabled, self.upper = 55.0, True, True, 90.0

    def live(self, passed_s: float) -> State:
        if self.level >= self.upper:
            self.running = False
        elif self.level < self.upper - 35:
            self.running = True
        pumping = self.running and self.enabled
        self.level = min(100.0, max(0.0, self.level + ((1.1 if pumping else 0.0) - 0.45) * passed_s))
        flow = 42 + self.noise(0.6) if pumping else 0.0
        pressure = (3.2 if pumping else 1.1) + self.level / 200 + self.noise(0.02)
        return {
            "running": pumping,
            "flow": round(flow, 1),
            "pressure": round(pressure, 2),
            "level": round(self.level, 1),
        }

    def obey(self, name: str, payload: object) -> str | None:
        if name == "switch" and (on := boolean_in(payload, "on")) is not None:
            self.enabled = on
            return f"pump is {'enabled' if on else 'off'}"
        if name == "setTarget" and (value := number_in(payload, "value", 40, 100)) is not None:
            self.upper = value
            return f"upper mark is {value:g} percent"
        return None


class Van(DemoDevice):
    """Drives round a town, slows down in bends, stops on command."""

    name = "delivery-van-7"
    description = "A delivery van with a position, on its round."
    place = "road"
    attributes: ClassVar = {
        "position": "gps",
        "speed": "number",
        "heading": "number",
        "charge": "number",
        "moving": "boolean",
        "locked": "boolean",
    }
    commands: ClassVar = {"setTarget": '{"value": 30} (speed limit in km/h)', "lock": '{"on": true}'}

    _CENTRE: ClassVar = (48.7758, 9.1829)
    _RADIUS_DEG: ClassVar = 0.012

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.angle, self.speed, self.limit, self.charge, self.locked = (
            random.uniform(0, 6.28),
            0.0,
            50.0,
            86.0,
            False,
        )

    def live(self, passed_s: float) -> State:
        bend = 0.6 + 0.4 * math.cos(3 * self.angle)
        wanted = 0.0 if self.locked or self.charge <= 1 else self.limit * bend
        change = min(max(wanted - self.speed, -12 * passed_s), 6 * passed_s)
        self.speed = max(0.0, self.speed + change)
        # One degree of latitude is 111.32 km everywhere.
        self.angle += self.speed / 3600 * passed_s / (111.32 * self._RADIUS_DEG)
        self.charge = 100.0 if self.charge <= 1 else self.charge - self.speed * 0.0002 * passed_s
        latitude = self._CENTRE[0] + self._RADIUS_DEG * math.sin(self.angle)
        longitude = self._CENTRE[1] + self._RADIUS_DEG * math.cos(self.angle) / math.cos(
            math.radians(latitude)
        )
        return {
            "position": f"{latitude:.6f},{longitude:.6f}",
            "speed": round(self.speed, 1),
            "heading": round(-math.degrees(self.angle) % 360, 1) % 360,
            "charge": round(self.charge, 2),
            "moving": self.speed > 0.5,
            "locked": self.locked,
        }

    def obey(self, name: str, payload: object) -> str | None:
        if name == "setTarget" and (value := number_in(payload, "value", 0, 130)) is not None:
            self.limit = value
            return f"speed limit is {value:g} km/h"
        if name == "lock" and (on := boolean_in(payload, "on")) is not None:
            self.locked = on
            return "stops and locks" if on else "drives on"
        return None


class Meter(DemoDevice):
    """Counts the energy of a workshop: a base load, and machines that are switched on and off."""

    name = "workshop-meter"
    description = "The power meter of a workshop, with a relay."
    place = "workshop"
    attributes: ClassVar = {"power": "number", "energy": "number", "voltage": "number", "relay": "boolean"}
    commands: ClassVar = {"switch": '{"on": false} (the relay)'}

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.energy, self.machines, self.relay = 1204.0, 2, True

    def live(self, passed_s: float) -> State:
        if self.random.random() < 0.05 * passed_s:
            self.machines = self.random.randint(0, 5)
        power = (180 + 720 * self.machines + self.noise(15)) if self.relay else 0.0
        self.energy += max(0.0, power) * passed_s / 3.6e6
        return {
            "power": round(max(0.0, power), 1),
            "energy": round(self.energy, 5),
            "voltage": round(231 - self.machines * 0.4 + self.noise(0.3), 1),
            "relay": self.relay,
        }

    def obey(self, name: str, payload: object) -> str | None:
        if name == "switch" and (on := boolean_in(payload, "on")) is not None:
            self.relay = on
            return f"relay is {'closed' if on else 'open'}"
        return None


class ColdStore(DemoDevice):
    """Cools towards a target; the door is opened now and then."""

    name = "cold-store-2"
    description = "A cold store with a door."
    place = "cold-store"
    attributes: ClassVar = {
        "temperature": "number",
        "target": "number",
        "compressor": "boolean",
        "door": "string",
        "alarm": "boolean",
    }
    commands: ClassVar = {
        "setTarget": '{"value": -20} (-30 to 10 degrees)',
        "switch": '{"on": false} (the compressor)',
    }

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.temperature, self.target, self.enabled, self.cooling, self.open_s = -17.0, -18.0, True, True, 0.0

    def live(self, passed_s: float) -> State:
        if self.open_s <= 0 and self.random.random() < 0.02 * passed_s:
            self.open_s = self.random.uniform(3, 12)
        is_open = self.open_s > 0
        self.open_s = max(0.0, self.open_s - passed_s)
        if self.temperature > self.target + 0.6:
            self.cooling = True
        elif self.temperature < self.target - 0.6:
            self.cooling = False
        compressor = self.cooling and self.enabled
        loss = (0.012 if is_open else 0.0015) * (18 - self.temperature)
        self.temperature += (loss - (0.25 if compressor else 0.0)) * passed_s
        return {
            "temperature": round(self.temperature + self.noise(0.03), 2),
            "target": self.target,
            "compressor": compressor,
            "door": "open" if is_open else "closed",
            "alarm": self.temperature > self.target + 6,
        }

    def obey(self, name: str, payload: object) -> str | None:
        if name == "setTarget" and (value := number_in(payload, "value", -30, 10)) is not None:
            self.target = value
            return f"target is {value:g} degrees"
        if name == "switch" and (on := boolean_in(payload, "on")) is not None:
            self.enabled = on
            return f"compressor is {'enabled' if on else 'off'}"
        return None


class Mast(DemoDevice):
    """Wind, light and rain; its heater melts the ice off the wind wheel."""

    name = "weather-mast"
    description = "A weather mast on the roof."
    place = "roof"
    attributes: ClassVar = {
        "wind": "number",
        "direction": "number",
        "light": "number",
        "rain": "number",
        "heater": "boolean",
    }
    commands: ClassVar = {"switch": '{"on": true} (the heater)'}

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.wind, self.direction, self.rain, self.heater = 4.0, 240.0, 0.0, False

    def live(self, passed_s: float) -> State:
        self.wind = max(0.0, self.wind + (4.5 - self.wind) * 0.02 * passed_s + self.noise(0.4))
        self.direction = (self.direction + self.noise(3)) % 360
        self.rain = max(
            0.0, self.rain * (1 - 0.02 * min(passed_s, 1)) + (0.4 if self.random.random() < 0.03 else 0)
        )
        light = max(0.0, 24_000 + 16_000 * math.sin(self.clock_s / 400) - self.rain * 6000)
        return {
            "wind": round(self.wind, 1),
            "direction": round(self.direction, 0) % 360,
            "light": round(light + self.noise(80), 0),
            "rain": round(self.rain, 2),
            "heater": self.heater,
        }

    def obey(self, name: str, payload: object) -> str | None:
        if name == "switch" and (on := boolean_in(payload, "on")) is not None:
            self.heater = on
            return f"heater is {'on' if on else 'off'}"
        return None


DEMO_DEVICES: tuple[type[DemoDevice], ...] = (Greenhouse, Pump, Van, Meter, ColdStore, Mast)


def number_in(payload: object, name: str, low: float, high: float) -> float | None:
    """The number in a payload, alone or as a member; None if there is none or it is out of bounds."""
    value = payload.get(name) if isinstance(payload, dict) else payload
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if low <= value <= high else None


def boolean_in(payload: object, name: str) -> bool | None:
    """The boolean in a payload, alone or as a member; None if there is none."""
    value = payload.get(name) if isinstance(payload, dict) else payload
    return value if isinstance(value, bool) else None
