"""Messages that only read. They are answered from a snapshot by `trunkline.actors.readers`, not by an actor.

Ids are raw bytes. `now_ms` is the wall clock of the call: times relative to now are resolved against it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.accounts.messages import MeChoice
from trunkline.actors.applications.messages import (
    ApplicationPage,
    CountRange,
    KeyPage,
    PayloadCountRange,
    SummaryChoice,
    TokenPage,
)
from trunkline.actors.devices.messages import (
    AttributeList,
    AttributeNameSearch,
    CommandToMany,
    CompositePage,
    CompositeRange,
    DevicePage,
    DeviceShape,
    History,
    NameSearch,
    PayloadRange,
    TagValueSearch,
)
from trunkline.actors.devices.series_messages import LastValueQuery, TimeSeriesQuery
from trunkline.actors.events.messages import EventPage, RecentChoice
from trunkline.actors.jobs.messages import JobLogPage
from trunkline.actors.tables.messages import AdvancedQuery, RowsLimit, RowsPage, TablePage
from trunkline.actors.values.structs import Message


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What a device token sees of its application: its own device, and those that its key allows.

    Ids are in hexadecimal, as documents carry them.
    """

    device_id: str
    filter_type: str
    device_ids: list[str]
    device_tags: list[dict[str, Any]]


class GetApplication(Message, frozen=True):
    """One application."""

    application: bytes
    query: SummaryChoice


class ListApplications(Message, frozen=True):
    """The applications of one user."""

    user: bytes
    query: ApplicationPage


class GetRecord(Message, frozen=True):
    """One record of a plain kind under `parent`."""

    kind: str
    parent: bytes
    record: bytes


class ListKeys(Message, frozen=True):
    """A page of access keys."""

    application: bytes
    query: KeyPage


class ListTokens(Message, frozen=True):
    """A page of the API tokens of `parent` (an application or a user)."""

    parent: bytes
    query: TokenPage


class GetMe(Message, frozen=True):
    """The current user."""

    user: bytes
    query: MeChoice


class GetDevice(Message, frozen=True):
    """One device."""

    application: bytes
    device: bytes
    query: DeviceShape


class ListDevices(Message, frozen=True):
    """A page of devices."""

    application: bytes
    query: DevicePage
    reach: Reach | None


class GetState(Message, frozen=True):
    """A stretch of a device's states."""

    application: bytes
    device: bytes
    query: History
    now_ms: int


class GetCommand(Message, frozen=True):
    """A stretch of a device's commands."""

    application: bytes
    device: bytes
    query: History
    now_ms: int


class GetLogEntries(Message, frozen=True):
    """A stretch of a device's connection log."""

    application: bytes
    device: bytes
    query: History
    now_ms: int


class GetCompositeState(Message, frozen=True):
    """The newest value of each attribute within a range."""

    application: bytes
    device: bytes
    query: CompositeRange
    now_ms: int


class ListCompositeStates(Message, frozen=True):
    """A page of devices with their composite states."""

    application: bytes
    query: CompositePage
    now_ms: int
    reach: Reach | None


class GetAttribute(Message, frozen=True):
    """One attribute of a device."""

    application: bytes
    device: bytes
    name: str


class ListAttributes(Message, frozen=True):
    """The attributes of a device."""

    application: bytes
    device: bytes
    query: AttributeList


class ListAttributeNames(Message, frozen=True):
    """Names of attributes across devices."""

    application: bytes
    query: AttributeNameSearch


class ListDeviceNames(Message, frozen=True):
    """Names of devices."""

    application: bytes
    query: NameSearch


class ListTagKeys(Message, frozen=True):
    """Keys of tags across devices."""

    application: bytes
    query: NameSearch


class ListTagValues(Message, frozen=True):
    """Values of one tag key across devices."""

    application: bytes
    query: TagValueSearch


class SelectDevices(Message, frozen=True):
    """The ids of all devices that a command to many means."""

    application: bytes
    body: CommandToMany


class QueryLastValues(Message, frozen=True):
    """The newest value of one attribute of many devices."""

    application: bytes
    body: LastValueQuery
    now_ms: int
    reach: Reach | None


class QueryTimeSeries(Message, frozen=True):
    """Points of many devices."""

    application: bytes
    body: TimeSeriesQuery
    now_ms: int
    reach: Reach | None
    time_series_bytes_max: int


class CountDevices(Message, frozen=True):
    """Devices per day of one application."""

    application: bytes
    query: CountRange
    now_ms: int


class CountMyDevices(Message, frozen=True):
    """Devices per day of all applications of one user."""

    user: bytes
    query: CountRange
    now_ms: int


class CountPayloads(Message, frozen=True):
    """Payloads of one application."""

    application: bytes
    query: PayloadCountRange
    now_ms: int


class CountDevicePayloads(Message, frozen=True):
    """Payloads of one device."""

    application: bytes
    device: bytes
    query: PayloadRange
    now_ms: int


class ReplayCommands(Message, frozen=True):
    """The commands after a stream position, oldest first: at most `limit`, and about `bytes_max` of JSON."""

    application: bytes
    device: bytes
    position: int
    limit: int
    bytes_max: int


class GetJobLog(Message, frozen=True):
    """One job of an application."""

    application: bytes
    record: bytes


class ListJobLogs(Message, frozen=True):
    """A page of the jobs of an application."""

    application: bytes
    query: JobLogPage


class GetDataTable(Message, frozen=True):
    """One data table."""

    application: bytes
    table: bytes


class ListDataTables(Message, frozen=True):
    """A page of data tables."""

    application: bytes
    query: TablePage


class GetRow(Message, frozen=True):
    """One row."""

    application: bytes
    table: bytes
    row: bytes


class ListRows(Message, frozen=True):
    """A page of the rows that match `body` (None: all)."""

    application: bytes
    table: bytes
    query: RowsPage
    body: AdvancedQuery | None
    rows_bytes_max: int
    rows_limit_max: int
    sorted_rows_max: int


class SelectRows(Message, frozen=True):
    """The ids of the oldest rows that match `body` (None: all), at most `limit` of the query."""

    application: bytes
    table: bytes
    query: RowsLimit
    body: AdvancedQuery | None
    rows_limit_max: int


class GetEvent(Message, frozen=True):
    """One event."""

    application: bytes
    record: bytes


class ListEvents(Message, frozen=True):
    """A page of events."""

    application: bytes
    query: EventPage


class GetMostRecentEvent(Message, frozen=True):
    """The newest of the most severe new events, and how many are new."""

    application: bytes
    query: RecentChoice
