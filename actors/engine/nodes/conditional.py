"""ConditionalNode: output 1 if an expression is true, else output 0."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.formulas.values import truth
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import Config, ExpressionSetting
from trunkline.actors.engine.tools import expression_of
from trunkline.actors.engine.visit import NodeStep

TYPE: Final = "ConditionalNode"

_EXPRESSION: Final = ExpressionSetting("expression", is_needed=True)
FORM: Final = Form("logic", (_EXPRESSION,))


def prepare(config: Config) -> NodeStep:
    expression = expression_of(config, _EXPRESSION)
    return lambda visit: 1 if truth(expression(visit.payload)) else 0
