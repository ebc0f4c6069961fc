"""RandomNumberNode: a whole number from `min` to `max`, both included."""

from __future__ import annotations

from math import ceil, floor, isfinite
from typing import Final

from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import NEEDED_RESULT, Config, NumberSetting
from trunkline.actors.engine.tools import Unusable, constant_number, needed_path, number_reader
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "RandomNumberNode"

_MIN: Final = NumberSetting("min")
_MAX: Final = NumberSetting("max")
FORM: Final = Form("logic", (_MIN, _MAX, NEEDED_RESULT))

_LOWEST: Final = 0
_HIGHEST: Final = 100


def prepare(config: Config) -> NodeStep:
    lowest, highest = number_reader(config, _MIN), number_reader(config, _MAX)
    low = _LOWEST if lowest is None else constant_number(config, _MIN)
    high = _HIGHEST if highest is None else constant_number(config, _MAX)
    if low is not None and high is not None and (problem := _problem(low, high)):
        raise Unusable(problem)
    result = needed_path(config, NEEDED_RESULT)

    def step(visit: Visit) -> int:
        low = _LOWEST if lowest is None else lowest(visit)
        high = _HIGHEST if highest is None else highest(visit)
        if problem := _problem(low, high):
            raise refused(problem)
        visit.put(result, visit.run.random.randint(ceil(low), floor(high)))
        return 0

    return step


def _problem(low: float, high: float) -> str | None:
    if not (isfinite(low) and isfinite(high)):
        return f"config.min and config.max: are {low} and {high}; give finite numbers."
    if ceil(low) > floor(high):
        return f"config.min: {ceil(low)} is above config.max, which is {floor(high)}."
    return None
