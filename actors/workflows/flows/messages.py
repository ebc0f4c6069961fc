"""Workflows and their versions: query strings and messages."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.query.fields import ID, PARTS, TEXT, TEXTS, TIME, Field, Fields
from trunkline.actors.core.query.schema import query_over
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Body, Message, Query
from trunkline.actors.core.values.terms import Id, Name, QueryTime, SortDirection
from trunkline.actors.people.accounts.messages import Email
from trunkline.actors.platform.jobs.messages import CallbackUrl
from trunkline.actors.workflows.flows.bodies import (
    ButtonPress,
    FlowClass,
    FlowPatch,
    FlowPost,
    FlowsImport,
    FlowVersionPatch,
    FlowVersionPost,
)

_Short = Annotated[str, Meta(max_length=1024)]

# Query strings.

_COMMON_FIELDS: Final = {
    "name": TEXT,
    "id": ID,
    "creationDate": TIME,
    "lastUpdated": TIME,
    "flowClass": TEXT,
    "enabled": Field("value", "boolean"),
}
FLOW_FIELDS: Final = Fields(
    "workflow",
    {
        **_COMMON_FIELDS,
        "defaultVersion": ID,
        "triggers": PARTS,
        "nodes": PARTS,
        "customNodeSupports": TEXTS,
    },
)
FLOW_BY_VERSION_FIELDS: Final = Fields(
    "workflow by version",
    {
        **_COMMON_FIELDS,
        "flowId": ID,
    },
)
FLOW_VERSION_FIELDS: Final = Fields(
    "workflow version",
    {
        **_COMMON_FIELDS,
        "version": TEXT,
        "triggers": PARTS,
        "nodes": PARTS,
        "customNodeSupports": TEXTS,
    },
)

FlowQuery = Annotated[dict[str, Any], query_over(FLOW_FIELDS)]
FlowByVersionQuery = Annotated[dict[str, Any], query_over(FLOW_BY_VERSION_FIELDS)]
FlowVersionQuery = Annotated[dict[str, Any], query_over(FLOW_VERSION_FIELDS)]


class TriggerFilter(Body, frozen=True):
    """Matches a trigger that has this type, this key, or both."""

    type: _Short | UnsetType = UNSET
    key: _Short | UnsetType = UNSET


TriggerFilters = Annotated[list[TriggerFilter], Meta(max_length=100)]


class FlowShape(Query, frozen=True):
    """Whether an answer also has the custom nodes that the workflow uses."""

    include_custom_nodes: bool = False


class VersionCreation(FlowShape, frozen=True):
    """How a version is created."""

    allow_replacement: bool = False


class _FlowFilter(Page, frozen=True):
    """What the two lists of workflows have in common."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None
    flow_class: FlowClass = "cloud"
    trigger_filter: TriggerFilters | None = None
    include_custom_nodes: bool = False


class FlowPage(_FlowFilter, frozen=True):
    """A page of workflows."""

    query: FlowQuery | None = None
    all_versions: bool = False


class FlowByVersionPage(_FlowFilter, frozen=True, kw_only=True):
    """A page of the versions of one name."""

    version: Name
    query: FlowByVersionQuery | None = None


class FlowVersionPage(Page, frozen=True):
    """A page of the versions of a workflow."""

    sort_field: Literal["version", "id", "creationDate", "lastUpdated"] = "version"
    filter_field: Literal["version"] | None = None
    include_custom_nodes: bool = False
    query: FlowVersionQuery | None = None


class FlowVersionsDelete(Body, frozen=True):
    """Which versions are deleted, and who is told if a job does it."""

    query: FlowVersionQuery
    email: Email | UnsetType = UNSET
    callback_url: CallbackUrl | UnsetType = UNSET


class _RunsQuery(Query, frozen=True):
    """A range of time, and the device of an edge workflow."""

    duration: int | float = 86_400_000
    end: QueryTime = 0
    device_id: Id | None = None


class VersionErrorsQuery(_RunsQuery, frozen=True):
    """Which errors are listed."""

    limit: Annotated[int, Meta(ge=1, le=25)] = 25
    sort_direction: SortDirection = "desc"


class FlowErrorsQuery(VersionErrorsQuery, frozen=True):
    """Which errors are listed."""

    flow_version: Name | None = None


class VersionStatsQuery(_RunsQuery, frozen=True):
    """Which figures are shown."""

    resolution: int | float = 3_600_000


class FlowStatsQuery(VersionStatsQuery, frozen=True):
    """Which figures are shown."""

    flow_version: Name | None = None


class FlowLogQuery(Query, frozen=True):
    """Which entries of the log are listed."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1
    since: QueryTime | None = None


# Messages to the workflow.


class CreateFlow(Message, frozen=True):
    """Create the workflow. The answer is a `Created`. What an import creates may have timers that are never due."""

    body: FlowPost
    by: Creator
    is_import: bool = False


class PatchFlow(Message, frozen=True):
    """Change the fields that the body contains. `is_import` as in `CreateFlow`."""

    body: FlowPatch
    by: Creator
    if_match: str | None = None
    is_import: bool = False


class DeleteFlow(Message, frozen=True):
    """Delete the workflow with its versions and its storage."""

    if_match: str | None = None


class CreateFlowVersion(Message, frozen=True):
    """Create a version; answers a `Created`. `query` may permit to replace one; `import_id`: the id, in an import."""

    body: FlowVersionPost
    query: VersionCreation
    by: Creator
    import_id: bytes | None = None


class PatchFlowVersion(Message, frozen=True):
    """Change the notes of a version, or whether it is enabled."""

    flow_version: str
    body: FlowVersionPatch
    by: Creator
    if_match: str | None = None


class DeleteFlowVersion(Message, frozen=True):
    """Delete a version."""

    flow_version: str
    if_match: str | None = None


class DeleteSomeVersions(Message, frozen=True):
    """Delete these versions. The answer is a `VersionsDeleted`; one that does not exist any more counts as neither."""

    ids: list[bytes]


class NewVersion(msgspec.Struct, frozen=True):
    """A version of an import: its id, its fields and its definition, as they are stored."""

    id: bytes
    doc: dict[str, Any]
    definition: dict[str, Any]


class NewFlow(msgspec.Struct, frozen=True):
    """A workflow of an import: its fields, its definition and its versions, as they are stored."""

    doc: dict[str, Any]
    definition: dict[str, Any]
    versions: list[NewVersion]


class ImportFlows(Message, frozen=True):
    """Create workflows, each of which takes its own part by its id. Everything was checked before."""

    flows: dict[bytes, NewFlow]
    by: Creator


class PressButton(Message, frozen=True):
    """Press a virtual button of the workflow `flow`. `must_run`: refuse a press that would start nothing."""

    throttle: ClassVar[str | None] = "virtual_button"
    flow: bytes
    body: ButtonPress
    origin: Origin | None = None
    must_run: bool = False


# Messages of reads.


class SelectTriggered(Message, frozen=True):
    """The ids of the workflows that a record triggers: one of the kind `type`."""

    application: bytes
    source: bytes
    type: Literal["webhook", "integration", "endpoint", "resourceJob"]


class GetFlow(Message, frozen=True):
    """One workflow."""

    application: bytes
    flow: bytes
    query: FlowShape


class ListFlows(Message, frozen=True):
    """A page of workflows."""

    application: bytes
    query: FlowPage


class ListFlowsByVersion(Message, frozen=True):
    """A page of the versions of one name."""

    application: bytes
    query: FlowByVersionPage


class GetPalette(Message, frozen=True):
    """The custom nodes of an application."""

    application: bytes


class PrepareImport(Message, frozen=True):
    """Check an import. `ids` are the new ids of its workflows, followed by those of its versions."""

    body: FlowsImport
    by: Creator
    ids: list[bytes]


class GetImported(Message, frozen=True):
    """The workflows and versions of an import, in this order."""

    application: bytes
    flows: list[bytes]
    versions: list[bytes]


class FireTimers(Message, frozen=True):
    """Let the timers of a workflow fire that are due."""


class GetFlowVersion(Message, frozen=True):
    """One version, by its id or its name."""

    application: bytes
    flow: bytes
    flow_version: str | bytes
    query: FlowShape


class ListFlowVersions(Message, frozen=True):
    """A page of the versions of a workflow."""

    application: bytes
    flow: bytes
    query: FlowVersionPage


class SelectVersions(Message, frozen=True):
    """The ids of the versions that a query matches."""

    application: bytes
    flow: bytes
    body: FlowVersionsDelete


class GetStorage(Message, frozen=True):
    """All storage entries."""

    application: bytes
    flow: bytes


class GetStorageSize(Message, frozen=True):
    """The size of the storage."""

    application: bytes
    flow: bytes


class GetFlowErrors(Message, frozen=True):
    """The errors of a workflow, or of one version of it."""

    application: bytes
    flow: bytes
    query: VersionErrorsQuery
    now_ms: int
    flow_version: str | None = None


class GetFlowStats(Message, frozen=True):
    """The figures of a workflow, or of one version of it."""

    application: bytes
    flow: bytes
    query: VersionStatsQuery
    now_ms: int
    flow_version: str | None = None


class GetFlowLog(Message, frozen=True):
    """The log of a workflow, or of one version of it."""

    application: bytes
    flow: bytes
    query: FlowLogQuery
    now_ms: int
    flow_version: str | None = None
