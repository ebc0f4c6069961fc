"""The actors of an application: the query string of the list, and answers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from trunkline.actors.core.values.structs import Query, View
from trunkline.actors.core.values.terms import Id, IsoTime, SortDirection

ActorSort = Literal[
    "handled", "mailboxDepth", "oldestMessageAgeMs", "restarts", "refused", "lastUsed", "subscribers"
]


class ActorPage(Query, frozen=True):
    """Paging of a list of actors."""

    page: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    per_page: Annotated[int, Meta(ge=1, le=100)] = 100
    sort_field: ActorSort = "handled"
    sort_direction: SortDirection = "desc"
    kind: Annotated[str, Meta(max_length=64)] | None = None


# Answers.


class ActorStatistics(View, frozen=True, kw_only=True):
    """What an actor has done since it was activated. One that is not in memory was never used."""

    mailbox_depth: int
    oldest_message_age_ms: int
    handled: int
    refused: int
    restarts: int
    subscribers: int
    last_error: str | None = None
    last_used: IsoTime | None = None


class ActorView(ActorStatistics, frozen=True, kw_only=True):
    """An active actor."""

    kind: str
    id: Id
    name: str | None = None


class ActorList(View, frozen=True, kw_only=True):
    """A page of the active actors of an application."""

    items: list[ActorView]
    count: int
    total_count: int
    page: int
    per_page: int
    sort_field: ActorSort
    sort_direction: SortDirection
    application_id: Id
    time: IsoTime


class ThrottleView(View, frozen=True, kw_only=True):
    """A throttle: what is left of it, and when it is full again or allows the next call."""

    bucket: str
    per: Literal["device", "application"]
    limit: int
    window_seconds: float
    remaining: int
    reset_seconds: float


class DeviceActorView(ActorStatistics, frozen=True, kw_only=True):
    """The actor of a device, whether it is in memory, and the throttles of the device."""

    device_id: Id
    application_id: Id
    time: IsoTime
    active: bool
    links: int
    commands_waiting: int
    throttles: list[ThrottleView]
