"""For each list of the API: records that differ in every field by which the list is sorted or filtered.

A list that is added to the route table is added to `FILLED` here, unless its row has examples (`row_examples.py`).
Names differ in case, because lists ignore it, and records are changed in another order than they are created, so that
no two sort orders are the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import trio

from tests.certificates import make_certificate
from tests.e2e.conftest import Server
from tests.e2e.row_examples import RowExample, row_examples
from tests.patience import PATIENCE_S

NAMES: Final = ("delta", "Alpha", "charlie", "bravo", "alpha two")
"""In the order of creation."""
CHANGED: Final = (3, 0, 4, 1, 2)
"""The order of changes."""

Fill = Callable[[Server, str], Awaitable[str]]
"""Creates the records of a list, in an application; returns the path of the list, with parameters that it needs."""


def posted(
    place: str,
    body: Callable[[int], dict[str, Any]] = lambda number: {"name": NAMES[number]},
    change: Callable[[int], dict[str, Any]] | None = lambda number: {"description": f"changed {number}"},
    *,
    listed: str | None = None,
) -> Fill:
    """Records that are posted to `place` and then changed. `listed` is the path of the list, if it is another one.

    A path that begins with a slash is no path of the application.
    """

    async def fill(server: Server, application: str) -> str:
        path = place if place.startswith("/") else f"{application}/{place}"
        ids = [
            (await server.call("POST", path, body(number), status=201))["id"] for number in range(len(NAMES))
        ]
        if change is not None:
            for number in CHANGED:
                await server.call("PATCH", f"{path}/{ids[number]}", change(number))
        return path if listed is None else f"{application}/{listed}"

    return fill


def status(number: int) -> dict[str, Any]:
    return {"status": "inactive" if number % 2 else "active"}


def expiring(number: int) -> dict[str, Any]:
    day = {"expirationDate": f"2099-01-{(number * 2) % 5 + 1:02}T00:00:00.000Z"} if number else {}
    return {"name": NAMES[number], "scope": ["all.User.read"], **day}


def credential(number: int) -> dict[str, Any]:
    if number % 2:
        return {"name": NAMES[number], "type": "sendgrid", "sendgridConfig": {"apiKey": "long-enough"}}
    return {"name": NAMES[number], "type": "jwt", "jwtConfig": {"algorithm": "HS256", "secret": "s"}}


def integration(number: int) -> dict[str, Any]:
    if number % 2:
        config = {"accessToken": "t", "productSlugOrId": "p"}
        return {"name": NAMES[number], "integrationType": "particle", "particleConfig": config}
    broker = {"host": "mqtt.example.com", "port": 8883, "protocol": "mqtts"}
    return {"name": NAMES[number], "integrationType": "mqtt", "mqttConfig": broker, "enabled": False}


def resource_job(number: int) -> dict[str, Any]:
    types = ("device", "experienceUser", "dataTableRow", "experienceGroup", "device")
    return {"name": NAMES[number], "resourceType": types[number]}


def slug(number: int) -> str:
    return NAMES[number].lower().replace(" ", "-")


def endpoint(number: int) -> dict[str, Any]:
    return {
        "method": ("get", "post", "patch", "delete", "put")[number],
        "route": f"/{NAMES[number].replace(' ', '-')}",
    }


def experience_user(number: int) -> dict[str, Any]:
    name = NAMES[number].replace(" ", ".")
    last = NAMES[(number * 2) % 5]
    return {"email": f"{name}@example.com", "password": "long-Enough-1", "firstName": name, "lastName": last}


async def devices(server: Server, application: str) -> str:
    """Devices with every connection status."""
    path = await posted("devices")(server, application)
    found = (await server.call("GET", path))["items"]
    for number, device in enumerate(found[:4]):
        body = {"status": "disconnected" if number % 2 else "connected"}
        await server.call("POST", f"{path}/{device['id']}/setConnectionStatus", body)
    return path


async def composite_states(server: Server, application: str) -> str:
    return f"{await devices(server, application)}/compositeState"


async def attributes(server: Server, application: str) -> str:
    kinds = ("string", "number", "boolean", "number", "gps")
    declared = [
        {"name": name.replace(" ", "_"), "dataType": kind} for name, kind in zip(NAMES, kinds, strict=True)
    ]
    made = await server.call("POST", f"{application}/devices", {"name": "pump", "attributes": declared})
    return f"{application}/devices/{made['id']}/attributes"


async def jobs(server: Server, application: str) -> str:
    """Jobs of several kinds that have ended."""
    made = await server.call("POST", f"{application}/data-tables", {"name": "parts"})
    exports = ("devices/export", f"data-tables/{made['id']}/rows/export", "events/export", "devices/export")
    for path in exports:
        job = (await server.call("POST", f"{application}/{path}", {}, status=202))["jobId"]
        with trio.fail_after(PATIENCE_S):
            while (await server.call("GET", f"{application}/jobLogs/{job}"))["status"] != "completed":
                await trio.lowlevel.checkpoint()
    return f"{application}/jobLogs"


async def events(server: Server, application: str) -> str:
    """Events of all levels and states, of several devices."""
    ids = [(await server.call("POST", f"{application}/devices", {"name": name}))["id"] for name in NAMES]
    levels = ("error", "info", "critical", "warning", "info")

    def event(number: int) -> dict[str, Any]:
        return {"subject": NAMES[number], "level": levels[number], "deviceId": ids[(number * 2) % 5]}

    def change(number: int) -> dict[str, Any]:
        return {
            "state": ("resolved", "new", "acknowledged", "resolved", "acknowledged")[number],
            "comment": "c",
        }

    return await posted("events", event, change)(server, application)


async def versions(server: Server, application: str) -> str:
    """Versions of a workflow."""
    flow = await server.call("POST", f"{application}/flows", {"name": "alarm"}, status=201)

    def version(number: int) -> dict[str, Any]:
        return {"version": NAMES[number].replace(" ", "-"), "enabled": bool(number % 2)}

    return await posted(f"flows/{flow['id']}/versions", version, lambda number: {"notes": f"n{number}"})(
        server, application
    )


async def flows_by_version(server: Server, application: str) -> str:
    """Workflows that have a version of one name."""
    path = await posted("flows")(server, application)
    for flow in (await server.call("GET", path))["items"]:
        await server.call("POST", f"{path}/{flow['id']}/versions", {"version": "v1"}, status=201)
    return f"{path}/version?version=v1"


def deployments(of: str, device_class: str) -> Fill:
    """Versions of two workflows, each released to some devices, and released again in another order."""

    async def fill(server: Server, application: str) -> str:
        devices = []
        for name in NAMES:
            body = {"name": name, "deviceClass": device_class}
            devices.append((await server.call("POST", f"{application}/devices", body, status=201))["id"])
        flows = []
        for name in NAMES[:2]:
            body = {"name": name, "flowClass": of}
            flows.append((await server.call("POST", f"{application}/flows", body, status=201))["id"])
            for version in ("v1", "v2"):
                path = f"{application}/flows/{flows[-1]}/versions"
                await server.call("POST", path, {"version": version}, status=201)
        for number, version in [
            *((each, "v1") for each in range(5)),
            *((each, "v2") for each in CHANGED[:3]),
        ]:
            release = {"flowId": flows[number % 2], "version": version, "deviceIds": [devices[number]]}
            await server.call("POST", f"{application}/{of}/deployments/release", release, status=201)
        return f"{application}/{of}/deployments"

    return fill


async def own_audit_log(server: Server, application: str) -> str:
    """The same of an application that belongs to the user."""
    for name in ("a", "", "b", ""):
        await server.call("POST", f"{application}/devices", {"name": name}, status=201 if name else 400)
    return "/me/audit-logs"


async def audit_log(server: Server, _application: str) -> str:
    """Entries of calls that succeeded and of calls that were refused."""
    org = await server.call("POST", "/orgs", {"name": "farm"}, status=201)
    made = await server.call("POST", "/applications", {"name": "house", "orgId": org["id"]}, status=201)
    for name in ("a", "", "b", ""):
        path = f"/applications/{made['id']}/devices"
        await server.call("POST", path, {"name": name}, status=201 if name else 400)
    return f"/orgs/{org['id']}/audit-logs"


def files(tree: str, one: str) -> Fill:
    """Files, which are changed, and directories."""

    async def fill(server: Server, application: str) -> str:
        ids = []
        for number, name in enumerate(NAMES):
            body = {"name": name, "type": "directory"} if number % 2 else {"name": name, "type": "file"}
            ids.append((await server.call("POST", f"{application}/{tree}", body, status=201))["id"])
        for number in CHANGED:
            if number % 2 == 0:
                path = f"{application}/{one}/{ids[number]}"
                await server.call("PATCH", path, {"contentType": "text/plain"}, status=201)
        return f"{application}/{tree}"

    return fill


async def applications(server: Server, _application: str) -> str:
    return await posted("/applications")(server, "")


async def periods(server: Server, application: str) -> str:
    return f"{await applications(server, application)}/periodSummaries"


async def health(server: Server, application: str) -> str:
    return f"{await applications(server, application)}/health"


async def templates(_server: Server, _application: str) -> str:
    """Those of the server's folder, which `template_folder` filled."""
    return "/applicationTemplates"


def template_folder(path: Path) -> str:
    """A folder with application templates."""
    path.mkdir()
    for number, name in enumerate(NAMES):
        times = [f"2026-01-{each + 1:02}T00:00:00.000Z" for each in (number, CHANGED[number])]
        author = NAMES[(number * 2) % 5]
        text = (
            f'{{"id": "{number:024x}", "name": "{name}", "authorName": "{author}", '
            f'"creationDate": "{times[0]}", "lastUpdated": "{times[1]}"}}'
        )
        (path / f"{number}.json").write_text(text)
    return str(path)


def _from_example(example: RowExample) -> Fill:
    """Records of the example of a row, with other names."""
    place = example.path.removeprefix("/applications/{applicationId}/")
    return posted(place, lambda number: {**example.post, "name": NAMES[number]}, lambda _: example.patch)


FILLED: Final[Mapping[str, Fill]] = {
    **{each.listed: _from_example(each) for each in row_examples()},
    "applications.get": applications,
    "applications.periodSummaries": periods,
    "applications.health": health,
    "applicationKeys.get": posted("keys", change=status),
    "applicationApiTokens.get": posted(
        "tokens", lambda number: expiring(number) | {"scope": ["all.Application.read"]}, status
    ),
    "userApiTokens.get": posted("/me/tokens", expiring, status),
    "devices.get": devices,
    "devices.getCompositeState": composite_states,
    "deviceAttributes.get": attributes,
    "applicationJobLogs.get": jobs,
    "dataTables.get": posted("data-tables"),
    "events.get": events,
    "applicationDashboards.get": posted("dashboards"),
    "dashboards.get": posted("/dashboards"),
    # Workflows.
    "flows.get": posted("flows"),
    "flows.getByVersion": flows_by_version,
    "flowVersions.get": versions,
    "edgeDeployments.get": deployments("edge", "edgeCompute"),
    "embeddedDeployments.get": deployments("embedded", "embedded"),
    # Files.
    "privateFiles.get": files("privateFiles", "privateFiles"),
    "files.get": files("files", "file"),
    # Organizations.
    "orgs.get": posted("/orgs"),
    "auditLogs.get": audit_log,
    "userAuditLogs.get": own_audit_log,
    # Certificates and application templates.
    "applicationCertificates.get": posted(
        "certificates", lambda number: {"certificate": make_certificate(NAMES[number])}, status
    ),
    "applicationCertificateAuthorities.get": posted(
        "certificate-authorities",
        lambda number: {"name": NAMES[number], "caBundle": make_certificate("ca", ca=True)},
        status,
    ),
    "applicationTemplates.get": templates,
    # Credentials and integrations.
    "credentials.get": posted("credentials", credential),
    "integrations.get": posted("integrations", integration, lambda number: {"topics": [f"t{number}"]}),
    # Notebooks and resource jobs.
    "notebooks.get": posted("notebooks"),
    "resourceJobs.get": posted("resource-jobs", resource_job),
    # Experience.
    "experienceDomains.get": posted(
        "experience/domains",
        lambda number: {"domainName": f"{slug(number)}.example.com"},
        lambda _number: {"version": "develop"},
    ),
    "experienceSlugs.get": posted(
        "experience/slugs", lambda number: {"slug": slug(number)}, lambda _number: {"version": "develop"}
    ),
    "experienceEndpoints.get": posted("experience/endpoints", endpoint),
    "experienceGroups.get": posted("experience/groups"),
    "experienceUsers.get": posted(
        "experience/users", experience_user, lambda number: {"userTags": {"k": str(number)}}
    ),
    "experienceVersions.get": posted(
        "experience/versions", lambda number: {"version": NAMES[number].replace(" ", "-")}
    ),
    "experienceViews.get": posted(
        "experience/views", lambda number: {"name": NAMES[number], "viewType": "component"}
    ),
}
"""By operation; by default those of the examples of the row."""
