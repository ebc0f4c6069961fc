"""Alarm rules and alarms: bodies, query strings, messages and answers."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.changes import Removable, changes_of
from trunkline.actors.core.values.structs import FORM, Body, Message, View
from trunkline.actors.core.values.terms import Description, Id, Ids, IsoTime, Name, RecordView, TagFilters
from trunkline.actors.fleet.devices.record.terms import DeviceQuery
from trunkline.actors.people.accounts.messages import Email
from trunkline.actors.platform.jobs.messages import CallbackUrl

SECONDS_MAX: Final = 31_622_400
"""A leap year, as of timers of workflows."""

Severity = Literal["info", "warning", "error", "critical"]
"""The levels of events."""

ConditionType = Literal["attribute", "change", "silence", "disconnected", "event"]

Comparison = Literal["above", "atLeast", "below", "atMost", "equals", "differs", "outside", "inside"]

_Finite = Annotated[float, Meta(ge=-1e308, le=1e308)]
_AttributeName = Annotated[str, Meta(min_length=1, max_length=255)]
_TimeOfDay = Annotated[
    str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9](?!\n)$", extra={FORM: "a time of day such as 22:00"})
]
_Text = Annotated[str, Meta(max_length=1024)]


class AlarmCondition(Body, frozen=True):
    """What must hold for a device, or of its events.

    `attribute`: a reported value compares so with `value`, or with `min` and `max`. Once it holds, it holds until the
    value is back by more than `hysteresis`. `change`: a value differs from the one before, a number by at least `by`.
    `silence`: no report and no change of the connection for `seconds`. `disconnected`: it was connected before.
    `event`: an event of at least `level` is there that nobody has resolved, with a subject like `subject` (`*` for any
    characters). It is of one of the devices, or of none if the rule is about all devices.
    """

    type: ConditionType
    attribute: _AttributeName | UnsetType = UNSET
    comparison: Comparison | UnsetType = UNSET
    value: bool | _Finite | _Text | UnsetType = UNSET
    min: _Finite | UnsetType = UNSET
    max: _Finite | UnsetType = UNSET
    hysteresis: Annotated[float, Meta(ge=0, le=1e308)] | UnsetType = UNSET
    by: Annotated[float, Meta(gt=0, le=1e308)] | UnsetType = UNSET
    seconds: Annotated[float, Meta(ge=1, le=SECONDS_MAX)] | UnsetType = UNSET
    level: Severity | UnsetType = UNSET
    subject: Annotated[str, Meta(min_length=1, max_length=255)] | UnsetType = UNSET


class NoticeStep(Body, frozen=True):
    """Who is told, by mail or by a call of a URL, when nobody has acknowledged the alarm for so long.

    Users are told as long as they may read the application, and so are those of the groups.
    """

    after_seconds: Annotated[float, Meta(ge=0, le=SECONDS_MAX)] = 0.0
    emails: Annotated[list[Email], Meta(max_length=10)] = msgspec.field(default_factory=list)
    user_ids: Annotated[list[Id], Meta(max_length=10)] | UnsetType = UNSET
    group_ids: Annotated[list[Id], Meta(max_length=5)] | UnsetType = UNSET
    url: CallbackUrl | UnsetType = UNSET


class QuietHours(Body, frozen=True):
    """The time of each day in which nobody is told; over midnight if it ends before it starts."""

    start: _TimeOfDay
    end: _TimeOfDay
    time_zone: Annotated[str, Meta(max_length=100)] = "UTC"


class AlarmNotices(Body, frozen=True):
    """Who is told of alarms, one step after the other, until somebody acknowledges them or they end.

    After the last step all are told again every `repeatSeconds`. `tellsEnd`: those who were told are also told that the
    alarm has ended by itself.
    """

    steps: Annotated[list[NoticeStep], Meta(min_length=1, max_length=10)]
    repeat_seconds: Annotated[float, Meta(ge=60, le=SECONDS_MAX)] | UnsetType = UNSET
    quiet_hours: QuietHours | UnsetType = UNSET
    tells_end: bool = False


class AlarmRulePost(Body, frozen=True):
    """A new alarm rule. Without ids, tags and query it is about all devices of the application."""

    name: Name
    condition: AlarmCondition
    description: Removable[Description] | UnsetType = UNSET
    enabled: bool = True
    severity: Severity = "warning"
    device_ids: Removable[Ids] | UnsetType = UNSET
    device_tags: Removable[TagFilters] | UnsetType = UNSET
    device_query: Removable[DeviceQuery] | UnsetType = UNSET
    duration_seconds: Annotated[float, Meta(ge=0, le=SECONDS_MAX)] = 0.0
    notify: Removable[AlarmNotices] | UnsetType = UNSET


@changes_of(AlarmRulePost)
class AlarmRulePatch(Body, frozen=True):
    """Changes of an alarm rule; omitted fields stay as they are. `condition` and `notify` are replaced as a whole."""


class AlarmRulePage(Page, frozen=True):
    """A page of alarm rules."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None


class AlarmRuleView(RecordView, frozen=True, kw_only=True):
    """An alarm rule."""

    alarm_rule_id: Id
    application_id: Id
    name: str
    condition: dict[str, Any]
    enabled: bool
    severity: Severity
    duration_seconds: float
    description: str | None = None
    device_ids: list[Id] | None = None
    device_tags: list[Any] | None = None
    device_query: dict[str, Any] | None = None
    notify: dict[str, Any] | None = None


class TryAlarmRule(Message, frozen=True):
    """What a rule would have done in the last day. `scopes` are those of the caller's token."""

    application: bytes
    body: AlarmRulePost
    now_ms: int
    scopes: frozenset[str]


class TriedAlarm(View, frozen=True, kw_only=True):
    """An alarm that a rule would have opened. Without `endedAt` it would still be open; without `deviceId` it would be
    of events without a device.
    """

    opened_at: IsoTime
    device_id: Id | None = None
    device_name: str | None = None
    ended_at: IsoTime | None = None
    value: Any = None


class TriedAlarmRule(View, frozen=True):
    """What a rule would have done. `isWhole`: all states or events of all devices that it is about were looked at."""

    start: IsoTime
    end: IsoTime
    device_count: int
    state_count: int
    event_count: int
    is_whole: bool
    total_count: int
    items: list[TriedAlarm]


class TellAlarms(Message, frozen=True):
    """To the event log: look how the alarms of these devices stand, and open and resolve their events."""

    devices: list[bytes]
