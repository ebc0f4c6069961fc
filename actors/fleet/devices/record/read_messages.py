"""Messages of reads of devices. They are answered from a snapshot, not by the actor."""

from __future__ import annotations

from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.record.messages import (
    AttributeList,
    AttributeNameSearch,
    CommandToMany,
    CompositePage,
    CompositeRange,
    DevicePage,
    DeviceShape,
    History,
    NameSearch,
    StateStream,
    TagValueSearch,
)
from trunkline.actors.people.accounts.reach import Reach


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
    """The states of a device in a range."""

    application: bytes
    device: bytes
    query: History
    now_ms: int


class GetCommand(Message, frozen=True):
    """The commands of a device in a range."""

    application: bytes
    device: bytes
    query: History
    now_ms: int


class GetLogEntries(Message, frozen=True):
    """The connection log of a device in a range."""

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
    """The ids of all devices that a command to many devices selects, by tag and query only within `reach`."""

    application: bytes
    body: CommandToMany
    reach: Reach | None


class GetMissedStates(Message, frozen=True):
    """The states after a position: of one device, or (`device` None) those of the application that `query` selects.

    At most `limit` with about `bytes_max` of JSON. Answers a `Missed`.
    """

    application: bytes
    device: bytes | None
    query: StateStream
    position: int
    limit: int
    bytes_max: int
    now_ms: int


class ReplayCommands(Message, frozen=True):
    """The commands after a stream position, oldest first: at most `limit`, and about `bytes_max` of JSON."""

    application: bytes
    device: bytes
    position: int
    limit: int
    bytes_max: int
    now_ms: int
