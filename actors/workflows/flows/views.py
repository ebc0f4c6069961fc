"""Workflows: the answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from trunkline.actors.core.values.structs import View
from trunkline.actors.core.values.terms import Id, IsoTime, RecordView, SortDirection
from trunkline.actors.workflows.flows.bodies import CustomNodeConfig, FlowClass, FlowGlobal, Node
from trunkline.actors.workflows.flows.triggers import Trigger

_CreatorType = Literal["flow", "user", "apiToken"]


class RunCount(View, frozen=True):
    """How often something ran."""

    run_count: int
    error_count: int


class FlowRuns(RunCount, frozen=True):
    """How often a workflow ran, in all and by version, and the minute in which a run ended last."""

    by_version: dict[str, RunCount]
    last_run: IsoTime | None = None


class CompatibleClasses(View, frozen=True):
    """The classes of workflows in which a custom node can be used; a text is the least version of the agent."""

    cloud: bool
    experience: bool
    custom_node: bool
    edge: bool | str
    embedded: bool | str


class PaletteNode(View, frozen=True):
    """A custom node, as an editor offers it."""

    id: Id
    name: str
    version: str
    compatible_flow_classes: CompatibleClasses
    flow_version_id: Id | None = None
    description: str | None = None
    short_description: str | None = None
    icon_data: str | None = None
    docs_url: str | None = None
    category: str | None = None
    custom_node_config: CustomNodeConfig | None = None


class RowSetting(View, frozen=True):
    """A field of the rows of a list."""

    name: str
    kind: Literal["text", "template", "longTemplate", "expression", "path", "number", "choice"]
    required: bool
    options: list[str] | None = None


class NodeSetting(View, frozen=True):
    """A setting of a type of node, a field of its `config`."""

    name: str
    kind: Literal[
        "text", "template", "longTemplate", "expression", "path", "number", "flag", "choice", "rows", "texts",
        "flags", "json",
    ]  # fmt: skip
    required: bool
    options: list[str] | None = None
    rows: list[RowSetting] | None = None
    default: bool | None = None


class NodeType(View, frozen=True):
    """A type of node that runs on this server, as an editor offers it."""

    type: str
    category: Literal["data", "experience", "logic", "output", "debug"]
    summary: str
    description: str
    settings: list[NodeSetting]


class TriggerType(View, frozen=True):
    """A type of trigger, with the classes of workflows for which an editor offers it."""

    type: str
    flow_classes: list[FlowClass]


class Palette(View, frozen=True):
    """What an editor of workflows offers."""

    application_id: Id
    trigger_types: list[TriggerType]
    node_types: list[NodeType]
    custom_nodes: list[PaletteNode]
    instance_nodes: list[PaletteNode]


class NodeProblem(View, frozen=True):
    """Why a node fails each run that reaches it, what it ignores, or why a trigger never fires."""

    node_id: str
    node_type: str
    node_label: str
    message: str


class _DefinitionView(RecordView, frozen=True, kw_only=True):
    """What workflows and versions have in common."""

    flow_id: Id
    application_id: Id
    created_by_id: Id
    created_by_type: _CreatorType
    last_updated_by_id: Id
    last_updated_by_type: _CreatorType
    name: str
    enabled: bool
    flow_class: FlowClass
    triggers: list[Trigger]
    nodes: list[Node]
    globals: list[FlowGlobal]
    description: str | None = None
    minimum_agent_version: str | None = None
    custom_node_config: CustomNodeConfig | None = None
    custom_nodes: list[PaletteNode] | None = None
    problems: list[NodeProblem] | None = None


class FlowView(_DefinitionView, frozen=True, kw_only=True):
    """A workflow: its record, and its editable state `develop`."""

    stats: FlowRuns
    short_description: str | None = None
    icon_data: str | None = None
    docs_url: str | None = None
    category: str | None = None
    default_version_id: Id | None = None
    custom_node_supports: list[str] | None = None
    custom_node_use_count: int | None = None


class FlowVersionView(_DefinitionView, frozen=True, kw_only=True):
    """A version of a workflow. `name` is that of the workflow."""

    flow_version_id: Id
    version: str
    stats: RunCount
    notes: str | None = None
    versions: list[str] | None = None


class FlowsImported(View, frozen=True):
    """What an import has created, and the new id of each id of the import."""

    flows: list[FlowView]
    flow_versions: list[FlowVersionView]
    imported_flow_id_map: dict[str, Id]
    imported_version_id_map: dict[str, Id]


class VersionsDeleted(View, frozen=True):
    """How many versions were deleted, and how many could not be: the default version stays."""

    removed: int
    failed: int


class StorageSize(View, frozen=True):
    """The bytes and the number of the storage entries."""

    memory_used: int
    keys_count: int


Storage = Annotated[dict[str, Any], Meta(description="The value of each storage entry by its key")]


class RunError(View, frozen=True):
    """What an error says."""

    name: str
    message: str


class FlowError(View, frozen=True):
    """An error of a run."""

    time: IsoTime
    flow_version: str
    error: RunError
    flow_version_id: Id | None = None
    node_id: str | None = None
    node_label: str | None = None
    device_id: Id | None = None
    device_name: str | None = None


class _RunsView(View, frozen=True, kw_only=True):
    """What answers about runs have in common."""

    start: IsoTime
    end: IsoTime
    application_id: Id
    flow_id: Id
    flow_version: str | None = None
    flow_version_id: Id | None = None
    device_id: Id | None = None
    type: str | None = msgspec.field(default=None, name="_type")


class FlowErrorsView(_RunsView, frozen=True, kw_only=True):
    """The errors of runs in a range of time."""

    limit: int
    sort_direction: SortDirection
    errors: list[FlowError]


class FlowMetric(View, frozen=True):
    """Figures of the runs in a span of time; `wallTime` in milliseconds."""

    time: IsoTime
    run_count: int
    paths_completed: int
    paths_failed: int
    wall_time: int | float


class FlowStatsView(_RunsView, frozen=True, kw_only=True):
    """Figures of runs in a range of time."""

    resolution: int
    metrics: list[FlowMetric]


class FlowLogEntry(FlowMetric, frozen=True, kw_only=True):
    """Figures of the runs in a span of time, with their errors."""

    flow_version_id: str
    errors: list[FlowError]


FlowLog = list[FlowLogEntry]
