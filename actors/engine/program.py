"""Programs: the definition of a workflow, compiled once.

A program never fails to compile. A node of an unknown type, or with a configuration that cannot be used, fails the
run that reaches it; `problems` tells of it before. `ignored` tells of settings that no node reads; the record of each
run that comes by says so as well.
"""

from __future__ import annotations

from typing import Any

from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.node_rights import guarded
from trunkline.actors.engine.nodes import NODE_TYPES
from trunkline.actors.engine.tools import Unusable
from trunkline.actors.engine.unknown_settings import unknown_settings
from trunkline.actors.engine.visit import Node, NodeStep, Problem, Program, Visit
from trunkline.actors.flows.definition import never_due

_NEVER_RUN = frozenset({"AnnotationNode"})


def compile_program(definition: dict[str, Any]) -> Program:
    """Compile a definition that was checked when it was saved (`flows/definition.py`)."""
    parts: list[dict[str, Any]] = definition.get("nodes", [])
    indexes = {part["id"]: index for index, part in enumerate(parts) if part.get("id")}
    problems: list[Problem] = []
    ignored: list[Problem] = []
    nodes: list[Node] = []
    for index, part in enumerate(parts):
        step, problem = _step_of(part)
        if problem is not None and part["type"] not in _NEVER_RUN:
            problems.append(Problem(index, problem))
        elif unknown := unknown_settings(part["type"], part.get("config") or {}):
            ignored += [Problem(index, message) for message in unknown]
            step = _noting(step, unknown)
        outputs = _followers(part, indexes)
        label = part.get("meta", {}).get("label")
        nodes.append(
            Node(
                part.get("id", ""),
                part["type"],
                label if isinstance(label, str) else "",
                step,
                outputs,
                not any(outputs),
            )
        )
    starts = tuple(
        tuple(after for output in _followers(trigger, indexes) for after in output)
        for trigger in definition.get("triggers", [])
    )
    return Program(tuple(nodes), starts, tuple(problems), tuple(ignored))


def problems_of(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes that cannot run or ignore some settings, and the triggers that never fire, of workflows that run here.

    Those of edge and embedded devices run elsewhere.
    """
    if definition.get("flowClass") in ("edge", "embedded"):
        return []
    program = compile_program(definition)
    problems = [
        {"nodeId": node.id, "nodeType": node.type, "nodeLabel": node.label, "message": message}
        for node, message in (
            (program.nodes[index], message) for index, message in (*program.problems, *program.ignored)
        )
    ]
    for position, message in never_due(definition):
        trigger = definition["triggers"][position]
        meta = trigger.get("meta", {})
        problems.append(
            {
                "nodeId": meta.get("id") or meta.get("uiId") or trigger.get("key", ""),
                "nodeType": trigger["type"],
                "nodeLabel": meta.get("label", ""),
                "message": f"config.{message}",
            }
        )
    return problems


def _followers(part: dict[str, Any], indexes: dict[str, int]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(indexes[id] for id in ids if id in indexes) for ids in part.get("outputIds", []))


def _step_of(part: dict[str, Any]) -> tuple[NodeStep, str | None]:
    """The step of a node, and why it cannot run, if it cannot."""
    prepare = NODE_TYPES.get(part["type"])
    if prepare is None:
        message = f"Nodes of the type {part['type']} do not run on this server."
        return _failing("UnsupportedNode", message), message
    try:
        config = part.get("config") or {}
        return guarded(part["type"], config, prepare(config)), None
    except Unusable as unusable:
        return _failing("ValidationError", str(unusable)), str(unusable)


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
