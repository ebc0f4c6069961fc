"""Timers start workflows: each due time once, whatever happens to the workflow, the server and the clock."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import BY, Json, create_flow, kept_runs, runs_end, trigger
from tests.actors.house import START_MS, House, at, running_again, running_house
from tests.patience import PATIENCE_S
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.workflows.flows.bodies import FlowPatch, FlowVersionPatch, FlowVersionPost
from trunkline.actors.workflows.flows.due_times import DueTimes
from trunkline.actors.workflows.flows.messages import (
    CreateFlowVersion,
    DeleteFlow,
    PatchFlow,
    PatchFlowVersion,
    VersionCreation,
)
from trunkline.actors.workflows.flows.run_records import unpacked
from trunkline.actors.workflows.triggers.intake import decode_trigger
from trunkline.actors.workflows.triggers.timers import Timers
from trunkline.store import keys


def timer(key: str = "t", **config: Any) -> Json:
    return trigger("timer", ["d"], key, config=config)


async def timed(house: House, *timers: Json, **fields: Any) -> Ref:
    """A workflow with timers."""
    return await create_flow(house, list(timers), [node("d", "DebugNode")], **fields)


async def patch(house: House, flow: Ref, **fields: Any) -> None:
    await house.system.ask(flow, PatchFlow(body=msgspec.convert(fields, FlowPatch), by=BY))


async def moved_to(house: House, offset_ms: int) -> None:
    """Set the clock, let the timers look at it, and wait for the end of the runs."""
    timers = house.system.component(Timers)
    house.clock.set_wall(START_MS + offset_ms)
    timers.alarm.look()
    with trio.fail_after(PATIENCE_S):
        while not timers.alarm.is_waiting:
            await trio.lowlevel.checkpoint()
    await runs_end(house)


def told(house: House, flow: Ref) -> list[tuple[str, str, int]]:
    """The key, the due time and the number of missed ones of each run."""
    found = []
    for run in kept_runs(house, flow):
        assert run.outcome == "completed"
        assert run.trigger is not None
        cause = decode_trigger(unpacked(run.trigger)).cause
        assert cause.data == {}
        found.append((cause.trigger_id, cause.more["timer"]["dueTime"], cause.more["timer"]["missedCount"]))
    return found


async def test_a_timer_fires_at_each_due_time(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await timed(house, timer("a", seconds=1.5), timer("b", cron="*/2 * * * * *"))
        for offset_ms in (1499, 1500, 1500, 1999, 2030, 3000, 4030):
            await moved_to(house, offset_ms)
        assert told(house, flow) == [
            ("a", at(1500), 0),
            ("b", at(2000), 0),
            ("a", at(3000), 0),
            ("b", at(4000), 0),
        ]
        await moved_to(house, 4500)
        (run,) = kept_runs(house, flow)[-1:]
        assert run.debug[0][3]["timer"] == {"dueTime": at(4500), "missedCount": 0}
        assert run.debug[0][3]["triggerId"] == "a"
        assert run.debug[0][3]["time"] == at(4500)


async def test_what_was_missed_is_made_up_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await timed(house, timer("a", seconds=60), timer("b", cron="0 * * * *"))
        await moved_to(house, 3 * 3_600_000 + 5)
        assert told(house, flow) == [("a", at(60_000), 179), ("b", at(3_600_000), 2)]
        await moved_to(house, 3 * 3_600_000 + 60_000)
        assert told(house, flow)[2:] == [("a", at(3 * 3_600_000 + 60_000), 0)]


async def test_while_a_workflow_is_disabled_its_timers_rest(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await timed(house, timer(seconds=10))
        await patch(house, flow, enabled=False)
        await moved_to(house, 60_000)
        await patch(house, flow, enabled=True)
        await moved_to(house, 69_999)
        assert told(house, flow) == []
        await moved_to(house, 70_000)
        assert told(house, flow) == [("t", at(70_000), 0)]


async def test_a_timer_that_did_not_change_keeps_its_due_time(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await timed(house, timer("a", seconds=10), timer("b", seconds=10))
        await moved_to(house, 6_000)
        triggers = [timer("b", seconds=5), timer("new", seconds=20), timer("a", seconds=10)]
        await patch(house, flow, triggers=triggers, name="renamed")
        await moved_to(house, 10_000)
        assert told(house, flow) == [("a", at(10_000), 0)]
        await moved_to(house, 11_000)
        assert told(house, flow)[1:] == [("b", at(11_000), 0)]


async def test_the_version_that_runs_has_the_timers(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await timed(house, timer("develop", seconds=10))
        body = {"version": "v1", "triggers": [timer("v1", seconds=10)], "nodes": [node("d", "DebugNode")]}
        create = CreateFlowVersion(
            body=msgspec.convert(body, FlowVersionPost), query=VersionCreation(), by=BY
        )
        version = (await house.system.ask(flow, create)).value.id.hex()
        await moved_to(house, 4_000)
        await patch(house, flow, defaultVersionId=version)
        await moved_to(house, 14_000)
        assert told(house, flow) == [("v1", at(14_000), 0)]


@pytest.mark.parametrize(
    "idle",
    [
        timer(),
        timer(cron="", tz="UTC"),
        trigger("deviceTagInactivity", ["d"], "a/b", config={}),
    ],
)
async def test_what_would_never_fire_is_refused_where_it_would_run(tmp_path: Path, idle: Json) -> None:
    refused = partial(pytest.raises, Invalid, match=r"triggers\[1\]\.config\.seconds: is not set")
    good = timer(seconds=10)
    async with running_house(tmp_path / "d") as house:
        with refused():
            await timed(house, good, idle)
        assert not house.system.journal.range(keys.RECORDS, b"flow", b"flox")
        flow = await timed(house, good)
        with refused():
            await patch(house, flow, triggers=[good, idle])
        await patch(house, flow, triggers=[good, idle], enabled=False)
        await patch(house, flow, name="draft")
        with refused():
            await patch(house, flow, enabled=True)
        edge = await timed(house, good, idle, flowClass="edge")
        assert house.system.journal.get(keys.RECORDS, keys.record_key("flow", house.application, edge.id))


async def test_a_version_that_would_never_fire_does_not_become_the_default(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await timed(house, timer(seconds=10))

        async def save(**fields: Any) -> str:
            body = {"version": "v1", "triggers": [timer()], "nodes": [node("d", "DebugNode")], **fields}
            query = VersionCreation(allow_replacement=True)
            create = CreateFlowVersion(body=msgspec.convert(body, FlowVersionPost), query=query, by=BY)
            version: str = (await house.system.ask(flow, create)).value.id.hex()
            return version

        with pytest.raises(Invalid, match=r"^The version 'v1': triggers\[0\]\.config\.seconds: is not set"):
            await patch(house, flow, defaultVersionId=await save())
        await patch(house, flow, defaultVersionId=await save(enabled=False))
        with pytest.raises(Invalid, match=r"^The version 'v1': "):
            await house.system.ask(
                flow, PatchFlowVersion(flow_version="v1", body=FlowVersionPatch(enabled=True), by=BY)
            )
        with pytest.raises(Invalid, match=r"^The version 'v1': "):
            await save()
        await save(triggers=[timer(seconds=5)])
        await moved_to(house, 5_000)
        assert told(house, flow) == [("t", at(5_000), 0)]


async def test_a_deleted_workflow_leaves_no_timer(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await timed(house, timer(seconds=10))
        key = keys.flow_timers_key(house.application, flow.id)
        assert house.system.journal.get(keys.META, key) is not None
        await house.system.ask(flow, DeleteFlow())
        assert house.system.journal.get(keys.META, key) is None
        await moved_to(house, 10_000)


async def test_a_clock_that_is_set_back_neither_doubles_nor_stops_a_timer(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await timed(house, timer("a", seconds=60), timer("b", cron="0 * * * *"))
        await moved_to(house, 3_600_000)
        before = told(house, flow)
        assert before == [("a", at(60_000), 59), ("b", at(3_600_000), 0)]
        await moved_to(house, 3_000_000)
        assert told(house, flow) == before
        await moved_to(house, 3_060_000)
        assert told(house, flow)[2:] == [("a", at(3_060_000), 0)]
        await moved_to(house, 3_600_000)
        assert ("b", at(3_600_000), 0) not in told(house, flow)[2:]
        # A year back: the clock was wrong before.
        await moved_to(house, -365 * 86_400_000)
        count = len(told(house, flow))
        await moved_to(house, -365 * 86_400_000 + 3_600_000)
        assert [each[0] for each in told(house, flow)[count:]] == ["a", "b"]


async def test_a_refused_definition_says_what_is_wrong(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        with pytest.raises(Invalid, match=r"^triggers\[1\]\.config\.cron: '\* \*' cannot be used"):
            await timed(house, timer(seconds=1), timer(cron="* *"))
        with pytest.raises(Invalid, match=r"^triggers\[0\]\.config\.tz: there is no time zone 'Nowhere'"):
            await timed(house, timer(cron="* * * * *", tz="Nowhere"))
        with pytest.raises(Invalid, match=r"^triggers\[0\]\.config\.seconds: 0\.1 is not possible"):
            await timed(house, timer(seconds=0.1))
        await timed(house, timer(seconds=0.1), flowClass="edge")
        await timed(house, timer(seconds=0.05), flowClass="embedded")
        assert house.system.component(DueTimes).first_ms is None


async def test_a_restart_makes_up_once_what_was_due_meanwhile(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await timed(house, timer(seconds=10))
        await moved_to(house, 10_000)
    async with running_again(tmp_path / "d", house, 45_000) as later:
        await moved_to(later, 45_000)
        assert told(later, flow) == [("t", at(10_000), 0), ("t", at(20_000), 2)]
        await moved_to(later, 50_000)
        assert told(later, flow)[2:] == [("t", at(50_000), 0)]
