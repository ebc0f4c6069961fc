"""The export and import of workflows and their versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from trunkline.actors.core.records import records
from trunkline.actors.core.records.export_lines import body_of, line
from trunkline.actors.core.records.portable import Item, Portable, ResourceName
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Id
from trunkline.actors.workflows.flows.bodies import FlowPatch, FlowPost, FlowVersionPost
from trunkline.actors.workflows.flows.kind import FLOW, FLOW_VERSION
from trunkline.actors.workflows.flows.messages import (
    CreateFlow,
    CreateFlowVersion,
    PatchFlow,
    VersionCreation,
)
from trunkline.actors.workflows.flows.presenter import read_definition

if TYPE_CHECKING:
    from trunkline.actors.core.records.export_lines import Lines
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.store.snapshot import Snapshot


class FlowMore(Body, frozen=True):
    """The version of a workflow that runs, if that is not `develop`."""

    default_version_id: Id | UnsetType = UNSET


class FlowVersionMore(Body, frozen=True):
    """The workflow of a version."""

    flow_id: Id


def _read(snapshot: Snapshot, application: bytes) -> Lines:
    for id, doc in records.scan(snapshot, FLOW, application):
        definition = read_definition(snapshot, application, id, ROOT)
        default = doc.get("defaultVersionId")
        more = None if default is None else {"defaultVersionId": default}
        yield line(id, body_of(FlowPost, {**doc, **definition}), more)


def _make(item: Item) -> Iterator[Ask]:
    ref = Ref("flow", item.application, item.id)
    if item.existing is None:
        yield ref, CreateFlow(body=item.body, by=item.by, is_import=True)
    else:
        yield ref, PatchFlow(body=item.patch(FlowPatch), by=item.by, is_import=True)


def default_version(item: Item) -> Iterator[Ask]:
    """The message that sets the version of a workflow that runs, once its versions exist."""
    body = FlowPatch(default_version_id=item.more.default_version_id)
    yield Ref("flow", item.application, item.id), PatchFlow(body=body, by=item.by, is_import=True)


def _versions(name: ResourceName, *, of_experience: bool) -> Portable:
    """The versions of workflows of the class experience, or those of all others."""

    def read(snapshot: Snapshot, application: bytes) -> Lines:
        flow, is_wanted = b"", False
        for id, doc in records.scan(snapshot, FLOW_VERSION, application):
            if bytes.fromhex(doc["flowId"]) != flow:
                flow = bytes.fromhex(doc["flowId"])
                found = records.find(snapshot, FLOW, application, flow)
                # The versions of a deleted workflow stay until they are swept.
                is_wanted = found is not None and (found.doc["flowClass"] == "experience") == of_experience
            if is_wanted:
                definition = read_definition(snapshot, application, flow, id)
                yield line(id, body_of(FlowVersionPost, {**doc, **definition}), {"flowId": doc["flowId"]})

    return Portable(
        name=name,
        created_by="flowVersions.post",
        changed_by="flowVersion.patch",
        body=FlowVersionPost,
        kinds=(FLOW_VERSION,),
        more=FlowVersionMore,
        read=read,
        make=_make_version,
        same=("version", "flowId"),
    )


def _make_version(item: Item) -> Iterator[Ask]:
    ref = Ref("flow", item.application, bytes.fromhex(item.more.flow_id))
    choice = VersionCreation(allow_replacement=item.existing is not None)
    yield ref, CreateFlowVersion(body=item.body, query=choice, by=item.by, import_id=item.id)


FLOWS: Final = (
    Portable(
        name="Flow",
        created_by="flows.post",
        changed_by="flow.patch",
        body=FlowPost,
        kinds=(FLOW,),
        more=FlowMore,
        read=_read,
        make=_make,
        same=("name", "flowClass"),
    ),
    _versions("FlowVersion", of_experience=False),
    _versions("ExperienceFlowVersion", of_experience=True),
)
