"""Workflows start when a device is silent: once in each silence, counted from the last report that arrived."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import Json, create_flow, kept_runs, runs_end, trigger
from tests.actors.house import START_MS, House, at, running_again, running_house
from tests.actors.workflows.triggers.test_timers import patch
from tests.patience import PATIENCE_S
from trunkline.actors.core.records import records
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.actor.inactivity import Inactivity
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import DeleteDevice, DevicePatch, PatchDevice
from trunkline.actors.platform.applications.messages import (
    ApplicationPost,
    CreateApplication,
    DeleteApplication,
)
from trunkline.actors.workflows.flows.due_times import Watches
from trunkline.actors.workflows.triggers.index import FlowIndex
from trunkline.actors.workflows.triggers.timers import Timers
from trunkline.limits.table import Limits

Told = tuple[str, int | float, str | None, str]


def silent(type: str, key: str, seconds: float, **meta: Any) -> Json:
    return trigger(type, ["d"], key, config={"seconds": seconds}, meta=meta)


def of_device(device: bytes, seconds: float) -> Json:
    return silent("deviceIdInactivity", device.hex().upper(), seconds)


async def watching(house: House, *triggers: Json) -> Ref:
    return await create_flow(house, list(triggers), [node("d", "DebugNode")])


async def idle(house: House) -> None:
    """Let everything that is due happen."""
    timers, inactivity = house.system.component(Timers), house.system.component(Inactivity)
    timers.alarm.look()
    inactivity.alarm.look()
    with trio.fail_after(PATIENCE_S):
        while not (timers.alarm.is_waiting and inactivity.alarm.is_waiting):
            await trio.lowlevel.checkpoint()
    await runs_end(house)


async def moved_to(house: House, offset_ms: int) -> None:
    house.clock.set_wall(START_MS + offset_ms)
    await idle(house)


def told(house: House, flow: Ref) -> list[Told]:
    """What each run was told: the device, the seconds, the last activity; and when it was queued."""
    found = []
    for run in kept_runs(house, flow):
        payload = run.debug[0][3]
        assert payload["relayType"] == "timer"
        assert payload["triggerId"] == payload["device"]["id"]
        data = payload["data"]
        found.append(
            (payload["deviceName"], data["inactivitySeconds"], data["lastActivity"], payload["time"])
        )
    return found


async def test_a_device_is_told_of_once_until_it_reports_again(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        pump = await house.device()
        flow = await watching(house, of_device(pump, 30))
        await house.report(pump, {"data": {"a": 1}})
        await moved_to(house, 29_999)
        assert told(house, flow) == []
        await moved_to(house, 30_000)
        await moved_to(house, 90_000)
        first = ("pump", 30, at(0), at(30_000))
        assert told(house, flow) == [first]
        await house.report(pump, {"data": {"a": 2}})
        await moved_to(house, 110_000)
        await house.report(pump, {"data": {"a": 3}})
        await moved_to(house, 139_999)
        assert told(house, flow) == [first]
        await moved_to(house, 140_000)
        assert told(house, flow) == [first, ("pump", 30, at(110_000), at(140_000))]


async def test_silence_counts_from_the_arrival_and_not_from_the_time_of_a_report(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        pump = await house.device()
        flow = await watching(house, of_device(pump, 30))
        await moved_to(house, 20_000)
        await house.report(pump, {"data": {"a": 1}, "time": START_MS - 3_600_000})
        await moved_to(house, 25_000)
        await house.report(pump, {"data": {"a": 1}, "time": START_MS + 3_600_000})
        house.forget()
        await moved_to(house, 54_999)
        assert told(house, flow) == []
        await moved_to(house, 55_000)
        assert told(house, flow) == [("pump", 30, at(25_000), at(55_000))]


async def test_silence_before_the_save_does_not_count(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        pump = await house.device()
        await house.report(pump, {"data": {"a": 1}})
        await moved_to(house, 60_000)
        flow = await watching(house, of_device(pump, 30))
        await moved_to(house, 89_999)
        assert told(house, flow) == []
        await moved_to(house, 90_000)
        assert told(house, flow) == [("pump", 30, at(0), at(90_000))]
        await patch(house, flow, enabled=False)
        await moved_to(house, 100_000)
        await patch(house, flow, enabled=True)
        await moved_to(house, 110_000)
        await patch(house, flow, name="renamed")
        await moved_to(house, 129_999)
        assert len(told(house, flow)) == 1
        await moved_to(house, 130_000)
        assert len(told(house, flow)) == 2


async def test_a_clock_that_is_set_back_neither_stops_a_trigger_nor_doubles_a_silence(tmp_path: Path) -> None:
    """Devices and workflows are made by a clock that is a year ahead."""
    year_ms = 365 * 86_400_000
    async with running_house(tmp_path / "d") as house:
        pump, quiet = await house.device(), await house.device(name="quiet")
        flow = await watching(house, of_device(pump, 30), of_device(quiet, 30))
        await house.report(pump, {"data": {"a": 1}})
        await moved_to(house, 30_000)
        both = {("pump", 30, at(0), at(30_000)), ("quiet", 30, None, at(30_000))}
        assert set(told(house, flow)) == both
        await moved_to(house, -year_ms)
        await moved_to(house, -year_ms + 60_000)
        assert set(told(house, flow)) == both
        await house.report(pump, {"data": {"a": 2}})
        await moved_to(house, -year_ms + 89_999)
        assert set(told(house, flow)) == both
        await moved_to(house, -year_ms + 90_000)
        again = both | {("pump", 30, at(-year_ms + 60_000), at(-year_ms + 90_000))}
        assert set(told(house, flow)) == again
        await moved_to(house, 120_000)
        assert len(told(house, flow)) == 3


async def test_a_device_that_reports_after_the_clock_was_set_back_is_watched(tmp_path: Path) -> None:
    """Its report before, or its creation, is in the time to come."""
    year_ms = 365 * 86_400_000
    async with running_house(tmp_path / "d") as house:
        pump, quiet = await house.device(), await house.device(name="quiet")
        flow = await watching(house, of_device(pump, 30), of_device(quiet, 30))
        await house.report(pump, {"data": {"a": 1}})
        await moved_to(house, -year_ms)
        for device in (pump, quiet):
            await house.report(device, {"data": {"a": 2}})
        await moved_to(house, -year_ms + 29_999)
        assert told(house, flow) == []
        await moved_to(house, -year_ms + 30_000)
        both = {(name, 30, at(-year_ms), at(-year_ms + 30_000)) for name in ("pump", "quiet")}
        assert set(told(house, flow)) == both


async def test_a_silence_is_told_of_once_where_the_clock_is_set_back_and_forward_again(
    tmp_path: Path,
) -> None:
    """The workflow is saved later than the device is made, and counts from then on."""
    async with running_house(tmp_path / "d") as house:
        pump = await house.device()
        await moved_to(house, 10_000)
        flow = await watching(house, of_device(pump, 30))
        await moved_to(house, 40_000)
        once = [("pump", 30, None, at(40_000))]
        assert told(house, flow) == once
        await moved_to(house, -3_600_000)
        await moved_to(house, 3_600_000)
        house.system.component(Inactivity).changed(house.application, pump)
        await moved_to(house, 3_700_000)
        assert told(house, flow) == once
        await house.report(pump, {"data": {"a": 1}})
        await moved_to(house, 3_730_000)
        assert told(house, flow) == [*once, ("pump", 30, at(3_700_000), at(3_730_000))]


async def test_devices_with_a_tag_are_watched_also_those_that_get_it_later(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        tag = [{"key": "floor", "value": "1"}]
        await house.device(name="old", tags=tag)
        other = await house.device(name="other", tags=[{"key": "floor", "value": "2"}])
        flow = await watching(house, silent("deviceTagInactivity", "floor/1", 30))
        await moved_to(house, 10_000)
        await house.device(name="new", tags=tag)
        await moved_to(house, 20_000)
        body = msgspec.convert({"tags": tag}, DevicePatch)
        await house.report(other, {"data": {"a": 1}})
        await house.ask(other, PatchDevice(body=body))
        await moved_to(house, 30_000)
        await moved_to(house, 40_000)
        await moved_to(house, 50_000)
        assert told(house, flow) == [
            ("old", 30, None, at(30_000)),
            ("new", 30, None, at(40_000)),
            ("other", 30, at(20_000), at(50_000)),
        ]


async def test_a_device_that_is_deleted_is_not_watched(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        pump = await house.device()
        flow = await watching(house, of_device(pump, 30))
        await house.ask(pump, DeleteDevice())
        await moved_to(house, 60_000)
        assert told(house, flow) == []


async def test_triggers_of_one_box_count_as_one_and_others_for_themselves(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        pump = await house.device(tags=[{"key": "floor", "value": "1"}])
        flow = await watching(
            house,
            silent("deviceTagInactivity", "floor/1", 30, uiId="box"),
            silent("deviceTagInactivity", "floor/", 30, uiId="box"),
            silent("deviceIdInactivity", pump.hex(), 50),
        )
        await moved_to(house, 30_000)
        await moved_to(house, 50_000)
        await moved_to(house, 200_000)
        assert [each[1] for each in told(house, flow)] == [30, 50]


async def test_a_restart_neither_doubles_nor_forgets_a_silence(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        pump, late = await house.device(name="pump"), await house.device(name="late")
        flow = await watching(house, of_device(pump, 30), of_device(late, 30))
        await moved_to(house, 30_000)
        assert len(told(house, flow)) == 2
        await house.report(late, {"data": {"a": 1}, "time": START_MS - 86_400_000})
        await idle(house)
    async with running_again(tmp_path / "d", house, 59_999) as later:
        await idle(later)
        assert len(told(later, flow)) == 2
        await moved_to(later, 60_000)
        assert told(later, flow)[2:] == [("late", 30, at(30_000), at(60_000))]
    async with running_again(tmp_path / "d", house, 100_000) as later:
        await idle(later)
        assert len(told(later, flow)) == 3
        await later.report(pump, {"data": {"a": 1}})
        await moved_to(later, 130_000)
        assert told(later, flow)[3:] == [("pump", 30, at(100_000), at(130_000))]


async def test_a_refused_duration_says_what_is_wrong(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        with pytest.raises(Invalid, match=r"^triggers\[0\]\.config\.seconds: 0\.5 is not possible"):
            await watching(house, silent("deviceTagInactivity", "floor/1", 0.5))


async def with_tag(house: House, *names: str) -> None:
    for name in names:
        await house.device(name=name, tags=[{"key": "floor", "value": "1"}])


async def another(house: House, user: bytes) -> House:
    """The same system with another application, which belongs to a user."""
    ref = Ref("application", ROOT, house.system.ids.new(house.clock.wall_ms()))
    await house.system.ask(ref, CreateApplication(body=ApplicationPost(name="other"), user=user))
    return House(house.system, house.clock, ref.id)


async def test_an_owner_has_half_of_the_devices_that_are_watched(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d", limits=replace(Limits.off(), inactivity_devices_max=4)) as house:
        greedy, user = [await another(house, b"greedy------") for _ in range(2)], b"quiet-------"
        flows = []
        for each in (*greedy, await another(house, user)):
            await with_tag(each, "one", "two", "three")
            flows.append((each, await watching(each, silent("deviceTagInactivity", "/1", 30))))
        await moved_to(house, 30_000)
        assert [len(told(each, flow)) for each, flow in flows] == [2, 0, 1]
        quiet, flow = flows[2]
        ((watched, *_),) = told(quiet, flow)
        await quiet.report(device_named(quiet, watched), {"data": {"a": 1}})
        await moved_to(house, 90_000)
        assert [run[0] for run in told(quiet, flow)] == [watched, watched], "it has kept its place"


def device_named(house: House, name: str) -> bytes:
    with house.system.store.snapshot() as snapshot:
        found = (id for id, doc in records.scan(snapshot, DEVICE, house.application) if doc["name"] == name)
        return next(found)


async def test_devices_that_fall_silent_together_are_told_with_few_commits(tmp_path: Path) -> None:
    """So the devices of others, for whom a trigger is due a little later, need not wait for a commit of each."""
    async with running_house(tmp_path / "d") as house:
        await with_tag(house, *(f"device {number}" for number in range(40)))
        await watching(house, silent("deviceTagInactivity", "/1", 30))
        groups = house.system.journal.statistics.group_sizes
        assert not any(groups[5:])
        await moved_to(house, 30_000)
        assert sum(groups[5:]) == 1, "groups of 32 and more batches"


async def test_what_is_watched_is_forgotten_with_its_application(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        pump = await house.device()
        await watching(house, of_device(pump, 30))
        watches, index = house.system.component(Watches), house.system.component(FlowIndex)
        assert watches.applications == [house.application]
        triggers = index.of(house.application)
        await house.system.ask(Ref("application", ROOT, house.application), DeleteApplication())
        assert watches.applications == []
        assert index.of(house.application) is not triggers
