"""Events: bodies, query strings, messages and answers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.query.fields import ID, ID_AS_TEXT, TAGS, TEXT, TIME, Fields
from trunkline.actors.core.query.schema import query_over
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Body, Message, Query, View
from trunkline.actors.core.values.terms import (
    Description,
    Id,
    IsoTime,
    Key,
    Links,
    Name,
    RecordView,
    Timestamp,
)
from trunkline.actors.people.accounts.messages import Email
from trunkline.actors.platform.jobs.messages import CallbackUrl, NotifyBody

EVENT_FIELDS: Final = Fields(
    "event",
    {
        "id": ID_AS_TEXT,
        "creationDate": TIME,
        "lastUpdated": TIME,
        "sourceId": ID_AS_TEXT,
        "sourceType": TEXT,
        "level": TEXT,
        "state": TEXT,
        "subject": TEXT,
        "deviceId": ID_AS_TEXT,
        # No event belongs to an experience yet, so no event has these fields.
        "experienceUserId": ID,
        "experienceGroupId": ID,
        "eventTags": TAGS,
    },
)

EventQuery = Annotated[dict[str, Any], query_over(EVENT_FIELDS)]

Level = Literal["info", "warning", "error", "critical"]

EventState = Literal["new", "acknowledged", "resolved"]

Change = Literal["created", "changed", "deleted"]

EVENT_TAGS_MAX: Final = 100

EventTags = Annotated[
    dict[Key, Annotated[str, Meta(min_length=1, max_length=255)]], Meta(max_length=EVENT_TAGS_MAX)
]
"""Values by key. Unlike the tags of a device, each key has one value."""

TagChanges = dict[str, str | None]
"""Tags that change, by key, beside the fields of a body: their new values, None for those that are removed."""

SourceType = Literal["flow", "user", "device", "apiToken", "experienceUser", "public"]


# Bodies.


class EventPost(Body, frozen=True):
    """A new event. Without `creationDate`: now."""

    level: Level
    subject: Name
    state: EventState = "new"
    message: Description | UnsetType = UNSET
    data: Any = UNSET
    device_id: Id | UnsetType = UNSET
    event_tags: EventTags | UnsetType = UNSET
    creation_date: Timestamp | UnsetType = UNSET
    disable_tag_change_tracking: bool = False


class EventPatch(Body, frozen=True):
    """An update of an event; omitted fields stay as they are.

    `comment` and `data` belong to the update and do not change the event's own data. `eventTags` replaces all
    tags; `deviceId` null removes the device.
    """

    state: EventState | UnsetType = UNSET
    level: Level | UnsetType = UNSET
    subject: Name | UnsetType = UNSET
    device_id: Id | UnsetType | None = UNSET
    comment: Description | UnsetType = UNSET
    data: Any = UNSET
    event_tags: EventTags | UnsetType = UNSET


class EventExport(NotifyBody, frozen=True):
    """The events that are exported (without `query` all of them), and the format."""

    query: EventQuery | UnsetType = UNSET
    format: Literal["csv", "json"] = "csv"
    exclude_updates: bool = False


# Query strings.


class EventPage(Page, frozen=True):
    """A page of the events of an application."""

    sort_field: Literal["creationDate", "subject", "id", "lastUpdated", "level", "state", "deviceId"] = (
        "creationDate"
    )
    sort_direction: Literal["asc", "desc"] = "desc"
    filter_field: Literal["subject"] | None = None
    state: EventState | None = None
    query: EventQuery | None = None


class EventChoice(Query, frozen=True):
    """The events that a change of many selects; without any field all events of the application."""

    filter_field: Literal["subject"] | None = None
    filter: Annotated[str, Meta(max_length=1024)] | None = None
    state: EventState | None = None
    query: EventQuery | None = None
    email: Email | None = None
    callback_url: CallbackUrl | None = None


class EventReport(Query, frozen=True):
    """The receivers of the result of a long deletion."""

    email: Email | None = None
    callback_url: CallbackUrl | None = None


class RecentChoice(Query, frozen=True):
    """The new events that are considered; `filter` applies to the subject."""

    filter: Annotated[str, Meta(max_length=1024)] | None = None
    query: EventQuery | None = None


# Messages to the event log.


class CreateEvent(Message, frozen=True):
    """Create an event. The answer is its id."""

    throttle: ClassVar[str | None] = "event_create"

    body: EventPost
    by: Creator
    origin: Origin | None = None


class PatchEvent(Message, frozen=True):
    """Update an event."""

    event: bytes
    body: EventPatch
    by: Creator
    if_match: str | None = None
    tags: TagChanges = msgspec.field(default_factory=dict)
    origin: Origin | None = None


class DeleteEvent(Message, frozen=True):
    """Delete an event with its updates."""

    event: bytes
    if_match: str | None = None


class PatchEvents(Message, frozen=True):
    """Update all events that `query` selects, or none of them. The answer is their number."""

    query: EventChoice
    body: EventPatch
    by: Creator
    tags: TagChanges = msgspec.field(default_factory=dict)
    origin: Origin | None = None


class DeleteEvents(Message, frozen=True):
    """Delete all events that the advanced query `body` matches, or none of them. The answer is their number."""

    body: dict[str, Any]


class BeginEventJob(Message, frozen=True):
    """Begin or restart the job `job`. The answer is its `Progress`.

    `end` is the last id that the job includes; it is ignored on a restart. `ended` are jobs whose stored progress is
    to be deleted.
    """

    job: bytes
    end: bytes
    ended: list[bytes]


class PatchSomeEvents(Message, frozen=True):
    """Update those of the events `ids` that `choice` selects: a part of the job `job`. The answer is its `Progress`.

    The ids are in order. Those that the job has already processed are skipped.
    """

    job: bytes
    ids: list[bytes]
    choice: EventChoice
    body: EventPatch
    by: Creator
    tags: TagChanges = msgspec.field(default_factory=dict)
    origin: Origin | None = None


class DeleteSomeEvents(Message, frozen=True):
    """Delete those of the events `ids` that `choice` selects: a part of the job `job`, as `PatchSomeEvents`."""

    job: bytes
    ids: list[bytes]
    choice: EventChoice


# Messages of reads.


class GetEvent(Message, frozen=True):
    """One event."""

    application: bytes
    event: bytes


class GetMissedChanges(Message, frozen=True):
    """The changes of events after a position: at most `limit` with about `bytes_max`. Answers a `Missed`."""

    application: bytes
    position: int
    limit: int
    bytes_max: int


class ListEvents(Message, frozen=True):
    """A page of events."""

    application: bytes
    query: EventPage


class GetMostRecentEvent(Message, frozen=True):
    """The newest of the most severe new events, and the number of new events."""

    application: bytes
    query: RecentChoice


# Answers.


class StateChange(View, frozen=True):
    """The state before and after an update."""

    old: EventState
    new: EventState


class LevelChange(View, frozen=True):
    """The level before and after an update."""

    old: Level
    new: Level


class SubjectChange(View, frozen=True):
    """The subject before and after an update."""

    old: str
    new: str


class DeviceIdChange(View, frozen=True):
    """The device before and after an update, with its name at that time; absent if there was no device."""

    old: Id | None = None
    old_device_name: str | None = None
    new: Id | None = None
    new_device_name: str | None = None


class TagChange(View, frozen=True):
    """The value of a tag before and after an update; absent if there was no such tag."""

    old: str | None = None
    new: str | None = None


class EventUpdate(View, frozen=True):
    """One update of an event: its source, its time, the comment and data, and the changes."""

    source_type: SourceType
    source_id: Id
    creation_date: IsoTime
    source_name: str | None = None
    comment: str | None = None
    data: Any = None
    state: EventState | None = None
    state_change: StateChange | None = None
    level_change: LevelChange | None = None
    subject_change: SubjectChange | None = None
    device_id_change: DeviceIdChange | None = None
    tags_change: dict[str, TagChange] | None = None


class EventView(RecordView, frozen=True, kw_only=True):
    """An event. `updates` contains the last 100, the oldest first."""

    event_id: Id
    application_id: Id
    source_type: SourceType
    source_id: Id
    level: Level
    state: EventState
    subject: str
    event_tags: dict[str, str]
    disable_tag_change_tracking: bool
    updates: list[EventUpdate]
    source_name: str | None = None
    message: str | None = None
    data: Any = None
    device_id: Id | None = None
    device_name: str | None = None
    links: Links | None = msgspec.field(default=None, name="_links")


class EventSummary(View, frozen=True, kw_only=True):
    """An event without its message, data and updates."""

    event_id: Id
    creation_date: IsoTime
    last_updated: IsoTime
    source_type: SourceType
    source_id: Id
    level: Level
    state: EventState
    subject: str
    event_tags: dict[str, str]
    source_name: str | None = None
    device_id: Id | None = None
    device_name: str | None = None


class EventChangeView(View, frozen=True):
    """A change of an event. `event` is the event after it; a deleted event has none."""

    change: Change
    event_id: Id
    event: EventSummary | None = None


class RecentEvent(View, frozen=True):
    """The newest of the most severe new events, if there is one, and the number of new events."""

    new_count: int
    application_id: Id
    event: EventView | None = None
    type: str | None = msgspec.field(default=None, name="_type")
    links: Links | None = msgspec.field(default=None, name="_links")


class EventsDeleted(View, frozen=True):
    """The number of events that were deleted."""

    removed: int
