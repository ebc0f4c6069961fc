"""The health of chosen devices: their signs of life and their newest values, in one answer.

A pure read of a snapshot. Does not own the rule (`fleet/devices/state/signs_of_life.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from trunkline.actors.core.records import records
from trunkline.actors.core.values.structs import Message, Query, View
from trunkline.actors.core.values.terms import Id, IsoTime
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.queries.selection import opened
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.views import CompositeValue
from trunkline.actors.fleet.devices.state.history import EVER, attribute_names, composite, oldest_state_ms
from trunkline.actors.fleet.devices.state.signs_of_life import Health, Source, life_of
from trunkline.actors.people.accounts.reach import Reach, reaches

if TYPE_CHECKING:
    from trunkline.actors.core.records.reading import Reading

_INLINE_MAX = 25
"""Devices that are read in the event loop: about a millisecond."""


class HealthChoice(Query, frozen=True, kw_only=True):
    """Whose health is shown, and which of their newest values. Without ids nothing is."""

    device_ids: Annotated[list[Id], Meta(max_length=100)] | None = None
    attributes: str | None = None


class ListDeviceHealth(Message, frozen=True):
    """The health of chosen devices."""

    application: bytes
    query: HealthChoice
    now_ms: int
    reach: Reach | None


class DeviceHealth(View, frozen=True, kw_only=True):
    """The signs of life of a device and its newest values."""

    device_id: Id
    name: str
    health: Health
    last_seen: IsoTime | None = None
    expected_by: IsoTime | None = None
    expected_interval_seconds: float
    expected_from: Source
    silent_after_seconds: float
    composite_state: dict[str, CompositeValue]


class DeviceHealthList(View, frozen=True, kw_only=True):
    """The health of devices, in the order of their ids in the call. A device that is not there is left out."""

    items: list[DeviceHealth]
    application_id: Id
    time: IsoTime


def list_device_health(reading: Reading, message: ListDeviceHealth) -> DeviceHealthList:
    """The health of chosen devices. Devices that do not exist, or are not within reach, are left out."""
    query, snapshot, application = message.query, reading.snapshot, message.application
    reading.check_time(is_long=len(query.device_ids or ()) > _INLINE_MAX)
    names, size = attribute_names(query.attributes), reading.answer_size()
    oldest_ms = oldest_state_ms(reading, message.now_ms)
    items = []
    for text in dict.fromkeys(query.device_ids or ()):
        found = records.find(snapshot, DEVICE, application, bytes.fromhex(text))
        if found is None:
            continue
        if message.reach is not None and not reaches(message.reach, found.doc | {"id": found.id.hex()}):
            continue
        life = life_of(snapshot, found.id, found.doc)
        by_ms = life.expected_by_ms
        newest = composite(snapshot, opened(found), EVER, names, size, oldest_ms)
        items.append(
            DeviceHealth(
                device_id=found.id.hex(),
                name=found.doc["name"],
                health=life.health(message.now_ms),
                last_seen=None if life.seen_ms is None else iso(life.seen_ms),
                expected_by=None if by_ms is None else iso(by_ms),
                expected_interval_seconds=life.expected.interval_ms / 1000,
                expected_from=life.expected.source,
                silent_after_seconds=life.expected.silent_ms / 1000,
                composite_state={name: CompositeValue(**each) for name, each in newest.items()},
            )
        )
    return DeviceHealthList(items=items, application_id=application.hex(), time=iso(message.now_ms))
