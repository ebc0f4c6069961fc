"""A device, its creation and its connection, as the runs of workflows are told of them."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.record.attributes import shown_attribute
from trunkline.actors.fleet.devices.record.messages import Connected, Disconnected
from trunkline.actors.fleet.devices.record.reads import attributes_as_object, tags_as_object

Method = Literal["link", "rest"]
"""How the server knows of a connection: it is a link of the device itself, or a call of the API told of it."""

_FIELDS = ("name", "description", "deviceClass", "parentId", "gatewayId")


def told_device(id: bytes, doc: Doc) -> Doc:
    """What every run is told of a device: its tags are an object by key, its attributes one by name."""
    attributes = attributes_as_object([shown_attribute(each) for each in doc["attributes"]])
    return {**_told(id, doc), "tags": tags_as_object(doc["tags"]), "attributes": attributes}


def _told(id: bytes, doc: Doc) -> Doc:
    shown = {name: doc[name] for name in _FIELDS if doc.get(name) is not None}
    times = {name: iso(doc[name]) for name in ("creationDate", "lastUpdated")}
    return {"id": id.hex(), "deviceId": id.hex(), **shown, **times}


def told_new_device(application: bytes, id: bytes, doc: Doc) -> Doc:
    """What a run is told of a device that is created: the whole device, as the API shows it."""
    attributes = [shown_attribute(each) for each in doc["attributes"]]
    return {
        **_told(id, doc),
        "applicationId": application.hex(),
        "tags": doc["tags"],
        "attributes": attributes,
    }


def told_connection(
    status: Connected | Disconnected, connected_ms: int | None, method: Method, *, is_secure: bool
) -> Doc:
    """What a run is told of a change of the connection. `connected_ms` is when it began, if that is known."""
    told: Doc = {"method": method, "secure": is_secure}
    if status.ip_address is not UNSET:
        told["address"] = status.ip_address
    if connected_ms is not None:
        told["connectedAt"] = iso(connected_ms)
    if isinstance(status, Disconnected):
        counts = (
            ("disconnectReason", status.disconnect_reason),
            ("messagesFromDevice", status.messages_from_client),
            ("messagesToDevice", status.messages_to_client),
        )
        told |= {name: value for name, value in counts if value is not UNSET}
    return told
