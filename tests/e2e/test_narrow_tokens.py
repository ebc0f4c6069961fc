"""A token is shown by no operation what it has no scope to read: dashboards, searches, trials, exports of inputs."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.e2e.conftest import Server
from tests.e2e.rows import api_token
from tests.e2e.test_dashboard_data import made
from tests.e2e.test_reports import HOUR_MS, block, job_of, mails, send, words
from trunkline.actors.presentation.dashboards.report_blocks import _PARTS

Json = dict[str, Any]

SEGMENT: Final = {"attribute": "temp"}
CONFIGS: Final[dict[str, Json]] = {
    "bar": {"segments": [SEGMENT]},
    "custom-chart": {"segments": [{**SEGMENT, "id": "q", "queryType": "gauge"}]},
    "custom-html": {"segments": [{"id": "q", "queryType": "events"}]},
    "device-count": {"segments": [{"id": "s", "query": "{}"}]},
    "gauge": {"segment": SEGMENT},
    "graph": {"segments": [SEGMENT], "duration": HOUR_MS},
    "heatmap": {"attribute": "label"},
    "image": {"imageSource": "attribute", "attribute": "label"},
    "image-overlay": {"segments": [{**SEGMENT, "id": "s"}]},
    "indicator": {"segments": [SEGMENT]},
    "input": {"controls": [{"type": "range", "id": "c", "defaultQuery": SEGMENT}]},
    "map": {"attribute": "label"},
    "pie": {"segments": [SEGMENT]},
    "position-chart": {"xAttribute": "temp", "yAttribute": "temp"},
}
"""The settings with which a type of block reads something, where it reads nothing without."""
SHOWS_NOTHING: Final = {"iframe", "section-header"}


async def house(server: Server) -> tuple[str, str, str]:
    """An application with a value, a row and an event; with the ids of the device and the table."""
    application = await server.application()
    device = await server.device(application, "secretdev")
    await server.call("POST", f"{device}/state", {"data": {"temp": 42, "label": "50,8"}})
    column = {"name": "c", "dataType": "string", "constraint": "optional"}
    table = await server.call("POST", f"{application}/data-tables", {"name": "t", "columns": [column]})
    await server.call("POST", f"{application}/data-tables/{table['id']}/rows", {"c": "secretrow"})
    await server.call("POST", f"{application}/events", {"subject": "secretevent", "level": "info"})
    return application, device.rpartition("/")[2], table["id"]


def blocks_of(device: str, table: str) -> list[Json]:
    """A block of each type."""
    configs = {**CONFIGS, "data-table": {"dataTableId": table}}
    configs["image"] = {**configs["image"], "deviceId": device}
    return [block(n, type, type, configs.get(type, {})) for n, type in enumerate(sorted(_PARTS))]


async def shown(server: Server, path: str, **call: Any) -> dict[str, Json]:
    answer = await server.call("POST", f"{path}/data", {}, status=200, **call)
    return {each["title"]: each for each in answer["blocks"]}


async def test_a_dashboard_shows_a_token_what_its_scopes_read(server: Server) -> None:
    application, device, table = await house(server)
    scopes = ("applicationDashboards.post", "applicationDashboard.*")
    narrow = await api_token(server, application, *scopes)
    body = {"name": "d", "blocks": blocks_of(device, table)}
    id = (await server.call("POST", f"{application}/dashboards", body, token=narrow, status=201))["id"]
    path = f"{application}/dashboards/{id}"
    for found in (
        await shown(server, path, token=narrow),
        {
            each["title"]: each
            for each in (
                await server.call("POST", f"{path}/preview", {"blocks": body["blocks"]}, token=narrow)
            )["blocks"]
        },
    ):
        refused = {type for type, each in found.items() if "has no scope for" in each.get("problem", "")}
        assert refused == set(_PARTS) - SHOWS_NOTHING
        assert "secret" not in str(found)
    # Each scope opens the blocks that read with it, and no others.
    gauges = await api_token(server, application, *scopes, "data.lastValueQuery")
    found = await shown(server, path, token=gauges)
    assert found["gauge"]["parts"][-1]["value"] == 42
    assert "data.timeSeriesQuery" in found["graph"]["problem"]
    assert "devices.get" in found["device-list"]["problem"]
    for broad in ("all.Application", "all.Application.read"):
        found = await shown(server, path, token=await api_token(server, application, broad))
        assert [type for type, each in found.items() if "problem" in each] == []
        assert found["data-table"]["parts"][0]["rows"] == [["secretrow"]]


async def test_a_dashboard_of_a_user_shows_a_token_what_its_scopes_read(server: Server) -> None:
    application, *_ = await house(server)
    narrow = await api_token(server, "/me", "dashboards.post", "dashboard.*")
    gauge = {**block(0, "gauge", "g", {"segment": SEGMENT}), "applicationId": application.rpartition("/")[2]}
    body = {"name": "d", "blocks": [gauge], "public": True}
    path = f"/dashboards/{(await server.call('POST', '/dashboards', body, token=narrow, status=201))['id']}"
    assert "has no scope" in (await shown(server, path, token=narrow))["g"]["problem"]
    # Who has no token sees what the writer could read with the token that was used.
    assert "has no scope for data.lastValueQuery" in (await shown(server, path, token=""))["g"]["problem"]
    assert (await shown(server, path))["g"]["parts"][-1]["value"] == 42
    await server.call("PATCH", path, {"public": True})
    assert (await shown(server, path, token=""))["g"]["parts"][-1]["value"] == 42


async def test_a_parameter_shows_a_token_what_its_scopes_read(server: Server) -> None:
    application, device, _ = await house(server)
    config = {"includeFullDevice": True}
    parameter = {"name": "d", "type": "deviceId", "defaultValue": device, "validationConfig": config}
    path = await made(server, application, [], contextConfiguration=[parameter])
    at = f"{path}/validateContext"
    narrow = await api_token(server, "/me", "dashboard.*")
    refusal = await server.call("POST", at, {}, token=narrow, status=400)
    assert "needs device.get" in refusal["message"]
    wider = await api_token(server, "/me", "dashboard.*", "device.get")
    assert (await server.call("POST", at, {}, token=wider))["ctx"]["d"]["name"] == "secretdev"


async def test_a_report_shows_what_the_scopes_of_its_caller_read(server: Server) -> None:
    application, *_ = await house(server)
    narrow = await api_token(
        server, application, "applicationDashboard.sendReport", "applicationDashboard.get"
    )
    path = await made(server, application, [block(0, "event-list", "", {}), block(2, "device-list", "", {})])
    order: Json = {"toEmail": ["reader@example.com"]}
    queued = await server.call("POST", f"{application}{path}", order, token=narrow, status=202)
    await job_of(server, application, queued)
    (mail,) = await mails(server)
    assert "has no scope for events.get" in words(mail)
    assert "has no scope for devices.get" in words(mail)
    assert "secret" not in words(mail)
    await job_of(server, application, await send(server, f"{application}{path}", **order))
    assert any("secretevent" in words(mail) for mail in await mails(server, 2))


async def test_a_search_finds_what_the_scopes_of_the_token_list(server: Server) -> None:
    application, *_ = await house(server)
    at = f"{application}/search?filter=secret*"
    for scopes, types in (
        (("application.search",), set()),
        (("application.search", "devices.get"), {"device"}),
        (("application.search", "events.*"), {"event"}),
        (("all.Application.read",), {"device", "event"}),
    ):
        found = await server.call("GET", at, token=await api_token(server, application, *scopes))
        assert {each["_type"] for each in found} == types, scopes


ATTRIBUTE: Final = {"type": "attribute", "attribute": "temp", "comparison": "above", "value": 41}


@pytest.mark.parametrize(
    ("condition", "needed", "value"),
    [
        (ATTRIBUTE, "data.timeSeriesQuery", 42),
        ({"type": "event", "level": "info"}, "events.get", "secretevent"),
    ],
)
async def test_an_alarm_rule_is_tried_on_what_the_token_reads(
    server: Server, condition: Json, needed: str, value: object
) -> None:
    application, *_ = await house(server)
    rule = {"name": "r", "severity": "error", "condition": condition}
    at = f"{application}/alarm-rules/try"
    narrow = await api_token(server, application, "alarmRules.try")
    refusal = await server.call("POST", at, rule, token=narrow, status=403)
    assert f"no scope for {needed}" in refusal["message"]
    wider = await api_token(server, application, "alarmRules.try", needed)
    assert (await server.call("POST", at, rule, token=wider))["items"][0]["value"] == value
    await server.call("POST", at, rule, token=await api_token(server, application, "all.Application.read"))


async def test_the_inputs_of_a_notebook_are_exported_to_who_reads_them(server: Server) -> None:
    application, _, table = await house(server)
    scopes = ("notebooks.post", "notebook.requestInputDataExport")
    narrow = await api_token(server, application, *scopes)
    ranged = {"start": 1, "end": 0}
    inputs: dict[str, Json] = {
        "data.timeSeriesQuery": {"inputType": "deviceData", **ranged},
        "device.getLogEntries": {"inputType": "deviceConnectionHistory", **ranged},
        "devices.get": {"inputType": "deviceMetadata"},
        "dataTableRows.get": {"inputType": "dataTable", "dataTableId": table},
        "events.get": {"inputType": "eventData"},
        "file.get": {"inputType": "applicationFile", "filePath": "/a"},
        "privateFile.get": {"inputType": "applicationFile", "filePath": "/a", "private": True},
    }
    for needed, input in inputs.items():
        body = {"name": needed, "inputs": [{**input, "fileName": "x"}]}
        id = (await server.call("POST", f"{application}/notebooks", body, token=narrow, status=201))["id"]
        at = f"{application}/notebooks/{id}/requestInputDataExport"
        order = {"email": "reader@example.com"}
        refusal = await server.call("POST", at, order, token=narrow, status=403)
        assert refusal["message"].startswith(f"inputs[0]: The token has no scope for {needed}")
    wider = await api_token(server, application, *scopes, "privateFile.get")
    assert "no complete file" in (await server.call("POST", at, order, token=wider, status=400))["message"]
