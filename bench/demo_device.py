"""What all devices of the demo have in common: what they report at a moment, and the commands that they execute.

Owns the course of a day and the chance in it, which are the same for the same device and second. No I/O and no clock.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Final
from zlib import crc32

Value = str | float | bool
State = dict[str, Value]

HOUR_S: Final = 3600.0
DAY_S: Final = 24 * HOUR_S


class DemoDevice(ABC):
    """One device: what its recipe says, what it reports, and the commands that it executes."""

    recipe: ClassVar[str]
    about: ClassVar[str]
    attributes: ClassVar[Mapping[str, tuple[str, str]]]
    """The type and the unit of each attribute, by its name."""
    commands: ClassVar[Mapping[str, str]] = {}
    """An example of the payload of each command, by its name."""
    device_class: ClassVar[str] = "standalone"

    def __init__(self, name: str, description: str, area: str) -> None:
        self.name = name
        self.description = description
        self.area = area

    @abstractmethod
    def state(self, at_s: float) -> State:
        """What it reports at this moment."""

    def obey(self, name: str, payload: object, at_s: float) -> str | None:
        """Execute a command and return what was done, or None if the command is not understood."""
        return None

    def chance(self, what: str, at_s: float) -> float:
        """A number from 0 to 1 that is the same for the same second."""
        return crc32(f"{self.name} {what} {at_s:.0f}".encode()) / 0xFFFF_FFFF

    def noise(self, what: str, at_s: float, most: float) -> float:
        """A small measuring error."""
        return (2 * self.chance(what, at_s) - 1) * most

    def wave(self, at_s: float, period_s: float) -> float:
        """A number from -1 to 1 that comes again after a period; each device is at another point of it."""
        return math.sin(2 * math.pi * (at_s / period_s + self.chance("phase", 0)))

    def is_at_times(self, at_s: float, share: float, longest_s: float) -> bool:
        """Whether something is so that is so in a share of the times, for a part of the time of `longest_s`."""
        begun_s = at_s // longest_s * longest_s
        lasts_s = longest_s * (0.3 + 0.7 * self.chance("lasts", begun_s))
        return self.chance("is", begun_s) < share and at_s - begun_s < lasts_s


def daily(at_s: float, peak_h: float) -> float:
    """A number from -1 to 1: the most at an hour of the day (UTC), the least twelve hours later."""
    return math.cos(2 * math.pi * (at_s / DAY_S - peak_h / 24))


def worked(at_s: float) -> float:
    """How much is done in the plant, from 0 in the night to 1 at noon."""
    return math.sqrt(max(0.0, daily(at_s, 11.5)))


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
