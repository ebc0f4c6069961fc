"""Routes: notebooks and resource jobs. This server executes neither, and says so."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.uploads import Uploads
from trunkline.actors.core.query.text import parse_query
from trunkline.actors.core.records.messages import GetRecord
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.structs import View
from trunkline.actors.core.values.terms import Id
from trunkline.actors.core.values.timestamps import parse_report_time, resolve_range
from trunkline.actors.platform.applications.notebook_minutes import CountNotebookMinutes, NotebookMinuteCounts
from trunkline.actors.platform.applications.payload_counts import DayRange
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.presentation.notebooks.export import data_of
from trunkline.actors.presentation.notebooks.messages import (
    BeginInputExport,
    ExecutionChoice,
    ExecutionRange,
    InputDataExport,
    NotebookExecution,
    NotebookExecutionLog,
    PrepareInputs,
    ResourceJobExecution,
    ResourceJobExecutionLog,
    SetNotebookFile,
)
from trunkline.actors.presentation.notebooks.resource import NOTEBOOKS
from trunkline.actors.presentation.notebooks.resource_jobs import RESOURCE_JOBS, ResourceJobRemoval
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import protocol_error, rate_limit
from trunkline.http.calls.form_data import FormData
from trunkline.http.calls.request import Response
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import APP_PATH, ActorAddress, LinkTemplates, Route
from trunkline.http.calls.verbs import get, job, post
from trunkline.http.resources.platform.jobs import queue_job
from trunkline.http.resources.workflows.triggered_flows import remove_with_flows

_NOTEBOOKS: Final = APP_PATH + "/notebooks"
_NOTEBOOK: Final = _NOTEBOOKS + "/{notebookId}"
_RESOURCE_JOBS: Final = APP_PATH + "/resource-jobs"
_NOTEBOOK_ACTOR: Final = ActorAddress("notebook", "notebook")
_NOTEBOOKS_ACTOR: Final = ActorAddress("notebooks", "application")
_FILE_NAME_CHARS_MAX: Final = 1024
_RESERVED_MS: Final = 3_600_000
"""An upload that runs keeps its reservation; what is left of one that was cut is removed after this time."""


class ExecutionStarted(View, frozen=True):
    """The execution has begun."""

    success: Literal[True]
    execution_id: Id


async def execute(call: Call) -> Response:
    """This server executes nothing: the answer is 501, and nothing is stored."""
    await _check_exists(call)
    headers, body = protocol_error(501, f"This server does not execute {_nouns(call)}; it only stores them.")
    return Response(501, headers, body)


async def cancel_execution(call: Call) -> Response:
    """There is no execution to cancel, so the answer is 404."""
    await _check_exists(call)
    raise NotFound(
        f"There is no execution {call.query.execution_id.lower()}; this server does not execute {_nouns(call)}."
    )


async def list_executions(call: Call) -> Response:
    """The list is empty, because this server executes nothing."""
    await _check_exists(call)
    resolve_range(call.now_ms, since=call.query.since)  # refuses what is no time
    return json_response(call, 200, [])


async def count_minutes(call: Call) -> Response:
    """All counts are zero, because this server executes no notebooks."""
    await _check_exists(call)
    return json_response(call, 200, await call.service.read(call, CountNotebookMinutes))


async def export_inputs(call: Call) -> Response:
    """Queue an export of the inputs of a notebook: a zip with a file for each input, as an execution would get them.

    A template in an input is filled in with the values of `templateContext`. What a URL returns is fetched from public
    addresses only.
    """
    body: InputDataExport = call.body
    system = call.service.system
    now_ms = call.now_ms
    if body.relative_to is not UNSET:
        now_ms = parse_report_time(body.relative_to, call.now_ms, field="relativeTo")
    context = parse_query(body.template_context or "", "templateContext")
    if not isinstance(context, dict):
        raise Invalid("templateContext: is not a JSON object.")
    inputs = await call.service.read_message(
        PrepareInputs(
            application=call.application,
            notebook=call.ids["notebook"],
            now_ms=now_ms,
            context=context,
            private=system.component(JobQueue).calls_private_networks,
            base_url=system.component(Results).base_url,
            scopes=call.principal.scopes,
        )
    )
    answer = await system.ask(_NOTEBOOK_ACTOR.ref(call.ids), BeginInputExport())
    response = await queue_job(
        call,
        call.ids["notebook"],
        {"relativeTo": now_ms},
        notify=(body,),
        data=data_of(inputs),
    )
    if answer.verdict is not None:
        response.headers.extend(rate_limit("notebook_export", answer.verdict))
    return response


def _resource(call: Call) -> Resource:
    return NOTEBOOKS if NOTEBOOKS.kind.name in call.ids else RESOURCE_JOBS


class NotebookForm(msgspec.Struct, frozen=True, rename="camel"):
    """A form with the file of a notebook."""

    jupyter_file: bytes


async def upload(call: Call) -> Response:
    """Upload the file of a notebook as the only part of a form, named `jupyterFile`; it replaces an earlier one."""
    system, application, id = call.service.system, call.application, call.ids["notebook"]
    contents, bytes_max = system.component(Contents), system.limits.multipart_bytes_max
    await _check_exists(call)
    form = FormData(call)
    part = await form.expect_file("jupyterFile")
    for name in form.fields:
        raise Invalid(f"{name[:100]}: is not a field of this form; send only jupyterFile.")
    file_name = part.file_name or "notebook.ipynb"
    if not 0 < len(file_name) <= _FILE_NAME_CHARS_MAX:
        raise Invalid(f"jupyterFile: its file name must have 1 to {_FILE_NAME_CHARS_MAX} characters.")
    system.check_load()
    with system.component(Uploads).slot(application):
        content = system.ids.new(call.now_ms)
        await contents.reserve_now(application, content, call.now_ms + _RESERVED_MS)
        with contents.in_use(application, content):
            stored = await contents.write(application, content, part, bytes_max)
            await form.expect_end()
            message = SetNotebookFile(
                record=id,
                name=file_name,
                content=content,
                stored=stored,
                by=call.principal.creator,
                if_match=call.if_match,
            )
            await system.ask(_NOTEBOOKS_ACTOR.ref(call.ids), message)
    read = GetRecord(resource=NOTEBOOKS.name, ids=call.ids, now_ms=call.now_ms)
    return json_response(call, 200, await call.service.read_message(read))


async def _check_exists(call: Call) -> None:
    await call.service.read_message(GetRecord(resource=_resource(call).name, ids=call.ids))


def _nouns(call: Call) -> str:
    return _resource(call).kind.nouns


def _executions(path: str, resource: Resource, execution: Any, log: Any, scope: str) -> tuple[Route, ...]:
    """The operations on executions. `scope` is the operation whose scope cancels one."""
    noun = resource.kind.noun
    return (
        post(
            path + "/execute",
            f"{resource.name}.execute",
            f"Execute a {noun}; this server does not",
            execute,
            body=execution,
            reply=ExecutionStarted,
            also={501: "This server executes nothing"},
        ),
        post(
            path + "/cancelExecution",
            f"{resource.name}.cancelExecution",
            f"Cancel an execution of a {noun}; there is none",
            cancel_execution,
            scope=scope,
            query=ExecutionChoice,
        ),
        get(
            path + "/logs",
            f"{resource.name}.logs",
            f"List the newest executions of a {noun}",
            list_executions,
            Annotated[list[log], Meta(max_length=1000)],
            query=ExecutionRange,
        ),
    )


ROUTES = (
    *resource_routes(_NOTEBOOKS, NOTEBOOKS, to=_NOTEBOOKS_ACTOR),
    post(
        _NOTEBOOK + "/upload",
        "notebook.upload",
        "Upload the file of a notebook",
        upload,
        streams_body=True,
        form=NotebookForm,
        reply=NOTEBOOKS.view,
        links=LinkTemplates({"self": _NOTEBOOK, "application": APP_PATH}),
    ),
    *_executions(_NOTEBOOK, NOTEBOOKS, NotebookExecution, NotebookExecutionLog, "notebook.execute"),
    get(
        _NOTEBOOK + "/notebookMinuteCounts",
        "notebook.notebookMinuteCounts",
        "Count minutes of a notebook per day",
        count_minutes,
        NotebookMinuteCounts,
        query=DayRange,
        uses=(CountNotebookMinutes,),
    ),
    job(
        _NOTEBOOK + "/requestInputDataExport",
        "notebook.requestInputDataExport",
        "Export the inputs of a notebook as a zip archive",
        export_inputs,
        body=InputDataExport,
        also={
            429: "The notebook was exported less than 15 minutes ago, or the application has too many jobs",
            507: "The disk is full; nothing was stored",
        },
    ),
    # A change of a resource job is answered with 201, as the API has it.
    *resource_routes(
        _RESOURCE_JOBS,
        RESOURCE_JOBS,
        examples=(
            {
                "name": "ask all vans",
                "resourceType": "device",
                "queryJson": '{"name": {"$startsWith": "truck"}}',
            },
            {"description": "Every morning."},
        ),
        remove=ResourceJobRemoval,
        remover=remove_with_flows,
        changed=201,
    ),
    *_executions(
        _RESOURCE_JOBS + "/{resourceJobId}",
        RESOURCE_JOBS,
        ResourceJobExecution,
        ResourceJobExecutionLog,
        "resourceJob.cancelExecution",
    ),
)
