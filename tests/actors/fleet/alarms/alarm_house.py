"""Alarm rules in a house: short ways to make them, to let what is due happen, and to read the alarms."""

from __future__ import annotations

from typing import Any

import msgspec
import trio

from tests.actors.house import START_MS, House
from tests.patience import PATIENCE_S
from trunkline.actors.core.records.messages import CreateRecord, Creator, DeleteRecord, PatchRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.events import alarm_messages
from trunkline.actors.data.events import messages as events
from trunkline.actors.data.events.alarm_sender import AlarmSender
from trunkline.actors.fleet.alarms.messages import AlarmRulePatch, AlarmRulePost
from trunkline.actors.fleet.alarms.outbox import AlarmOutbox
from trunkline.actors.fleet.alarms.rules import ALARM_RULES
from trunkline.actors.fleet.devices.actor.inactivity import Inactivity

Json = dict[str, Any]

BY = Creator("0123456789abcdef01234567", "user", "owner@example.com")
ABOVE_30: Json = {"type": "attribute", "attribute": "t", "comparison": "above", "value": 30, "hysteresis": 2}


async def settled(system: System) -> None:
    """Let everything happen that is due of alarms."""
    inactivity, sender = system.component(Inactivity), system.component(AlarmSender)
    outbox = system.component(AlarmOutbox)
    inactivity.alarm.look()
    sender.alarm.look()
    with trio.fail_after(PATIENCE_S):
        while not (
            inactivity.alarm.is_waiting and outbox.is_idle and sender.alarm.is_waiting and sender.is_idle
        ):
            await trio.lowlevel.checkpoint()


class Alarms:
    """The alarm rules and the alarms of a house."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.ref = Ref("application", ROOT, house.application)

    async def rule(self, condition: Json, **fields: Any) -> bytes:
        body = msgspec.convert({"name": "too warm", "condition": condition, **fields}, AlarmRulePost)
        created = await self.house.system.ask(
            self.ref, CreateRecord(resource=ALARM_RULES.name, body=body, by=BY)
        )
        id: bytes = created.value.id
        return id

    async def patch(self, rule: bytes, **fields: Any) -> None:
        body = msgspec.convert(fields, AlarmRulePatch)
        await self.house.system.ask(
            self.ref, PatchRecord(resource=ALARM_RULES.name, record=rule, body=body, by=BY)
        )

    async def delete(self, rule: bytes) -> None:
        await self.house.system.ask(self.ref, DeleteRecord(resource=ALARM_RULES.name, record=rule))

    async def settled(self, offset_ms: int | None = None) -> None:
        """Set the clock, and let everything that is due happen."""
        if offset_ms is not None:
            self.house.clock.set_wall(START_MS + offset_ms)
        await settled(self.house.system)

    async def open(self) -> list[Json]:
        """The open alarms."""
        await self.settled()
        query = alarm_messages.AlarmPage()
        found = await self.house.read(
            alarm_messages.ListAlarms(application=self.house.application, query=query)
        )
        msgspec.convert(found, alarm_messages.AlarmList)
        items: list[Json] = found["items"]
        return items

    async def told(self) -> list[tuple[str, str]]:
        """Of each event of an alarm, the oldest first: its state, and its message."""
        await self.settled()
        query = events.EventPage(sort_field="id", sort_direction="asc")
        page = await self.house.read(events.ListEvents(application=self.house.application, query=query))
        return [(each["state"], each["message"]) for each in page["items"]]

    async def report(self, device: bytes, *values: float, as_array: bool = False) -> None:
        await self.house.report(device, *({"data": {"t": value}} for value in values), as_array=as_array)
