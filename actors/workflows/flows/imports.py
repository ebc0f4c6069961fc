"""Imports: workflows and versions of an export become new records, with new ids wherever an export names an old one.

Everything is checked before anything is written, and errors name the place: `flows[3].nodes[2].id`. What an export
names beside its own workflows and versions (devices, endpoints, tables) stays as it is.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.workflows.flows.actor import record_fields
from trunkline.actors.workflows.flows.bodies import FlowImport, FlowVersionImport
from trunkline.actors.workflows.flows.definition import check_definition, split, with_new_ids
from trunkline.actors.workflows.flows.kind import RESERVED
from trunkline.actors.workflows.flows.messages import ImportFlows, NewFlow, NewVersion, PrepareImport
from trunkline.limits.table import Limits

INLINE_RECORDS_MAX: Final = 8
"""Workflows and versions that are checked inside the event loop: a millisecond or two."""


class Import(NamedTuple):
    """A checked import: the message to its workflows, its ids in the order of the body, and the maps of ids."""

    message: ImportFlows
    flows: list[bytes]
    versions: list[bytes]
    flow_ids: dict[str, str]
    version_ids: dict[str, str]


def prepare_import(reading: Reading, message: PrepareImport) -> Import:
    """Check an import as a whole. Raises `Invalid` naming the first place that is not acceptable.

    It reads nothing of the store; it is a read because a large one is checked in a worker thread.
    """
    body, by, limits = message.body, message.by, reading.limits
    reading.check_time(is_long=len(message.ids) > INLINE_RECORDS_MAX)
    flows, versions = message.ids[: len(body.flows)], message.ids[len(body.flows) :]
    flow_ids = _id_map("flows", body.flows, flows)
    version_ids = _id_map("flowVersions", body.flow_versions, versions)
    new_ids = flow_ids | version_ids
    prepared: dict[bytes, NewFlow] = {}
    for position, (id, flow) in enumerate(zip(flows, body.flows, strict=True)):
        named, definition = split(_fields(flow, ("id", "defaultVersionId")))
        check_definition(definition, flow.flow_class, limits, at=f"flows[{position}].")
        fields = {name: value for name, value in record_fields(named).items() if value is not None}
        doc = {**fields, "enabled": flow.enabled, "flowClass": flow.flow_class}
        prepared[id] = NewFlow(doc, with_new_ids(definition, new_ids), [])
    for position, (id, version) in enumerate(zip(versions, body.flow_versions, strict=True)):
        at = f"flowVersions[{position}]."
        parent = prepared[_parent(version, flow_ids, at)]
        named, definition = split(_fields(version, ("id", "flowId")))
        check_definition(definition, parent.doc["flowClass"], limits, at=at)
        _check_name(version.version, parent, limits, at)
        doc = {**named, "enabled": version.enabled}
        parent.versions.append(NewVersion(id, doc, with_new_ids(definition, new_ids)))
    for position, (id, flow) in enumerate(zip(flows, body.flows, strict=True)):
        _set_default(prepared[id], flow, version_ids, f"flows[{position}].")
    return Import(ImportFlows(flows=prepared, by=by), flows, versions, flow_ids, version_ids)


def _fields(body: FlowImport | FlowVersionImport, without: tuple[str, ...]) -> Doc:
    fields: Doc = msgspec.to_builtins(body)
    return {name: value for name, value in fields.items() if name not in without}


def _id_map(name: str, bodies: list[Any], ids: list[bytes]) -> dict[str, str]:
    """The new id of each id that an export gives. Raises `Invalid` for one that it gives twice."""
    new_ids: dict[str, str] = {}
    for position, (body, id) in enumerate(zip(bodies, ids, strict=True)):
        if body.id is msgspec.UNSET:
            continue
        old = body.id.lower()
        if old in new_ids:
            raise Invalid(f"{name}[{position}].id: {old} stands in the import twice; give each record once.")
        new_ids[old] = id.hex()
    return new_ids


def _parent(version: FlowVersionImport, flow_ids: dict[str, str], at: str) -> bytes:
    given = version.flow_id
    new = None if given is msgspec.UNSET else flow_ids.get(given.lower())
    if new is None:
        shown = "is missing" if given is msgspec.UNSET else f"{given} is not a workflow of this import"
        raise Invalid(f"{at}flowId: {shown}; give the id of one of flows.")
    return bytes.fromhex(new)


def _check_name(name: str, parent: NewFlow, limits: Limits, at: str) -> None:
    if name.lower() in RESERVED:
        raise Invalid(f"{at}version: {name!r} is reserved; give another name.")
    if any(each.doc["version"] == name for each in parent.versions):
        raise Invalid(f"{at}version: the workflow has another version {name!r}; give each name once.")
    if len(parent.versions) >= limits.flow_versions_max:
        raise PayloadTooLarge(
            f"{at}flowId: a workflow has at most {limits.flow_versions_max} versions; import fewer of them."
        )


def _set_default(new: NewFlow, flow: FlowImport, version_ids: dict[str, str], at: str) -> None:
    """Set the new id of the default version, if that is not `develop`, for which the id of the workflow may stand."""
    old = flow.default_version_id
    if (
        old is msgspec.UNSET
        or old is None
        or (flow.id is not msgspec.UNSET and old.lower() == flow.id.lower())
    ):
        return
    id = version_ids.get(old.lower())
    if id is None or all(each.id.hex() != id for each in new.versions):
        raise Invalid(
            f"{at}defaultVersionId: {old} is not a version of this workflow in the import; add the version to "
            "flowVersions, or give null for develop."
        )
    new.doc["defaultVersionId"] = id
