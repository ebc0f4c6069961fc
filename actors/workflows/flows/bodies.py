"""Workflows: the definition of a version, and the bodies of requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.values.structs import FORM, Body
from trunkline.actors.core.values.terms import Description, Id, Key, Name
from trunkline.actors.workflows.flows.triggers import OutputIds, Text, Trigger

FlowClass = Literal["cloud", "edge", "embedded", "experience", "customNode"]
_Category = Literal["data", "experience", "logic", "output", "debug", ""]
_Short = Annotated[str, Meta(max_length=1024)]
_Label = Annotated[str, Meta(min_length=1, max_length=1024)]
_Icon = Annotated[
    str,
    Meta(
        max_length=32767,
        pattern=r"^data:image/(jpg|jpeg|png|svg\+xml);base64,[0-9a-zA-Z+/=]*(?!\n)$",
        extra={FORM: "a picture as a data URL, such as data:image/png;base64,iVBORw0KGgo="},
    ),
]
_AgentVersion = Annotated[
    str,
    Meta(
        pattern=r"^(0|([1-9][0-9]*))\.(0|([1-9][0-9]*))\.(0|([1-9][0-9]*))(?!\n)$",
        max_length=64,
        extra={FORM: "a version such as 1.20.0"},
    ),
]
_Supports = Annotated[list[Literal["cloud", "edge"]], Meta(max_length=1)]


# Definitions.


class Node(Body, frozen=True):
    """A node. `config` and `meta` depend on its type and are stored as they are sent."""

    type: Annotated[str, Meta(min_length=1, max_length=1024)]
    id: Text | UnsetType = UNSET
    config: dict[str, Any] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET
    output_ids: OutputIds | UnsetType = UNSET


class FlowGlobal(Body, frozen=True):
    """A value that every node of the workflow can read, as JSON text."""

    key: Key
    json: Annotated[str, Meta(min_length=1, max_length=32767)]


class _NodeField(Body, frozen=True):
    """The common fields of the settings of a custom node."""

    label: _Label
    id: _Label | UnsetType = UNSET
    description: Description | UnsetType = UNSET


class CheckboxField(_NodeField, frozen=True, kw_only=True, tag_field="type", tag="checkbox"):
    """A setting that is on or off."""

    default_value: bool | UnsetType = UNSET


class NodeOption(Body, frozen=True):
    """A value that may be selected."""

    value: _Label
    label: _Short | UnsetType = UNSET


class SelectField(_NodeField, frozen=True, kw_only=True, tag_field="type", tag="select"):
    """A setting with a list of values."""

    default_value: _Label
    options: Annotated[list[NodeOption], Meta(min_length=1, max_length=100)]


class StringField(_NodeField, frozen=True, kw_only=True, tag_field="type", tag="stringTemplate"):
    """A setting that is a template of a text."""

    default_value: _Short | UnsetType = UNSET
    required: bool | UnsetType = UNSET
    valid_reg_exp: _Short | UnsetType = UNSET


class NumberField(_NodeField, frozen=True, kw_only=True, tag_field="type", tag="numberTemplate"):
    """A setting that is a template of a number."""

    default_value: int | float | UnsetType = UNSET
    required: bool | UnsetType = UNSET
    valid_min: int | float | UnsetType = UNSET
    valid_max: int | float | UnsetType = UNSET


class JsonField(_NodeField, frozen=True, kw_only=True, tag_field="type", tag="jsonTemplate"):
    """A setting that is a template of JSON."""

    default_value: Description | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class PathField(_NodeField, frozen=True, kw_only=True, tag_field="type", tag="payloadPath"):
    """A setting that is a path of the payload."""

    required: bool | UnsetType = UNSET


class SectionField(_NodeField, frozen=True, kw_only=True, tag_field="type", tag="section"):
    """A heading above settings."""


NodeField = CheckboxField | SelectField | StringField | NumberField | JsonField | PathField | SectionField


class CustomNodeConfig(Body, frozen=True):
    """What a custom node shows to a workflow that uses it: its outputs, its result and its settings."""

    output_count: Literal[1, 2]
    result_mode: Literal["optional", "required", "none"]
    fields: Annotated[list[NodeField], Meta(max_length=100)]
    result_description: Description | UnsetType = UNSET


_Globals = Annotated[list[FlowGlobal], Meta(max_length=100)]


class Definition(Body, frozen=True):
    """What a version of a workflow does. A part that is left out is empty."""

    triggers: list[Trigger] | UnsetType = UNSET
    nodes: list[Node] | UnsetType = UNSET
    globals: _Globals | UnsetType = UNSET
    minimum_agent_version: _AgentVersion | UnsetType = UNSET
    custom_node_config: CustomNodeConfig | UnsetType = UNSET


class _Common(Definition, frozen=True, kw_only=True):
    """The fields of a workflow that are set and changed in the same way."""

    description: Description | UnsetType = UNSET
    short_description: _Short | UnsetType = UNSET
    icon_data: _Icon | UnsetType | None = UNSET
    docs_url: _Short | UnsetType = UNSET
    category: _Category | UnsetType = UNSET


class FlowPost(_Common, frozen=True, kw_only=True):
    """A new workflow."""

    name: Name
    enabled: bool = True
    flow_class: FlowClass = "cloud"
    custom_node_supports: _Supports | UnsetType = UNSET


class FlowPatch(_Common, frozen=True, kw_only=True):
    """Changes of a workflow; omitted fields stay as they are. Lists are replaced."""

    name: Name | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    default_version_id: Id | UnsetType | None = UNSET


class FlowVersionPost(Definition, frozen=True, kw_only=True):
    """A new version of a workflow. A part that is left out is empty: `develop` is not copied."""

    version: Name
    notes: Description | UnsetType = UNSET
    enabled: bool = True


class FlowVersionPatch(Body, frozen=True):
    """Changes of a version; omitted fields stay as they are. Nothing else of a version changes."""

    notes: Description | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class FlowImport(FlowPost, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A workflow as an export has it. Fields of an answer, such as its dates, are ignored."""

    id: Id | UnsetType = UNSET
    default_version_id: Id | UnsetType | None = UNSET


class FlowVersionImport(FlowVersionPost, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A version as an export has it. `flowId` is that of a workflow of the same import."""

    id: Id | UnsetType = UNSET
    flow_id: Id | UnsetType = UNSET


class FlowsImport(Body, frozen=True):
    """Workflows with their versions. All of them are created, or none."""

    flows: Annotated[list[FlowImport], Meta(max_length=1000)] = msgspec.field(default_factory=list)
    flow_versions: Annotated[list[FlowVersionImport], Meta(max_length=1000)] = msgspec.field(
        default_factory=list
    )


class StorageEntry(Body, frozen=True):
    """A storage entry: any JSON value, or no value to remove the entry."""

    key: Name
    value: Any | UnsetType = UNSET


class ButtonPress(Body, frozen=True):
    """A press of a virtual button of a workflow."""

    key: Annotated[str, Meta(min_length=1, max_length=1024)]
    payload: Any | UnsetType = UNSET
    meta: Any | UnsetType = UNSET
    flow_version: Name | UnsetType = UNSET
    device_id: Id | UnsetType = UNSET
    deployment_id: Id | UnsetType = UNSET
