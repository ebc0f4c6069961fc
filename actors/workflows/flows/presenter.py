"""Workflows and versions as the caller sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.records.revision import Found, revision_of
from trunkline.actors.core.records.shape import Shape
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.timestamps import MINUTE_MS, iso
from trunkline.actors.workflows.flows.definition import shown_parts, used_versions
from trunkline.actors.workflows.flows.kind import FLOW
from trunkline.actors.workflows.flows.run_records import minute_of_key
from trunkline.actors.workflows.flows.versions import (
    VersionFound,
    find_version,
    id_bytes,
    version_by_id,
)
from trunkline.actors.workflows.flows.views import FlowVersionView, FlowView
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.snapshot import Snapshot

INLINE_BYTES_MAX: Final = 32 * 1024
"""Stored bytes of records and definitions that are shown inside the event loop: twenty small workflows, 2 ms."""

_FLOW = Shape(FlowView)
_VERSION = Shape(FlowVersionView)


def find_flow(snapshot: Snapshot, application: bytes, flow: bytes) -> Found:
    """The record of a workflow. Raises `NotFound`."""
    found = records.find(snapshot, FLOW, application, flow)
    if found is None:
        raise missing(FLOW, flow)
    return found


def read_definition(
    snapshot: Snapshot,
    application: bytes,
    flow: bytes,
    version: bytes,
    count: Callable[[bytes], None] | None = None,
) -> Doc:
    """The triggers, nodes and globals of a version; 12 zero bytes stand for `develop`.

    `count` is told of the stored bytes before they are decoded.
    """
    raw = snapshot.get(keys.FLOWS, keys.flow_definition_key(application, flow, version))
    if raw is None:
        return {}
    if count is not None:
        count(raw)
    definition: Doc = decode(raw)
    return definition


class FlowPresenter:
    """Shows workflows and versions of one application as the caller sees them, within the size of one answer.

    Many or large ones are shown in a worker thread.
    """

    __slots__ = ("_application", "_bytes", "_reading", "_size", "_snapshot", "_with_custom_nodes")

    def __init__(self, reading: Reading, application: bytes, *, with_custom_nodes: bool = False) -> None:
        self._reading = reading
        self._snapshot = reading.snapshot
        self._bytes = 0
        self._application = application
        self._size = reading.answer_size()
        self._with_custom_nodes = with_custom_nodes

    def flow(self, found: Found) -> Doc:
        """A workflow with its editable state."""
        id = found.id.hex()
        self._count(found.raw)
        shown: Doc = {"id": id, "flowId": id, "applicationId": self._application.hex(), **_FLOW.of(found.doc)}
        shown |= self._parts(found.id, ROOT)
        shown["stats"] = self._runs(found.id)
        if found.doc["flowClass"] == "customNode":
            raw = self._snapshot.get(keys.FLOWS, keys.flow_uses_key(self._application, found.id))
            shown["customNodeUseCount"] = 0 if raw is None else max(decode(raw).get("n", 0), 0)
        return shown | {"_etag": found.revision, "_type": "flow"}

    def version(self, flow: Found, version: VersionFound) -> Doc:
        """A version of a workflow. `develop` has the id and the dates of its workflow."""
        develop = version.id == ROOT
        id = (flow.id if develop else version.id).hex()
        doc = flow.doc if develop else version.doc
        self._count(version.raw)
        shown: Doc = {
            "id": id,
            "flowVersionId": id,
            "flowId": flow.id.hex(),
            "applicationId": self._application.hex(),
            **_VERSION.of({**doc, "name": flow.doc["name"], "version": version.name}),
            "flowClass": flow.doc["flowClass"],
        }
        if flow.doc["flowClass"] == "experience":
            shown["versions"] = [version.name]
            if "description" in flow.doc:
                shown["description"] = flow.doc["description"]
        elif develop:
            shown.pop("description", None)
        shown |= self._parts(flow.id, version.id)
        total = self._snapshot.get(keys.FLOWS, keys.flow_total_key(self._application, flow.id, version.id))
        shown["stats"] = _run_count({} if total is None else decode(total))
        revision = flow.revision if develop else revision_of(version.raw)
        return shown | {"_etag": revision, "_type": "flowVersion"}

    def palette_node(self, flow: Found, version: VersionFound) -> Doc:
        """A custom node, as an editor offers it."""
        definition = read_definition(self._snapshot, self._application, flow.id, version.id, self._count)
        shown: Doc = {"id": flow.id.hex(), "name": flow.doc["name"], "version": version.name}
        for name in ("description", "shortDescription", "iconData", "docsUrl", "category"):
            if name in flow.doc:
                shown[name] = flow.doc[name]
        if version.id != ROOT:
            shown["flowVersionId"] = version.id.hex()
        if "customNodeConfig" in definition:
            shown["customNodeConfig"] = definition["customNodeConfig"]
        on_edge = flow.doc.get("customNodeSupports", ["cloud"]) == ["edge"]
        shown["compatibleFlowClasses"] = {
            "cloud": not on_edge,
            "experience": not on_edge,
            "customNode": True,
            "edge": definition.get("minimumAgentVersion", True) if on_edge else False,
            "embedded": False,
        }
        return shown

    def _count(self, raw: bytes) -> None:
        self._size.add(len(raw))
        self._bytes += len(raw)
        self._reading.check_time(is_long=self._bytes > INLINE_BYTES_MAX)

    def _runs(self, flow: bytes) -> Doc:
        """How often a workflow and each of its versions ran, and when it ran last."""
        prefix = keys.flow_totals_prefix(self._application, flow)
        total: Doc = _run_count({})
        by_version: Doc = {}
        for key, raw in self._snapshot.range(keys.FLOWS, prefix, keys.prefix_end(prefix)):
            self._count(raw)
            id = bytes(key[-keys.ID_BYTES :])
            version = version_by_id(self._snapshot.get, self._application, flow, flow if id == ROOT else id)
            if version is not None:
                count = by_version[version.name] = _run_count(decode(raw))
                total = {name: number + count[name] for name, number in total.items()}
        shown = {**total, "byVersion": by_version}
        minutes = keys.flow_minutes_prefix(self._application, flow)
        for key, _ in self._snapshot.range(keys.FLOWS, minutes, keys.prefix_end(minutes), reverse=True):
            shown["lastRun"] = iso(minute_of_key(key) * MINUTE_MS)
            break
        return shown

    def _parts(self, flow: bytes, version: bytes) -> Doc:
        definition = read_definition(self._snapshot, self._application, flow, version, self._count)
        shown = shown_parts(definition)
        if self._with_custom_nodes:
            shown["customNodes"] = list(self._custom_nodes(definition))
        return shown

    def _custom_nodes(self, definition: Doc) -> Iterator[Doc]:
        """The custom nodes that a definition uses; those that do not exist are left out."""
        get = self._snapshot.get
        for id, named in used_versions(definition):
            custom_node = id_bytes(id)
            if custom_node is None:
                continue
            flow = records.find(self._snapshot, FLOW, self._application, custom_node)
            version = flow and find_version(get, self._application, flow.id, flow.doc, named)
            if flow and version:
                yield self.palette_node(flow, version)


def _run_count(sums: dict[str, int]) -> Doc:
    return {"runCount": sums.get("runs", 0), "errorCount": sums.get("failed", 0)}
