"""The kinds of deployments.

An edge deployment is one workflow on one device, and its id follows from both. All workflows of an embedded device are
one deployment, which has the id of the device. So a deployment is found without an index, and there are no two of one
thing.

A deployment of a deleted device or workflow is hidden: if the device is restored, its deployments are back. The sweeper
removes them together with the device or the workflow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import RELEASE, Doc, Kind
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.workflows.flows.kind import FLOW
from trunkline.actors.workflows.flows.versions import find_version
from trunkline.store import keys
from trunkline.store.codec import decode

EDGE_DEPLOYMENT: Final = Kind(
    name="edgeDeployment",
    noun="edge deployment",
    indexes=("deviceId", "flowId"),
    counted_as=None,
    audited_as=None,
    not_portable=RELEASE,
)
EMBEDDED_DEPLOYMENT: Final = Kind(
    name="embeddedDeployment",
    noun="embedded deployment",
    indexes=(),
    counted_as=None,
    audited_as=None,
    not_portable=RELEASE,
)

DEVICE_CLASS: Final = {EDGE_DEPLOYMENT.name: "edgeCompute", EMBEDDED_DEPLOYMENT.name: "embedded"}
"""The class of devices of each kind of deployment."""

FLOW_CLASS: Final = {EDGE_DEPLOYMENT.name: "edge", EMBEDDED_DEPLOYMENT.name: "embedded"}
"""The class of workflows of each kind of deployment."""

Get = Callable[[str, bytes], bytes | None]
"""Reads a key of a database: of a snapshot, or of the journal."""


def edge_deployment_id(device: bytes, flow: bytes) -> bytes:
    """The id of the deployment of a workflow on an edge device."""
    return hashlib.blake2b(device + flow, digest_size=keys.ID_BYTES).digest()


def check_device_class(doc: Doc, id: bytes, kind: Kind) -> None:
    """Raise `Invalid` if the device has another class than such deployments need."""
    wanted = DEVICE_CLASS[kind.name]
    if doc["deviceClass"] != wanted:
        raise Invalid(
            f"deviceIds: device {id.hex()} has the class {doc['deviceClass']}; give devices of class {wanted}."
        )


def resolve_version(
    get: Get, application: bytes, flow: bytes, kind: Kind, version: str | None, *, field: str
) -> tuple[str, str] | None:
    """The name of a version that can be deployed, and the hash of its definition; None for None, which removes.

    Raises `Invalid` for a workflow that does not exist or has another class, and for a version that it does not have.
    """
    raw = records.raw_of(get, FLOW, application, flow)
    if raw is None:
        raise Invalid(f"flowId: there is no workflow {flow.hex()} in this application.")
    record = decode(raw)
    wanted = FLOW_CLASS[kind.name]
    if record["flowClass"] != wanted:
        raise Invalid(
            f"flowId: workflow {flow.hex()} has the class {record['flowClass']}; give a workflow of class {wanted}."
        )
    if version is None:
        return None
    found = find_version(get, application, flow, record, version)
    if found is None:
        raise Invalid(
            f"{field}: workflow {flow.hex()} has no version {version!r}; give the name of one of its versions."
        )
    definition = get(keys.FLOWS, keys.flow_definition_key(application, flow, found.id))
    return found.name, hashlib.blake2b(definition or b"", digest_size=8).hexdigest()


def device_doc(get: Get, application: bytes, device: bytes) -> Doc | None:
    """The record of a device, None if there is none."""
    raw = records.raw_of(get, DEVICE, application, device)
    return None if raw is None else decode(raw)
