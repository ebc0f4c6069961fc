"""RandomNumberNode: a whole number from `min` to `max`, both included."""

from __future__ import annotations

from math import ceil, floor
from typing import Final

from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import NEEDED_RESULT, Config, NumberSetting
from trunkline.actors.engine.tools import needed_path, number_reader
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "RandomNumberNode"

_MIN: Final = NumberSetting("min")
_MAX: Final = NumberSetting("max")
FORM: Final = Form("logic", (_MIN, _MAX, NEEDED_RESULT))

_HIGHEST: Final = 100


def prepare(config: Config) -> NodeStep:
    lowest, highest = number_reader(config, _MIN), number_reader(config, _MAX)
    result = needed_path(config, NEEDED_RESULT)

    def step(visit: Visit) -> int:
        low = ceil(0 if lowest is None else lowest(visit))
        high = floor(_HIGHEST if highest is None else highest(visit))
        if low > high:
            raise refused(f"config.min: {low} is above config.max, which is {high}.")
        visit.put(result, visit.run.random.randint(low, high))
        return 0

    return step
