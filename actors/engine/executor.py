"""The executor: visits the nodes of a program, in depth first order.

Owns the order, the bounds on a run, and when the turn is left to others (`share.py`). A branch gets a copy of the
payload where an output leads to several nodes; along a chain the payload is shared. Branches never merge. The first
error ends the run, with all its branches.

Loops and custom nodes run a part of a program within a node, by `Visit.walk`: its depth is bounded.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any, Final

import trio

from trunkline.actors.engine.copies import copied, size_of
from trunkline.actors.engine.errors import NodeError, RunFailed
from trunkline.actors.engine.visit import PATH_MAX, Capped, CustomNode, Program, Run, Visit
from trunkline.actors.formulas.errors import EvaluationError
from trunkline.actors.values.errors import DomainError

DEPTH_MAX: Final = 16
"""Loops and custom nodes within each other."""
SIZE_STEPS: Final = 16
"""The size of the payload is looked at after so many steps."""


def execute(program: Program, trigger: int, payload: Any, run: Run) -> Awaitable[object]:
    """Run what follows the trigger with this index. The caller has the turn of `run.share`. Raises `RunFailed`."""
    return _Walker(program, 0, run, 0).walk(program.starts[trigger], payload)


class _Walker:
    """Walks through one program in one run, while the run has the turn (`share.py`)."""

    __slots__ = ("_depth", "_number", "_program", "_run")

    def __init__(self, program: Program, number: int, run: Run, depth: int) -> None:
        self._program = program
        self._number = number
        self._run = run
        self._depth = depth

    async def walk(self, starts: tuple[int, ...], payload: Any) -> Capped | None:
        """Visit the nodes at `starts` and all that follow; return how the pass of a loop ended."""
        run, nodes, number, path = self._run, self._program.nodes, self._number, self._run.path
        steps_max, share = run.bounds.steps, run.share
        capped: Capped | None = None
        visit = Visit(run, number, self._depth, self._inner, self._call)
        stack = _branches(starts, payload)
        now_ns = time.perf_counter_ns()
        while stack:
            index, visit.payload = stack.pop()
            _, _, _, step, outputs, _ = nodes[index]
            at = run.steps
            if at >= steps_max:
                error = NodeError("TooManySteps", f"A run has at most {steps_max} steps.")
                raise RunFailed(number, index, error, visit.payload)
            run.steps = at + 1
            visit.node = index
            is_kept = at < PATH_MAX
            if is_kept:
                path.append((number, index, 0, 0))
                if run.snapshots is not None:
                    run.snapshots.append(None)
            began_ns = now_ns
            try:
                output = step(visit)
                if type(output) is not int:
                    output = await self._outside(output)
                if not run.steps % SIZE_STEPS:
                    self._check_size(visit.payload)
            except NodeError as error:
                raise RunFailed(number, index, error, visit.payload) from None
            except EvaluationError as error:
                raise RunFailed(
                    number, index, NodeError("EvaluationError", str(error)), visit.payload
                ) from None
            except DomainError as refusal:
                raise RunFailed(
                    number, index, NodeError(refusal.type, refusal.message), visit.payload
                ) from None
            now_ns = time.perf_counter_ns()
            if is_kept:
                path[at] = (number, index, output, (now_ns - began_ns) // 1000)
                if run.snapshots is not None:
                    run.snapshots[at] = copied(visit.payload)
            if visit.capped is not None:
                capped, visit.capped = visit.capped, None
            followers = outputs[output] if 0 <= output < len(outputs) else ()
            if len(followers) == 1:
                stack.append((followers[0], visit.payload))
            elif followers:
                stack += _branches(followers, visit.payload)
            else:
                run.paths_completed += 1
            if now_ns > share.ends_ns:
                await self._pause(index, visit.payload)
                now_ns = time.perf_counter_ns()
        return capped

    async def _outside(self, step: Awaitable[int]) -> int:
        """Wait for a step without the turn, at most until the deadline of the run."""
        run = self._run
        run.has_waited = True
        run.share.leave()
        try:
            with trio.move_on_at(run.deadline_s) as deadline:
                output = await step
        finally:
            await self._enter_again()
        if deadline.cancelled_caught:
            raise _too_late()
        return output

    async def _enter_again(self) -> None:
        """Take the turn again, also if the run is cancelled: it is left where it was entered."""
        with trio.CancelScope(shield=True):
            await self._run.share.enter()

    async def _pause(self, node: int, payload: Any) -> None:
        with trio.CancelScope(shield=True):
            await self._run.share.pause()
        await trio.lowlevel.checkpoint_if_cancelled()
        if trio.current_time() > self._run.deadline_s:
            raise RunFailed(self._number, node, _too_late(), payload)

    async def _inner(self, visit: Visit, output: int, payload: Any) -> Capped | None:
        """Run what follows an output of the visited node."""
        outputs = self._program.nodes[visit.node].outputs
        if output >= len(outputs):
            return None
        return await self._within(self._program, self._number, outputs[output], payload)

    async def _call(self, node: CustomNode, payload: Any) -> Capped | None:
        """Run a custom node."""
        run = self._run
        number = next((at for at, each in enumerate(run.programs) if each is node.program), None)
        if number is None:
            number = len(run.programs)
            run.programs.append(node.program)
        run.authors.append(node.program.mandates)
        try:
            return await self._within(node.program, number, node.program.starts[node.start], payload)
        finally:
            run.authors.pop()

    async def _within(
        self, program: Program, number: int, starts: tuple[int, ...], payload: Any
    ) -> Capped | None:
        """Walk within a visit, which has left the turn."""
        if self._depth >= DEPTH_MAX:
            raise NodeError("TooDeep", f"At most {DEPTH_MAX} loops and custom nodes stand within each other.")
        await self._run.share.enter()
        try:
            return await _Walker(program, number, self._run, self._depth + 1).walk(starts, payload)
        finally:
            self._run.share.leave()

    def _check_size(self, payload: Any) -> None:
        most = self._run.bounds.payload_bytes
        if size_of(payload, most) > most:
            raise NodeError("PayloadTooLarge", f"The payload has more than {most} bytes as JSON.")


def _too_late() -> NodeError:
    return NodeError("RunTimeout", "The run has reached its deadline.")


def _branches(starts: tuple[int, ...], payload: Any) -> list[tuple[int, Any]]:
    """The nodes to visit, the last first, each with a payload of its own."""
    if len(starts) == 1:
        return [(starts[0], payload)]
    return [(index, copied(payload)) for index in reversed(starts)]
