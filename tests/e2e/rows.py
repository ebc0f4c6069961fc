"""The routes, the scopes that the specification gives each of them, and calls that change nothing.

The expected scopes are written here from the specification (Authentication, rules 3 to 7), not derived from the routes:
a route that accepts too many or too few scopes fails.
"""

from __future__ import annotations

import re
from typing import Any

import httpx

from tests.e2e.conftest import Json, Server
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE

UNKNOWN = "0123456789abcdef01234567"
OF_USERS = frozenset(
    {
        "applicationTemplate",
        "applicationTemplates",
        "me",
        "orgs",
        "server",
        "userApiToken",
        "userApiTokens",
        "userAuditLog",
        "userAuditLogs",
    }
)
"""Resources of the user: they accept no scope of organizations and applications."""
OF_ORGANIZATIONS = frozenset({"applications", "auditLog", "auditLogs", "dashboard", "dashboards", "org"})
"""Resources of the user and of the user's organizations: they accept no scope of applications."""

DEVICE_READS = frozenset(
    {
        "data.lastValueQuery",
        "data.timeSeriesQuery",
        "device.commandStream",
        "device.get",
        "device.getCommand",
        "device.getCompositeState",
        "device.getLogEntries",
        "device.getState",
        "device.stateStream",
        "deviceAttribute.get",
        "deviceAttributes.get",
        "devices.get",
        "devices.getCompositeState",
        "devices.getHealth",
    }
)
DEVICE_WRITES = frozenset(
    {
        "device.link",
        "device.sendCommand",
        "device.sendState",
        "device.setConnectionStatus",
        "devices.sendCommand",
    }
)
READS_BY_POST = frozenset(
    {
        "alarmRules.try",
        "applicationDashboard.data",
        "dashboard.data",
        "dashboard.validateContext",
        "data.lastValueQuery",
        "data.timeSeriesQuery",
        "dataTableRows.query",
    }
)
EXPORTS = frozenset(
    {
        "application.export",
        "data.export",
        "dataTableRows.export",
        "device.export",
        "devices.export",
        "devices.payloadCounts",
        "events.export",
        "notebook.requestInputDataExport",
    }
)
"""They change nothing that a reader sees, so they accept what reads accept."""
OF_OWN_TOKEN = frozenset({"me.logout", "me.rememberLogin"})
"""Readers may give up what they have, and let their browser keep it."""
CLI = frozenset(
    {
        "application.get",
        "application.patch",
        "applications.get",
        "dataTable.get",
        "dataTableRows.get",
        "dataTables.get",
        "application.globals",
        "application.readme",
        "application.readmePatch",
        "experience.bootstrap",
        "experienceDomains.get",
        "experienceSlugs.get",
        "experienceView.linkedResources",
        *(
            f"{each}{operation}"
            for each in ("experienceView", "experienceVersion")
            for operation in ("s.get", "s.post", ".get", ".patch", ".delete")
        ),
        *(
            f"{tree}{operation}"
            for tree in ("file", "privateFile")
            for operation in ("s.get", "s.post", ".get", ".patch", ".delete", ".move", ".upload")
        ),
    }
)
"""Operations that the scopes of command line tools allow."""

ROWS = [route for route in TABLE.routes if route.access != "none"]


WRITES_BY_GET = frozenset(
    f"application.{each}"
    for each in ("archiveData", "backfillArchiveData", "fullDataTablesArchive", "fullEventsArchive")
)
"""Operations that change something though their method is GET."""


def is_read(route: Route) -> bool:
    if route.operation in WRITES_BY_GET:
        return False
    return (route.method == "GET" and not route.upgrades) or route.operation in (
        READS_BY_POST | EXPORTS | OF_OWN_TOKEN
    )


def expected_scopes(route: Route) -> set[str]:
    """The scopes that an operation accepts."""
    resource = route.operation.partition(".")[0]
    families = {"all.Application", "all.Organization", "all.User"}
    if resource in OF_USERS:
        families = {"all.User"}
    elif resource in OF_ORGANIZATIONS:
        families = {"all.Organization", "all.User"}
    scopes = families | {f"{resource}.*", route.scope}
    if is_read(route):
        scopes |= {f"{family}.read" for family in families}
    if route.operation in CLI:
        scopes |= {f"{family}.cli" for family in families - {"all.Organization"}}
    if route.operation in DEVICE_READS | DEVICE_WRITES:
        scopes.add("all.Device")
    if route.operation in DEVICE_READS:
        scopes.add("all.Device.read")
    return scopes


def path_of(route: Route, application: str = UNKNOWN, device: str = UNKNOWN, org: str = UNKNOWN) -> str:
    path = route.path.replace("{applicationId}", application).replace("{deviceId}", device)
    path = path.replace("{orgId}", org)
    return re.sub(r"\{\w+\}", UNKNOWN, path)


async def send(
    client: httpx.AsyncClient, route: Route, path: str, token: str | None = None
) -> httpx.Response:
    """Send a call that cannot succeed, so that it changes nothing."""
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    body: Json = {} if route.body is not None else None
    return await client.request(route.method, path, json=body, headers=headers)


async def api_token(server: Server, owner: str, *scopes: str, **fields: Any) -> str:
    """Create an API token of an application (its path) or of the user (`/me`)."""
    made = await server.call("POST", f"{owner}/tokens", {"name": "t", "scope": list(scopes), **fields})
    return str(made["token"])
