"""The executor: visits the nodes of a program, in depth first order.

Owns the order, the bounds on a run, and when the turn is left to others (`share.py`). A branch gets a copy of the
payload where an output leads to several nodes, when it begins; the last of them keeps the payload itself, as what
follows along a chain does. Branches never merge. The first error ends the run, with all its branches.

What a visit computes is charged to its budget (`core/formulas/price.py`). What does not fit into the event loop is
computed in a thread, and the visit begins again with the value. So a node computes first, and then acts.

Loops and custom nodes run a part of a program within a node, by `Visit.walk`: its depth is bounded.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any, Final

import trio

from trunkline.actors.core.formulas import price
from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.price import Budget, TakesLong
from trunkline.actors.core.runtime.computing import compute, in_thread
from trunkline.actors.core.runtime.letting_go import let_go
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.core.values.store_errors import Outdated
from trunkline.actors.engine.branch_memory import Waiting, WaitingOfRun, waiting_bytes
from trunkline.actors.engine.copies import copied, size_of
from trunkline.actors.engine.errors import NodeError, RunFailed
from trunkline.actors.engine.heavy_work import is_large
from trunkline.actors.engine.snapshots import Snapshots
from trunkline.actors.engine.visit import PATH_MAX, Capped, CustomNode, NodeStep, Program, Run, Visit

DEPTH_MAX: Final = 16
"""Loops and custom nodes within each other."""
SIZE_STEPS: Final = 16
"""The size of the payload is looked at after so many steps."""


async def execute(program: Program, trigger: int, payload: Any, run: Run) -> None:
    """Run what follows the trigger with this index. The caller has the turn of `run.share`. Raises `RunFailed`."""
    waiting = WaitingOfRun(run.memory, run.owner)
    try:
        await _Walker(program, 0, run, 0, waiting).walk(program.starts[trigger], payload)
    except RunFailed as failure:
        let_go(failure.payload)
        raise
    finally:
        waiting.end()
        let_go(payload)


_Branch = tuple[int, Any, Waiting | None]
"""A node to visit and its payload, or what it shares with branches that begin later."""


class _Walker:
    """Walks through one program in one run, while the run has the turn (`share.py`)."""

    __slots__ = ("_budget", "_depth", "_number", "_program", "_run", "_waiting")

    def __init__(self, program: Program, number: int, run: Run, depth: int, waiting: WaitingOfRun) -> None:
        self._program = program
        self._number = number
        self._run = run
        self._depth = depth
        self._waiting = waiting
        self._budget = Budget(run.owner)

    async def walk(self, starts: tuple[int, ...], payload: Any) -> Capped | None:
        """Visit the nodes at `starts` and all that follow; return how the pass of a loop ended."""
        around = price.enter(self._budget)
        stack: list[_Branch] = []
        try:
            return await self._walk(stack, starts, payload)
        finally:
            price.leave(around)
            let_go(_taken_from(stack))

    async def _walk(self, stack: list[_Branch], starts: tuple[int, ...], payload: Any) -> Capped | None:
        run, nodes, number, path = self._run, self._program.nodes, self._number, self._run.path
        steps_max, share, budget = run.bounds.steps, run.share, self._budget
        capped: Capped | None = None
        visit = Visit(run, number, self._depth, self._inner, self._call)
        if starts:
            await self._follow(stack, starts, payload, starts[0])
        now_ns = time.perf_counter_ns()
        while stack:
            index, visit.payload, waiting = stack.pop()
            if waiting is not None:
                visit.payload = await self._own(waiting)
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
            began_ns = now_ns
            budget.begin()
            visit.progress = output = None
            try:
                try:
                    output = step(visit)
                    if type(output) is not int:
                        output = await self._outside(output)
                except (TakesLong, Outdated) as later:
                    output = await self._begin_again(step, visit, later, output)
                if visit.has_grown or not run.steps % SIZE_STEPS:
                    visit.has_grown = False
                    await self._check_size(visit.payload)
            except (NodeError, EvaluationError, DomainError) as error:
                raise RunFailed(number, index, _as_node_error(error), visit.payload) from None
            now_ns = time.perf_counter_ns()
            if is_kept:
                path[at] = (number, index, output, (now_ns - began_ns) // 1000)
                if run.snapshots is not None:
                    await self._snapshot(run.snapshots, at, visit.payload)
            capped, visit.capped = visit.capped or capped, None
            followers = outputs[output] if 0 <= output < len(outputs) else ()
            if len(followers) == 1:
                stack.append((followers[0], visit.payload, None))
            elif followers:
                await self._follow(stack, followers, visit.payload, index)
            else:
                run.paths_completed += 1
            if now_ns > share.ends_ns:
                await self._pause(index, visit.payload)
                now_ns = time.perf_counter_ns()
            if not followers:
                let_go(visit.payload)
        return capped

    async def _begin_again(
        self, step: NodeStep, visit: Visit, later: TakesLong | Outdated, output: Any
    ) -> int:
        """Make a visit whose work is too long for the event loop, each part of it in a thread; or one that could not
        begin, as it was not known what the authors may do. `output` is what had begun."""
        while True:
            if isinstance(later, TakesLong):
                await self._outside(compute(self._budget, later))
            elif output is None:
                await self._outside(self._run.until_readable())
            else:
                raise later
            output = None
            try:
                output = step(visit)
                return output if type(output) is int else await self._outside(output)
            except (TakesLong, Outdated) as next:
                later = next

    async def _follow(self, stack: list[_Branch], starts: tuple[int, ...], payload: Any, node: int) -> None:
        """Have some nodes visited, the last one last."""
        if len(starts) == 1:
            stack.append((starts[0], payload, None))
            return
        try:
            if is_large(payload):
                size = await self._outside(in_thread(waiting_bytes, payload))
            else:
                size = waiting_bytes(payload)
            waiting = self._waiting.add(payload, len(starts), size)
        except NodeError as error:
            raise RunFailed(self._number, node, error, payload) from None
        stack += [(index, None, waiting) for index in reversed(starts)]

    async def _own(self, waiting: Waiting) -> Any:
        """The payload of a branch that begins."""
        if not self._waiting.begin(waiting):
            return waiting.payload
        payload = waiting.payload
        return await self._outside(in_thread(copied, payload)) if is_large(payload) else copied(payload)

    async def _snapshot(self, snapshots: Snapshots, at: int, payload: Any) -> None:
        if is_large(payload):
            await self._outside(in_thread(snapshots.keep, at, payload))
        else:
            snapshots.keep(at, payload)

    async def _outside(self, step: Awaitable[Any]) -> Any:
        """Wait for a step without the turn, at most until the deadline of the run."""
        run = self._run
        run.has_waited = True
        async with run.share.outside():
            with trio.move_on_at(run.deadline_s) as deadline:
                output = await step
        if deadline.cancelled_caught:
            raise _too_late()
        return output

    async def _pause(self, node: int, payload: Any) -> None:
        await self._run.share.pause()
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
            return await _Walker(program, number, self._run, self._depth + 1, self._waiting).walk(
                starts, payload
            )
        finally:
            self._run.share.leave()

    async def _check_size(self, payload: Any) -> None:
        most = self._run.bounds.payload_bytes
        if is_large(payload) and await self._outside(in_thread(size_of, payload, most)) > most:
            raise NodeError("PayloadTooLarge", f"The payload has more than {most} bytes as JSON.")


def _taken_from(stack: list[_Branch]) -> list[Any]:
    """The payloads of branches that will not begin. The stack is emptied, as an error holds who called."""
    payloads = [left if waiting is None else waiting.payload for _, left, waiting in stack]
    stack.clear()
    return payloads


def _as_node_error(error: NodeError | EvaluationError | DomainError) -> NodeError:
    if isinstance(error, NodeError):
        return error
    if isinstance(error, DomainError):
        return NodeError(error.type, error.message)
    return NodeError("EvaluationError", str(error))


def _too_late() -> NodeError:
    return NodeError("RunTimeout", "The run has reached its deadline.")
