"""MathNode: computes expressions, one after the other, and puts each result at a path. What is missing gives NaN.

NaN and the infinities are no JSON; they are stored as null.
"""

from __future__ import annotations

import math
from typing import Final

from trunkline.actors.core.formulas.values import UNDEFINED, to_number, whole_as_int
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import NEEDED_RESULT, Config, ExpressionSetting, RowsSetting
from trunkline.actors.engine.tools import expression_of, list_of, needed_path, remaining
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "MathNode"

_EXPRESSION: Final = ExpressionSetting("expression", is_needed=True)
_STATEMENTS: Final = RowsSetting("statements", _EXPRESSION, NEEDED_RESULT)
FORM: Final = Form("logic", (_STATEMENTS,))


def prepare(config: Config) -> NodeStep:
    statements = [
        (expression_of(each, _EXPRESSION), needed_path(each, NEEDED_RESULT))
        for each in list_of(config, _STATEMENTS)
    ]

    def step(visit: Visit) -> int:
        for expression, path in remaining(visit, statements):
            value = expression(visit.payload)
            if not isinstance(value, bool):
                number = to_number(value if value is not UNDEFINED else math.nan)
                value = whole_as_int(number) if math.isfinite(number) else None
            visit.payload = path.set(visit.payload, value)
        return 0

    return step
