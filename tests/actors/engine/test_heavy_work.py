"""Work in threads: its results and errors arrive, and a cancelled run ends it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import button, create_flow, kept_runs, press, runs_end
from tests.actors.house import running_house
from tests.patience import PATIENCE_S
from trunkline.actors.core.runtime.computing import THREADS_MAX, give_up_if_cancelled, in_thread
from trunkline.actors.core.runtime.letting_go import PIECE_ITEMS
from trunkline.actors.engine.branch_memory import RUN_BRANCHES_MAX


def failing() -> None:
    raise ValueError("no")


async def test_results_and_errors_arrive() -> None:
    assert await in_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ValueError, match="no"):
        await in_thread(failing)


async def test_work_that_looks_ends_with_its_run_and_leaves_its_thread_to_others() -> None:
    def endless(scope: trio.CancelScope) -> None:
        trio.from_thread.run_sync(scope.cancel)
        while True:
            give_up_if_cancelled()

    for _ in range(THREADS_MAX + 1):
        with trio.fail_after(PATIENCE_S), trio.CancelScope() as scope:
            await in_thread(endless, scope)
        assert scope.cancelled_caught


def test_looking_outside_of_a_thread_does_nothing() -> None:
    give_up_if_cancelled()


class _Turns(trio.abc.Instrument):
    """Counts the turns of tasks, by the name of the task."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.of[task.name] += 1


@pytest.mark.parametrize("last", ["DebugNode", "ThrowErrorNode"])
async def test_a_large_payload_is_freed_in_pieces_when_its_run_ends(tmp_path: Path, last: str) -> None:
    text = "[" + ",".join(["[]"] * 60_000) + "]"
    decode = node("d", "JsonDecodeNode", {"source": "data.text", "destination": "data.many"}, ["e"])
    end = node("e", last, {"messageTemplate": "no"} if last == "ThrowErrorNode" else {})
    async with running_house(tmp_path / "data") as house:
        flow = await create_flow(house, [button(["d"])], [decode, end])
        turns = _Turns()
        trio.lowlevel.add_instrument(turns)
        await press(house, flow, {"text": text})
        await runs_end(house)
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(turns)
    assert turns.of["letting_go"] >= 60_000 // PIECE_ITEMS


async def test_the_branches_of_a_run_that_fails_are_freed_in_pieces(tmp_path: Path) -> None:
    """Each has a small payload, but together they would take tens of milliseconds."""
    names = "abc"
    nodes = [node(each, "DebugNode", {}, [other for other in names if other != each]) for each in names]
    async with running_house(tmp_path / "data") as house:
        flow = await create_flow(house, [button(["a"])], nodes)
        turns = _Turns()
        trio.lowlevel.add_instrument(turns)
        await press(house, flow, {"n": 1})
        await runs_end(house)
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(turns)
        (run,) = kept_runs(house, flow)
    assert run.error is not None
    assert run.error[1] == "TooManyBranches"
    assert turns.of["letting_go"] >= RUN_BRANCHES_MAX // PIECE_ITEMS
