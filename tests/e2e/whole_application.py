"""An application with every kind of portable resource, made through the API.

Each resource uses what it can: it refers to others, some of them newer than itself, has every form of value that its
body takes, and a secret where it may have one. A resource that becomes portable is added to `FILL`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tests.certificates import make_certificate
from tests.e2e.conftest import Server
from tests.e2e.test_flows import CUSTOM, FLOW
from trunkline.actors.portability.bundles.portable import BY_NAME

SECRET: Final = "Planted-secret-7"
"""Stands in every field that is a secret."""

Json = dict[str, Any]


class Whole:
    """The application while it is made: `ids` has the ids of its resources by labels."""

    def __init__(self, server: Server, path: str) -> None:
        self.server = server
        self.path = path
        self.ids: dict[str, str] = {"application": path.rpartition("/")[2]}

    async def post(self, label: str, place: str, **body: Any) -> str:
        """Create a record and remember its id."""
        made = await self.server.call("POST", f"{self.path}/{place}", body)
        self.ids[label] = made["id"]
        return str(made["id"])

    async def patch(self, place: str, **body: Any) -> None:
        """Change a record."""
        await self.server.call("PATCH", f"{self.path}/{place}", body)

    async def upload(self, many: str, content: bytes, **body: Any) -> None:
        """Create a file with its content."""
        made = await self.server.call(
            "POST", f"{self.path}/{many}", {**body, "type": "file", "fileSize": len(content)}
        )
        self.ids[f"{many} {body['name']}"] = made["id"]
        async with self.server.client("") as client:
            form = made["upload"]
            sent = await client.post(form["url"], data=form["fields"], files={"file": ("f", content)})
        assert sent.is_success, sent.text


async def whole_application(server: Server, name: str = "whole") -> Whole:
    """A new application with all of it."""
    assert FILL.keys() == BY_NAME.keys(), "a portable resource is missing here"
    whole = Whole(server, await server.application(name))
    for fill in dict.fromkeys(FILL.values()):
        await fill(whole)
    return whole


async def tables(whole: Whole) -> None:
    columns = [
        {"name": "part", "dataType": "string", "constraint": "unique"},
        {"name": "weight", "dataType": "number", "constraint": "optional", "defaultValue": 1.5},
        {"name": "sold", "dataType": "boolean", "constraint": "required", "defaultValue": False},
    ]
    await whole.post("parts", "data-tables", name="parts", description="", columns=columns)
    rows: list[Json] = [
        {"part": "büro \U0001f600\n\u0000", "weight": 2.0, "sold": True},
        {"part": None, "weight": None},
        {"weight": -(2**63), "part": "x"},
        {"weight": 2**63 + 1},
    ]
    await whole.server.call("POST", f"{whole.path}/data-tables/{whole.ids['parts']}/rows", rows)
    await whole.post("empty", "data-tables", name="Empty")
    # The rows of this table are older than a required column.
    await whole.post("old", "data-tables", name="old", columns=columns[:1])
    await whole.server.call("POST", f"{whole.path}/data-tables/{whole.ids['old']}/rows", {"part": "a"})
    late = {"name": "late", "dataType": "string", "constraint": "required"}
    await whole.server.call("POST", f"{whole.path}/data-tables/{whole.ids['old']}/column", late)


async def devices(whole: Whole) -> None:
    attributes = [
        {"name": "temp", "dataType": "number", "contentType": "x", "attributeTags": {"unit": "C"}},
        {"name": "gone", "dataType": "string"},
    ]
    tags = [{"key": "room", "value": "1"}, {"key": "room", "value": "2"}]
    pump = await whole.post(
        "pump", "devices", name="pump", tags=tags, attributes=attributes, keepDuplicates=True
    )
    await whole.server.call("DELETE", f"{whole.path}/devices/{pump}/attributes/gone")
    await whole.post("room", "devices", name="room", deviceClass="system", systemInterval=60)
    floor = await whole.post("floor", "devices", name="floor", deviceClass="system", parentId=None)
    house = await whole.post("house", "devices", name="house", description=f"of {pump}", deviceClass="system")
    first = await whole.post("firstGateway", "devices", name="gateway", deviceClass="gateway")
    sensor = await whole.post("sensor", "devices", name="s", deviceClass="peripheral", gatewayId=first)
    edge = await whole.post("edge", "devices", name="edge", deviceClass="edgeCompute")
    # Everything refers to what is newer.
    await whole.patch(f"devices/{pump}", parentId=whole.ids["room"])
    await whole.patch(f"devices/{whole.ids['room']}", parentId=floor)
    await whole.patch(f"devices/{floor}", parentId=house)
    await whole.patch(f"devices/{sensor}", gatewayId=edge, parentId=whole.ids["room"])
    await whole.server.call("POST", f"{whole.path}/devices/{pump}/state", {"data": {"temp": 21}})
    await whole.post(
        "recipe",
        "device-recipes",
        name="recipe",
        deviceClass="peripheral",
        gatewayId=edge,
        tags=tags,
        attributes=attributes,
    )


async def alarm_groups(whole: Whole) -> None:
    await whole.post("night", "alarm-groups", name="night", description="büro", emails=["night@example.com"])


async def alarms(whole: Whole) -> None:
    warm = {"type": "attribute", "attribute": "temp", "comparison": "outside", "min": -5, "max": 30.5}
    steps = [{"emails": ["night@example.com"]}, {"afterSeconds": 600, "url": "https://example.com/told"}]
    steps.append({"afterSeconds": 900, "groupIds": [whole.ids["night"]]})
    quiet = {"start": "22:00", "end": "06:00", "timeZone": "Europe/Berlin"}
    await whole.post(
        "warm",
        "alarm-rules",
        name="warm",
        description="büro",
        severity="critical",
        condition={**warm, "hysteresis": 1},
        durationSeconds=120,
        deviceIds=[whole.ids["pump"]],
        deviceTags=[{"key": "room", "value": "1"}],
        notify={"steps": steps, "repeatSeconds": 3600, "quietHours": quiet, "tellsEnd": True},
    )
    silence = {"type": "silence", "seconds": 600}
    await whole.post("silent", "alarm-rules", name="silent", enabled=False, condition=silence)
    fault = {"type": "event", "level": "error", "subject": "Pump *"}
    await whole.post("fault", "alarm-rules", name="fault", enabled=False, condition=fault)


async def connections(whole: Whole) -> None:
    await whole.post(
        "hook",
        "webhooks",
        name="hook",
        basicAuthUsername="u",
        basicAuthPassword=SECRET,
        verificationType="twilio",
        verificationCode=SECRET,
    )
    await whole.post("open", "webhooks", name="open", enabled=False, castBuffersAs="hex", responseCode=204)
    broker = {
        "protocol": "mqtts",
        "host": "broker.example.com",
        "port": 8883,
        "password": SECRET,
        "privateKey": SECRET,
    }
    await whole.post(
        "mqtt",
        "integrations",
        name="mqtt",
        integrationType="mqtt",
        mqttConfig=broker,
        topics=["a/#"],
        enabled=False,
    )
    socket = {"url": "wss://example.com", "headers": [{"headerKey": "k", "headerValue": SECRET}] * 2}
    await whole.post(
        "ws", "integrations", name="ws", integrationType="websocket", websocketConfig=socket, enabled=False
    )
    await whole.post(
        "particle",
        "integrations",
        name="p",
        integrationType="particle",
        particleConfig={"accessToken": SECRET},
    )
    bundle = make_certificate("authority", ca=True)
    await whole.post("authority", "certificate-authorities", name="a", caBundle=bundle, status="inactive")


async def people(whole: Whole) -> None:
    query = json.dumps({"parentId": whole.ids["room"]})
    below = await whole.post(
        "below",
        "experience/groups",
        name="below",
        deviceIds=[whole.ids["pump"], whole.ids["sensor"]],
        deviceTags=[{"key": "room"}],
        groupTags={"floor": "2"},
        deviceQueryJson=query,
    )
    above = await whole.post("above", "experience/groups", name="above")
    await whole.patch(f"experience/groups/{below}", parentId=above)
    await whole.post(
        "user",
        "experience/users",
        email="user@example.com",
        password=SECRET,
        firstName="Eva",
        tokenCutoff="2024-05-01T12:00:00.000Z",
        userTags={"job": "x"},
        experienceGroupIds=[above, below],
    )


async def experience(whole: Whole) -> None:
    page = await whole.post(
        "page",
        "experience/views",
        name="page",
        viewType="page",
        body=f"<p>{whole.ids['pump']}</p>",
        headers={"content-type": "text/html"},
        viewTags={"a": "b"},
    )
    layout = await whole.post("layout", "experience/views", name="layout", viewType="layout", body="{{page}}")
    await whole.post("component", "experience/views", name="part", viewType="component")
    await whole.patch(f"experience/views/{page}", layoutId=layout)
    reply = {"type": "page", "value": page, "statusCode": 200}
    away = {"type": "redirect", "value": "/login"}
    await whole.post(
        "endpoint",
        "experience/endpoints",
        route="/pump/{id}",
        method="get",
        access="group",
        experienceGroupIds=[whole.ids["below"], whole.ids["above"]],
        staticReply=reply,
        unauthorizedReply=away,
        endpointTags={"t": "1"},
    )
    removed = await whole.post(
        "removed", "experience/endpoints", route="/old", method="post", staticReply=reply
    )
    await whole.patch(
        "experience/versions/develop",
        description="settings",
        endpointDefaultCors=True,
        allowedCorsOrigins=["https://example.com"],
        responseHeaders={"X-A": "b"},
        notFoundReply=reply,
        globals=[{"key": "device", "json": json.dumps(whole.ids["pump"])}],
    )
    await whole.post(
        "version",
        "experience/versions",
        version="v1",
        unauthorizedReply=away,
        description="first",
        globals=[],
    )
    # What the version has is not what `develop` has now.
    await whole.server.call("DELETE", f"{whole.path}/experience/endpoints/{removed}")
    await whole.patch(f"experience/views/{page}", body="new")
    await whole.post("second", "experience/versions", version="v2", notFoundReply=None)


async def flows(whole: Whole) -> None:
    trigger = {"type": "webhook", "key": whole.ids["hook"], "outputIds": [["ask"]]}
    node = {
        "id": "more",
        "type": "HTTPNode",
        "config": {"text": f"to {whole.ids['pump']}-x", "n": [1.0, None]},
    }
    flow = await whole.post(
        "flow", "flows", **{**FLOW, "triggers": [*FLOW["triggers"], trigger], "nodes": [*FLOW["nodes"], node]}
    )
    version = await whole.post(
        "flowVersion",
        f"flows/{flow}/versions",
        version="v1",
        notes="",
        enabled=False,
        nodes=[node],
    )
    await whole.post("flowVersion2", f"flows/{flow}/versions", version="v2")
    await whole.patch(f"flows/{flow}", defaultVersionId=version)
    custom = await whole.post("custom", "flows", **CUSTOM)
    uses = {"type": "CustomNodeExecuteNode", "config": {"customNodeId": custom}}
    page = await whole.post(
        "pageFlow", "flows", name="page", flowClass="experience", nodes=[uses], enabled=False
    )
    await whole.post("pageVersion", f"flows/{page}/versions", version="v1", nodes=[uses])
    entry = {"key": "count", "value": SECRET}
    await whole.server.call("PATCH", f"{whole.path}/flows/{flow}/storage", entry)


async def dashboards(whole: Whole) -> None:
    place = {"startX": 0, "startY": 0, "width": 2, "height": 2}
    segment = {"attribute": "temp", "deviceIds": [whole.ids["pump"]]}
    blocks = [
        {
            "blockType": "gauge",
            **place,
            "applicationId": whole.ids["application"],
            "config": {"segment": segment},
        },
        {"blockType": "data-table", **place, "config": {"dataTableId": whole.ids["parts"]}},
        {"blockType": "map", **place, "config": {"query": json.dumps({"id": whole.ids["pump"]})}},
    ]
    await whole.post(
        "dashboard",
        "dashboards",
        name="d",
        blocks=blocks,
        public=True,
        password=SECRET,
        reportConfigs=[{"cron": "0 8 * * *", "toEmail": ["a@example.com"], "ctx": {"n": 1.5}}],
        contextConfiguration=[{"name": "room", "type": "deviceId", "defaultValue": whole.ids["pump"]}],
    )


async def files(whole: Whole) -> None:
    for many in ("files", "privateFiles"):
        await whole.post(f"{many}-directory", many, name="inner", parentDirectory="outer", type="directory")
        content = bytes(range(256)) * 2000
        size = {"width": 3, "height": 1.5}
        await whole.upload(
            many,
            content,
            name="büro.png",
            parentDirectory="outer/inner",
            contentType="image/png",
            fileDimensions=size,
        )
        await whole.upload(many, f"{many} {whole.ids['pump']}".encode(), name="büro.txt")
        await whole.upload(many, b"", name="empty")
        # What has not arrived is not exported.
        await whole.post(f"{many}-pending", many, name="pending", type="file", fileSize=3)


async def notebooks(whole: Whole) -> None:
    inputs = [
        {"inputType": "dataTable", "fileName": "rows.csv", "dataTableId": whole.ids["parts"]},
    ]
    notebook = await whole.post("notebook", "notebooks", name="notebook", inputs=inputs, description="n")
    async with whole.server.client() as client:
        file = {"jupyterFile": ("büro.ipynb", f"{whole.ids['pump']}".encode())}
        sent = await client.post(f"{whole.path}/notebooks/{notebook}/upload", files=file)
    assert sent.is_success, sent.text
    await whole.post(
        "job",
        "resource-jobs",
        name="job",
        resourceType="device",
        queryJson=json.dumps({"id": whole.ids["pump"]}),
        defaultContext=json.dumps({"device": whole.ids["pump"]}),
    )


async def application(whole: Whole) -> None:
    text = json.dumps({"device": whole.ids["pump"], "table": whole.ids["parts"].upper()})
    await whole.patch(
        "",
        description="all of it",
        endpointDefaultCors=True,
        blobUrlTTL=7200,
        globals=[
            {"key": "b", "json": text, "cloudOnly": True, "description": "d"},
            {"key": "a", "json": "1"},
        ],
    )
    await whole.patch("readme", content=f"# Büro\n\nThe pump is {whole.ids['pump']}.")


FILL: Final[dict[str, Callable[[Whole], Awaitable[None]]]] = {
    "DataTable": tables,
    "DataTableRow": tables,
    "Device": devices,
    "DeviceRecipe": devices,
    "AlarmGroup": alarm_groups,
    "AlarmRule": alarms,
    "Webhook": connections,
    "Integration": connections,
    "ApplicationCertificateAuthority": connections,
    "ExperienceGroup": people,
    "ExperienceUser": people,
    "ExperienceView": experience,
    "ExperienceEndpoint": experience,
    "ExperienceDevelopConfig": experience,
    "ExperienceVersion": experience,
    "Flow": flows,
    "FlowVersion": flows,
    "ExperienceFlowVersion": flows,
    "Dashboard": dashboards,
    "Notebook": notebooks,
    "ResourceJob": notebooks,
    "File": files,
    "PrivateFile": files,
    "Global": application,
}
"""By name of a portable resource: what makes it, in this order."""
