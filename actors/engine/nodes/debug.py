"""DebugNode: tells the payload, or a part of it, with a message, to who watches the workflow."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.engine.tools import choice_of, path_of, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "DebugNode"
LEVELS: Final = ("info", "verbose", "warn", "error")


def prepare(config: dict[str, Any]) -> NodeStep:
    message, path, level = (
        text_reader(config, "message"),
        path_of(config, "property"),
        choice_of(config, "level", LEVELS),
    )

    def step(visit: Visit) -> int:
        payload = visit.payload
        value = payload if path is None else path.get(payload)
        if value is UNDEFINED:
            value = None
        visit.tell(level, message(visit), value)
        return 0

    return step
