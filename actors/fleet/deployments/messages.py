"""Deployments: bodies, query strings, answers and messages."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.structs import Body, Message, View
from trunkline.actors.core.values.terms import Id, Ids, IsoTime, Name, RecordView, SortDirection, TagFilters
from trunkline.actors.platform.jobs.messages import NotifyBody

DeploymentKind = Literal["edgeDeployment", "embeddedDeployment"]
_NewVersion = Annotated[str, Meta(max_length=255)] | None

# Bodies.


class DeploymentRelease(Body, frozen=True):
    """The version that devices are to run; null or a blank text removes the workflow from them."""

    flow_id: Id
    version: _NewVersion
    device_ids: Ids | UnsetType = UNSET
    device_tags: TagFilters | UnsetType = UNSET


class EmbeddedDeploymentRelease(DeploymentRelease, frozen=True):
    """The version that devices are to run; null or a blank text removes the workflow from them."""

    release_tag: Name | UnsetType | None = UNSET


class DeploymentReplace(Body, frozen=True):
    """A version that takes the place of another; null or a blank text removes the workflow."""

    flow_id: Id
    old_version: Name
    new_version: _NewVersion


class DeploymentRemove(Body, frozen=True):
    """A workflow and a device: both, or one of them and null for the other."""

    flow_id: Id | None
    device_id: Id | None


class EmbeddedDeploymentExport(NotifyBody, frozen=True):
    """The deployment, by its id or its device. The options of a compiler are accepted and have no effect."""

    embedded_deployment_id: Id | UnsetType = UNSET
    device_id: Id | UnsetType = UNSET
    trace_level: Literal[0, 1, 2] | UnsetType = UNSET
    disable_debug_message: bool | UnsetType = UNSET
    stack_size: Annotated[int, Meta(ge=1600, le=2_147_483_648)] | UnsetType = UNSET
    debug_symbols: bool | UnsetType = UNSET
    export_memory: bool | UnsetType = UNSET
    gzip: bool | UnsetType = UNSET


# Query strings.


class EdgeDeploymentPage(Page, frozen=True):
    """A page of edge deployments."""

    sort_field: Literal[
        "id", "deviceId", "flowId", "desiredVersion", "currentVersion", "creationDate", "lastUpdated"
    ] = "lastUpdated"
    device_id: Id | None = None
    flow_id: Id | None = None
    version: Name | None = None
    filter_empty: bool = False


class EmbeddedDeploymentPage(Page, frozen=True):
    """A page of embedded deployments."""

    per_page: Annotated[int, Meta(ge=1, le=1000)] = 1000
    sort_field: Literal["id", "creationDate", "lastUpdated"] = "lastUpdated"
    sort_direction: SortDirection = "desc"
    device_id: Id | None = None
    flow_id: Id | None = None
    version: Name | None = None


# Answers.


class DeviceConnection(View, frozen=True):
    """Whether the device is connected: 1, 0, or null if that was never reported."""

    connected: Literal[0, 1] | None
    time: IsoTime | None = None


class _Log(View, frozen=True, kw_only=True):
    """Who changed something, and when."""

    source_type: Literal["flow", "user", "apiToken"]
    source_id: Id
    date: IsoTime
    change_type: Literal["current", "desired"]


class EdgeLog(_Log, frozen=True, kw_only=True):
    """A change of an edge deployment."""

    new_value: str | None
    previous_value: str | None
    new_etag: str | None = None
    previous_etag: str | None = None


class EmbeddedLog(_Log, frozen=True, kw_only=True):
    """A change of an embedded deployment."""

    update_type: Literal["newFlow", "replaceFlow", "removeFlow"]
    update_flow_id: Id
    desired_version: str | None
    new_bundle: str | None


class _DeploymentView(RecordView, frozen=True, kw_only=True):
    """What deployments have in common."""

    application_id: Id
    device_id: Id
    device_name: str
    device_connection_info: DeviceConnection


class EdgeDeploymentView(_DeploymentView, frozen=True, kw_only=True):
    """A workflow on an edge device."""

    edge_deployment_id: Id
    flow_id: Id
    flow_name: str
    flow_class: Literal["edge"]
    current_version: str | None
    desired_version: str | None
    logs: list[EdgeLog]
    desired_etag: str | None = None


class DeployedFlow(View, frozen=True):
    """A workflow of an embedded deployment."""

    flow_name: str
    current_version: str | None
    desired_version: str | None


class EmbeddedDeploymentView(_DeploymentView, frozen=True, kw_only=True):
    """The workflows on an embedded device."""

    embedded_deployment_id: Id
    flows: Annotated[dict[str, DeployedFlow], Meta(description="The workflows by id")]
    current_bundle_version: str | None
    desired_bundle_version: str | None
    unknown_bundle: bool
    logs: list[EmbeddedLog]


# Messages to the deployments of an application.


class SetVersions(Message, frozen=True):
    """Set the desired version of workflows on devices; None removes them.

    `targets` are pairs of a device and a workflow. Only where `old` is the desired version, if it is given. Without a
    version, or with `old`, nothing is created. `release_tag` names the bundle of embedded devices.
    """

    kind: DeploymentKind
    targets: list[tuple[bytes, bytes]]
    version: str | None
    by: Creator
    old: str | None = None
    release_tag: str | None = None


class BeginExport(Message, frozen=True):
    """Count an export of an embedded deployment against its throttle."""

    throttle: ClassVar[str | None] = "embedded_export"


# Messages of reads.


class SelectDevices(Message, frozen=True):
    """The devices of a release. Everything that its body names is checked."""

    application: bytes
    kind: DeploymentKind
    body: DeploymentRelease


class SelectDeployments(Message, frozen=True):
    """The deployments of a replacement or a removal, as `targets` of `SetVersions`."""

    application: bytes
    kind: DeploymentKind
    body: DeploymentReplace | DeploymentRemove


class GetEdgeDeployment(Message, frozen=True):
    """One edge deployment."""

    application: bytes
    edge_deployment: bytes


class GetEmbeddedDeployment(Message, frozen=True):
    """One embedded deployment."""

    application: bytes
    embedded_deployment: bytes


class ListEdgeDeployments(Message, frozen=True):
    """A page of edge deployments."""

    application: bytes
    query: EdgeDeploymentPage


class ListEmbeddedDeployments(Message, frozen=True):
    """A page of embedded deployments."""

    application: bytes
    query: EmbeddedDeploymentPage
