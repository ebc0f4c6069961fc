"""The overview of an application: query, messages of its reads, and answers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from trunkline.actors.core.values.structs import Message, Query, View
from trunkline.actors.core.values.terms import Id, IsoTime, SortDirection


class OverviewChoice(Query, frozen=True):
    """After how many seconds without a sign of life any device counts as silent; without it, as is expected of each."""

    silent_after_seconds: Annotated[int, Meta(ge=1, le=31_536_000)] | None = None


class GetOverview(Message, frozen=True):
    """The overview of an application whose fleet was counted (`Fleets.count`)."""

    application: bytes
    query: OverviewChoice
    now_ms: int


class SilentPage(OverviewChoice, frozen=True):
    """Which devices are listed, and their order: by their last sign of life; devices never seen by their creation."""

    state: Literal["silent", "neverSeen"] = "silent"
    page: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    per_page: Annotated[int, Meta(ge=1, le=100)] = 100
    sort_direction: SortDirection = "desc"


class ListSilentDevices(Message, frozen=True):
    """A page of the silent devices of an application whose fleet was counted (`Fleets.count`)."""

    application: bytes
    query: SilentPage


# Answers.


class FleetView(View, frozen=True):
    """The devices of the application, as they were counted at `asOf`."""

    as_of: IsoTime
    age_ms: int
    total: int
    connected: int
    disconnected: int
    reporting: int
    silent: int
    never_seen: int


class TrafficHistory(View, frozen=True):
    """What was stored and refused in each interval from `start` on. The last interval is in progress."""

    start: IsoTime
    interval_seconds: int
    states: list[int]
    commands: list[int]
    refused: list[int]


class TrafficView(View, frozen=True):
    """What has been stored and refused since `startedAt`, and in the last ten minutes."""

    started_at: IsoTime
    states: int
    commands: int
    refused: dict[str, int]
    history: TrafficHistory


class LevelCounts(View, frozen=True):
    """Events by level."""

    info: int
    warning: int
    error: int
    critical: int


class OpenEvents(View, frozen=True):
    """The events that are not resolved, by state and level."""

    new: LevelCounts
    acknowledged: LevelCounts


class ChangedDevice(View, frozen=True):
    """A device and when its record was last changed."""

    device_id: Id
    name: str
    last_updated: IsoTime


class SilentDevice(View, frozen=True):
    """A silent device and its last sign of life, if it gave one. One that was deleted since has no name."""

    device_id: Id
    last_seen: IsoTime | None = None
    name: str | None = None


class SilentDevices(View, frozen=True):
    """A page of the devices that were silent, or had never been seen, at `asOf`."""

    items: list[SilentDevice]
    count: int
    total_count: int
    page: int
    per_page: int
    sort_direction: SortDirection
    state: Literal["silent", "neverSeen"]
    as_of: IsoTime
    application_id: Id
    silent_after_seconds: int | None = None


class RefusalView(View, frozen=True):
    """A call or a frame that was refused. One that was for no single device has no `deviceId`."""

    time: IsoTime
    operation: str
    reason: str
    message: str
    device_id: Id | None = None
    name: str | None = None


class RecentConnection(View, frozen=True):
    """A change of the connection of a device."""

    device_id: Id
    time: IsoTime
    connected: Literal[0, 1]
    name: str | None = None
    disconnect_reason: str | None = None


class RecentView(View, frozen=True):
    """What happened last: at most ten of each, the newest first."""

    changed: list[ChangedDevice]
    silent: list[SilentDevice]
    refused: list[RefusalView]
    connections: list[RecentConnection]


class Overview(View, frozen=True):
    """Whether the devices of an application report, what was refused, and what happened last."""

    application_id: Id
    time: IsoTime
    devices: FleetView
    traffic: TrafficView
    open_events: OpenEvents
    recent: RecentView
    silent_after_seconds: int | None = None
