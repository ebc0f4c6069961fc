"""Programs: the definition of a workflow, made ready to be run once.

A node is compiled at its first visit, in the price of the visit (`core/formulas/price.py`): a definition may hold a
thousand nodes with templates that take seconds to compile, and most runs visit few of them.

A program never fails to compile. A node of an unknown type, or with a configuration that cannot be used, fails the
run that reaches it; `problems_of` tells of it before, and of settings that no node reads; the record of each run that
comes by says so as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from trunkline.actors.core.formulas import price
from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.query.price import LOOK_PRICE, spend
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.nodes import NODE_TYPES
from trunkline.actors.engine.tools import Unusable
from trunkline.actors.engine.unknown_settings import unknown_settings
from trunkline.actors.engine.visit import Node, NodeStep, Problem, Program, Visit
from trunkline.actors.workflows.flows.definition import never_due, never_started

_NEVER_RUN = frozenset({"AnnotationNode"})
NODE_STEPS: Final = 20
"""What a node costs to compile besides its texts."""


def compile_program(definition: dict[str, Any]) -> Program:
    """Make a definition ready that was checked when it was saved (`workflows/flows/definition.py`)."""
    parts: list[dict[str, Any]] = definition.get("nodes", [])
    indexes = {part["id"]: index for index, part in enumerate(parts) if part.get("id")}
    nodes: list[Node] = []
    for part in parts:
        outputs = _followers(part, indexes)
        step = _at_first_visit(part)
        nodes.append(Node(part.get("id", ""), part["type"], label_of(part), step, outputs, not any(outputs)))
    starts = tuple(
        tuple(after for output in _followers(trigger, indexes) for after in output)
        for trigger in definition.get("triggers", [])
    )
    return Program(tuple(nodes), starts)


def label_of(part: dict[str, Any]) -> str:
    """What an editor calls a node; "" if nothing."""
    label = part.get("meta", {}).get("label")
    return label if isinstance(label, str) else ""


def _followers(part: dict[str, Any], indexes: dict[str, int]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(indexes[id] for id in ids if id in indexes) for ids in part.get("outputIds", []))


def _at_first_visit(part: dict[str, Any]) -> NodeStep:
    """The step of a node, which is compiled when it is first visited."""
    known: NodeStep | None = None

    def run(visit: Visit) -> Any:
        nonlocal known
        if known is None:
            known = price.computed(_noting_step, part)
            if (budget := price.current()) is not None:
                budget.keep()
        return known(visit)

    return run


def _noting_step(part: dict[str, Any]) -> NodeStep:
    compiled = _compiled(part)
    return _noting(compiled.step, compiled.ignored) if compiled.ignored else compiled.step


class _Compiled(NamedTuple):
    """The step of a node, why it cannot run, if it cannot, and what it ignores."""

    step: NodeStep
    problem: str | None
    ignored: list[str]


def _compiled(part: dict[str, Any]) -> _Compiled:
    type, config = part["type"], part.get("config") or {}
    known = NODE_TYPES.get(type)
    if known is None:
        message = f"Nodes of the type {type} do not run on this server."
        return _Compiled(_failing("UnsupportedNode", message), message, [])
    try:
        price.spend(NODE_STEPS)
        ignored = unknown_settings(type, config)
        try:
            return _Compiled(known.step(config), None, ignored)
        except Unusable as unusable:
            return _Compiled(_failing("ValidationError", str(unusable)), str(unusable), ignored)
    except EvaluationError as too_much:
        message = f"config: its templates and expressions cannot be compiled. {too_much}"
        return _Compiled(_failing("ValidationError", message), message, [])


def _noting(step: NodeStep, messages: list[str]) -> NodeStep:
    def run(visit: Visit) -> Any:
        for message in messages:
            visit.note(message)
        return step(visit)

    return run


def _failing(name: str, message: str) -> NodeStep:
    def fail(_visit: Visit) -> int:
        raise NodeError(name, message)

    return fail


# What is told before a run.


def node_problems(definition: dict[str, Any], look: Callable[[], None]) -> Iterator[Problem]:
    """Why nodes cannot run, and then what they ignore. All are compiled: `look` is called at times, and may raise."""
    ignored: list[Problem] = []
    for index, part in enumerate(definition.get("nodes", [])):
        look()
        compiled = price.whole(partial(_compiled, part), look)
        ignored += [Problem(index, message) for message in compiled.ignored]
        if compiled.problem is not None and part["type"] not in _NEVER_RUN:
            yield Problem(index, compiled.problem)
    yield from ignored


def problems_of(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes that cannot run or ignore some settings, and the triggers that never fire, of workflows that run here.

    Those of edge and embedded devices run elsewhere. For reads, which go on in a thread if this takes long.
    """
    if definition.get("flowClass") in ("edge", "embedded"):
        return []
    parts = definition.get("nodes", [])
    problems = [
        {
            "nodeId": parts[index].get("id", ""),
            "nodeType": parts[index]["type"],
            "nodeLabel": label_of(parts[index]),
            "message": message,
        }
        for index, message in node_problems(definition, partial(spend, LOOK_PRICE + 1))
    ]
    for position, message in sorted((*never_due(definition), *never_started(definition))):
        trigger = definition["triggers"][position]
        meta = trigger.get("meta", {})
        problems.append(
            {
                "nodeId": meta.get("id") or meta.get("uiId") or trigger.get("key", ""),
                "nodeType": trigger["type"],
                "nodeLabel": meta.get("label", ""),
                "message": message,
            }
        )
    return problems
