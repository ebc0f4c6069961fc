"""ConditionalNode: output 1 if an expression is true, else output 0."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.formulas.values import truth
from trunkline.actors.engine.tools import expression_of
from trunkline.actors.engine.visit import NodeStep

TYPE: Final = "ConditionalNode"


def prepare(config: dict[str, Any]) -> NodeStep:
    expression = expression_of(config, "expression")
    return lambda visit: 1 if truth(expression(visit.payload)) else 0
