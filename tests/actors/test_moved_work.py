"""What works for an application goes on as after a restart when that has left a system and come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    trigger,
    waiting_triggers,
)
from tests.actors.fleet.alarms.alarm_house import ABOVE_30, Alarms
from tests.actors.fleet.alarms.test_notices import STEPS, told
from tests.actors.fleet.devices import link_session
from tests.actors.fleet.devices.test_inactivity import moved_to as silent_until
from tests.actors.fleet.devices.test_inactivity import of_device, watching
from tests.actors.house import START_MS, House, at, running_house
from tests.actors.job_desk import Held, desk
from tests.actors.moves import come, leave, move, other_house
from tests.actors.workflows.triggers.test_timers import moved_to, timed, timer
from tests.actors.workflows.triggers.test_timers import told as fired
from tests.patience import PATIENCE_S
from trunkline.actors import moving
from trunkline.actors.core.values.errors import Overloaded, Unanswered
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.data.topics.wills import Wills
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.fleet.devices.commands.links import Links
from trunkline.actors.platform.jobs.job import Job
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.platform.jobs.runner import Jobs
from trunkline.actors.workflows.flows.bodies import ButtonPress
from trunkline.actors.workflows.flows.due_times import DueTimes
from trunkline.actors.workflows.triggers.queue import TriggerQueue
from trunkline.actors.workflows.triggers.replies import Replies
from trunkline.actors.workflows.triggers.scheduled import SchedulePress, scheduled_ref


async def test_a_run_under_way_is_repeated_once_and_has_its_effects_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        state = {
            "deviceId": device.hex(),
            "attrDataMethod": "individualFields",
            "attrInfos": [{"key": "a", "valueTemplate": "1"}],
        }
        nodes = [
            node("s", "DeviceChangeStateNode", state, ["w"]),
            node("w", "DelayNode", {"delay": 0.2}, ["d"]),
        ]
        flow = await create_flow(house, [button(["s"])], [*nodes, node("d", "DebugNode")])
        other = await other_house(house)
        there = await create_flow(other, [button(["w"])], [*nodes[1:], node("d", "DebugNode")])
        await press(house, flow)
        await press(other, there)
        runner = house.system.component(FlowRunner)
        with trio.fail_after(PATIENCE_S):
            while not await house.states(device):  # noqa: ASYNC110 - a moment of the run
                await trio.sleep(0.001)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert runner.running == 2
        await leave(house)
        assert runner.running == 1
        assert kept_runs(house, flow) == []
        await come(house)
        await runs_end(house)
        (run,) = kept_runs(house, flow)
        assert run.outcome == "completed", run.error
        assert [each["data"] for each in await house.states(device)] == [{"a": 1}]
        assert waiting_triggers(house) == []
        (run,) = kept_runs(other, there)
        assert run.outcome == "completed"


async def test_what_waits_to_be_run_is_run_once_after_it_has_come_and_not_before(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        queue, runner = house.system.component(TriggerQueue), house.system.component(FlowRunner)
        nodes = [node("w", "DelayNode", {"delay": 0.05}, ["d"]), node("d", "DebugNode")]
        flow = await create_flow(house, [button(["w"])], nodes)
        for number in range(4):  # one trigger id, so one runs and three wait
            await press(house, flow, {"n": number})
        await leave(house)
        assert (queue.waiting, runner.running) == (0, 0)
        assert len(waiting_triggers(house)) == 4
        await trio.sleep(0.05)
        assert kept_runs(house, flow) == []
        await come(house)
        await press(house, flow, {"n": 4})
        await runs_end(house)
        assert [run.debug[0][3]["data"]["n"] for run in kept_runs(house, flow)] == [0, 1, 2, 3, 4]
        assert waiting_triggers(house) == []


async def test_no_run_begins_in_any_step_and_what_is_triggered_meanwhile_is_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_links, recover_wills = Links.leave, Wills.recover
    seen: list[tuple[int, int, int]] = []
    async with running_house(tmp_path / "d") as house:
        queue, runner = house.system.component(TriggerQueue), house.system.component(FlowRunner)
        flow = await create_flow(house, [button(["d"])], [node("d", "DebugNode")])
        device = await house.device()

        async def trigger_and_look(number: int) -> None:
            await press(house, flow, {"n": number})
            await trio.sleep(0.02)
            seen.append((queue.waiting, runner.running, len(kept_runs(house, flow))))
            with pytest.raises(Overloaded):
                link_session.begin(house, device)
            with pytest.raises(Overloaded):
                house.listen(device)

        async def leave_and_look(self: Links, application: bytes) -> None:
            await leave_links(self, application)
            await trigger_and_look(0)

        async def recover_and_look(self: Wills, application: bytes = b"") -> None:
            await recover_wills(self, application)
            await trigger_and_look(1)

        monkeypatch.setattr(Links, "leave", leave_and_look)
        await leave(house)
        monkeypatch.setattr(Links, "leave", leave_links)
        monkeypatch.setattr(Wills, "recover", recover_and_look)
        await come(house)
        await runs_end(house)
        assert seen == [(0, 0, 0)] * 2
        assert [run.debug[0][3]["data"]["n"] for run in kept_runs(house, flow)] == [0, 1]
        assert waiting_triggers(house) == []


async def test_who_waits_for_a_workflow_is_told_that_it_will_not_answer(house: House) -> None:
    replies = house.system.component(Replies)
    with replies.expect(house.application, "mine", "") as mine, replies.expect(ROOT, "other", "") as other:
        await leave(house)
        assert isinstance(mine.refusal, Unanswered)
        assert other.refusal is None
    await come(house)


async def test_a_timer_fires_once_at_its_due_time(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await timed(house, timer("a", seconds=60))
        other = await other_house(house)
        there = await timed(other, timer("b", seconds=60))
        await leave(house)
        assert [place[0] for place in house.system.component(DueTimes)._first] == [other.application]
        await moved_to(house, 70_000)
        assert fired(house, flow) == []
        assert fired(other, there) == [("b", at(60_000), 0)]
        await come(house)
        await moved_to(house, 70_001)
        await moved_to(house, 120_000)
        assert fired(house, flow) == [("a", at(60_000), 0), ("a", at(120_000), 0)]


async def test_a_scheduled_press_happens_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await create_flow(house, [button(["d"])], [node("d", "DebugNode")])
        body = ButtonPress(key="button", payload={"n": 1})
        later = SchedulePress(id="x", flow=flow.id, body=body, origin=Origin("f", "flow"), after_ms=5_000)
        await house.system.ask(scheduled_ref(house.application), later)
        await move(house)
        await moved_to(house, 4_000)
        assert kept_runs(house, flow) == []
        await leave(house)
        await come(house)
        await moved_to(house, 6_000)
        await moved_to(house, 7_000)
        assert len(kept_runs(house, flow)) == 1


async def test_a_silent_device_is_noticed_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        flow = await watching(house, of_device(device, 30))
        await silent_until(house, 10_000)
        await leave(house)
        await silent_until(house, 40_000)
        assert kept_runs(house, flow) == []
        await come(house)
        await silent_until(house, 41_000)
        await silent_until(house, 90_000)
        assert len(kept_runs(house, flow)) == 1


async def test_triggers_are_known_again(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        by_state = trigger("deviceId", ["d"], device.hex())
        flow = await create_flow(house, [by_state], [node("d", "DebugNode")])
        await house.report(device, {"data": {"a": 1}})
        await runs_end(house)
        await move(house)
        await house.report(device, {"data": {"a": 2}})
        await runs_end(house)
        assert len(kept_runs(house, flow)) == 2


# Alarms.


async def test_alarms_go_on_and_their_notices_are_sent_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        await alarms.rule(ABOVE_30, notify={"steps": STEPS})
        pump = await house.device({"t": "number"})
        await move(house)
        await alarms.report(pump, 31)
        assert len(await alarms.open()) == 1
        assert [to for to, _ in told(tmp_path / "d")] == ["night@example.com"]
        await leave(house)
        house.clock.set_wall(START_MS + 700_000)
        await alarms.settled()
        assert len(told(tmp_path / "d")) == 1
        await come(house)
        await alarms.settled()
        await alarms.settled(800_000)
        assert len(told(tmp_path / "d")) == 3
        await alarms.report(pump, 20)
        assert await alarms.open() == []


async def test_a_rule_of_silence_goes_on(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        await alarms.rule({"type": "silence", "seconds": 60})
        pump = await house.device({"t": "number"})
        await alarms.report(pump, 1)
        await alarms.settled()
        await leave(house)
        await alarms.settled(61_000)
        await come(house)
        assert len(await alarms.open()) == 1


# Jobs.


async def test_a_job_goes_on_from_its_note_and_the_attempt_does_not_count(tmp_path: Path) -> None:
    held, notes = Held(), list[Any]()

    async def run(job: Job) -> Any:
        notes.append((job.note, job.attempt))
        await job.save({"at": len(notes)})
        return await held(job)

    async with desk(tmp_path, run, {"jobs_running_max": 2}) as at_desk:
        mine, other = await at_desk.application(), await at_desk.application("other", bytes(11) + b"1")
        job = await at_desk.queue(mine)
        await held.began.wait()
        waiting = await at_desk.queue(mine)
        jobs, queue = at_desk.system.component(Jobs), at_desk.system.component(JobQueue)
        await moving.leave(at_desk.system, mine)
        assert not jobs.running
        assert len(queue) == 0
        assert (await at_desk.log(mine, job))["status"] == "queued"
        there = await at_desk.queue(other)
        held.go.set()
        await at_desk.ended(other, there)
        assert (await at_desk.log(mine, waiting))["status"] == "queued"
        await moving.come(at_desk.system, mine)
        for each in (job, waiting):
            ended = await at_desk.ended(mine, each)
            assert ended["status"] == "completed"
            assert ended["output"]["attempt"] == 1
        assert notes == [({}, 1), ({}, 1), ({"at": 1}, 1), ({}, 1)]
