"""DebugNode: tells the payload, or a part of it, with a message, to who watches the workflow."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import ChoiceSetting, Config, PathSetting, TemplateSetting
from trunkline.actors.engine.tools import choice_of, path_of, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "DebugNode"

_MESSAGE: Final = TemplateSetting("message")
_PROPERTY: Final = PathSetting("property")
_LEVEL: Final = ChoiceSetting("level", "info", "verbose", "warn", "error")
FORM: Final = Form("debug", (_MESSAGE, _PROPERTY, _LEVEL))


def prepare(config: Config) -> NodeStep:
    message, path, level = (
        text_reader(config, _MESSAGE),
        path_of(config, _PROPERTY),
        choice_of(config, _LEVEL),
    )

    def step(visit: Visit) -> int:
        payload = visit.payload
        value = payload if path is None else path.get(payload)
        if value is UNDEFINED:
            value = None
        visit.tell(level, message(visit), value)
        return 0

    return step
