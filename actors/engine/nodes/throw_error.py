"""ThrowErrorNode: fails the run with a message."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.tools import text_reader
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "ThrowErrorNode"


def prepare(config: dict[str, Any]) -> NodeStep:
    message = text_reader(config, "messageTemplate")

    def step(visit: Visit) -> NoReturn:
        raise NodeError("Error", message(visit))

    return step
