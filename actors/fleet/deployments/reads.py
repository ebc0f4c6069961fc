"""Reads of deployments: one, a page, those that a call changes. Pure reads of a snapshot.

A deployment is shown with its device and its workflow, so a list looks each of them up. One whose device or workflow
was deleted is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.listing import AccessPath, Listing, candidates, index_range, read_page
from trunkline.actors.core.records.page import envelope
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.shape import Shape
from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.deployments.kind import (
    DEVICE_CLASS,
    EDGE_DEPLOYMENT,
    EMBEDDED_DEPLOYMENT,
    check_device_class,
    device_doc,
    edge_deployment_id,
    resolve_version,
)
from trunkline.actors.fleet.deployments.messages import (
    DeploymentReplace,
    EdgeDeploymentPage,
    EdgeDeploymentView,
    EmbeddedDeploymentPage,
    EmbeddedDeploymentView,
    GetEdgeDeployment,
    GetEmbeddedDeployment,
    ListEdgeDeployments,
    ListEmbeddedDeployments,
    SelectDeployments,
    SelectDevices,
)
from trunkline.actors.fleet.devices.queries.selection import devices_within, scans_application
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.people.accounts.reach import has_tag
from trunkline.actors.workflows.flows.kind import FLOW
from trunkline.store import keys
from trunkline.store.snapshot import Snapshot

_EDGE = Shape(EdgeDeploymentView)
_EMBEDDED = Shape(EmbeddedDeploymentView)
_KINDS = {kind.name: kind for kind in (EDGE_DEPLOYMENT, EMBEDDED_DEPLOYMENT)}


class Presenter:
    """Shows deployments of one application with the names of their devices and workflows."""

    __slots__ = ("_application", "_snapshot")

    def __init__(self, snapshot: Snapshot, application: bytes) -> None:
        self._snapshot = snapshot
        self._application = application

    def device(self, doc: Mapping[str, Any]) -> Doc | None:
        """The device of a deployment, None if it was deleted."""
        return device_doc(self._snapshot.get, self._application, bytes.fromhex(doc["deviceId"]))

    def flow(self, id: str) -> Doc | None:
        """A workflow, None if it was deleted."""
        found = records.find(self._snapshot, FLOW, self._application, bytes.fromhex(id))
        return None if found is None else found.doc

    def edge(self, found: Found) -> Doc | None:
        """An edge deployment; None if its device or its workflow was deleted."""
        doc = found.doc
        device, flow = self.device(doc), self.flow(doc["flowId"])
        if device is None or flow is None:
            return None
        return {
            **self._common(found, EDGE_DEPLOYMENT, device),
            **_EDGE.of(doc),
            "flowName": flow["name"],
            "flowClass": flow["flowClass"],
            "currentVersion": doc["currentVersion"],
            "desiredVersion": doc["desiredVersion"],
            "logs": _logs(doc),
        }

    def embedded(self, found: Found) -> Doc | None:
        """An embedded deployment; None if its device was deleted."""
        doc = found.doc
        device = self.device(doc)
        if device is None:
            return None
        flows: Doc = {}
        for id, each in doc["flows"].items():
            flow = self.flow(id)
            if flow is not None:
                versions = {name: each[name] for name in ("currentVersion", "desiredVersion")}
                flows[id] = {"flowName": flow["name"], **versions}
        return {
            **self._common(found, EMBEDDED_DEPLOYMENT, device),
            **_EMBEDDED.of(doc),
            "flows": flows,
            "currentBundleVersion": doc["currentBundleVersion"],
            "desiredBundleVersion": doc["desiredBundleVersion"],
            "unknownBundle": False,
            "logs": _logs(doc),
        }

    def _common(self, found: Found, kind: Kind, device: Doc) -> Doc:
        connection = device.get("connection")
        return {
            "id": found.id.hex(),
            f"{kind.name}Id": found.id.hex(),
            "applicationId": self._application.hex(),
            "deviceName": device["name"],
            "deviceConnectionInfo": {"connected": connection["connected"], "time": iso(connection["time"])}
            if connection
            else {"connected": None},
            "_etag": found.revision,
            "_type": kind.name,
        }


def _logs(doc: Doc) -> list[Doc]:
    return [{**log, "date": iso(log["date"])} for log in doc["logs"]]


# One and many.


def get_edge_deployment(reading: Reading, message: GetEdgeDeployment) -> Doc:
    """One edge deployment."""
    id = message.edge_deployment
    found = records.find(reading.snapshot, EDGE_DEPLOYMENT, message.application, id)
    shown = None if found is None else Presenter(reading.snapshot, message.application).edge(found)
    if shown is None:
        raise missing(EDGE_DEPLOYMENT, id)
    return shown


def get_embedded_deployment(reading: Reading, message: GetEmbeddedDeployment) -> Doc:
    """One embedded deployment."""
    id = message.embedded_deployment
    found = records.find(reading.snapshot, EMBEDDED_DEPLOYMENT, message.application, id)
    shown = None if found is None else Presenter(reading.snapshot, message.application).embedded(found)
    if shown is None:
        raise missing(EMBEDDED_DEPLOYMENT, id)
    return shown


def list_edge_deployments(reading: Reading, message: ListEdgeDeployments) -> Doc:
    """A page of edge deployments."""
    query, application = message.query, message.application
    presenter = Presenter(reading.snapshot, application)
    device, flow = (id and id.lower() for id in (query.device_id, query.flow_id))

    def match(doc: Mapping[str, Any]) -> bool:
        versions = (doc["currentVersion"], doc["desiredVersion"])
        return (
            (device is None or doc["deviceId"] == device)
            and (flow is None or doc["flowId"] == flow)
            and (query.version is None or query.version in versions)
            and not (query.filter_empty and versions == (None, None))
            and presenter.device(doc) is not None
            and presenter.flow(doc["flowId"]) is not None
        )

    listing = Listing.of(
        query,
        EDGE_DEPLOYMENT,
        application,
        match=match,
        access_paths=_edge_paths(application, device, flow),
    )
    found, total = read_page(reading, listing)
    items = [shown for each in found if (shown := presenter.edge(each)) is not None]
    return _envelope("edgeDeployments", items, total, query, application)


def list_embedded_deployments(reading: Reading, message: ListEmbeddedDeployments) -> Doc:
    """A page of embedded deployments."""
    query, application = message.query, message.application
    presenter = Presenter(reading.snapshot, application)
    device, flow = (id and id.lower() for id in (query.device_id, query.flow_id))

    def match(doc: Mapping[str, Any]) -> bool:
        if device is not None and doc["deviceId"] != device:
            return False
        if presenter.device(doc) is None:
            return False
        flows = {id: each for id, each in doc["flows"].items() if presenter.flow(id) is not None}
        if flow is not None and flow not in flows:
            return False
        chosen = flows.values() if flow is None else (flows[flow],)
        return query.version is None or any(
            query.version in (each["currentVersion"], each["desiredVersion"]) for each in chosen
        )

    listing = Listing.of(query, EMBEDDED_DEPLOYMENT, application, match=match)
    found, total = read_page(reading, listing)
    items = [shown for each in found if (shown := presenter.embedded(each)) is not None]
    return _envelope("embeddedDeployments", items, total, query, application)


def _envelope(
    type: str,
    items: list[Doc],
    total: int,
    query: EdgeDeploymentPage | EmbeddedDeploymentPage,
    application: bytes,
) -> Doc:
    shown = envelope(type, items, total, query) | {"applicationId": application.hex()}
    for name, value in (
        ("deviceId", query.device_id),
        ("flowId", query.flow_id),
        ("version", query.version),
    ):
        if value is not None:
            shown[name] = value
    return shown


def _edge_paths(application: bytes, device: str | None, flow: str | None) -> tuple[AccessPath, ...]:
    """The index ranges of the deployments of a device, and of a workflow."""
    bounds = (("deviceId", device), ("flowId", flow))
    return tuple(
        (index_range(EDGE_DEPLOYMENT, application, name, keys.sortable(id)),)
        for name, id in bounds
        if id is not None
    )


# What a call changes.


def select_devices(reading: Reading, message: SelectDevices) -> list[bytes]:
    """The devices of a release: those that it names, and those of the right class that have one of its tags.

    A removal is also for devices that have another class by now.
    """
    snapshot, application, body = reading.snapshot, message.application, message.body
    kind = _KINDS[message.kind]
    version, flow = body.version or None, bytes.fromhex(body.flow_id)
    resolve_version(snapshot.get, application, flow, kind, version, field="version")
    if not body.device_ids and not body.device_tags:
        raise Invalid("deviceIds or deviceTags: name the devices by one of them at least.")
    selected: dict[bytes, None] = {}
    for text in body.device_ids or ():
        id = bytes.fromhex(text)
        found = records.find(snapshot, DEVICE, application, id)
        if found is None:
            raise Invalid(f"deviceIds: there is no device {text} in this application.")
        if version is not None:
            check_device_class(found.doc, id, kind)
        selected[id] = None
    if body.device_tags:
        reading.check_time(is_long=scans_application(snapshot, application))
        tags = [msgspec.to_builtins(each) for each in body.device_tags]
        most, wanted = reading.limits.selected_devices_max, DEVICE_CLASS[kind.name]
        for id, doc in devices_within(snapshot, application, {}):
            if has_tag(doc["tags"], tags) and (
                doc["deviceClass"] == wanted
                or (version is None and _is_deployed(snapshot, application, kind, id, flow))
            ):
                selected[id] = None
        if len(selected) > most:
            raise PayloadTooLarge(
                f"{len(selected)} devices are selected; one call releases to at most {most}; narrow the tags."
            )
    return list(selected)


def _is_deployed(snapshot: Snapshot, application: bytes, kind: Kind, device: bytes, flow: bytes) -> bool:
    id = edge_deployment_id(device, flow) if kind is EDGE_DEPLOYMENT else device
    return records.exists(snapshot, kind, application, id)


def select_deployments(reading: Reading, message: SelectDeployments) -> list[tuple[bytes, bytes]]:
    """Device and workflow of each deployment that a replacement or a removal changes."""
    snapshot, application, body = reading.snapshot, message.application, message.body
    kind = _KINDS[message.kind]
    device = old = None
    if isinstance(body, DeploymentReplace):
        flow: bytes | None = bytes.fromhex(body.flow_id)
        old = body.old_version
        resolve_version(
            snapshot.get,
            application,
            bytes.fromhex(body.flow_id),
            kind,
            body.new_version or None,
            field="newVersion",
        )
    else:
        if body.flow_id is None and body.device_id is None:
            raise Invalid("flowId, deviceId: both are null; give a workflow, a device, or both.")
        flow = None if body.flow_id is None else bytes.fromhex(body.flow_id)
        device = None if body.device_id is None else bytes.fromhex(body.device_id)
        if flow is not None:
            resolve_version(snapshot.get, application, flow, kind, None, field="version")
        if device is not None and not records.exists(snapshot, DEVICE, application, device):
            raise Invalid(f"deviceId: there is no device {device.hex()} in this application.")
    if kind is EMBEDDED_DEPLOYMENT:
        return _embedded_targets(reading, application, device, flow, old)
    if device is not None and flow is not None:
        found = records.find(snapshot, kind, application, edge_deployment_id(device, flow))
        return [] if found is None else [(device, flow)]
    paths = _edge_paths(application, _hex(device), _hex(flow))
    reading.check_time(is_long=records.total(snapshot, kind, application) > SCAN_INLINE_MAX)
    listing = Listing(kind, application, "id", False, 0, 1, access_paths=paths)
    return [
        (bytes.fromhex(doc["deviceId"]), bytes.fromhex(doc["flowId"]))
        for _, doc in candidates(snapshot, listing)
        if doc["desiredVersion"] is not None
        and _hex(device) in (None, doc["deviceId"])
        and _hex(flow) in (None, doc["flowId"])
        and old in (None, doc["desiredVersion"])
    ]


def _embedded_targets(
    reading: Reading, application: bytes, device: bytes | None, flow: bytes | None, old: str | None
) -> list[tuple[bytes, bytes]]:
    snapshot = reading.snapshot
    if device is None:
        reading.check_time(
            is_long=records.total(snapshot, EMBEDDED_DEPLOYMENT, application) > SCAN_INLINE_MAX
        )
        docs = [doc for _, doc in records.scan(snapshot, EMBEDDED_DEPLOYMENT, application)]
    else:
        found = records.find(snapshot, EMBEDDED_DEPLOYMENT, application, device)
        docs = [] if found is None else [found.doc]
    return [
        (bytes.fromhex(doc["deviceId"]), bytes.fromhex(id))
        for doc in docs
        for id, each in doc["flows"].items()
        if _hex(flow) in (None, id) and old in (None, each["desiredVersion"])
    ]


def _hex(id: bytes | None) -> str | None:
    return None if id is None else id.hex()
