"""Workflows run when they are triggered."""

from __future__ import annotations

from pathlib import Path
from weakref import ref

import pytest
import trio
import trio.testing

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import (
    button,
    create_flow,
    kept_runs,
    press,
    runs_end,
    waiting_triggers,
)
from tests.actors.house import running_house
from tests.patience import PATIENCE_S
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.origin import HOPS_MAX, Origin
from trunkline.actors.engine.programs import Programs
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.engine.visit import PATH_MAX
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.actors.workflows.triggers.intake import Cause, TriggerRecord
from trunkline.actors.workflows.triggers.queue import Queued, TriggerQueue
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import decode, encode

SUM = {"statements": [{"expression": "{{data.a}} + 1", "resultPath": "data.b"}]}


async def test_a_press_is_run_and_leaves_no_trigger(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await create_flow(
            house,
            [button(["m"])],
            [
                node(
                    "m",
                    "MathNode",
                    {"statements": [{"expression": "{{data.a}} + 1", "resultPath": "data.b"}]},
                    ["d"],
                ),
                node("d", "DebugNode", {"message": "b is {{data.b}}", "property": "data"}),
            ],
        )
        await press(house, flow, {"a": 2})
        await runs_end(house)
        (run,) = kept_runs(house, flow)
        assert run.outcome == "completed"
        assert run.debug == [[1, "info", "b is 3", {"a": 2, "b": 3}]]
        assert [each[1] for each in run.nodes] == ["MathNode", "DebugNode"]
        assert waiting_triggers(house) == []


async def test_a_deleted_application_leaves_no_runs_in_memory(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await create_flow(house, [button(["d"])], [node("d", "DebugNode")])
        await press(house, flow)
        await runs_end(house)
        ends = house.system.component(FlowRunner)._ends
        assert ends._kept.keys() == {(house.application, flow.id)}
        await house.system.ask(Ref(APPLICATION.name, ROOT, house.application), DeleteApplication())
        assert not ends._kept


async def test_nothing_works_when_there_is_nothing_to_run(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await create_flow(house, [button(["d"])], [node("d", "DebugNode")])
        for _ in range(3):
            await press(house, flow)
        await runs_end(house)
        with trio.fail_after(PATIENCE_S):
            await trio.testing.wait_all_tasks_blocked()
        assert len(kept_runs(house, flow)) == 3


async def test_an_endless_loop_delays_no_other_workflow(tmp_path: Path) -> None:
    limits = Limits(run_steps_max=100_000)
    async with running_house(tmp_path / "d", limits=limits) as house:
        endless = await create_flow(
            house,
            [button(["a"])],
            [node("a", "MutateNode", {}, ["b"]), node("b", "MutateNode", {}, ["a"])],
        )
        good = await create_flow(house, [button(["d"])], [node("d", "DebugNode")])
        await press(house, endless)
        await press(house, good)
        with trio.fail_after(PATIENCE_S):
            while not kept_runs(house, good):
                await trio.lowlevel.checkpoint()
        assert not kept_runs(house, endless)
        await runs_end(house)
        (run,) = kept_runs(house, endless)
        assert run.error is not None
        assert run.error[1:] == ["TooManySteps", "A run has at most 100000 steps."]
        assert (run.steps, len(run.path)) == (100_000, 3 * PATH_MAX)


async def test_a_run_ends_at_its_deadline(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d", limits=Limits(run_deadline_s=0.05)) as house:
        flow = await create_flow(
            house, [button(["f"])], [node("f", "RawFunctionNode", {"script": "while (true) {}"})]
        )
        await press(house, flow)
        await runs_end(house)
        (run,) = kept_runs(house, flow)
        assert run.error == [0, "RunTimeout", "The run has reached its deadline."]


async def test_what_is_told_in_a_loop_stays_as_it_was(tmp_path: Path) -> None:
    """The payload of a pass is used after its last node, by the loop or by the node after it."""
    async with running_house(tmp_path / "d") as house:
        count = {"statements": [{"expression": "{{data.a}} + 1", "resultPath": "data.a"}]}
        flow = await create_flow(
            house,
            [button(["l"])],
            [
                node("l", "LoopNode", {"loopSourcePath": "data.list"}, ["after"], ["m"]),
                node("m", "MathNode", count, ["d"]),
                node("d", "DebugNode", {"property": "data"}, ["c"]),
                node("c", "MathNode", count, ["last"]),
                node("last", "DebugNode", {"property": "data"}),
                node("after", "MathNode", count, ["end"]),
                node("end", "DebugNode", {"property": "data"}),
            ],
        )
        await press(house, flow, {"a": 0, "list": [1]})
        await runs_end(house)
        (run,) = kept_runs(house, flow)
        assert [each[3]["a"] for each in run.debug] == [1, 2, 1]


async def test_runs_that_cause_each_other_end(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await create_flow(house, [button(["d"])], [node("d", "DebugNode")])
        await press(house, flow, origin=Origin("f" * 24, "flow", HOPS_MAX - 1))
        await press(house, flow, origin=Origin("f" * 24, "flow", HOPS_MAX))
        await runs_end(house)
        house.system.component(FlowRunner).tell()
        run, dropped = kept_runs(house, flow)
        assert run.outcome == "completed"
        assert (dropped.outcome, dropped.dropped) == ("dropped", 1)


@pytest.mark.parametrize(("attempts", "outcome"), [(0, "completed"), (1, "completed"), (2, "abandoned")])
async def test_what_a_crash_has_left_is_run_at_the_next_start(
    tmp_path: Path, attempts: int, outcome: str
) -> None:
    """A trigger is left, as by a crash, with the marker of an effect that its run has had already."""
    async with running_house(tmp_path / "d") as house:
        flow = await create_flow(house, [button(["d"])], [node("d", "DebugNode")])
        house.system.component(FlowRunner)._scope.cancel()
        batch = Batch()
        cause = Cause("t", {"n": 1}, house.clock.wall_ms())
        record = TriggerRecord(
            house.application, flow.id, None, 0, "virtualButton", "button", attempts, cause
        )
        key = keys.trigger_key(7, "application", house.application)
        batch.put(keys.TRIGGERS, key, record.encoded())
        batch.put(keys.TRIGGERS, keys.done_key(7, "application", house.application, 0, 0), encode(None))
        await house.system.journal.submit(batch).wait()
        application = house.application
    async with running_house(tmp_path / "d") as house:
        house.application = application
        await runs_end(house)
        (run,) = kept_runs(house, flow)
        assert run.outcome == outcome
        assert waiting_triggers(house) == []


async def test_a_global_that_is_no_json_is_null_in_a_run(tmp_path: Path) -> None:
    """Those of applications were stored unchecked once, and each run of such an application ended the server."""
    async with running_house(tmp_path / "data") as house:
        key = keys.record_key(APPLICATION.name, ROOT, house.application)
        raw = house.system.journal.get(keys.RECORDS, key)
        assert raw is not None
        batch = Batch()
        batch.put(keys.RECORDS, key, encode({**decode(raw), "globals": [{"key": "a", "json": "on"}]}))
        await house.system.journal.submit(batch).wait()
        flow = await create_flow(house, [button(["n"])], [node("n", "DebugNode", {"property": "globals.a"})])
        await press(house, flow)
        await runs_end(house)
        (run,) = kept_runs(house, flow)
        assert run.outcome == "completed"
        assert run.debug[0][3] is None


async def test_a_run_that_cannot_begin_ends_no_other(tmp_path: Path) -> None:
    """A trigger that cannot be read ended the server, and again after each start."""
    async with running_house(tmp_path / "data") as house:
        flow = await create_flow(house, [button(["n"])], [node("n", "DebugNode")])
        queue = house.system.component(TriggerQueue)
        number = queue.next_number()
        key = keys.trigger_key(number, "application", house.application)
        batch = Batch()
        batch.put(keys.TRIGGERS, key, b"no trigger")
        await house.system.journal.submit(batch).wait()
        queue.add([Queued(number, key, house.application, flow.id, "", b"no trigger")])
        await runs_end(house)
        await press(house, flow)
        await runs_end(house)
        assert [run.outcome for run in kept_runs(house, flow)] == ["completed"]
        assert waiting_triggers(house) == []


async def test_what_is_compiled_goes_with_its_application(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await create_flow(house, [button(["end"])], [node("end", "DebugNode", {})])
        await press(house, flow, {})
        await runs_end(house)
        compiled = house.system.component(Programs).get(house.application, flow.id, None)
        assert compiled is not None
        part = ref(compiled.find_program)
        del compiled
        assert part() is not None
        await house.system.ask(Ref("application", ROOT, house.application), DeleteApplication())
        assert part() is None
