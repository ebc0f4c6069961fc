"""RandomNumberNode: a whole number from `min` to `max`, both included."""

from __future__ import annotations

from math import ceil, floor
from typing import Any, Final

from trunkline.actors.engine.tools import needed_path, number_reader
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "RandomNumberNode"
_MAX: Final = 100


def prepare(config: dict[str, Any]) -> NodeStep:
    lowest, highest = number_reader(config, "min"), number_reader(config, "max")
    result = needed_path(config, "resultPath")

    def step(visit: Visit) -> int:
        low = ceil(0 if lowest is None else lowest(visit))
        high = floor(_MAX if highest is None else highest(visit))
        if low > high:
            raise refused(f"config.min: {low} is above config.max, which is {high}.")
        visit.put(result, visit.run.random.randint(low, high))
        return 0

    return step
