"""The devices that a change of many devices selects, in the order of their ids. Pure reads of a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.listing import Listing, candidates, find_access_paths
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.values.errors import ChangeTooLarge, Invalid
from trunkline.actors.fleet.devices.bulk.bulk_messages import ChooseDevices, DeviceChoice
from trunkline.actors.fleet.devices.queries.selection import DeviceFilter, device_filter
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE, restorable_since_ms
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot


def choose_devices(reading: Reading, message: ChooseDevices) -> list[bytes]:
    """Return the ids of the devices of a choice.

    Raises `Invalid` for an id of no device and for an invalid query, `ChangeTooLarge` if there are more devices than
    one call may change.
    """
    snapshot, application, choice = reading.snapshot, message.application, message.choice
    kind, most = kind_of(choice), reading.limits.changed_devices_max
    chosen: dict[bytes, None] = {}
    reading.check_time(is_long=len(choice.device_ids or ()) > SCAN_INLINE_MAX)
    for text in choice.device_ids or ():
        id = bytes.fromhex(text)
        if not records.exists(snapshot, kind, application, id):
            raise Invalid(f"deviceIds: there is no device {text} in this application.")
        chosen[id] = None
    if choice.query is not None:
        filter = device_filter(snapshot, application, choice.query)
        reading.check_time(is_long=records.total(snapshot, kind, application) > SCAN_INLINE_MAX)
        oldest_ms = restorable_since_ms(message.now_ms, reading.limits)
        paths = tuple(find_access_paths(kind, application, filter.bounds))
        listing = Listing(kind, application, "id", False, 0, 1, match=filter.match, access_paths=paths)
        for id, doc in candidates(snapshot, listing):
            if not choice.deleted or doc["deletedAt"] >= oldest_ms:
                chosen[id] = None
            if len(chosen) > most:
                break
    if len(chosen) > most:
        raise ChangeTooLarge(f"More than {most} devices are selected, which is the limit of one change.")
    return list(chosen)


def kind_of(choice: DeviceChoice) -> Kind:
    """The kind of the records that are chosen."""
    return DELETED_DEVICE if choice.deleted else DEVICE


def newest_id(snapshot: Snapshot, application: bytes, choice: DeviceChoice) -> bytes:
    """Return the largest id of all devices that could be chosen; empty if there is none."""
    prefix = keys.record_prefix(kind_of(choice).name, application)
    newest = next(snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix), reverse=True), b"")
    return bytes(newest[-keys.ID_BYTES :])


def devices_of(
    snapshot: Snapshot,
    application: bytes,
    choice: DeviceChoice,
    limits: Limits,
    now_ms: int,
    *,
    after: bytes = b"",
    end: bytes | None = None,
) -> Iterator[bytes]:
    """Yield the ids of the devices of a choice in order: those behind `after`, up to `end` (None: all)."""
    named = sorted(bytes.fromhex(text) for text in choice.device_ids or ())
    filter = DeviceFilter()
    if choice.query is None:
        found = _named(snapshot, kind_of(choice), application, named, after)
    else:
        filter = device_filter(snapshot, application, choice.query)
        found = _behind(snapshot, kind_of(choice), application, after)
    oldest_ms = restorable_since_ms(now_ms, limits)
    is_named = frozenset(named)
    for id, doc in found:
        if end is not None and id > end:
            return
        if choice.deleted and doc["deletedAt"] < oldest_ms:
            continue
        if filter.match is None or id in is_named or filter.match(doc):
            yield id


def _named(
    snapshot: Snapshot, kind: Kind, application: bytes, ids: list[bytes], after: bytes
) -> Iterator[tuple[bytes, Any]]:
    for id in dict.fromkeys(ids):
        found = None if id <= after else records.find(snapshot, kind, application, id)
        if found is not None:
            yield id, found.doc


def _behind(snapshot: Snapshot, kind: Kind, application: bytes, after: bytes) -> Iterator[tuple[bytes, Any]]:
    """Yield the devices behind `after` in the order of their ids, each with its hexadecimal `id`."""
    prefix = keys.record_prefix(kind.name, application)
    low = prefix + after + b"\x00" if after else prefix
    for key, raw in snapshot.range(keys.RECORDS, low, keys.prefix_end(prefix)):
        id = bytes(key[-keys.ID_BYTES :])
        yield id, {**decode(raw), "id": id.hex()}
