"""Workflows of an application and their versions."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.platform.jobs.messages import JobQueued
from trunkline.actors.workflows.flows.bodies import (
    ButtonPress,
    FlowPatch,
    FlowPost,
    FlowsImport,
    FlowVersionPatch,
    FlowVersionPost,
    StorageEntry,
)
from trunkline.actors.workflows.flows.imports import Import
from trunkline.actors.workflows.flows.messages import (
    CreateFlow,
    CreateFlowVersion,
    DeleteFlow,
    DeleteFlowVersion,
    DeleteSomeVersions,
    FlowByVersionPage,
    FlowErrorsQuery,
    FlowLogQuery,
    FlowPage,
    FlowShape,
    FlowStatsQuery,
    FlowVersionPage,
    FlowVersionsDelete,
    GetFlow,
    GetFlowErrors,
    GetFlowLog,
    GetFlowStats,
    GetFlowVersion,
    GetImported,
    GetPalette,
    GetStorage,
    GetStorageSize,
    ListFlows,
    ListFlowsByVersion,
    ListFlowVersions,
    PatchFlow,
    PatchFlowVersion,
    PrepareImport,
    PressButton,
    SelectVersions,
    VersionCreation,
    VersionErrorsQuery,
    VersionStatsQuery,
)
from trunkline.actors.workflows.flows.storage_messages import ClearStorage, SetStorageEntry
from trunkline.actors.workflows.flows.views import (
    FlowErrorsView,
    FlowLog,
    FlowsImported,
    FlowStatsView,
    FlowVersionView,
    FlowView,
    Palette,
    Storage,
    StorageSize,
    VersionsDeleted,
)
from trunkline.actors.workflows.triggers.button import button_ref
from trunkline.http.calls.call import Call
from trunkline.http.calls.dispatch import SUCCESS, json_response
from trunkline.http.calls.errors import JSON, rate_limit
from trunkline.http.calls.request import Response
from trunkline.http.calls.route import APP_PATH, FLOW_ACTOR, FLOW_PATH, LinkTemplates, Route
from trunkline.http.resources.platform.jobs import queue_job

FLOWS = APP_PATH + "/flows"
VERSIONS = FLOW_PATH + "/versions"
VERSION = VERSIONS + "/{flowVersionId}"
STORAGE = FLOW_PATH + "/storage"

_APPLICATION = {"application": APP_PATH}
_FLOW = {"flow": FLOW_PATH, **_APPLICATION}
_OF_FLOW = LinkTemplates({"self": FLOW_PATH, **_APPLICATION, "versions": VERSIONS})
_OF_VERSION = LinkTemplates({"self": VERSION, **_FLOW})
_LARGE = {413: "The body has more bytes than allowed, or the workflow would have more than allowed"}


async def import_flows(call: Call) -> Response:
    """Create the workflows and the versions of an export, all or none, with new ids.

    Wherever a trigger or a node names a workflow, a version or a virtual button of the export, it gets the new id.
    """
    service = call.service
    system = service.system
    system.check_load()
    body: FlowsImport = call.body
    ids = [system.ids.new(call.now_ms) for _ in (*body.flows, *body.flow_versions)]
    prepared: Import = await service.read_message(
        PrepareImport(body=body, by=call.principal.creator, ids=ids)
    )
    refs = [FLOW_ACTOR.ref({**call.ids, "flow": id}) for id in prepared.flows]
    await system.ask_all(refs, prepared.message)
    shown = await service.read_message(
        GetImported(application=call.application, flows=prepared.flows, versions=prepared.versions)
    )
    maps = {"importedFlowIdMap": prepared.flow_ids, "importedVersionIdMap": prepared.version_ids}
    return json_response(call, 201, {**shown, **maps})


async def delete_versions(call: Call) -> Response:
    """Delete the versions that match the query: a few at once, many of them by a job. The default version stays.

    The query `{}` matches every version.
    """
    service = call.service
    chosen: list[bytes] = await service.read(call, SelectVersions)
    body: FlowVersionsDelete = call.body
    if len(chosen) > service.system.limits.deleted_versions_max:
        input = {"flowId": call.ids["flow"].hex(), "query": body.query}
        return await queue_job(
            call, call.application, input, email=body.email, callback_url=body.callback_url
        )
    service.system.check_load()
    answer = await service.system.ask(service.ref(call), DeleteSomeVersions(ids=chosen))
    return json_response(call, 200, msgspec.to_builtins(answer.value))


async def press_button(call: Call) -> Response:
    """Press a virtual button. The button and the version are checked and the press is counted.

    The run is stored with the press, and begins soon. A press that would start nothing is refused: of a workflow or a
    version that is disabled, and of one that does not run on this server.
    """
    service = call.service
    service.system.check_load()
    ref = button_ref(call.application, call.ids["flow"], call.body.key)
    message = msgspec.structs.replace(service.message(call, PressButton), must_run=True)
    answer = await service.system.ask(ref, message)
    headers = [JSON]
    if answer.verdict is not None:
        headers += rate_limit("virtual_button", answer.verdict)
    return Response(200, headers, SUCCESS)


def _of_runs(path: str, name: str, errors: type, stats: type, what: str) -> tuple[Route, ...]:
    """The errors, the figures and the log of a workflow or of a version."""
    common: dict[str, Any] = {"method": "GET"}
    return (
        Route(
            path=path + "/errors",
            operation=f"{name}.errors",
            summary=f"List the errors of {what}",
            message=GetFlowErrors,
            query=errors,
            reply=FlowErrorsView,
            **common,
        ),
        Route(
            path=path + "/logs",
            operation=f"{name}.getLogEntries",
            scope=f"{name}.log",
            summary=f"List figures and errors of the newest minutes of {what}",
            message=GetFlowLog,
            query=FlowLogQuery,
            reply=FlowLog,
            **common,
        ),
        Route(
            path=path + "/stats",
            operation=f"{name}.stats",
            summary=f"Get figures of the runs of {what}",
            message=GetFlowStats,
            query=stats,
            reply=FlowStatsView,
            **common,
        ),
    )


ROUTES = (
    Route(
        method="GET",
        path=FLOWS,
        operation="flows.get",
        summary="List workflows",
        message=ListFlows,
        query=FlowPage,
        reply=("list", FlowView),
        links=LinkTemplates({"self": FLOWS, **_APPLICATION}, _OF_FLOW.own),
    ),
    Route(
        method="POST",
        path=FLOWS,
        operation="flows.post",
        summary="Create a workflow",
        message=CreateFlow,
        body=FlowPost,
        query=FlowShape,
        to=FLOW_ACTOR,
        then=GetFlow,
        reply=FlowView,
        ok=201,
        access="write",
        links=_OF_FLOW,
        also=_LARGE,
    ),
    Route(
        method="GET",
        path=FLOWS + "/version",
        operation="flows.getByVersion",
        summary="List the versions of one name of all workflows",
        message=ListFlowsByVersion,
        query=FlowByVersionPage,
        reply=("list", FlowVersionView),
        links=LinkTemplates({"self": FLOWS + "/version", **_APPLICATION}, _OF_VERSION.own),
    ),
    Route(
        method="POST",
        path=FLOWS + "/import",
        operation="flows.import",
        summary="Import workflows with their versions",
        handler=import_flows,
        body=FlowsImport,
        takes_many=True,
        reply=FlowsImported,
        ok=201,
        access="write",
        also=_LARGE,
    ),
    Route(
        method="GET",
        path=FLOWS + "/palette",
        operation="flows.palette",
        summary="List the types of nodes and the custom nodes that an editor offers",
        message=GetPalette,
        reply=Palette,
    ),
    Route(
        method="GET",
        path=FLOW_PATH,
        operation="flow.get",
        summary="Get a workflow",
        message=GetFlow,
        query=FlowShape,
        reply=FlowView,
        links=_OF_FLOW,
    ),
    Route(
        method="PATCH",
        path=FLOW_PATH,
        operation="flow.patch",
        summary="Change a workflow",
        message=PatchFlow,
        body=FlowPatch,
        query=FlowShape,
        to=FLOW_ACTOR,
        then=GetFlow,
        reply=FlowView,
        access="write",
        links=_OF_FLOW,
        also=_LARGE,
    ),
    Route(
        method="DELETE",
        path=FLOW_PATH,
        operation="flow.delete",
        summary="Delete a workflow with its versions and its storage entries",
        message=DeleteFlow,
        to=FLOW_ACTOR,
        access="write",
    ),
    Route(
        method="GET",
        path=STORAGE,
        operation="flow.getStorageEntries",
        summary="Get all storage entries of a workflow",
        message=GetStorage,
        reply=Storage,
    ),
    Route(
        method="PATCH",
        path=STORAGE,
        operation="flow.setStorageEntry",
        summary="Set a storage entry of a workflow; without a value remove it",
        message=SetStorageEntry,
        body=StorageEntry,
        to=FLOW_ACTOR,
        access="write",
        also=_LARGE,
    ),
    Route(
        method="DELETE",
        path=STORAGE,
        operation="flow.clearStorageEntries",
        summary="Remove all storage entries of a workflow",
        message=ClearStorage,
        to=FLOW_ACTOR,
        then=GetStorage,
        reply=Storage,
        access="write",
    ),
    Route(
        method="GET",
        path=FLOW_PATH + "/storage-metadata",
        operation="flow.getStorageEntriesMetadata",
        summary="Get the size and the number of the storage entries of a workflow",
        message=GetStorageSize,
        reply=StorageSize,
    ),
    *_of_runs(FLOW_PATH, "flow", FlowErrorsQuery, FlowStatsQuery, "a workflow"),
    Route(
        method="POST",
        path=FLOW_PATH + "/virtualButton",
        operation="flow.pressVirtualButton",
        summary="Press a virtual button of a workflow",
        message=PressButton,
        handler=press_button,
        body=ButtonPress,
        access="write",
        also={429: "More than 100 calls in 10 seconds for this button"},
    ),
    Route(
        method="GET",
        path=VERSIONS,
        operation="flowVersions.get",
        summary="List the versions of a workflow",
        message=ListFlowVersions,
        query=FlowVersionPage,
        reply=("list", FlowVersionView),
        links=LinkTemplates({"self": VERSIONS, **_FLOW}, _OF_VERSION.own),
    ),
    Route(
        method="POST",
        path=VERSIONS,
        operation="flowVersions.post",
        summary="Create a version of a workflow",
        message=CreateFlowVersion,
        body=FlowVersionPost,
        query=VersionCreation,
        to=FLOW_ACTOR,
        new_id="flowVersion",
        then=GetFlowVersion,
        reply=FlowVersionView,
        ok=201,
        access="write",
        links=_OF_VERSION,
        also=_LARGE,
    ),
    Route(
        method="POST",
        path=VERSIONS + "/delete",
        operation="flowVersions.delete",
        summary="Delete many versions of a workflow",
        body=FlowVersionsDelete,
        to=FLOW_ACTOR,
        handler=delete_versions,
        uses=(SelectVersions,),
        reply=VersionsDeleted,
        job=JobQueued,
        access="write",
    ),
    Route(
        method="GET",
        path=VERSION,
        operation="flowVersion.get",
        summary="Get a version of a workflow by its id or its name",
        message=GetFlowVersion,
        query=FlowShape,
        reply=FlowVersionView,
        links=_OF_VERSION,
    ),
    Route(
        method="PATCH",
        path=VERSION,
        operation="flowVersion.patch",
        summary="Change the notes of a version, or whether it is enabled",
        message=PatchFlowVersion,
        body=FlowVersionPatch,
        query=FlowShape,
        to=FLOW_ACTOR,
        then=GetFlowVersion,
        reply=FlowVersionView,
        access="write",
        links=_OF_VERSION,
    ),
    Route(
        method="DELETE",
        path=VERSION,
        operation="flowVersion.delete",
        summary="Delete a version of a workflow",
        message=DeleteFlowVersion,
        to=FLOW_ACTOR,
        access="write",
    ),
    *_of_runs(VERSION, "flowVersion", VersionErrorsQuery, VersionStatsQuery, "a version of a workflow"),
)
