"""AnnotationNode: a note for people. It is never reached; if it is, it does nothing."""

from __future__ import annotations

from typing import Final

from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import Config
from trunkline.actors.engine.visit import NodeStep

TYPE: Final = "AnnotationNode"

FORM: Final = Form("debug")


def prepare(_config: Config) -> NodeStep:
    return lambda _visit: 0
