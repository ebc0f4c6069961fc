"""Guards: a workflow that begins with a condition on the data is not run where the condition is false.

The condition is judged in the turn of the cause, so a state that a filter rejects costs no record and no run. It counts
as a run nevertheless (`TriggerQueue.passed_over`). A condition that needs more than `data` is left to the run, as is
one that cannot be judged, or takes more than about a millisecond to compile or to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from trunkline.actors.core.formulas.errors import EvaluationError, FormulaError
from trunkline.actors.core.formulas.expressions import compile_expression, path_of_variable
from trunkline.actors.core.formulas.price import TakesLong, inline
from trunkline.actors.core.formulas.values import truth
from trunkline.actors.core.records.kind import Doc

Guard = Callable[[Any], bool]
"""Whether a run is needed, given the data of the cause."""

_CONDITION: Final = "ConditionalNode"


class _NeedsMore(Exception):
    """The condition is about more than the data."""


class _Condition:
    """The guard of a condition. It is compiled at its first use: most workflows of an application never run."""

    __slots__ = ("_is_true", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_true: Guard | None = None

    def __call__(self, data: Any) -> bool:
        if self._is_true is None:
            self._is_true = _compiled(self._text)
        return self._is_true(data)


def nodes_by_id(definition: Doc) -> dict[str, Doc]:
    """The nodes of a definition that others may lead to."""
    return {node["id"]: node for node in definition.get("nodes", []) if node.get("id")}


def guard_of(trigger: Doc, nodes: Mapping[str, Doc]) -> Guard | None:
    """The guard of a trigger; None if each of its causes needs a run. `nodes` are those of its definition by id."""
    followers = [id for output in trigger.get("outputIds", []) for id in output]
    if len(followers) != 1:
        return None
    node = nodes.get(followers[0])
    if node is None or node["type"] != _CONDITION or any(node.get("outputIds", [])[:1]):
        return None
    text = (node.get("config") or {}).get("expression")
    return _Condition(text) if isinstance(text, str) else None


def _compiled(text: str) -> Guard:
    try:
        condition = inline(compile_expression, text, _of_data)
    except (FormulaError, _NeedsMore, TakesLong):
        return lambda _data: True

    def is_true(data: Any) -> bool:
        try:
            return truth(inline(condition, {"data": data}))
        except (EvaluationError, TakesLong):
            return True

    return is_true


def _of_data(text: str) -> Callable[[Any], Any]:
    path = path_of_variable(text)
    if not path.keys or path.keys[0] != "data":
        raise _NeedsMore
    return path.get
