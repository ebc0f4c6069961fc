"""The overview of an application: its counted fleet, its traffic, and what happened last. A short read."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from trunkline.actors.devices.kind import DEVICE
from trunkline.actors.devices.traffic import RECENT_MAX, ApplicationTraffic, Traffic
from trunkline.actors.overview.fleet import Fleet, Fleets
from trunkline.actors.overview.messages import (
    ChangedDevice,
    FleetView,
    GetOverview,
    OpenEvents,
    Overview,
    RecentConnection,
    RecentView,
    RefusalView,
    SilentDevice,
    TrafficView,
)
from trunkline.actors.records import records
from trunkline.actors.records.listing import index_range
from trunkline.actors.records.reading import Reading
from trunkline.actors.values.timestamps import iso
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot


def get_overview(reading: Reading, message: GetOverview) -> Overview:
    """The overview of an application."""
    system, application, after_s = reading.system, message.application, message.query.silent_after_seconds
    assert system is not None
    fleet = system.component(Fleets).of(application)
    traffic = system.component(Traffic).of(application)
    return Overview(
        application_id=application.hex(),
        time=iso(message.now_ms),
        silent_after_seconds=after_s,
        devices=_show_fleet(fleet, after_s, message.now_ms),
        traffic=TrafficView(
            started_at=iso(traffic.started_ms),
            states=traffic.states,
            commands=traffic.commands,
            refused=dict(traffic.refused),
        ),
        open_events=msgspec.convert(fleet.events, OpenEvents),
        recent=_show_recent(reading.snapshot, application, fleet, after_s, traffic),
    )


def _show_fleet(fleet: Fleet, after_s: int, now_ms: int) -> FleetView:
    silent, seen = fleet.silent(after_s), len(fleet.seen_ms)
    return FleetView(
        as_of=iso(fleet.as_of_ms),
        age_ms=max(0, now_ms - fleet.as_of_ms),
        total=fleet.connected + seen + fleet.never_seen,
        connected=fleet.connected,
        disconnected=fleet.disconnected,
        reporting=fleet.connected + seen - silent,
        silent=silent,
        never_seen=fleet.never_seen,
    )


def _show_recent(
    snapshot: Snapshot, application: bytes, fleet: Fleet, after_s: int, traffic: ApplicationTraffic
) -> RecentView:
    @lru_cache
    def name_of(device: bytes) -> str | None:
        found = records.find(snapshot, DEVICE, application, device)
        return None if found is None else str(found.doc["name"])

    return RecentView(
        changed=[*_changed(snapshot, application)],
        silent=[
            SilentDevice(device_id=id.hex(), last_seen=iso(seen_ms), name=name_of(id))
            for id, seen_ms in _last_silent(fleet, after_s)
        ],
        refused=[
            RefusalView(
                time=iso(each.time_ms),
                operation=each.operation,
                reason=each.reason,
                message=each.message,
                device_id=None if each.device is None else each.device.hex(),
                name=None if each.device is None else name_of(each.device),
            )
            for each in reversed(traffic.refusals)
        ],
        connections=[
            RecentConnection(
                device_id=each.device.hex(),
                time=iso(each.time_ms),
                connected=each.entry["connected"],
                name=name_of(each.device),
                disconnect_reason=each.entry.get("disconnectReason"),
            )
            for each in reversed(traffic.changes)
        ],
    )


def _changed(snapshot: Snapshot, application: bytes) -> Iterable[ChangedDevice]:
    """The devices whose records were changed last."""
    index = index_range(DEVICE, application, "lastUpdated")
    for key in islice(snapshot.keys(*index, reverse=True), RECENT_MAX):
        found = records.find(snapshot, DEVICE, application, bytes(key[-keys.ID_BYTES :]))
        if found is not None:
            doc = found.doc
            yield ChangedDevice(
                device_id=found.id.hex(), name=doc["name"], last_updated=iso(doc["lastUpdated"])
            )


def _last_silent(fleet: Fleet, after_s: int) -> Iterable[tuple[bytes, int]]:
    """The devices that fell silent last, with their last sign of life."""
    silent = fleet.silent(after_s)
    for at in range(silent - 1, max(silent - RECENT_MAX, 0) - 1, -1):
        yield fleet.ids[at].tobytes(), int(fleet.seen_ms[at])
