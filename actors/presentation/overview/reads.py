"""The overview of an application: its counted fleet, its traffic, and what happened last. Short reads."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from trunkline.actors.core.records import records
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.records.page import page_fields
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.state.traffic import (
    INTERVAL_MS,
    RECENT_MAX,
    ApplicationTraffic,
    History,
    Traffic,
)
from trunkline.actors.presentation.overview.fleet import Fleet, Fleets
from trunkline.actors.presentation.overview.messages import (
    ChangedDevice,
    FleetView,
    GetOverview,
    ListSilentDevices,
    OpenEvents,
    Overview,
    RecentConnection,
    RecentView,
    RefusalView,
    SilentDevice,
    SilentDevices,
    TrafficHistory,
    TrafficView,
)
from trunkline.store import keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        devices=show_fleet(fleet, after_s, message.now_ms),
        traffic=TrafficView(
            started_at=iso(traffic.started_ms),
            states=traffic.states,
            commands=traffic.commands,
            refused=dict(traffic.refused),
            history=_show_history(traffic.history(message.now_ms)),
        ),
        open_events=msgspec.convert(fleet.events, OpenEvents),
        recent=_show_recent(reading.snapshot, application, fleet, after_s, traffic),
    )


def _show_history(history: History) -> TrafficHistory:
    return TrafficHistory(
        start=iso(history.start_ms),
        interval_seconds=INTERVAL_MS // 1000,
        states=history.states,
        commands=history.commands,
        refused=history.refused,
    )


def show_fleet(fleet: Fleet, after_s: int | None, now_ms: int) -> FleetView:
    """The numbers of the devices, as they were counted."""
    silent, seen = len(fleet.silent(after_s)), len(fleet.seen_ms)
    return FleetView(
        as_of=iso(fleet.as_of_ms),
        age_ms=max(0, now_ms - fleet.as_of_ms),
        total=fleet.connected + seen + len(fleet.never_seen),
        connected=fleet.connected,
        disconnected=fleet.disconnected,
        reporting=fleet.connected + seen - silent,
        silent=silent,
        never_seen=len(fleet.never_seen),
    )


def _show_recent(
    snapshot: Snapshot, application: bytes, fleet: Fleet, after_s: int | None, traffic: ApplicationTraffic
) -> RecentView:
    name_of = lru_cache(partial(_name_of, snapshot, application))
    return RecentView(
        changed=[*_changed(snapshot, application)],
        silent=[
            SilentDevice(device_id=id.hex(), last_seen=iso(seen_ms), name=name_of(id))
            for id, seen_ms in _silent(fleet, fleet.silent(after_s)[::-1][:RECENT_MAX])
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


def _name_of(snapshot: Snapshot, application: bytes, device: bytes) -> str | None:
    found = records.find(snapshot, DEVICE, application, device)
    return None if found is None else str(found.doc["name"])


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


def _silent(fleet: Fleet, places: NDArray[np.intp]) -> Iterable[tuple[bytes, int]]:
    """The devices at these places of the fleet, with their last signs of life."""
    return ((fleet.ids[at].tobytes(), int(fleet.seen_ms[at])) for at in places)


# Lists.


def list_silent_devices(reading: Reading, message: ListSilentDevices) -> SilentDevices:
    """A page of the devices that are silent, or were never seen."""
    system, application, query = reading.system, message.application, message.query
    assert system is not None
    fleet = system.component(Fleets).of(application)
    is_silent = query.state == "silent"
    places = fleet.silent(query.silent_after_seconds) if is_silent else np.arange(len(fleet.never_seen))
    total = len(places)
    if query.sort_direction == "desc":
        places = places[::-1]
    places = places[query.page * query.per_page :][: query.per_page]
    never_seen = ((fleet.never_seen[at].tobytes(), None) for at in places)
    found: Iterable[tuple[bytes, int | None]] = _silent(fleet, places) if is_silent else never_seen
    items = [
        SilentDevice(
            device_id=id.hex(),
            last_seen=None if seen_ms is None else iso(seen_ms),
            name=_name_of(reading.snapshot, application, id),
        )
        for id, seen_ms in found
    ]
    return SilentDevices(
        **page_fields(items, total, query),
        state=query.state,
        silent_after_seconds=query.silent_after_seconds,
        as_of=iso(fleet.as_of_ms),
        application_id=application.hex(),
    )
