"""Alarms about events: one is open as long as an event of the level is there that nobody has resolved."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.actors.event_house import Events
from tests.actors.fleet.alarms.alarm_house import Alarms, Json
from tests.actors.fleet.alarms.test_trial import spans, tried
from tests.actors.house import House, at, running_again, running_house
from tests.e2e.receivers import kept_messages
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.data.events.messages import DeleteEvent
from trunkline.actors.fleet.alarms.conditions import check_condition, words_of
from trunkline.actors.fleet.alarms.messages import AlarmCondition
from trunkline.actors.fleet.devices.record.messages import DeleteDevice, DevicePatch, PatchDevice
from trunkline.store import keys

FAULT: Json = {"type": "event", "level": "error"}


def kept(house: House) -> int:
    """Of how many devices it is stored how rules about events stand."""
    with house.system.store.snapshot() as snapshot:
        prefix = keys.CAUSED_ALARMS_PREFIX
        return len(list(snapshot.keys(keys.META, prefix, keys.prefix_end(prefix))))


async def test_an_event_opens_an_alarm_which_counts_and_ends_when_all_its_events_are_resolved(
    tmp_path: Path,
) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms, log = Alarms(house), Events(house)
        rule = await alarms.rule(FAULT, severity="critical", name="fault")
        pump = await house.device(name="pump")
        await log.create(level="warning", subject="creaks", deviceId=pump.hex())
        await log.create(level="error", subject="over", deviceId=pump.hex(), state="resolved")
        assert await alarms.open() == []
        first = await log.create(level="error", subject="leaks", deviceId=pump.hex())
        second = await log.create(level="critical", subject="burns", deviceId=pump.hex())
        (alarm,) = await alarms.open()
        assert alarm == {
            "eventId": alarm["eventId"],
            "alarmRuleId": rule.hex(),
            "alarmRuleName": "fault",
            "conditionType": "event",
            "deviceId": pump.hex(),
            "deviceName": "pump",
            "level": "critical",
            "state": "new",
            "subject": "fault: pump",
            "openedAt": at(0),
            "message": "An event of level error or above: leaks.",
            "count": 2,
            "value": "burns",
            "lastAt": at(0),
        }
        event = await log.get(bytes.fromhex(alarm["eventId"]))
        assert event["data"]["alarm"]["eventId"] == first.hex()
        assert event["sourceType"] == "device"
        await log.patch(first, state="resolved")
        await log.patch(second, state="acknowledged")
        assert len(await alarms.open()) == 1
        await log.patch(second, comment="seen")
        await log.patch(second, level="warning")
        assert await alarms.open() == []
        event = await log.get(bytes.fromhex(alarm["eventId"]))
        assert (event["state"], event["updates"][-1]["comment"]) == (
            "resolved",
            "The alarm has ended by itself.",
        )
        assert kept(house) == 0
        await log.patch(second, level="critical")
        await log.patch(first, comment="nothing new")
        assert [each["count"] for each in await alarms.open()] == [1]


async def test_alarms_open_no_alarm_and_what_is_made_of_them_only_counts(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms, log = Alarms(house), Events(house)
        rules = [await alarms.rule({"type": "event", "level": "info"}, severity="critical") for _ in range(2)]
        await log.create(subject="it is hot")
        found = await alarms.open()
        assert sorted(each["alarmRuleId"] for each in found) == sorted(rule.hex() for rule in rules)
        assert not any("deviceId" in each for each in found)
        assert {each["subject"] for each in found} == {"too warm: it is hot"}
        for each in found:
            await log.patch(bytes.fromhex(each["eventId"]), level="error", subject="changed", eventTags={})
            await log.patch(bytes.fromhex(each["eventId"]), state="resolved")
            await log.patch(bytes.fromhex(each["eventId"]), state="new")
        await log.create(subject="made of an alarm")
        assert [each["count"] for each in await alarms.open()] == [2, 2]
        assert (await log.page())["totalCount"] == 4
        assert (await log.get(bytes.fromhex(found[0]["eventId"])))["sourceType"] == "user"


@pytest.mark.parametrize(
    ("choice", "is_chosen"),
    [
        ({}, True),
        ({"deviceTags": [{"key": "floor"}]}, True),
        ({"deviceTags": [{"key": "roof"}]}, False),
        ({"deviceQuery": {"name": "pump"}}, True),
        ({"deviceQuery": {"name": "mill"}}, False),
    ],
)
async def test_rules_hear_events_of_their_devices_with_their_subject(
    tmp_path: Path, choice: Json, is_chosen: bool
) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms, log = Alarms(house), Events(house)
        await alarms.rule({**FAULT, "subject": "Pump *"}, **choice)
        pump = await house.device(name="pump", tags=[{"key": "floor", "value": "1"}])
        await log.create(level="error", subject="mill broken", deviceId=pump.hex())
        await log.create(level="error", subject="pump broken", deviceId=pump.hex())
        await log.create(level="error", subject="pump broken")
        heard = {each.get("deviceId") for each in await alarms.open()}
        assert heard == ({pump.hex()} if is_chosen else set()) | (set() if choice else {None})


async def test_rules_and_devices_that_change_or_go_end_alarms_and_old_events_open_none(
    tmp_path: Path,
) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms, log = Alarms(house), Events(house)
        pump = await house.device(tags=[{"key": "floor", "value": "1"}])
        mill = await house.device(name="mill")
        before = await log.create(level="error", deviceId=pump.hex())
        wide, tagged = await alarms.rule(FAULT), await alarms.rule(FAULT, deviceTags=[{"key": "floor"}])
        await log.patch(before, comment="the rules are newer")
        assert await alarms.open() == []
        event = await log.create(level="error", deviceId=pump.hex())
        assert len(await alarms.open()) == 2
        await house.ask(pump, PatchDevice(body=msgspec.convert({"tags": []}, DevicePatch)))
        assert [each["alarmRuleId"] for each in await alarms.open()] == [wide.hex()]
        await log.patch(event, deviceId=mill.hex())
        assert [each["deviceId"] for each in await alarms.open()] == [mill.hex()]
        await alarms.patch(wide, enabled=False)
        assert await alarms.open() == []
        await alarms.patch(wide, enabled=True)
        await log.patch(event, comment="older than the rule as it is now")
        assert await alarms.open() == []
        await log.create(level="error", deviceId=mill.hex())
        await log.patch(event, state="resolved")
        assert [each["count"] for each in await alarms.open()] == [1], "another alarm was held by it"
        await house.ask(mill, DeleteDevice())
        assert await alarms.open() == []
        another = await log.create(level="critical")
        assert len(await alarms.open()) == 1
        await log.ask(DeleteEvent(event=another))
        assert await alarms.open() == []
        await log.create(level="critical")
        await alarms.delete(wide)
        await alarms.delete(tagged)
        assert await alarms.open() == []
        assert kept(house) == 0


async def test_changes_of_many_events_and_a_restart_are_judged_as_single_ones(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms, log = Alarms(house), Events(house)
        await alarms.rule(FAULT, notify={"steps": [{"emails": ["night@example.com"]}]})
        for _ in range(3):
            await log.create(level="error")
        (alarm,) = await alarms.open()
        assert alarm["count"] == 3
    async with running_again(tmp_path / "d", house, 1_000) as again:
        alarms, log = Alarms(again), Events(again)
        assert [each["eventId"] for each in await alarms.open()] == [alarm["eventId"]]
        await log.patch_many({}, state="resolved")
        assert await alarms.open() == []
        await log.patch_many({}, state="new")
        assert [each["count"] for each in await alarms.open()] == [3]
        await log.delete_many({"level": "error"})
        assert await alarms.open() == []
        mails = [mail.get_content() for mail in kept_messages(tmp_path / "d")]
        assert len(mails) == 2
        assert "An event of level error or above: it is hot." in mails[0]
        assert "Device:" not in mails[0]


async def test_a_trial_shows_what_events_of_the_last_day_would_have_opened(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        log, clock = Events(house), house.clock
        pump = await house.device(name="pump")
        first = await log.create(level="warning", subject="leaks", deviceId=pump.hex())
        start_ms = clock.wall_ms()
        clock.set_wall(start_ms + 60_000)
        await log.patch(first, level="error")
        clock.set_wall(start_ms + 120_000)
        second = await log.create(level="critical", subject="burns", deviceId=pump.hex())
        await log.patch(first, state="resolved")
        clock.set_wall(start_ms + 180_000)
        await log.patch(second, state="resolved")
        clock.set_wall(start_ms + 240_000)
        await log.create(level="error", subject="no device")
        found = await tried(house, FAULT)
        assert spans(found) == [(at(60_000), at(180_000)), (at(240_000), None)]
        assert found["items"][1] == {
            "openedAt": at(60_000),
            "endedAt": at(180_000),
            "deviceId": pump.hex(),
            "deviceName": "pump",
            "value": "leaks",
        }
        assert (found["deviceCount"], found["eventCount"], found["isWhole"]) == (1, 3, True)
        found = await tried(house, FAULT, deviceIds=[pump.hex()])
        assert found["totalCount"] == 1
        clock.set_wall(start_ms + 24 * 3_600_000 + 90_000)
        await log.patch(second, state="new")
        found = await tried(house, FAULT)
        assert spans(found) == [
            (at(120_000), at(180_000)),
            (at(240_000), None),
            (at(24 * 3_600_000 + 90_000), None),
        ]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (FAULT, "an event of level error or above"),
        (
            {"type": "event", "level": "critical", "subject": "Pump *"},
            "an event of level critical about Pump *",
        ),
    ],
)
def test_conditions_in_words(condition: Json, words: str) -> None:
    msgspec.convert(condition, AlarmCondition)
    check_condition(condition, 0)
    assert words_of(condition) == words


@pytest.mark.parametrize(
    ("condition", "duration_s", "fault"),
    [
        ({"type": "event"}, 0, "condition.level: is missing"),
        ({**FAULT, "attribute": "t"}, 0, "condition.attribute: does not belong"),
        (FAULT, 60, "durationSeconds: must be 0 .* afterSeconds"),
    ],
)
def test_conditions_say_what_is_wrong(condition: Json, duration_s: int, fault: str) -> None:
    with pytest.raises(Invalid, match=fault):
        check_condition(condition, duration_s)
