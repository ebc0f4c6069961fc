"""The list of open alarms: its order, its pages, and what narrows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.actors.event_house import Events
from tests.actors.fleet.alarms.alarm_house import ABOVE_30, Alarms
from tests.actors.house import START_MS, running_house
from trunkline.actors.data.events.alarm_messages import AlarmPage, ListAlarms
from trunkline.actors.data.events.messages import DeleteEvent


async def test_pages_of_open_alarms_are_in_order_whatever_becomes_of_their_events(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        alarms, log = Alarms(house), Events(house)
        rules = [await alarms.rule(ABOVE_30, name=level, severity=level) for level in ("error", "warning")]
        devices = [await house.device({"t": "number"}, name=f"pump {number}") for number in range(3)]
        for number, device in enumerate(devices):
            house.clock.set_wall(START_MS + number)
            await alarms.report(device, 31)
            await alarms.settled()

        async def listed(**query: Any) -> tuple[list[str], int, int]:
            page = msgspec.convert(query, AlarmPage)
            found = await house.read(ListAlarms(application=house.application, query=page))
            return [each["subject"] for each in found["items"]], found["totalCount"], found["newCount"]

        errors = [f"error: pump {number}" for number in (2, 1, 0)]
        warnings = [f"warning: pump {number}" for number in (2, 1, 0)]
        assert await listed() == ([*errors, *warnings], 6, 6)
        assert await listed(page=1, perPage=2) == ([errors[2], warnings[0]], 6, 6)
        assert await listed(alarmRuleId=rules[1].hex(), perPage=2) == (warnings[:2], 3, 3)
        assert await listed(deviceId=devices[1].hex()) == ([errors[1], warnings[1]], 2, 2)
        events = {each["subject"]: bytes.fromhex(each["eventId"]) for each in await alarms.open()}
        await log.patch(events[errors[0]], state="acknowledged")
        await log.patch(events[warnings[2]], level="critical")
        await log.patch(events[warnings[1]], state="resolved")
        assert await listed() == ([warnings[2], *errors[1:], errors[0], warnings[0]], 5, 4)
        assert await listed(deviceId=devices[1].hex()) == ([errors[1]], 1, 1)
        await log.patch(events[warnings[1]], state="new")
        await log.ask(DeleteEvent(event=events[errors[1]]))
        assert await listed(deviceId=devices[1].hex()) == ([warnings[1]], 1, 1)
        await alarms.report(devices[0], 20)
        await alarms.settled()
        await log.patch(events[errors[2]], state="new")
        assert await listed() == ([errors[0], warnings[0], warnings[1]], 3, 2)
