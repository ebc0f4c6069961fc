"""The executor: visits the nodes of a program, in depth first order.

Owns the order, the bounds on a run, and when the event loop is left to others. A branch gets a copy of the payload
where an output leads to several nodes; along a chain the payload is shared. Branches never merge. The first error ends
the run, with all its branches.

Loops and custom nodes run a part of a program within a node, by `Visit.walk`: its depth is bounded.
"""

from __future__ import annotations

import time
from inspect import isawaitable
from typing import Any, Final

import trio

from trunkline.actors.engine.copies import copied, size_of
from trunkline.actors.engine.errors import NodeError, RunFailed
from trunkline.actors.engine.program import Program
from trunkline.actors.engine.visit import Capped, Run, Step, Visit
from trunkline.actors.formulas.errors import EvaluationError

DEPTH_MAX: Final = 16
"""Loops within loops."""
WORK_NS: Final = 1_000_000
"""After so much work in nanoseconds the event loop belongs to others."""
SIZE_STEPS: Final = 16
"""The size of the payload is looked at after so many steps."""


async def execute(program: Program, trigger: int, payload: Any, run: Run) -> None:
    """Run what follows the trigger with this index. Raises `RunFailed`."""
    await _Walker(program, run).walk(program.starts[trigger], payload)


class _Walker:
    """Walks through one program in one run."""

    def __init__(self, program: Program, run: Run) -> None:
        self._program = program
        self._run = run
        self._depth = 0
        self._worked_ns = 0

    async def walk(self, starts: tuple[int, ...], payload: Any) -> Capped | None:
        """Visit the nodes at `starts` and all that follow; return how the pass of a loop ended."""
        run, nodes = self._run, self._program.nodes
        capped: Capped | None = None
        stack = _branches(starts, payload)
        while stack:
            index, branch = stack.pop()
            node = nodes[index]
            if len(run.path) >= run.bounds.steps:
                raise RunFailed(
                    index, NodeError("TooManySteps", f"A run has at most {run.bounds.steps} steps.")
                )
            visit = Visit(run, branch, self._inner)
            visit.node = index
            began_ns = time.perf_counter_ns()
            at = len(run.path)
            run.path.append(Step(index, 0, 0))
            if run.snapshots is not None:
                run.snapshots.append(None)
            try:
                output = node.step(visit)
                if isawaitable(output):
                    output = await output
                if not at % SIZE_STEPS:
                    self._check_size(visit.payload)
            except NodeError as error:
                raise RunFailed(index, error) from None
            except EvaluationError as error:
                raise RunFailed(index, NodeError("EvaluationError", str(error))) from None
            took_ns = time.perf_counter_ns() - began_ns
            run.path[at] = Step(index, output, took_ns // 1000)
            if run.snapshots is not None:
                run.snapshots[at] = copied(visit.payload)
            if visit.capped is not None:
                capped = visit.capped
            if 0 <= output < len(node.outputs):
                stack += _branches(node.outputs[output], visit.payload)
            self._worked_ns += took_ns
            if self._worked_ns > WORK_NS:
                self._worked_ns = 0
                await trio.lowlevel.checkpoint()
        return capped

    async def _inner(self, visit: Visit, output: int, payload: Any) -> Capped | None:
        """Run what follows an output of the visited node."""
        outputs = self._program.nodes[visit.node].outputs
        if output >= len(outputs):
            return None
        if self._depth >= DEPTH_MAX:
            raise NodeError("TooDeep", f"At most {DEPTH_MAX} loops stand within each other.")
        self._depth += 1
        try:
            return await self.walk(outputs[output], payload)
        finally:
            self._depth -= 1

    def _check_size(self, payload: Any) -> None:
        most = self._run.bounds.payload_bytes
        if size_of(payload, most) > most:
            raise NodeError("PayloadTooLarge", f"The payload has more than {most} bytes as JSON.")


def _branches(starts: tuple[int, ...], payload: Any) -> list[tuple[int, Any]]:
    """The nodes to visit, the last first, each with a payload of its own."""
    if len(starts) == 1:
        return [(starts[0], payload)]
    return [(index, copied(payload)) for index in reversed(starts)]
