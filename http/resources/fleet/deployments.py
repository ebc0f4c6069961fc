"""Deployments of workflows on edge and embedded devices. Nothing carries them to a device yet."""

from __future__ import annotations

from typing import Any

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.deployments.messages import (
    BeginExport,
    DeploymentRelease,
    DeploymentRemove,
    DeploymentReplace,
    EdgeDeploymentPage,
    EdgeDeploymentView,
    EmbeddedDeploymentExport,
    EmbeddedDeploymentPage,
    EmbeddedDeploymentRelease,
    EmbeddedDeploymentView,
    GetEdgeDeployment,
    GetEmbeddedDeployment,
    ListEdgeDeployments,
    ListEmbeddedDeployments,
    SelectDeployments,
    SelectDevices,
    SetVersions,
)
from trunkline.http.calls.call import Call
from trunkline.http.calls.errors import JSON, rate_limit
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import SUCCESS
from trunkline.http.calls.route import APP_PATH, ActorAddress, LinkTemplates, Route
from trunkline.http.calls.verbs import get, job, list_of, post
from trunkline.http.resources.platform.jobs import queue_job

DEPLOYMENTS_ACTOR = ActorAddress("deployments", "application")
CHANGED_AT_ONCE = 500
"""Deployments that a replacement or a removal changes in one turn: some 20 ms; other messages are handled between."""


def _kind(call: Call) -> Any:
    return "edgeDeployment" if "/edge/" in call.route.path else "embeddedDeployment"


async def release(call: Call) -> Response:
    """Set the version of a workflow that devices are to run: on all devices that the body selects, or on none.

    A blank version removes the workflow from them. The change is recorded; devices do not fetch it yet.
    """
    service, body = call.service, call.body
    message = SelectDevices(application=call.application, kind=_kind(call), body=body)
    devices: list[bytes] = await service.read_message(message)
    flow = bytes.fromhex(body.flow_id)
    tag = getattr(body, "release_tag", None) or None
    await _set(call, [(device, flow) for device in devices], body.version or None, release_tag=tag)
    return Response(201, [JSON], SUCCESS)


async def replace(call: Call) -> Response:
    """Replace one version of a workflow by another wherever it is the desired version. A blank version removes it."""
    body = call.body
    await _set_selected(call, body.new_version or None, old=body.old_version)
    return Response(201, [JSON], SUCCESS)


async def remove(call: Call) -> Response:
    """Remove a workflow from a device, all workflows from a device, or a workflow from all devices."""
    await _set_selected(call, None)
    return Response(201, [JSON], SUCCESS)


async def _set_selected(call: Call, version: str | None, old: str | None = None) -> None:
    """Change the deployments that the body selects, many of them in parts; a call that was cut off can be repeated."""
    message = SelectDeployments(application=call.application, kind=_kind(call), body=call.body)
    targets: list[tuple[bytes, bytes]] = await call.service.read_message(message)
    for start in range(0, len(targets), CHANGED_AT_ONCE):
        await _set(call, targets[start : start + CHANGED_AT_ONCE], version, old=old)


async def _set(
    call: Call,
    targets: list[tuple[bytes, bytes]],
    version: str | None,
    *,
    old: str | None = None,
    release_tag: str | None = None,
) -> None:
    if not targets:
        return
    system = call.service.system
    system.check_load()
    message = SetVersions(
        kind=_kind(call),
        targets=targets,
        version=version,
        by=call.principal.creator,
        old=old,
        release_tag=release_tag,
    )
    await system.ask(DEPLOYMENTS_ACTOR.ref(call.ids), message)


async def export_deployment(call: Call) -> Response:
    """Queue an export of the workflows of an embedded device: a JSON file with the definitions of their versions.

    This server compiles nothing, and the file says so; the options of a compiler have no effect.
    """
    service = call.service
    body: EmbeddedDeploymentExport = call.body or EmbeddedDeploymentExport()
    id = body.embedded_deployment_id or body.device_id
    if not id:
        raise Invalid("embeddedDeploymentId or deviceId: name the deployment by one of them.")
    deployment = bytes.fromhex(id)
    await service.read_message(
        GetEmbeddedDeployment(application=call.application, embedded_deployment=deployment)
    )
    answer = await service.system.ask(DEPLOYMENTS_ACTOR.ref(call.ids), BeginExport())
    response = await queue_job(
        call,
        deployment,
        {"gzip": body.gzip is True},
        notify=(body,),
    )
    if answer.verdict is not None:
        response.headers.extend(rate_limit("embedded_export", answer.verdict))
    return response


def _routes(
    name: str, path: str, page: Any, view: Any, read: Any, listing: Any, body: Any, of: str
) -> tuple[Route, ...]:
    """The operations that both kinds of deployments have."""
    one = f"{path}/{{{name}Id}}"
    own = {"self": one, "application": APP_PATH}
    return (
        list_of(
            path,
            f"{name}s.get",
            f"List deployments of {of} devices",
            listing,
            view,
            page,
            links=LinkTemplates({"self": path, "application": APP_PATH}, own),
            beside={"deviceId": str, "flowId": str, "version": str},
        ),
        post(
            path + "/release",
            f"{name}s.release",
            f"Set the version of a workflow that {of} devices are to run",
            release,
            body=body,
            ok=201,
            also={413: "More devices are selected than one call may change"},
        ),
        post(
            path + "/replace",
            f"{name}s.replace",
            f"Replace a version of a workflow on all {of} devices",
            replace,
            body=DeploymentReplace,
            ok=201,
        ),
        post(
            path + "/remove",
            f"{name}s.remove",
            f"Remove workflows from {of} devices",
            remove,
            body=DeploymentRemove,
            ok=201,
        ),
        get(one, f"{name}.get", f"Get a deployment of an {of} device", read, view, links=LinkTemplates(own)),
    )


EMBEDDED = APP_PATH + "/embedded/deployments"
ROUTES = (
    *_routes(
        "edgeDeployment",
        APP_PATH + "/edge/deployments",
        EdgeDeploymentPage,
        EdgeDeploymentView,
        GetEdgeDeployment,
        ListEdgeDeployments,
        DeploymentRelease,
        "edge",
    ),
    *_routes(
        "embeddedDeployment",
        EMBEDDED,
        EmbeddedDeploymentPage,
        EmbeddedDeploymentView,
        GetEmbeddedDeployment,
        ListEmbeddedDeployments,
        EmbeddedDeploymentRelease,
        "embedded",
    ),
    job(
        EMBEDDED + "/export",
        "embeddedDeployments.export",
        "Export the definitions of the workflows of an embedded device as a file",
        export_deployment,
        body=EmbeddedDeploymentExport,
        optional_body=True,
        access="write",
        also={429: "More than one export in five minutes, or the application has too many jobs"},
    ),
)
