"""LatchNode: output 1 when its condition becomes true, then output 0 until it is reset.

A latch that is not set is set by a true `latchExpression`; one that is set is reset by a true `resetExpression`, and
takes output 0. An expression that is not set is never true. `latchIdTemplate` makes a latch of its own for each text,
such as `{{triggerId}}`; without it all runs of the workflow share one. All versions share the latches of nodes with the
same id, and so do all uses of a custom node in a workflow.

`latchResultPath` and `resetResultPath` get what the expressions say, `wasLatchedPath` and `isLatchedPath` whether the
latch was set and is set, `branchPath` whether output 1 was taken.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.formulas.values import truth
from trunkline.actors.engine.node_rights import WRITES
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import Config, ExpressionSetting, PathSetting, TemplateSetting
from trunkline.actors.engine.tools import Reader, expression_of, path_of, text_of, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit
from trunkline.actors.workflows.flows.storage_messages import SetLatch

TYPE: Final = "LatchNode"

_LATCH_EXPRESSION: Final = ExpressionSetting("latchExpression")
_RESET_EXPRESSION: Final = ExpressionSetting("resetExpression")
_LATCH_ID: Final = TemplateSetting("latchIdTemplate")
_LATCH_RESULT_PATH: Final = PathSetting("latchResultPath")
_RESET_RESULT_PATH: Final = PathSetting("resetResultPath")
_WAS_LATCHED_PATH: Final = PathSetting("wasLatchedPath")
_IS_LATCHED_PATH: Final = PathSetting("isLatchedPath")
_BRANCH_PATH: Final = PathSetting("branchPath")
FORM: Final = Form(
    "logic",
    (
        _LATCH_EXPRESSION,
        _RESET_EXPRESSION,
        _LATCH_ID,
        _LATCH_RESULT_PATH,
        _RESET_RESULT_PATH,
        _WAS_LATCHED_PATH,
        _IS_LATCHED_PATH,
        _BRANCH_PATH,
    ),
)
NEEDS: Final = WRITES


def prepare(config: Config) -> NodeStep:
    sets, resets = _condition(config, _LATCH_EXPRESSION), _condition(config, _RESET_EXPRESSION)
    id = text_reader(config, _LATCH_ID)
    sets_path, resets_path = path_of(config, _LATCH_RESULT_PATH), path_of(config, _RESET_RESULT_PATH)
    was_path, is_path = path_of(config, _WAS_LATCHED_PATH), path_of(config, _IS_LATCHED_PATH)
    branch = path_of(config, _BRANCH_PATH)

    async def step(visit: Visit) -> int:
        to_set, to_reset = sets(visit), resets(visit)
        message = SetLatch(node=visit.state_name(id(visit)), sets=to_set, resets=to_reset)
        was, now = await visit.ask_flow(message)
        values: list[tuple[Any, bool]] = [
            (sets_path, to_set),
            (resets_path, to_reset),
            (was_path, was),
            (is_path, now),
            (branch, now and not was),
        ]
        for path, value in values:
            visit.put(path, value)
        return 1 if now and not was else 0

    return step


def _condition(config: Config, setting: ExpressionSetting) -> Reader:
    if not text_of(config, setting).strip():
        return lambda _visit: False
    expression = expression_of(config, setting)
    return lambda visit: truth(expression(visit.payload))
