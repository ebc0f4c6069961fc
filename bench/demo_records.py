"""The records of the demo beside its devices: one of each kind, so that every operation has something to show.

Owns what they are, and finds them again by name at the next start. A record that was deleted is created again at the
next start. The token and the key of the demo are there to be looked at: nobody has seen their texts.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

import trio

from trunkline.bench.demo import TRIED_DEVICE, DemoReady
from trunkline.bench.demo_dashboard import DASHBOARD, public_dashboard
from trunkline.bench.demo_flows import (
    BUTTON,
    EDGE_FLOW,
    EMBEDDED_FLOW,
    FLOW,
    FLOW_VERSION,
    LOG_TABLE,
    log_flow,
)
from trunkline.bench.demo_plant import GATEWAY, plant, recipe_record
from trunkline.bench.demo_rules import ALARM_GROUP, OTHER_GROUP, RULES, tripped_rule
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
_PLACES = ("freezers", "chillers", "machine room", "pump house", "loading dock", "roof")
_NOTES = ("All is well.", "Ice at the door.", "A lamp is broken.", "Swept and washed.", None)
ROWS: list[Json] = [
    {"place": _PLACES[number % 6], "score": 7 + number * 7 % 4, "note": _NOTES[number % 5]}
    for number in range(40)
]
KEY: Json = {"name": "key of the demo", "description": "All devices may log in with it."}
APPLICATION_TOKEN: Json = {"name": "token of the demo", "scope": ["all.Application.read"]}
USER_TOKEN: Json = {"name": "token of the demo", "scope": ["all.User.read"]}
ARCHIVE: Json = {"directory": "demo", "includeEvents": True, "includeDataTables": True}
WEBHOOK: Json = {"name": "weather warnings", "description": "For the warnings of a weather service."}
CREDENTIAL: Json = {
    "name": "spare parts",
    "description": "For the orders of spare parts. Nobody accepts this key.",
    "type": "http",
    "httpConfig": {
        "uriMatch": "https://parts.example.com",
        "authMethod": "header",
        "publicValue": "X-Api-Key",
        "secretValue": "none",
    },
}
INTEGRATION: Json = {
    "name": "broker of the forwarder",
    "integrationType": "mqtt",
    "enabled": False,
    "topics": ["plant/#"],
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
ENDPOINT: Json = {"route": "/freezers", "method": "get", "description": "The page of the freezers."}
VIEW: Json = {"name": "freezers", "viewType": "page", "body": "<h1>The freezers</h1>"}
VERSION: Json = {"version": "v1.0", "description": "The first one."}
DOMAIN: Json = {"domainName": "demo.plant.example"}
SLUG: Json = {"slug": "plant-of-the-demo"}
GROUP: Json = {
    "name": "night shift",
    "description": "Who looks after the plant at night.",
    "deviceTags": [{"key": "site"}],
}
EXPERIENCE_USER: Json = {"email": "eva@example.com", "firstName": "Eva", "lastName": "Winter"}
INVITATION: Json = {"email": "colleague@example.com", "role": "view"}
ORGANIZATION: Json = {"name": "plant", "description": "Who looks after the plant together."}
NOTEBOOK: Json = {
    "name": "events of the week",
    "description": "Which device needs attention most often.",
    "inputs": [{"inputType": "eventData", "fileName": "events.csv"}],
}
RESOURCE_JOB: Json = {"name": "look at every door", "resourceType": "device"}
EDGE_DEVICE, EMBEDDED_DEVICE = GATEWAY, "weather-mast"
"""The devices for which workflows are released."""
FILE: Json = {"name": "notes.txt", "type": "file", "contentType": "text/plain"}
FILE_TEXT = "The key of the machine room hangs at the gate.\n"
_BOUNDARY = "part-of-the-demo"
EVENT: Json = {
    "level": "info",
    "subject": "The chillers were washed",
    "message": "The doors stood open for ten minutes.",
}


Example = tuple[str, str, Json]
"""A record of a plain resource: its path parameter, the path of the list, and the body that creates it."""


async def ensure_records(token: str, demo: DemoReady, examples: Iterable[Example] = ()) -> dict[str, str]:
    """Create the records that do not exist yet; return the id of each by the name of its path parameter.

    `examples` are further records, of parameters that none of those here has.

    The two kinds of API token are `applicationApiTokenId` and `userApiTokenId`. `deviceId` is that of the calls to try.
    Raises BenchError.
    """
    session = Session(demo.url, token=token, connections_max=1)
    application = f"/applications/{demo.application_id}"
    experience = f"{application}/experience"
    user = {**EXPERIENCE_USER, "password": secrets.token_urlsafe(24)}  # nobody logs in as this user
    try:
        table = await _named(session, f"{application}/data-tables", TABLE)
        rows = f"{application}/data-tables/{table}/rows"
        flow = await _named(session, f"{application}/flows", FLOW)
        log = await _named(session, f"{application}/data-tables", LOG_TABLE)
        await _named(session, f"{application}/flows", log_flow(log))
        if "archiveConfig" not in await session.call("GET", application):
            await session.call("PATCH", application, {"archiveConfig": ARCHIVE})
        versions = f"{application}/flows/{flow}/versions"
        found = {
            "applicationId": demo.application_id,
            "deviceId": demo.device_ids[TRIED_DEVICE],
            "dataTableId": table,
            "rowId": await _first_row(session, rows),
            "eventId": await _first_event(session, application, demo.device_ids),
            "applicationKeyId": await _named(session, f"{application}/keys", KEY),
            "applicationApiTokenId": await _named(session, f"{application}/tokens", APPLICATION_TOKEN),
            "userApiTokenId": await _named(session, "/me/tokens", USER_TOKEN),
            "dashboardId": await _named(session, f"{application}/dashboards", DASHBOARD),
            "userDashboardId": await _named(session, "/dashboards", public_dashboard(demo.application_id)),
            "deviceRecipeId": await _recipes(session, f"{application}/device-recipes"),
            "alarmGroupId": await _named(session, f"{application}/alarm-groups", OTHER_GROUP),
            "alarmRuleId": await _rules(session, application),
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
            "runId": await _first_run(session, f"{application}/flows/{flow}", f"{flow}-{BUTTON}"),
            **await _deployment(session, application, "edge", demo.device_ids[EDGE_DEVICE], EDGE_FLOW),
            **await _deployment(
                session, application, "embedded", demo.device_ids[EMBEDDED_DEVICE], EMBEDDED_FLOW
            ),
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
    session: Session, application: str, of: str, device_id: str, flow: Json
) -> dict[str, str]:
    """The ids of a deployment, of its device and of its workflow; `of` is the class of the workflow."""
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


async def _first_event(session: Session, application: str, ids: Mapping[str, str]) -> str:
    """The id of the event of the worst alarm; or else of any event, which is written if there is none."""
    worst = {"perPage": 1, "query": '{"level": "critical"}'}
    for query in (worst, {"perPage": 1}):
        for event in (await session.call("GET", f"{application}/events", query=query))["items"]:
            return record_id(event)
    event = {**EVENT, "deviceId": ids[TRIED_DEVICE]}
    return record_id(await session.call("POST", f"{application}/events", event))


async def _recipes(session: Session, path: str) -> str:
    """The id of the recipe of the cold rooms; those of all devices are created."""
    recipes = {model.recipe: recipe_record(model) for model in plant(0)}
    ids = [await _named(session, path, recipe) for recipe in recipes.values()]
    return ids[0]


async def _rules(session: Session, application: str) -> str:
    """The id of the first rule; all are created, and the group that one of them tells."""
    group = await _named(session, f"{application}/alarm-groups", ALARM_GROUP)
    rules = (*RULES, tripped_rule(group))
    ids = [await _named(session, f"{application}/alarm-rules", rule) for rule in rules]
    return ids[0]


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
        await session.call("PATCH", org, {"description": ORGANIZATION.get("description", "The plant.")})
    raise BenchError("The server changed an organization and has no entry of it in the audit log.")
