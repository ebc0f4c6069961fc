"""Alarms that end because their rule is about nothing any more: the comment of the event says why."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.actors.event_house import Events
from tests.actors.fleet.alarms.alarm_house import ABOVE_30, Alarms
from tests.actors.house import running_house
from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.record.messages import (
    AttributePatch,
    DeleteAttribute,
    DevicePatch,
    PatchAttribute,
    PatchDevice,
)

OTHER = {"attributes": [{"name": "u", "dataType": "number"}]}


@pytest.mark.parametrize(
    "change",
    [
        PatchAttribute(name="t", body=AttributePatch(name="u")),
        DeleteAttribute(name="t"),
        PatchDevice(body=msgspec.convert(OTHER, DevicePatch)),
    ],
    ids=["rename", "deletion", "change of the device"],
)
async def test_an_alarm_whose_attribute_is_gone_says_so(tmp_path: Path, change: Message) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        await alarms.rule(ABOVE_30)
        pump = await house.device({"t": "number"})
        await alarms.report(pump, 31)
        (alarm,) = await alarms.open()
        await house.ask(pump, change)
        assert await alarms.open() == []
        event = await Events(house).get(bytes.fromhex(alarm["eventId"]))
        assert (event["state"], event["updates"][-1]["comment"]) == (
            "resolved",
            "The alarm has ended: the device has no attribute t any more, which its rule is about.",
        )


async def test_an_alarm_whose_rule_is_disabled_says_so(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms = Alarms(house)
        rule = await alarms.rule(ABOVE_30)
        pump = await house.device({"t": "number"})
        await alarms.report(pump, 31)
        (alarm,) = await alarms.open()
        await alarms.patch(rule, enabled=False)
        assert await alarms.open() == []
        event = await Events(house).get(bytes.fromhex(alarm["eventId"]))
        assert event["updates"][-1]["comment"] == (
            "The alarm has ended: its rule is disabled, or not about this device any more, or one of them is gone."
        )
