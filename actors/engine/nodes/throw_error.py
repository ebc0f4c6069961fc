"""ThrowErrorNode: fails the run with a message."""

from __future__ import annotations

from typing import Final, NoReturn

from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import Config, TemplateSetting
from trunkline.actors.engine.tools import text_reader
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "ThrowErrorNode"

_MESSAGE: Final = TemplateSetting("messageTemplate")
FORM: Final = Form("debug", (_MESSAGE,))


def prepare(config: Config) -> NodeStep:
    message = text_reader(config, _MESSAGE)

    def step(visit: Visit) -> NoReturn:
        raise NodeError("Error", message(visit))

    return step
