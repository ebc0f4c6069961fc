"""The deployments of one application: the only writer of its edge and embedded deployments.

It keeps no state in memory. A call for many devices is one turn, so it is stored whole or not at all.
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.deployments.kind import (
    EDGE_DEPLOYMENT,
    EMBEDDED_DEPLOYMENT,
    check_device_class,
    device_doc,
    edge_deployment_id,
    resolve_version,
)
from trunkline.actors.fleet.deployments.messages import BeginExport, SetVersions
from trunkline.actors.workflows.flows.kind import FLOW
from trunkline.store.codec import decode

Resolved = tuple[str, str] | None
"""The name of a version and the hash of its definition; None for a removal."""

_Changed = tuple[Doc | None, Doc]
"""A deployment as it is stored (None: not yet), and as it will be."""

_KINDS: Final = {kind.name: kind for kind in (EDGE_DEPLOYMENT, EMBEDDED_DEPLOYMENT)}


class Deployments(Actor):
    """All deployments of one application. `ref.parent` and `ref.id` are both the application's id."""

    kind: ClassVar[str] = "deployments"
    noun: ClassVar[str] = "application"

    __slots__ = ()

    def load(self) -> bool:
        return True  # it exists as long as its application

    def on_set_versions(self, message: SetVersions) -> None:
        """Set the desired versions. Raises `Invalid` if a device, a workflow or a version is not there any more."""
        kind = _KINDS[message.kind]
        get = self.system.journal.get
        resolved: dict[bytes, Resolved] = {}
        if message.version is not None:
            for flow in {flow for _, flow in message.targets}:
                resolved[flow] = resolve_version(
                    get, self.ref.parent, flow, kind, message.version, field="version"
                )
        now_ms = self.system.clock.wall_ms()
        changed: dict[bytes, _Changed] = {}
        for device, flow in message.targets:
            self._set(kind, device, flow, resolved.get(flow), message, now_ms, changed)
        for id, (old, new) in changed.items():
            new["lastUpdated"] = now_ms if old is None else records.next_update_ms(now_ms, old)
            records.write(self, kind, self.ref.parent, id, old, new)

    def on_begin_export(self, message: BeginExport) -> None:
        """Nothing: the call is counted when it is admitted."""

    def _set(
        self,
        kind: Kind,
        device: bytes,
        flow: bytes,
        version: Resolved,
        message: SetVersions,
        now_ms: int,
        changed: dict[bytes, _Changed],
    ) -> None:
        """Note the changed deployment in `changed`, where an earlier target may have left one of the same device."""
        edge = kind is EDGE_DEPLOYMENT
        id = edge_deployment_id(device, flow) if edge else device
        stored: Doc | None
        old: Doc | None
        if id in changed:
            stored, old = changed[id]
        else:
            raw = records.raw_of(self.system.journal.get, kind, self.ref.parent, id)
            stored = old = None if raw is None else decode(raw)
        before = None if old is None else old if edge else old["flows"].get(flow.hex())
        desired = None if before is None else before["desiredVersion"]
        if message.old is not None and desired != message.old:
            return
        if version is None and desired is None:
            return
        if version is not None:
            self._check_device(kind, device)
        doc = old or {"creationDate": now_ms, "deviceId": device.hex(), "logs": [], **_empty(edge, flow)}
        log: Doc = {
            "sourceType": message.by.type,
            "sourceId": message.by.id,
            "date": now_ms,
            "changeType": "desired",
        }
        if edge:
            new = _with_version(doc, version, log)
        else:
            new = self._with_flow(doc, flow, version, desired, log, message.release_tag)
        most = self.system.limits.deployment_logs_max
        new["logs"] = [*doc["logs"], log][-most:]
        changed[id] = (stored, new)

    def _check_device(self, kind: Kind, device: bytes) -> None:
        doc = device_doc(self.system.journal.get, self.ref.parent, device)
        if doc is None:
            raise Invalid(f"deviceIds: there is no device {device.hex()} in this application.")
        check_device_class(doc, device, kind)

    def _with_flow(
        self, doc: Doc, flow: bytes, version: Resolved, before: str | None, log: Doc, release_tag: str | None
    ) -> Doc:
        """The deployment of an embedded device with another version of one workflow; without deleted workflows."""
        get = self.system.journal.get
        flows: dict[str, Any] = {
            id: each
            for id, each in doc["flows"].items()
            if records.raw_of(get, FLOW, self.ref.parent, bytes.fromhex(id)) is not None
        }
        if version is None:
            flows.pop(flow.hex(), None)
        else:
            name, etag = version
            flows[flow.hex()] = {"currentVersion": None, "desiredVersion": name, "desiredEtag": etag}
        bundle = _bundle(flows, release_tag)
        log["updateType"] = (
            "removeFlow" if version is None else "newFlow" if before is None else "replaceFlow"
        )
        log["updateFlowId"] = flow.hex()
        log["desiredVersion"] = None if version is None else version[0]
        log["newBundle"] = bundle
        return {**doc, "flows": flows, "desiredBundleVersion": bundle}


def _empty(edge: bool, flow: bytes) -> Doc:
    """The other fields of a new deployment."""
    if edge:
        return {"flowId": flow.hex(), "currentVersion": None, "desiredVersion": None}
    return {"flows": {}, "currentBundleVersion": None, "desiredBundleVersion": None}


def _with_version(doc: Doc, version: Resolved, log: Doc) -> Doc:
    """The edge deployment with another desired version."""
    log["previousValue"] = doc["desiredVersion"]
    log["newValue"] = None if version is None else version[0]
    if "desiredEtag" in doc:
        log["previousEtag"] = doc["desiredEtag"]
    new = {name: value for name, value in doc.items() if name != "desiredEtag"}
    new["desiredVersion"] = log["newValue"]
    if version is not None:
        new["desiredEtag"] = log["newEtag"] = version[1]
    return new


def _bundle(flows: Doc, release_tag: str | None) -> str | None:
    """The name of the set of workflows: the tag of the release, or a hash of all versions. None without workflows."""
    if not flows:
        return None
    if release_tag is not None:
        return release_tag
    parts = sorted(f"{id} {each['desiredVersion']} {each['desiredEtag']}" for id, each in flows.items())
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()
