"""AnnotationNode: a note for people. It is never reached; if it is, it does nothing."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.engine.visit import NodeStep

TYPE: Final = "AnnotationNode"


def prepare(_config: dict[str, Any]) -> NodeStep:
    return lambda _visit: 0
