"""Notebooks and resource jobs: the queries and bodies of what is not a plain record, its messages and views.

This server executes neither, so there are no executions: what lists them is empty.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.values.structs import Body, Message, Query, View
from trunkline.actors.core.values.terms import Id, IsoTime, OptionalTemplateId, QueryTime, Timestamp
from trunkline.actors.platform.jobs.messages import NotifyBody
from trunkline.store.object_store import Stored

TemplateContext = Annotated[str, Meta(max_length=32767)]


class NotebookExecution(NotifyBody, frozen=True):
    """How a notebook is executed: the time to which its inputs are relative, and the values of its templates."""

    relative_to: Timestamp | UnsetType = UNSET
    template_context: TemplateContext | UnsetType = UNSET


class InputDataExport(NotebookExecution, frozen=True):
    """The inputs are exported as an execution at `relativeTo` (default: now) would get them.

    `templateContext` is a JSON object with the values of the templates.
    """


class ResourceJobExecution(Body, frozen=True):
    """How a resource job is executed."""

    template_context: TemplateContext | UnsetType = UNSET
    query_json: Annotated[str, Meta(max_length=8192)] | UnsetType = UNSET
    data_table_id: OptionalTemplateId | UnsetType = UNSET


class ExecutionChoice(Query, frozen=True):
    """An execution."""

    execution_id: Id


class ExecutionRange(Query, frozen=True):
    """The newest executions, or those since a time."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1
    since: QueryTime | None = None


class BeginInputExport(Message, frozen=True):
    """Count a call that exports the inputs of a notebook."""

    throttle: ClassVar[str | None] = "notebook_export"


class SetNotebookFile(Message, frozen=True):
    """Give a notebook the file of this name, whose content was reserved and written."""

    record: bytes
    name: str
    content: bytes
    stored: Stored
    by: Creator
    if_match: str | None = None


class ImportNotebook(Message, frozen=True):
    """Create a notebook that comes from another application, with its file if there is one (`SetNotebookFile`)."""

    id: bytes
    body: Any
    by: Creator
    name: str = "notebook.ipynb"
    content: bytes | None = None
    stored: Stored | None = None


class PrepareInputs(Message, frozen=True):
    """The inputs of a notebook, ready to be exported: templates filled in, times absolute, queries parsed.

    The answer is a list of objects (`export.py`). Raises `Invalid` naming the input and the field, `Forbidden` for an
    input that a token with these `scopes` may not read.
    """

    application: bytes
    notebook: bytes
    now_ms: int
    context: dict[str, Any]
    private: bool
    base_url: str
    scopes: frozenset[str]


class ExecutionError(View, frozen=True):
    """An error of an execution."""

    name: str
    message: str


class _ExecutionView(View, frozen=True, kw_only=True):
    id: Id
    application_id: Id
    status: str
    source_type: str
    source_id: Id
    template_context: str | None = None


class NotebookExecutionLog(_ExecutionView, frozen=True, kw_only=True):
    """An execution of a notebook."""

    notebook_execution_id: Id
    notebook_id: Id
    run_queued_at: IsoTime | None = None
    run_started_at: IsoTime | None = None
    notebook_completed_at: IsoTime | None = None
    execution_errors: list[ExecutionError]


class ResourceJobExecutionLog(_ExecutionView, frozen=True, kw_only=True):
    """An execution of a resource job."""

    resource_job_execution_id: Id
    resource_job_id: Id
    resource_type: str
    run_started_at: IsoTime | None = None
    run_completed_at: IsoTime | None = None
