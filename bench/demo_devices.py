"""How the devices of the demo behave: cold rooms, compressors, pumps, meters, sensors, a gateway, trucks, a mast.

Owns what they report at a moment, and how they execute commands. No I/O and no clock: a state is a function of the time
that is given and of the name of the device, so the past of a demo and what its devices report now are of one piece.
Which devices there are says `demo_plant`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import ClassVar, Final

from trunkline.bench.demo_device import (
    DAY_S,
    HOUR_S,
    DemoDevice,
    State,
    boolean_in,
    daily,
    number_in,
    worked,
)
from trunkline.bench.demo_incident import COMPRESSOR, FREEZER, STANDBY, Incident

_BEGINNING_S: Final = 1_767_225_600.0
"""When the meters were installed."""


class ColdRoom(DemoDevice):
    """A freezer or a chiller: its temperature swings about its target."""

    recipe = "Cold room"
    about = "A freezer or a chiller with a sensor of its air, a valve for the refrigerant and a door contact."
    attributes: ClassVar = {
        "temperature": ("number", "°C"),
        "humidity": ("number", "%"),
        "target": ("number", "°C"),
        "cooling": ("boolean", ""),
        "door": ("string", ""),
    }
    commands: ClassVar = {
        "setTarget": '{"value": 3} (-30 to 15 degrees)',
        "switch": '{"on": false} (the cooling)',
    }
    _SWING_S: ClassVar = 24 * 60
    _FOLLOWS_S: ClassVar = 60.0
    _WARMS_S: ClassVar = 1800.0

    def __init__(self, *named: str, target: float, incident: Incident | None) -> None:
        super().__init__(*named)
        self.target, self.enabled = target, True
        self._incident = incident if self.name == FREEZER else None
        self._aim, self._left, self._since_s, self._follows_s = target, 0.0, 0.0, self._FOLLOWS_S

    def state(self, at_s: float) -> State:
        warmth = 0.0 if self._incident is None else self._incident.warmth(at_s)
        swing = 0.0 if warmth > 1 else 0.5 * self.wave(at_s, self._SWING_S)
        temperature = self._follow(at_s) + warmth + swing + 0.3 * worked(at_s)
        falls = self.wave(at_s + self._SWING_S / 4, self._SWING_S) < 0
        return {
            "temperature": round(temperature + self.noise("temperature", at_s, 0.06), 2),
            "humidity": round(84 - 3 * swing + self.noise("humidity", at_s, 0.4), 1),
            "target": self.target,
            "cooling": self.enabled and (warmth > 1 or falls),
            "door": "open" if self.is_at_times(at_s, 0.02 + 0.2 * worked(at_s), 120) else "closed",
        }

    def _follow(self, at_s: float) -> float:
        return self._aim + self._left * math.exp(-max(0.0, at_s - self._since_s) / self._follows_s)

    def _follow_from(self, at_s: float) -> None:
        """Let the temperature go to the target, or become warm without cooling."""
        now = self._follow(at_s)
        self._aim = self.target if self.enabled else 18.0
        self._follows_s = self._FOLLOWS_S if self.enabled else self._WARMS_S
        self._left, self._since_s = now - self._aim, at_s

    def obey(self, name: str, payload: object, at_s: float) -> str | None:
        done = None
        if name == "setTarget" and (value := number_in(payload, "value", -30, 15)) is not None:
            self.target, done = value, f"target is {value:g} degrees"
        if name == "switch" and (on := boolean_in(payload, "on")) is not None:
            self.enabled, done = on, f"cooling is {'on' if on else 'off'}"
        if done:
            self._follow_from(at_s)
        return done


class Compressor(DemoDevice):
    """Compresses the refrigerant of cold rooms; one of them is the standby."""

    recipe = "Compressor"
    about = (
        "A compressor for the refrigerant of cold rooms, which stops by itself when its pressure is too high."
    )
    attributes: ClassVar = {
        "running": ("boolean", ""),
        "power": ("number", "kW"),
        "pressure": ("number", "bar"),
        "temperature": ("number", "°C"),
        "fault": ("string", ""),
    }
    commands: ClassVar = {"switch": '{"on": true}'}

    def __init__(self, *named: str, incident: Incident | None) -> None:
        super().__init__(*named)
        self._incident = incident
        self.enabled = self.name != STANDBY

    def state(self, at_s: float) -> State:
        trips = self._incident if self.name == COMPRESSOR else None
        helps = self._incident if self.name == STANDBY else None
        tripped = trips is not None and trips.is_tripped(at_s)
        running = (self.enabled or (helps is not None and helps.is_helped(at_s))) and not tripped
        load = 0.72 + 0.14 * daily(at_s, 14) + 0.06 * self.wave(at_s, 1100) if running else 0.0
        return {
            "running": running,
            "power": round(21 * load + self.noise("power", at_s, 0.2), 2) if running else 0.0,
            "pressure": round(4.1 + 9.4 * load + self.noise("pressure", at_s, 0.05), 2),
            "temperature": round(24 + 58 * load + self.noise("temperature", at_s, 0.3), 1),
            "fault": "pressure too high" if tripped else "none",
        }

    def obey(self, name: str, payload: object, at_s: float) -> str | None:
        if name == "switch" and (on := boolean_in(payload, "on")) is not None:
            self.enabled = on
            return f"compressor is {'on' if on else 'off'}"
        return None


class Pump(DemoDevice):
    """Fills the tank of the cooling water between two marks; does nothing when switched off."""

    recipe = "Pump"
    about = "A pump for cooling water, with the level of its tank."
    attributes: ClassVar = {
        "running": ("boolean", ""),
        "flow": ("number", "l/min"),
        "pressure": ("number", "bar"),
        "level": ("number", "%"),
    }
    commands: ClassVar = {"switch": '{"on": false}'}
    _ROUND_S: ClassVar = 50 * 60.0
    _FILLS: ClassVar = 0.4
    _LOW: ClassVar = 54.0
    _HIGH: ClassVar = 92.0

    def __init__(self, *named: str) -> None:
        super().__init__(*named)
        self._off_s: float | None = None

    def state(self, at_s: float) -> State:
        filling, level = self._tank(at_s if self._off_s is None else self._off_s)
        if self._off_s is not None:
            filling, level = False, max(5.0, level - (at_s - self._off_s) / 60)
        flow = 420 + self.noise("flow", at_s, 6) if filling else 0.0
        return {
            "running": filling,
            "flow": round(flow, 1),
            "pressure": round(
                (3.2 if filling else 1.1) + level / 200 + self.noise("pressure", at_s, 0.03), 2
            ),
            "level": round(level, 1),
        }

    def _tank(self, at_s: float) -> tuple[bool, float]:
        part = (at_s / self._ROUND_S + self.chance("phase", 0)) % 1
        filled = part / self._FILLS if part < self._FILLS else (1 - part) / (1 - self._FILLS)
        return part < self._FILLS, self._LOW + (self._HIGH - self._LOW) * filled

    def obey(self, name: str, payload: object, at_s: float) -> str | None:
        if name == "switch" and (on := boolean_in(payload, "on")) is not None:
            self._off_s = None if on else at_s
            return f"pump is {'on' if on else 'off'}"
        return None


class Meter(DemoDevice):
    """Counts energy: a base load, and what is added by day."""

    recipe = "Energy meter"
    about = "A meter of electrical energy."
    attributes: ClassVar = {
        "power": ("number", "kW"),
        "energy": ("number", "kWh"),
        "voltage": ("number", "V"),
    }

    def __init__(self, *named: str, base: float, by_day: float, incident: Incident | None) -> None:
        super().__init__(*named)
        self._base, self._by_day, self._incident = base, by_day, incident

    def state(self, at_s: float) -> State:
        told = self._incident
        missing = 15.0 if told is not None and told.is_tripped(at_s) and not told.is_helped(at_s) else 0.0
        swing = 0.03 * self._base * self.wave(at_s, 1700)
        power = self._base + self._by_day * (1 + daily(at_s, 13)) / 2 + swing - missing
        hours = (at_s - _BEGINNING_S) / HOUR_S
        turned = 24 / (2 * math.pi) * math.sin(2 * math.pi * (hours - 13) / 24)
        return {
            "power": round(power + self.noise("power", at_s, 0.01 * self._base), 2),
            "energy": round(self._base * hours + self._by_day / 2 * (hours + turned), 2),
            "voltage": round(231 - 0.02 * power + self.noise("voltage", at_s, 0.3), 1),
        }


class Gateway(DemoDevice):
    """Receives the radio of sensors, and brings their readings to the server."""

    recipe = "Gateway"
    about = "Receives the radio of sensors, and brings their readings to the server."
    attributes: ClassVar = {
        "sensors": ("number", ""),
        "load": ("number", "%"),
        "temperature": ("number", "°C"),
    }
    device_class = "edgeCompute"

    def state(self, at_s: float) -> State:
        return {
            "sensors": 6.0,
            "load": round(18 + 4 * self.wave(at_s, 700) + self.noise("load", at_s, 2), 1),
            "temperature": round(41 + 2 * daily(at_s, 15) + self.noise("temperature", at_s, 0.2), 1),
        }


class RadioSensor(DemoDevice):
    """A sensor with a battery, which its gateway brings to the server."""

    device_class = "peripheral"

    def __init__(self, *named: str, battery: float, since_s: float) -> None:
        super().__init__(*named)
        self._battery, self._since_s = battery, since_s

    def battery(self, at_s: float) -> float:
        """The charge: what it is now, and a percent a day more in the past."""
        return round(self._battery + max(0.0, self._since_s - at_s) / DAY_S, 1)


class DoorContact(RadioSensor):
    """A door of the loading dock."""

    recipe = "Door contact"
    about = "A contact of a door, with a battery. Its gateway brings its readings to the server."
    attributes: ClassVar = {"door": ("string", ""), "battery": ("number", "%")}

    def state(self, at_s: float) -> State:
        is_open = self.is_at_times(at_s, 0.5 * worked(at_s), 15 * 60)
        return {"door": "open" if is_open else "closed", "battery": self.battery(at_s)}


class ClimateSensor(RadioSensor):
    """The air of a hall."""

    recipe = "Climate sensor"
    about = "Measures the air of a hall, with a battery. Its gateway brings its readings to the server."
    attributes: ClassVar = {
        "temperature": ("number", "°C"),
        "humidity": ("number", "%"),
        "battery": ("number", "%"),
    }

    def state(self, at_s: float) -> State:
        temperature = 11 + 2 * daily(at_s, 15) + 0.4 * self.wave(at_s, 5000)
        return {
            "temperature": round(temperature + self.noise("temperature", at_s, 0.08), 2),
            "humidity": round(64 - 1.5 * (temperature - 11) + self.noise("humidity", at_s, 0.5), 1),
            "battery": self.battery(at_s),
        }


class Truck(DemoDevice):
    """Drives from the plant to a town and back, and stops at both ends."""

    recipe = "Truck"
    about = "A truck with a cooled hold, its position and the charge of its battery."
    attributes: ClassVar = {
        "position": ("gps", ""),
        "speed": ("number", "km/h"),
        "heading": ("number", "°"),
        "temperature": ("number", "°C"),
        "charge": ("number", "%"),
    }
    commands: ClassVar = {"setTarget": '{"value": -21} (of the hold, -25 to 5 degrees)'}
    _ROUND_S: ClassVar = 8 * HOUR_S
    _STOPS: ClassVar = 0.15
    """The part of a round that a stop takes, of two."""
    _USED: ClassVar = 31.0
    """Percent of the charge that one way uses."""

    def __init__(self, *named: str, route: tuple[tuple[float, float], ...]) -> None:
        super().__init__(*named)
        self.target = -20.0
        self._route = route
        self._legs = [_leg(*ends) for ends in pairwise(route)]

    def state(self, at_s: float) -> State:
        part = (at_s / self._ROUND_S + self.chance("phase", 0)) % 1
        drives = 0.5 - self._STOPS
        back, part_of_half = part >= 0.5, part % 0.5
        driven = min(1.0, part_of_half / drives)
        latitude, longitude, heading = self._place(1 - driven if back else driven)
        is_moving = part_of_half < drives
        used = self._USED * (driven + back)
        if back and not is_moving:
            used *= (0.5 - part_of_half) / self._STOPS  # it is charged
        speed = sum(km for km, _ in self._legs) / (drives * self._ROUND_S / HOUR_S)
        return {
            "position": f"{latitude:.5f},{longitude:.5f}",
            "speed": round(speed * (1 + 0.06 * self.wave(at_s, 700) + self.noise("speed", at_s, 0.01)), 1)
            if is_moving
            else 0.0,
            "heading": round((heading + 180) % 360 if back else heading, 0) % 360,
            "temperature": round(self.target + 0.3 * self.wave(at_s, 900), 2),
            "charge": round(96 - used, 1),
        }

    def _place(self, driven: float) -> tuple[float, float, float]:
        """The position and the heading after a part of the way."""
        left_km = driven * sum(km for km, _ in self._legs)
        for at, (km, heading) in enumerate(self._legs):
            if left_km <= km or at == len(self._legs) - 1:
                share = min(1.0, left_km / km)
                (from_north, from_east), (to_north, to_east) = self._route[at], self._route[at + 1]
                north = from_north + (to_north - from_north) * share
                return north, from_east + (to_east - from_east) * share, heading
            left_km -= km
        raise AssertionError("a route has at least one leg")

    def obey(self, name: str, payload: object, at_s: float) -> str | None:
        if name == "setTarget" and (value := number_in(payload, "value", -25, 5)) is not None:
            self.target = value
            return f"target is {value:g} degrees"
        return None


class Mast(DemoDevice):
    """The weather above the roof; its heater melts the ice off the wind wheel."""

    recipe = "Weather mast"
    about = "Measures the weather, with a heater for its wind wheel."
    attributes: ClassVar = {
        "temperature": ("number", "°C"),
        "wind": ("number", "m/s"),
        "direction": ("number", "°"),
        "light": ("number", "lx"),
        "heater": ("boolean", ""),
    }
    commands: ClassVar = {"switch": '{"on": true} (the heater)'}
    device_class = "embedded"

    def __init__(self, *named: str) -> None:
        super().__init__(*named)
        self.heater = False

    def state(self, at_s: float) -> State:
        wind = 6 + 2.5 * self.wave(at_s, 1.7 * DAY_S) + self.wave(at_s, 1300) + self.noise("wind", at_s, 0.8)
        light = 42_000 * max(0.0, daily(at_s, 11.3)) * (0.8 + 0.2 * self.wave(at_s, 4000))
        return {
            "temperature": round(12 + 5 * daily(at_s, 14) + 0.5 * self.wave(at_s, 9000), 1),
            "wind": round(max(0.0, wind), 1),
            "direction": round(250 + 40 * self.wave(at_s, 0.8 * DAY_S) + self.noise("direction", at_s, 8), 0),
            "light": round(light, 0),
            "heater": self.heater,
        }

    def obey(self, name: str, payload: object, at_s: float) -> str | None:
        if name == "switch" and (on := boolean_in(payload, "on")) is not None:
            self.heater = on
            return f"heater is {'on' if on else 'off'}"
        return None


def _leg(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    """The length in kilometres and the heading in degrees of a straight part of a way."""
    # One degree of latitude is 111.32 km everywhere.
    north = (end[0] - start[0]) * 111.32
    east = (end[1] - start[1]) * 111.32 * math.cos(math.radians(start[0]))
    return math.hypot(north, east), math.degrees(math.atan2(east, north)) % 360
