"""ThrowErrorNode: fails the run with a message."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.tools import template_of
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "ThrowErrorNode"


def prepare(config: dict[str, Any]) -> NodeStep:
    message = template_of(config, "messageTemplate")

    def step(visit: Visit) -> NoReturn:
        raise NodeError("Error", "" if message is None else message.text(visit.payload))

    return step
