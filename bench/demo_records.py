"""The records of the demo beside its devices: one of each kind, so that every operation has something to show.

Owns what they are, and finds them again by name at the next start. A record that was deleted is created again at the
next start. The token and the key of the demo are there to be looked at: nobody has seen their texts.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

import trio

from trunkline.bench.demo import DemoReady
from trunkline.bench.demo_flows import EDGE_FLOW, EMBEDDED_FLOW, FLOW, FLOW_VERSION, WATCH_FLOW
from trunkline.bench.demo_past import make_past
from trunkline.bench.errors import ApiError, BenchError, TryLater
from trunkline.bench.session import Json, Session, record_id, refusal

TABLE: Json = {
    "name": "inspections",
    "description": "Who looked at which place, and how well it was kept.",
    "columns": [
        {"name": "place", "dataType": "string", "constraint": "required"},
        {"name": "score", "dataType": "number", "constraint": "optional"},
        {"name": "note", "dataType": "string", "constraint": "optional"},
    ],
}
_PLACES = ("greenhouse", "cold store", "well", "workshop", "orchard", "roof")
_NOTES = ("All is well.", "The vent is slow.", "The tank has rust.", "The door does not close.", None)
ROWS: list[Json] = [
    {"place": _PLACES[number % 6], "score": 5 + number * 7 % 6, "note": _NOTES[number % 5]}
    for number in range(40)
]
KEY: Json = {"name": "key of the demo", "description": "All devices may log in with it."}
APPLICATION_TOKEN: Json = {"name": "token of the demo", "scope": ["all.Application.read"]}
USER_TOKEN: Json = {"name": "token of the demo", "scope": ["all.User.read"]}
ARCHIVE: Json = {"directory": "demo", "includeEvents": True, "includeDataTables": True}
_HOUR_MS = 3_600_000
_GREENHOUSE = {"query": '{"name": "greenhouse-north"}'}


def _block(place: tuple[int, int], type: str, title: str, config: Json) -> Json:
    """A block of a dashboard at a column and row."""
    column, row = place
    size = {"startX": column, "startY": row, "width": 4, "height": 3}
    return {"blockType": type, **size, "title": title, "config": config}


_TEMPERATURES = _block(
    (0, 0),
    "graph",
    "Temperatures",
    {
        "segments": [{"attribute": "temperature", "aggregation": "MEAN"}],
        "duration": _HOUR_MS,
        "resolution": 60_000,
    },
)
DASHBOARD: Json = {
    "name": "overview",
    "description": "The temperatures of the greenhouse and of the cold store.",
    "refreshRate": 60,
    "blocks": [
        _TEMPERATURES,
        _block(
            (4, 0),
            "gauge",
            "Air of the greenhouse",
            {
                "segment": {"attribute": "humidity", "label": "Humidity in percent", **_GREENHOUSE},
                "gaugeMin": 0,
                "gaugeMax": 100,
            },
        ),
        _block(
            (0, 3),
            "map",
            "The van",
            {
                "attribute": "position",
                "query": '{"name": "delivery-van-7"}',
                "duration": _HOUR_MS,
                "includeLines": True,
            },
        ),
        _block((4, 3), "device-list", "Devices", {"sortField": "name"}),
        _block(
            (8, 0),
            "indicator",
            "Cold store",
            {
                "segments": [
                    {"attribute": "temperature", "query": '{"name": "cold-store-2"}'},
                ],
                "conditions": [{"color": "#c62828", "condition": "{{value-0}} > 8", "label": "Too warm"}],
                "defaultCondition": {"color": "#2e7d32", "label": "Cold enough"},
            },
        ),
        _block(
            (8, 3),
            "bar",
            "Levels and targets",
            {
                "segments": [
                    {"attribute": "level", "label": "Tank in percent", "query": '{"name": "well-pump"}'},
                    {"attribute": "humidity", "label": "Humidity in percent", **_GREENHOUSE},
                ]
            },
        ),
        _block((8, 6), "open-event-indicator", "Open events", {}),
        _block((0, 6), "event-list", "Events", {"query": '{"state": {"$ne": "resolved"}}'}),
        _block((4, 6), "device-state-table", "Greenhouse", _GREENHOUSE),
    ],
}
USER_DASHBOARD: Json = {"name": "my farm", "description": "What everybody may see.", "public": True}
RECIPE: Json = {
    "name": "thermometer",
    "deviceName": "thermometer",
    "attributes": [{"name": "temperature", "dataType": "number"}],
}
ALARM_RULE: Json = {
    "name": "Cold store too warm",
    "severity": "critical",
    "condition": {
        "type": "attribute",
        "attribute": "temperature",
        "comparison": "above",
        "value": 8,
        "hysteresis": 1,
    },
    "durationSeconds": 120,
}
WEBHOOK: Json = {"name": "weather warnings", "description": "For the warnings of a weather service."}
CREDENTIAL: Json = {
    "name": "shop",
    "description": "Nobody accepts this key.",
    "type": "http",
    "httpConfig": {
        "uriMatch": "https://shop.example.com/*",
        "authMethod": "header",
        "publicValue": "X-Api-Key",
        "secretValue": "none",
    },
}
INTEGRATION: Json = {
    "name": "broker of the demo",
    "integrationType": "mqtt",
    "enabled": False,
    "topics": ["farm/#"],
    "mqttConfig": {"protocol": "mqtts", "host": "broker.example.com", "port": 8883},
}
CERTIFICATE_TEXT = (
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBMzCB26ADAgECAhQMfAVI+kRdZmjwhO/+tgPB9HUcZjAKBggqhkjOPQQDAjAP\n"
    "MQ0wCwYDVQQDDARkZW1vMCAXDTI2MDEwMTAwMDAwMFoYDzIxMjYwMTAxMDAwMDAw\n"
    "WjAPMQ0wCwYDVQQDDARkZW1vMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/0ss\n"
    "tgMoody0tkmGlQI1Ru53VbohrJzjmon8BVch3Jc1Vcvf70Ij6lZ8GAtS4rvE2rHn\n"
    "P7PpHaH06+pWkA+hNaMTMBEwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNH\n"
    "ADBEAiBmLgJsO0sOK4LkPbNVrByJFFLrv5ZWb/70m7kqt7e2uQIgcJbFxYQx53Hd\n"
    "+fNd/BMCL9MDN/WTApR7n2bkOQu/tXA=\n"
    "-----END CERTIFICATE-----\n"
)
CERTIFICATE: Json = {"certificate": CERTIFICATE_TEXT, "description": "Nobody has its key."}
AUTHORITY: Json = {"name": "authority of the demo", "caBundle": CERTIFICATE_TEXT}
ENDPOINT: Json = {"route": "/greenhouse", "method": "get", "description": "The page of the greenhouse."}
VIEW: Json = {"name": "greenhouse", "viewType": "page", "body": "<h1>The greenhouse</h1>"}
VERSION: Json = {"version": "v1.0", "description": "The first one."}
DOMAIN: Json = {"domainName": "demo.farm.example"}
SLUG: Json = {"slug": "farm-of-the-demo"}
GROUP: Json = {"name": "farmers", "description": "The people of the farm.", "deviceTags": [{"key": "demo"}]}
EXPERIENCE_USER: Json = {"email": "farmer@example.com", "firstName": "Eva", "lastName": "Farmer"}
INVITATION: Json = {"email": "colleague@example.com", "role": "view"}
ORGANIZATION: Json = {"name": "farm", "description": "Who looks after the farm together."}
NOTEBOOK: Json = {
    "name": "events of the week",
    "description": "Which device needs attention most often.",
    "inputs": [{"inputType": "eventData", "fileName": "events.csv"}],
}
RESOURCE_JOB: Json = {"name": "look at every van", "resourceType": "device"}
EDGE_DEVICE: Json = {"name": "edge of the demo", "deviceClass": "edgeCompute"}
EMBEDDED_DEVICE: Json = {"name": "lamp of the demo", "deviceClass": "embedded"}
FILE: Json = {"name": "notes.txt", "type": "file", "contentType": "text/plain"}
FILE_TEXT = "The vent of the greenhouse is slow.\n"
_BOUNDARY = "part-of-the-demo"
EVENT: Json = {
    "subject": "The door of the cold store stood open",
    "level": "warning",
    "message": "It was open for ten minutes.",
    "eventTags": {"place": "cold-store"},
}


Example = tuple[str, str, Json]
"""A record of a plain resource: its path parameter, the path of the list, and the body that creates it."""


async def ensure_records(token: str, demo: DemoReady, examples: Iterable[Example] = ()) -> dict[str, str]:
    """Create the records that do not exist yet; return the id of each by the name of its path parameter.

    `examples` are further records, of parameters that none of those here has.

    The two kinds of API token are `applicationApiTokenId` and `userApiTokenId`. `deviceId` is the greenhouse. Raises
    BenchError.
    """
    session = Session(demo.url, token=token, connections_max=1)
    application = f"/applications/{demo.application_id}"
    experience = f"{application}/experience"
    block = {**_TEMPERATURES, "applicationId": demo.application_id}
    user_dashboard = {**USER_DASHBOARD, "blocks": [block]}
    user = {**EXPERIENCE_USER, "password": secrets.token_urlsafe(24)}  # nobody logs in as this user
    try:
        table = await _named(session, f"{application}/data-tables", TABLE)
        rows = f"{application}/data-tables/{table}/rows"
        flow = await _named(session, f"{application}/flows", FLOW)
        watch = await _named(session, f"{application}/flows", WATCH_FLOW)
        if "archiveConfig" not in await session.call("GET", application):
            await session.call("PATCH", application, {"archiveConfig": ARCHIVE})
        versions = f"{application}/flows/{flow}/versions"
        found = {
            "applicationId": demo.application_id,
            "deviceId": demo.device_ids["greenhouse-north"],
            "dataTableId": table,
            "rowId": await _first_row(session, rows),
            "eventId": await _first_event(session, application, demo.device_ids, table, watch),
            "applicationKeyId": await _named(session, f"{application}/keys", KEY),
            "applicationApiTokenId": await _named(session, f"{application}/tokens", APPLICATION_TOKEN),
            "userApiTokenId": await _named(session, "/me/tokens", USER_TOKEN),
            "dashboardId": await _named(session, f"{application}/dashboards", DASHBOARD),
            "userDashboardId": await _named(session, "/dashboards", user_dashboard),
            "deviceRecipeId": await _named(session, f"{application}/device-recipes", RECIPE),
            "alarmRuleId": await _named(
                session,
                f"{application}/alarm-rules",
                {**ALARM_RULE, "deviceIds": [demo.device_ids["cold-store-2"]]},
            ),
            "webhookId": await _named(session, f"{application}/webhooks", WEBHOOK),
            "credentialId": await _named(session, f"{application}/credentials", CREDENTIAL),
            "integrationId": await _named(session, f"{application}/integrations", INTEGRATION),
            "applicationCertificateId": await _first_certificate(session, f"{application}/certificates"),
            "applicationCertificateAuthorityId": await _named(
                session, f"{application}/certificate-authorities", AUTHORITY
            ),
            # Workflows.
            "flowId": flow,
            "flowVersionId": await _named(session, versions, FLOW_VERSION, "version"),
            "runId": await _first_run(session, f"{application}/flows/{flow}", f"{flow}-press"),
            **await _deployment(session, application, "edge", EDGE_DEVICE, EDGE_FLOW),
            **await _deployment(session, application, "embedded", EMBEDDED_DEVICE, EMBEDDED_FLOW),
            # Experience.
            "experienceEndpointId": await _named(session, f"{experience}/endpoints", ENDPOINT, "route"),
            "experienceViewId": await _named(session, f"{experience}/views", VIEW),
            "experienceVersionIdOrName": await _named(session, f"{experience}/versions", VERSION, "version"),
            **await _domain(session, f"{experience}/domains"),
            "experienceSlugId": await _named(session, f"{experience}/slugs", SLUG, "slug"),
            "experienceGroupId": await _named(session, f"{experience}/groups", GROUP),
            "experienceUserId": await _named(session, f"{experience}/users", user, "email"),
            "templateId": record_id((await session.call("GET", "/applicationTemplates"))["items"][0]),
            # Files.
            "privateFileId": await _file(session, application, "privateFiles", "privateFiles", "privateFile"),
            "fileId": await _file(session, application, "files", "file", "file"),
            "orgId": (org := await _named(session, "/orgs", ORGANIZATION)),
            "auditLogId": await _first_entry(session, f"/orgs/{org}"),
            "userAuditLogId": await _first_entry(session, "/me"),
            **await _invitation(session, f"/orgs/{org}/invites"),
            "userId": record_id(await session.call("GET", "/me")),
            # Notebooks and resource jobs.
            "notebookId": await _named(session, f"{application}/notebooks", NOTEBOOK),
            "resourceJobId": await _named(session, f"{application}/resource-jobs", RESOURCE_JOB),
            "jobId": await _first_job(session, application),
        }
        for parameter, path, body in examples:
            if parameter not in found:
                place = path.replace("{applicationId}", demo.application_id)
                found[parameter] = await _named(session, place, body)
        return found
    finally:
        session.close()


async def _named(session: Session, path: str, wanted: Json, field: str = "name") -> str:
    """The id of the record of this name (or other field) in a list; it is created if there is none."""
    found = await session.call("GET", path, query={"filterField": field, "filter": wanted[field]})
    for record in found["items"]:
        return record_id(record)
    return record_id(await session.call("POST", path, wanted))


async def _domain(session: Session, path: str) -> dict[str, str]:
    """The id of the domain; nothing on a server whose operator does not permit it."""
    try:
        return {"experienceDomainId": await _named(session, path, DOMAIN, "domainName")}
    except ApiError:
        return {}


async def _file(session: Session, application: str, many: str, one: str, part: str) -> str:
    """The id of a file with content, which is sent if it has none; `part` is its name in the form."""
    id = await _named(session, f"{application}/{many}", FILE)
    path = f"{application}/{one}/{id}"
    if (await session.call("GET", path))["status"] == "pending":
        form = (
            f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{part}"; filename="notes.txt"\r\n\r\n'
            f"{FILE_TEXT}\r\n--{_BOUNDARY}--\r\n"
        )
        headers = {"content-type": f"multipart/form-data; boundary={_BOUNDARY}"}
        async with session.connection() as connection:
            answer = await connection.request("POST", f"{path}/upload", form.encode(), headers)
        if answer.status >= 400:
            raise refusal(answer)
    return id


async def _invitation(session: Session, path: str) -> dict[str, str]:
    """The id of an invitation of the organization; nothing if a mail server does not take the mail."""
    try:
        invites = await session.call("GET", path) or await session.call("POST", path, INVITATION)
    except TryLater:
        return {}
    return {"inviteId": record_id(invites[0])}


async def _deployment(
    session: Session, application: str, of: str, device: Json, flow: Json
) -> dict[str, str]:
    """The ids of a deployment, of its device and of its workflow; `of` is the class of the workflow."""
    device_id = await _named(session, f"{application}/devices", device)
    query = {"query": f'{{"name": "{flow["name"]}"}}'}
    flows = (await session.call("GET", f"{application}/flows", query=query))["items"]
    flow_id = record_id(flows[0] if flows else await session.call("POST", f"{application}/flows", flow))
    path = f"{application}/{of}/deployments"
    release = {"flowId": flow_id, "version": "develop", "deviceIds": [device_id]}
    await session.call("POST", f"{path}/release", release)
    (deployment,) = (await session.call("GET", path, query={"deviceId": device_id}))["items"]
    return {
        f"{of}DeploymentId": record_id(deployment),
        f"{of}DeviceId": device_id,
        f"{of}FlowId": flow_id,
    }


async def _first_row(session: Session, path: str) -> str:
    rows = (await session.call("GET", path, query={"limit": 1}))["items"]
    if not rows:
        return str((await session.call("POST", path, ROWS))["rowIds"][0])
    return record_id(rows[0])


async def _first_certificate(session: Session, path: str) -> str:
    found = (await session.call("GET", path, query={"perPage": 1}))["items"]
    return record_id(found[0] if found else await session.call("POST", path, CERTIFICATE))


async def _first_event(
    session: Session, application: str, device_ids: Mapping[str, str], table: str, flow: str
) -> str:
    """The id of an event about the cold store. An application without any event gets a past first."""
    events = (await session.call("GET", f"{application}/events", query={"perPage": 1}))["items"]
    if events:
        return record_id(events[0])
    await make_past(session, application, device_ids, table, flow)
    event = {**EVENT, "deviceId": device_ids["cold-store-2"]}
    return record_id(await session.call("POST", f"{application}/events", event))


async def _first_job(session: Session, application: str) -> str:
    """The id of a job of the application: the export of its devices, if there is no other."""
    jobs = f"{application}/jobLogs"
    for _ in range(2):
        for job in (await session.call("GET", jobs, query={"perPage": 1}))["items"]:
            return record_id(job)
        await session.call("POST", f"{application}/devices/export", {"format": "json"})
    raise BenchError("The server queued an export and does not list it.")


async def _first_run(session: Session, flow: str, button: str) -> str:
    """The id of a run of a workflow: that of a press of its button, if there is no other."""
    for attempt in range(200):
        for run in (await session.call("GET", f"{flow}/runs", query={"perPage": 1}))["items"]:
            return record_id(run)
        if not attempt:
            await session.call("POST", f"{flow}/virtualButton", {"key": button})
        await trio.sleep(0.05)
    raise BenchError("The button of a workflow was pressed, and there is no run of it.")


async def _first_entry(session: Session, org: str) -> str:
    """The id of an entry of the audit log of an organization: a change of it, if there is no other."""
    oldest = {"perPage": 1, "sortField": "creationDate", "sortDirection": "asc"}
    for _ in range(2):
        for entry in (await session.call("GET", f"{org}/audit-logs", query=oldest))["items"]:
            return record_id(entry)
        await session.call("PATCH", org, {"description": ORGANIZATION.get("description", "A farm.")})
    raise BenchError("The server changed an organization and has no entry of it in the audit log.")
