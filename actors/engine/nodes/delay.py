"""DelayNode: waits for `delay` seconds, at most 59.

A run that is repeated after a crash waits again. The deadline of the run is not moved.
"""

from __future__ import annotations

from typing import Final

import trio

from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import Config, NumberSetting
from trunkline.actors.engine.tools import Unusable, constant_number, number_reader
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "DelayNode"

_DELAY: Final = NumberSetting("delay", is_needed=True)
FORM: Final = Form("logic", (_DELAY,))

DELAY_MAX_S: Final = 59
"""The format's limit."""


def prepare(config: Config) -> NodeStep:
    delay = number_reader(config, _DELAY)
    if delay is None:
        raise Unusable(f"config.delay: is not set; give 0 to {DELAY_MAX_S} seconds.")
    constant = constant_number(config, _DELAY)
    if constant is not None and (problem := _problem(constant)):
        raise Unusable(problem)

    async def step(visit: Visit) -> int:
        seconds = delay(visit)
        if problem := _problem(seconds):
            raise refused(problem)
        await trio.sleep(seconds)
        return 0

    return step


def _problem(seconds: float) -> str | None:
    within = 0 <= seconds <= DELAY_MAX_S
    return None if within else f"config.delay: gives {seconds}; give 0 to {DELAY_MAX_S} seconds."
