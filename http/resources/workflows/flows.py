"""Workflows of an application and their versions."""

from __future__ import annotations

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
from trunkline.http.calls.errors import JSON, rate_limit
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import SUCCESS, json_response
from trunkline.http.calls.route import APP_PATH, FLOW_ACTOR, FLOW_PATH, LinkTemplates, Route
from trunkline.http.calls.verbs import Shown, delete, get, list_of, patch, post
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
        return await queue_job(call, call.application, input, notify=(body,))
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
    return (
        get(
            path + "/errors",
            f"{name}.errors",
            f"List the errors of {what}",
            GetFlowErrors,
            FlowErrorsView,
            query=errors,
        ),
        get(
            path + "/logs",
            f"{name}.getLogEntries",
            f"List figures and errors of the newest minutes of {what}",
            GetFlowLog,
            FlowLog,
            query=FlowLogQuery,
            scope=f"{name}.log",
        ),
        get(
            path + "/stats",
            f"{name}.stats",
            f"Get figures of the runs of {what}",
            GetFlowStats,
            FlowStatsView,
            query=stats,
        ),
    )


_FLOW_SHOWN = Shown(GetFlow, FlowView, FlowShape, _OF_FLOW)
_STORAGE = Shown(GetStorage, Storage)
_FLOW_VERSION = Shown(GetFlowVersion, FlowVersionView, FlowShape, _OF_VERSION)
ROUTES = (
    list_of(
        FLOWS,
        "flows.get",
        "List workflows",
        ListFlows,
        FlowView,
        FlowPage,
        links=LinkTemplates({"self": FLOWS, **_APPLICATION}, _OF_FLOW.own),
        beside={"flowClass": str},
    ),
    post(
        FLOWS,
        "flows.post",
        "Create a workflow",
        CreateFlow,
        _FLOW_SHOWN,
        body=FlowPost,
        to=FLOW_ACTOR,
        ok=201,
        also=_LARGE,
    ),
    list_of(
        FLOWS + "/version",
        "flows.getByVersion",
        "List the versions of one name of all workflows",
        ListFlowsByVersion,
        FlowVersionView,
        FlowByVersionPage,
        links=LinkTemplates({"self": FLOWS + "/version", **_APPLICATION}, _OF_VERSION.own),
        beside={"version": str},
    ),
    post(
        FLOWS + "/import",
        "flows.import",
        "Import workflows with their versions",
        import_flows,
        body=FlowsImport,
        takes_many=True,
        reply=FlowsImported,
        ok=201,
        also=_LARGE,
    ),
    get(
        FLOWS + "/palette",
        "flows.palette",
        "List the types of nodes and the custom nodes that an editor offers",
        GetPalette,
        Palette,
    ),
    get(FLOW_PATH, "flow.get", "Get a workflow", _FLOW_SHOWN),
    patch(
        FLOW_PATH,
        "flow.patch",
        "Change a workflow",
        PatchFlow,
        _FLOW_SHOWN,
        body=FlowPatch,
        to=FLOW_ACTOR,
        also=_LARGE,
    ),
    delete(
        FLOW_PATH,
        "flow.delete",
        "Delete a workflow with its versions and its storage entries",
        DeleteFlow,
        to=FLOW_ACTOR,
    ),
    get(STORAGE, "flow.getStorageEntries", "Get all storage entries of a workflow", _STORAGE),
    patch(
        STORAGE,
        "flow.setStorageEntry",
        "Set a storage entry of a workflow; without a value remove it",
        SetStorageEntry,
        body=StorageEntry,
        to=FLOW_ACTOR,
        also=_LARGE,
    ),
    delete(
        STORAGE,
        "flow.clearStorageEntries",
        "Remove all storage entries of a workflow",
        ClearStorage,
        _STORAGE,
        to=FLOW_ACTOR,
    ),
    get(
        FLOW_PATH + "/storage-metadata",
        "flow.getStorageEntriesMetadata",
        "Get the size and the number of the storage entries of a workflow",
        GetStorageSize,
        StorageSize,
    ),
    *_of_runs(FLOW_PATH, "flow", FlowErrorsQuery, FlowStatsQuery, "a workflow"),
    post(
        FLOW_PATH + "/virtualButton",
        "flow.pressVirtualButton",
        "Press a virtual button of a workflow",
        PressButton,
        handler=press_button,
        body=ButtonPress,
        also={429: "More than 100 calls in 10 seconds for this button"},
    ),
    list_of(
        VERSIONS,
        "flowVersions.get",
        "List the versions of a workflow",
        ListFlowVersions,
        FlowVersionView,
        FlowVersionPage,
        links=LinkTemplates({"self": VERSIONS, **_FLOW}, _OF_VERSION.own),
    ),
    post(
        VERSIONS,
        "flowVersions.post",
        "Create a version of a workflow",
        CreateFlowVersion,
        body=FlowVersionPost,
        query=VersionCreation,
        to=FLOW_ACTOR,
        new_id="flowVersion",
        then=GetFlowVersion,
        reply=FlowVersionView,
        ok=201,
        links=_OF_VERSION,
        also=_LARGE,
    ),
    post(
        VERSIONS + "/delete",
        "flowVersions.delete",
        "Delete many versions of a workflow",
        delete_versions,
        body=FlowVersionsDelete,
        to=FLOW_ACTOR,
        uses=(SelectVersions,),
        reply=VersionsDeleted,
        job=JobQueued,
    ),
    get(VERSION, "flowVersion.get", "Get a version of a workflow by its id or its name", _FLOW_VERSION),
    patch(
        VERSION,
        "flowVersion.patch",
        "Change the notes of a version, or whether it is enabled",
        PatchFlowVersion,
        _FLOW_VERSION,
        body=FlowVersionPatch,
        to=FLOW_ACTOR,
    ),
    delete(VERSION, "flowVersion.delete", "Delete a version of a workflow", DeleteFlowVersion, to=FLOW_ACTOR),
    *_of_runs(VERSION, "flowVersion", VersionErrorsQuery, VersionStatsQuery, "a version of a workflow"),
)
