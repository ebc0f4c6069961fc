"""Resource jobs: workflows that run once for each row, device or user. Owns the records; nothing executes them."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.query.text import parse_query
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.owner import check_reference
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.values.changes import Fixed, Removable, changes_of
from trunkline.actors.core.values.structs import Body, Query
from trunkline.actors.core.values.template import has_template
from trunkline.actors.core.values.terms import Description, Id, Name, OptionalTemplateId, RecordView
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS

ResourceType = Literal["dataTableRow", "device", "experienceGroup", "experienceUser"]
QueryText = Annotated[str, Meta(max_length=8192)]
Context = Annotated[str, Meta(max_length=32767)]
_Concurrency = Literal[1, 10]
_Delay = Annotated[int, Meta(ge=0, le=60_000)]
_Timeout = Annotated[int, Meta(ge=60_000, le=900_000)]
_Retries = Annotated[int, Meta(ge=1, le=5)]
_RetryDelay = Annotated[int, Meta(ge=0, le=30_000)]


class ResourceJobPost(Body, frozen=True):
    """A new resource job."""

    name: Name
    resource_type: Fixed[ResourceType]
    description: Removable[Description] | UnsetType = UNSET
    data_table_id: Removable[OptionalTemplateId] | UnsetType = UNSET
    query_json: Removable[QueryText] | UnsetType = UNSET
    max_iteration_concurrency: Removable[_Concurrency] | UnsetType = UNSET
    iteration_delay: Removable[_Delay] | UnsetType = UNSET
    iteration_timeout: Removable[_Timeout] | UnsetType = UNSET
    default_context: Removable[Context] | UnsetType = UNSET
    retry_on_timeout: bool | UnsetType = UNSET
    retry_on_failure: bool | UnsetType = UNSET
    max_iteration_retries: Removable[_Retries] | UnsetType = UNSET
    retry_delay: Removable[_RetryDelay] | UnsetType = UNSET


@changes_of(ResourceJobPost)
class ResourceJobPatch(Body, frozen=True):
    """Changes of a resource job; omitted fields stay as they are, null removes a field."""


class ResourceJobPage(Page, frozen=True):
    """A page of resource jobs. None has been executed, so all are equal in `lastExecutionRequested`."""

    sort_field: Literal[
        "name", "id", "creationDate", "lastUpdated", "lastExecutionRequested", "resourceType"
    ] = "name"
    filter_field: Literal["name", "resourceType"] | None = None


class ResourceJobRemoval(Query, frozen=True):
    """`includeWorkflows`: also delete the workflows that the resource job triggers."""

    include_workflows: bool = False


class ResourceJobView(RecordView, frozen=True, kw_only=True):
    """A resource job."""

    resource_job_id: Id
    application_id: Id
    name: str
    resource_type: ResourceType
    description: str | None = None
    data_table_id: str | None = None
    query_json: str | None = None
    max_iteration_concurrency: int | None = None
    iteration_delay: int | None = None
    iteration_timeout: int | None = None
    default_context: str | None = None
    retry_on_timeout: bool | None = None
    retry_on_failure: bool | None = None
    max_iteration_retries: int | None = None
    retry_delay: int | None = None


def _check(change: Change) -> None:
    """Check a data table that is newly named, and the query. What holds a template is not checked."""
    named, old = change.named, change.old or {}
    table = named.get("dataTableId")
    if table is not None and table != old.get("dataTableId") and not has_template(table):
        check_reference(change, DATA_TABLE, table, "dataTableId")
    text = named.get("queryJson")
    if text is not None and not has_template(text):
        query = parse_query(text, "queryJson")
        if change.new["resourceType"] == "device":
            compile_query(query, DEVICE_FIELDS, at="queryJson")


RESOURCE_JOBS: Final = Resource(
    name="resourceJob",
    kind=Kind(
        name="resourceJob",
        noun="resource job",
        indexes=("name", "creationDate", "lastUpdated", "lastExecutionRequested", "resourceType"),
        counted_as="resourceJobCount",
        audited_as="ResourceJob",
    ),
    post=ResourceJobPost,
    patch=ResourceJobPatch,
    page=ResourceJobPage,
    view=ResourceJobView,
    check=_check,
)
