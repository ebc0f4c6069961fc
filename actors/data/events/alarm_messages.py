"""Alarms: messages and answers of their list and their notices. Rules have theirs in `fleet/alarms/messages.py`."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from trunkline.actors.core.values.structs import Message, Query, View
from trunkline.actors.core.values.terms import Id, IsoTime
from trunkline.actors.data.events.messages import EventState, Level
from trunkline.actors.fleet.alarms.messages import ConditionType


class AlarmPage(Query, frozen=True):
    """A page of the open alarms of an application: the most severe first, of these the new ones, the newest first."""

    page: Annotated[int, Meta(ge=0, le=10_000)] = 0
    per_page: Annotated[int, Meta(ge=1, le=1000)] = 100
    device_id: Id | None = None
    alarm_rule_id: Id | None = None


class ListAlarms(Message, frozen=True):
    """A page of open alarms."""

    application: bytes
    query: AlarmPage


class SettleNotice(Message, frozen=True):
    """Store what is left of a notice, nothing if it is None; a comment is added to the event.

    The answer is when the notice is due, None if there is none any more.
    """

    event: bytes
    notice: bytes | None
    comment: str = ""


class AlarmView(View, frozen=True, kw_only=True):
    """An open alarm. `count` is how many reports or events have held since `openedAt`, `lastAt` the time of the newest
    one. Without `deviceId` it is of events without a device.
    """

    event_id: Id
    alarm_rule_id: Id
    level: Level
    state: EventState
    subject: str
    opened_at: IsoTime
    count: int
    device_id: Id | None = None
    alarm_rule_name: str | None = None
    condition_type: ConditionType | None = None
    device_name: str | None = None
    message: str | None = None
    value: Any = None
    last_at: IsoTime | None = None


class AlarmList(View, frozen=True):
    """Open alarms: a page of them, how many there are, and how many of these nobody has acknowledged."""

    items: list[AlarmView]
    count: int
    total_count: int
    new_count: int
    page: int
    per_page: int
    application_id: Id
