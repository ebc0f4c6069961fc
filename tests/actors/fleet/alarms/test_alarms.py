"""Alarms: a rule that holds opens one event for each device, which is resolved when the rule holds no longer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.actors.event_house import Events
from tests.actors.fleet.alarms.alarm_house import ABOVE_30, Alarms, Json
from tests.actors.house import at, running_again, running_house
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.events.alarms import RULE_TAG
from trunkline.actors.fleet.alarms.conditions import changed, check_condition, compare, words_of
from trunkline.actors.fleet.alarms.index import AlarmIndex
from trunkline.actors.fleet.devices.record.messages import (
    Connected,
    DeleteDevice,
    DevicePatch,
    Disconnected,
    PatchDevice,
    SendBacklog,
    SetConnectionStatus,
)
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.limits.table import Limits

NUMBER = {"t": "number"}
WARM = "t is above 30: it was 31."


async def test_a_rule_that_holds_opens_one_event_which_counts_and_is_resolved_with_hysteresis(
    tmp_path: Path,
) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        rule = await alarms.rule(ABOVE_30, severity="error")
        pump = await house.device(NUMBER)
        await alarms.report(pump, 30)
        assert await alarms.told() == []
        await alarms.report(pump, 31)
        await alarms.report(pump, 29)
        await alarms.report(pump, 35)
        (alarm,) = await alarms.open()
        assert alarm == {
            "eventId": alarm["eventId"],
            "alarmRuleId": rule.hex(),
            "alarmRuleName": "too warm",
            "conditionType": "attribute",
            "deviceId": pump.hex(),
            "deviceName": "pump",
            "level": "error",
            "state": "new",
            "subject": "too warm: pump",
            "openedAt": alarm["openedAt"],
            "message": WARM,
            "count": 3,
            "value": 35,
            "lastAt": alarm["lastAt"],
        }
        event = await Events(house).get(bytes.fromhex(alarm["eventId"]))
        assert event["eventTags"] == {RULE_TAG: rule.hex()}
        assert (event["deviceId"], event["sourceType"], event["sourceId"]) == (
            pump.hex(),
            "device",
            pump.hex(),
        )
        await alarms.report(pump, 28)
        assert await alarms.open() == []
        event = await Events(house).get(bytes.fromhex(alarm["eventId"]))
        assert event["state"] == "resolved"
        assert event["updates"][-1]["comment"] == "The alarm has ended by itself."
        await alarms.report(pump, 31)
        assert await alarms.told() == [("resolved", WARM), ("new", WARM)]


async def test_acknowledged_alarms_stay_open_and_resolved_ones_leave_the_list(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms, log = Alarms(house), Events(house)
        await alarms.rule(ABOVE_30)
        await alarms.rule(ABOVE_30, name="hot", severity="critical")
        pump = await house.device(NUMBER)
        await alarms.report(pump, 31)
        hot, warm = [bytes.fromhex(each["eventId"]) for each in await alarms.open()]
        await log.patch(hot, state="acknowledged")
        assert [each["state"] for each in await alarms.open()] == ["acknowledged", "new"]
        await log.patch(warm, state="resolved")
        await alarms.report(pump, 32)
        assert [each["subject"] for each in await alarms.open()] == ["hot: pump"]
        await alarms.report(pump, 20)
        await alarms.report(pump, 31)
        assert [each["count"] for each in await alarms.open()] == [1, 1]


async def test_a_duration_is_waited_for_without_reports_and_across_a_restart(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        await alarms.rule(ABOVE_30, durationSeconds=120)
        pump, other = await house.device(NUMBER), await house.device(NUMBER)
        await alarms.report(pump, 31)
        await alarms.report(other, 31)
        await alarms.settled(100_000)
        await alarms.report(other, 20)
        await alarms.settled(119_999)
        assert await alarms.open() == []
        application = house.application
    async with running_again(tmp_path / "d", house, 121_000) as again:
        assert again.application == application
        alarms = Alarms(again)
        assert [each["message"] for each in await alarms.open()] == [
            "t is above 30, for 120 seconds: it was 31."
        ]
        await alarms.report(pump, 20)
        assert await alarms.open() == []


async def test_silence_opens_an_alarm_also_after_a_restart_and_a_report_ends_it(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        pump = await house.device(NUMBER)
        await alarms.report(pump, 1)
        await alarms.rule({"type": "silence", "seconds": 60})
        await alarms.settled(50_000)
        await alarms.report(pump, 1)
        await alarms.settled(109_999)
        assert await alarms.open() == []
    async with running_again(tmp_path / "d", house, 110_001) as again:
        alarms = Alarms(again)
        (alarm,) = await alarms.open()
        assert alarm["message"] == "No sign of life for 60 seconds."
        await alarms.report(pump, 1)
        assert await alarms.open() == []
        await alarms.settled(170_001)
        assert len(await alarms.open()) == 1
        assert [state for state, _ in await alarms.told()] == ["resolved", "new"]


async def test_durations_and_silence_count_by_a_clock_that_was_set_back(tmp_path: Path) -> None:
    """The device has connected and reported by a clock that is a year ahead."""
    year_ms = 365 * 86_400_000
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        await alarms.rule({"type": "silence", "seconds": 60})
        await alarms.rule(ABOVE_30, durationSeconds=120)
        pump = await house.device(NUMBER)
        await house.ask(pump, SetConnectionStatus(body=Connected()))
        await alarms.report(pump, 31)
        await alarms.settled(-year_ms)
        await house.report(pump, {"data": {"t": 31}})
        await alarms.settled(-year_ms + 59_999)
        assert await alarms.open() == []
        await alarms.settled(-year_ms + 60_000)
        assert [each["message"] for each in await alarms.open()] == ["No sign of life for 60 seconds."]
        await alarms.settled(-year_ms + 120_000)
        assert len(await alarms.open()) == 2


async def test_a_lost_connection_opens_an_alarm_after_its_duration(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        await alarms.rule({"type": "disconnected"}, durationSeconds=30)
        pump = await house.device(NUMBER)
        await house.ask(pump, SetConnectionStatus(body=Connected()))
        await house.ask(pump, SetConnectionStatus(body=Disconnected()))
        await alarms.settled(29_000)
        assert await alarms.open() == []
        await alarms.settled(30_000)
        assert [each["message"] for each in await alarms.open()] == ["Disconnected, for 30 seconds."]
        await house.ask(pump, SetConnectionStatus(body=Connected()))
        assert await alarms.open() == []


async def test_an_alarm_that_came_and_went_before_the_log_looked_is_one_resolved_event(
    tmp_path: Path,
) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        await alarms.rule(ABOVE_30)
        pump = await house.device(NUMBER)
        await alarms.report(pump, 31, 20, 33, 20, as_array=True)
        assert [state for state, _ in await alarms.told()] == ["resolved"]
        assert await alarms.open() == []


async def test_a_rule_that_is_disabled_deleted_or_not_about_the_device_any_more_ends_its_alarms(
    tmp_path: Path,
) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        pump = await house.device(NUMBER, tags=[{"key": "floor", "value": "1"}])
        rules = [await alarms.rule(ABOVE_30) for _ in range(2)]
        tagged = await alarms.rule(ABOVE_30, deviceTags=[{"key": "floor"}])
        await alarms.report(pump, 31)
        assert len(await alarms.open()) == 3
        await alarms.patch(rules[0], enabled=False)
        await alarms.delete(rules[1])
        assert [each["alarmRuleId"] for each in await alarms.open()] == [tagged.hex()]
        await house.ask(pump, PatchDevice(body=msgspec.convert({"tags": []}, DevicePatch)))
        assert await alarms.open() == []
        await alarms.patch(rules[0], enabled=True)
        await alarms.report(pump, 31)
        assert len(await alarms.open()) == 1
        await house.ask(pump, DeleteDevice())
        assert await alarms.open() == []
        assert {state for state, _ in await alarms.told()} == {"resolved"}


@pytest.mark.parametrize(
    ("choice", "is_chosen"),
    [
        ({}, True),
        ({"deviceTags": [{"key": "floor", "value": "1"}]}, True),
        ({"deviceTags": [{"value": "1"}]}, True),
        ({"deviceTags": [{"key": "floor", "value": "2"}]}, False),
        ({"deviceQuery": {"name": "pump"}}, True),
        ({"deviceQuery": {"name": "mill"}}, False),
    ],
)
async def test_rules_are_about_the_devices_of_their_ids_tags_or_query(
    tmp_path: Path, choice: Json, is_chosen: bool
) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        pump = await house.device(NUMBER, tags=[{"key": "floor", "value": "1"}])
        other = await house.device(NUMBER, name="other")
        await alarms.rule(ABOVE_30, deviceIds=[other.hex().upper()])
        await alarms.rule(ABOVE_30, **choice)
        await alarms.report(pump, 31)
        assert len(await alarms.open()) == is_chosen


async def test_a_change_opens_an_alarm_until_a_state_without_one(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        await alarms.rule({"type": "change", "attribute": "t", "by": 5})
        pump = await house.device(NUMBER)
        await alarms.report(pump, 10)
        await alarms.report(pump, 14)
        assert await alarms.open() == []
        await alarms.report(pump, 20)
        assert [each["message"] for each in await alarms.open()] == ["t changes by 5 or more: it was 20."]
        await alarms.report(pump, 21)
        assert await alarms.open() == []


async def test_backlogs_and_states_older_than_the_newest_open_nothing(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        await alarms.rule(ABOVE_30)
        pump = await house.device(NUMBER)
        await alarms.report(pump, 20)
        await house.report(pump, {"data": {"t": 40}, "time": at(-60_000)})
        backlog: Any = {"body": {"data": {"t": 40}, "time": at(-30_000)}}
        await house.ask(pump, msgspec.convert(backlog, SendBacklog))
        assert await alarms.told() == []


async def test_long_arrays_are_judged_state_by_state(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        await alarms.rule(ABOVE_30)
        pump = await house.device(NUMBER)
        await alarms.report(pump, *range(-200, 40), as_array=True)
        (alarm,) = await alarms.open()
        assert (alarm["message"], alarm["count"], alarm["value"]) == (WARM, 9, 39)


async def test_what_waits_goes_with_its_application(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        await alarms.rule(ABOVE_30)
        pump = await house.device(NUMBER)
        await alarms.report(pump, 31)
        await house.system.ask(Ref("application", ROOT, house.application), DeleteApplication())
        await alarms.settled()
        assert house.system.component(AlarmIndex).applications == []


async def test_rules_have_bounds(tmp_path: Path) -> None:
    limits = replace(Limits.off(), alarm_rules_max=3, wide_alarm_rules_max=1, device_alarm_rules_max=2)
    async with running_house(tmp_path / "d", limits=limits) as house:
        alarms = Alarms(house)
        pump = await house.device(NUMBER)
        await alarms.rule(ABOVE_30)
        with pytest.raises(Invalid, match="choose the devices by deviceIds or deviceTags"):
            await alarms.rule(ABOVE_30, deviceQuery={"name": "pump"})
        rule, _ = [await alarms.rule(ABOVE_30, deviceIds=[pump.hex()]) for _ in range(2)]
        with pytest.raises(Invalid, match="has 3 alarm rules, which is the most"):
            await alarms.rule(ABOVE_30, deviceIds=[pump.hex()])
        await alarms.report(pump, 31)
        assert len(await alarms.open()) == 2
        with pytest.raises(Invalid, match="there is no device"):
            await alarms.patch(rule, deviceIds=["0" * 24])
        await house.system.ask(Ref("device", house.application, pump), DeleteDevice())
        await alarms.patch(rule, deviceIds=[pump.hex()], name="as it was read")


@pytest.mark.parametrize(
    ("condition", "fault"),
    [
        ({"type": "attribute", "attribute": "t"}, "condition.comparison: is missing"),
        ({"type": "attribute", "attribute": "t", "comparison": "above"}, "condition.value: is missing"),
        ({"type": "attribute", "attribute": "t", "comparison": "above", "value": "x"}, "must be a number"),
        (
            {"type": "attribute", "attribute": "t", "comparison": "inside", "min": 2, "max": 1},
            "is larger than",
        ),
        (
            {
                "type": "attribute",
                "attribute": "t",
                "comparison": "outside",
                "min": 0,
                "max": 1,
                "hysteresis": 1,
            },
            "more than half of the range",
        ),
        (
            {"type": "attribute", "attribute": "t", "comparison": "above", "value": 1, "min": 1},
            "condition.min: does",
        ),
        (
            {"type": "attribute", "attribute": "t", "comparison": "equals", "value": 1, "hysteresis": 1},
            "condition.hysteresis: does not belong",
        ),
        ({"type": "silence"}, "condition.seconds: is missing"),
        ({"type": "disconnected", "seconds": 5}, "condition.seconds: does not belong"),
        ({"type": "change", "attribute": "t"}, "durationSeconds: must be 0"),
    ],
)
def test_conditions_say_what_they_lack(condition: Json, fault: str) -> None:
    with pytest.raises(Invalid, match=fault):
        check_condition(condition, 5)


@pytest.mark.parametrize(
    ("comparison", "given", "words"),
    [
        ({"comparison": "atLeast", "value": 5}, [(5, 4.9), (4.9,)], "t is at least 5"),
        ({"comparison": "atLeast", "value": 5, "hysteresis": 1}, [(5, 4.1), (4,)], "t is at least 5"),
        ({"comparison": "below", "value": 5, "hysteresis": 1}, [(4, 5.9), (5, 6)], "t is below 5"),
        ({"comparison": "atMost", "value": 5, "hysteresis": 1}, [(5, 5.9), (5.1, 6)], "t is at most 5"),
        (
            {"comparison": "outside", "min": 0, "max": 9, "hysteresis": 1},
            [(-1, 0.5, 9.5, 8.5), (0, 5)],
            "t is not between 0 and 9",
        ),
        (
            {"comparison": "inside", "min": 0, "max": 9, "hysteresis": 1},
            [(0, -1, 10), (-0.1, 11)],
            "t is between 0 and 9",
        ),
        ({"comparison": "equals", "value": True}, [(True,), (1, "true", None)], "t is equal to true"),
        ({"comparison": "differs", "value": "on"}, [("off", 1), ("on", None)], "t is other than on"),
    ],
)
def test_comparisons(comparison: Json, given: list[tuple[Any, ...]], words: str) -> None:
    condition = {"type": "attribute", "attribute": "t", **comparison}
    check_condition(condition, 0)
    holds = compare(condition)
    first, not_held = given
    is_held = "hysteresis" not in comparison and comparison["comparison"] in ("equals", "differs")
    results = []
    held = False
    for value in first:
        held = holds(value, held)
        results.append(held)
    if comparison == {"comparison": "atLeast", "value": 5}:
        assert results == [True, False]
    else:
        assert all(results), results
    assert not any(holds(value, is_held) for value in not_held[:1])
    assert words_of(condition) == words


def test_a_change_needs_a_value_before() -> None:
    assert not changed({}, None, 1)
    assert changed({}, 0, False)
    assert changed({"by": 2}, 1, 3)
    assert not changed({"by": 2}, "a", "b")


def test_devices_create_events() -> None:
    assert Creator("id", "device").type == "device"
