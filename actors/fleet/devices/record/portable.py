"""The export and import of devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from trunkline.actors.core.records.export_lines import ANCESTORS_MAX, body_of, by_parent, line, ranked
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.portable import Item, Portable
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.fleet.devices.record.attributes import shown_attribute
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import CreateDevice, DevicePatch, DevicePost, PatchDevice

if TYPE_CHECKING:
    from trunkline.actors.core.records.export_lines import Lines, Rank
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.store.snapshot import Snapshot

ABOVE: Final[Mapping[str, Kind]] = {"gatewayId": DEVICE, "parentId": DEVICE}
"""The fields of a device, and of a recipe, that name the devices above it."""


def _rank(snapshot: Snapshot, application: bytes) -> Rank:
    """System devices from above to below, then those that are below one, then peripherals, which name a gateway."""
    depth = by_parent(DEVICE)(snapshot, application)

    def rank(doc: Doc) -> int:
        if doc["deviceClass"] == "peripheral":
            return ANCESTORS_MAX + 2
        if doc.get("parentId") is None:
            return 0
        return depth(doc) if doc["deviceClass"] == "system" else ANCESTORS_MAX + 1

    return rank


def _read(snapshot: Snapshot, application: bytes) -> Lines:
    for id, doc in ranked(snapshot, DEVICE, application, _rank(snapshot, application)):
        attributes = [shown_attribute(each) for each in doc["attributes"]]
        yield line(id, body_of(DevicePost, {**doc, "attributes": attributes}))


def _make(item: Item) -> Iterator[Ask]:
    ref = Ref("device", item.application, item.id)
    if item.existing is None:
        yield ref, CreateDevice(body=item.body, is_bulk=True)
    else:
        yield ref, PatchDevice(body=item.patch(DevicePatch))


DEVICES: Final = Portable(
    name="Device",
    created_by="devices.post",
    changed_by="device.patch",
    body=DevicePost,
    kinds=(DEVICE,),
    option="includeDevices",
    read=_read,
    make=_make,
    references=ABOVE,
)
