"""Nodes that call the API of their own server, and that create and read files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.actors.engine.run_house import kept_runs, runs_end
from tests.actors.house import House, ManualClock
from tests.e2e.conftest import Server
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.origin import HOPS_MAX
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.workflows.flows.run_records import RunRecord

StartServer = Callable[..., Any]
Json = dict[str, Any]


async def new_application(server: Server) -> str:
    """The id of a new application."""
    return (await server.application()).rpartition("/")[2]


async def run_nodes(server: Server, application: str, nodes: list[Json], payload: Any = None) -> RunRecord:
    """The run of a workflow whose nodes follow each other, with a debug node at the end."""
    wired = [
        {"id": str(at), **each, "outputIds": [[str(at + 1)]]}
        for at, each in enumerate([*nodes, {"type": "DebugNode"}])
    ]
    body = {
        "name": "caller",
        "triggers": [{"type": "virtualButton", "key": "b", "outputIds": [["0"]]}],
        "nodes": [{**wired.pop(), "outputIds": []}, *wired],
    }
    path = f"/applications/{application}/flows"
    flow = await server.call("POST", path, body, status=201)
    await server.call("POST", f"{path}/{flow['id']}/virtualButton", {"key": "b", "payload": payload or {}})
    id = bytes.fromhex(application)
    await runs_end(House(server.system, ManualClock(), id))
    return kept_runs(House(server.system, ManualClock(), id), Ref("flow", id, bytes.fromhex(flow["id"])))[-1]


def data_of(run: RunRecord) -> Json:
    assert run.outcome == "completed", run.error
    data: Json = run.debug[-1][3]["data"]
    return data


def api(resource: str, action: str, **params: Any) -> Json:
    rows = [
        {"name": name, "type": "json" if isinstance(value, dict) else "string", "value": _template(value)}
        for name, value in params.items()
    ]
    config = {"resource": resource, "action": action, "params": rows, "responsePath": "data.answer"}
    return {"type": "LosantApiNode", "config": config}


def _template(value: Any) -> str:
    return json.dumps(value) if isinstance(value, dict) else str(value)


async def answer(server: Server, application: str, node: Json, payload: Any = None) -> Any:
    return data_of(await run_nodes(server, application, [node], payload))["answer"]


async def test_a_workflow_calls_operations_in_its_own_name(server: Server) -> None:
    application = await new_application(server)
    made = await answer(server, application, api("devices", "post", device={"name": "pump"}))
    device = made["result"]
    assert device["name"] == "pump"
    assert "_links" not in device
    found = await answer(
        server, application, api("devices", "get", filterField="name", filter="p*", perPage=1)
    )
    assert [each["id"] for each in found["result"]["items"]] == [device["id"]]
    by_path = api("devices", "get", filterField="name", filter="{{data.names}}")
    found = await answer(server, application, by_path, {"names": ["pump"]})
    assert [each["id"] for each in found["result"]["items"]] == [device["id"]]
    patch = api("device", "patch", deviceId="{{data.id}}", device={"description": "new"})
    assert (await answer(server, application, patch, device))["result"]["description"] == "new"
    flow = await answer(server, application, api("dashboards", "get"))
    assert flow["error"]["type"] == "Forbidden"
    aws = {"accessKeyId": "A" * 16, "secretAccessKey": "secret", "region": "here"}
    made = await answer(
        server,
        application,
        api("credentials", "post", credential={"name": "c", "type": "aws", "awsConfig": aws}),
    )
    assert made["result"]["createdByType"] == "flow"


@pytest.mark.parametrize(
    ("node", "status", "message"),
    [
        (api("device", "get", deviceId="0" * 24), 404, f"There is no device {'0' * 24} here."),
        (
            api("device", "get", deviceId="d" * 20_000),
            400,
            "params: deviceId has 20000 characters; a part of a path has at most 16384.",
        ),
        (api("device", "get"), 400, "params: device.get needs deviceId."),
        (
            api("devices", "gets"),
            404,
            "This server has no operation devices.gets (did you mean devices.get?).",
        ),
        (api("devices", "get", colour="red"), 400, "params: colour is not a parameter of devices.get."),
        (api("auth", "authenticateUser", credentials={}), 403, "auth.authenticateUser is not for calls"),
        (api("me", "get"), 403, "The token has no scope for me.get; it needs one of"),
        (api("device", "commandStream", deviceId="0" * 24), 403, "device.commandStream is not for calls"),
    ],
)
async def test_an_error_is_an_answer(server: Server, node: Json, status: int, message: str) -> None:
    found = await answer(server, await new_application(server), node)
    assert found["error"]["statusCode"] == status
    assert found["error"]["message"].startswith(message)


async def test_another_application_needs_a_token(server: Server) -> None:
    own, other = await new_application(server), await new_application(server)
    node = api("devices", "get", applicationId=other)
    assert (await answer(server, own, node))["error"]["statusCode"] == 403
    token = await server.call(
        "POST",
        f"/applications/{other}/tokens",
        {"name": "t", "scope": ["devices.get"]},
        status=201,
    )
    node["config"] |= {"apiTokenTemplate": "{{data.token}}", "applicationIdTemplate": other, "params": []}
    assert (await answer(server, own, node, token))["result"]["count"] == 0


async def test_states_that_a_workflow_sends_to_itself_come_to_an_end(start_server: StartServer) -> None:
    """The hops between runs are counted also by way of the API."""
    async with start_server(limits={"send_state": "off"}) as server:
        path = await server.application()
        device = await server.device(path)
        node = api(
            "device", "sendState", deviceId=device.rpartition("/")[2], deviceState={"data": {"temp": 1}}
        )
        body = {
            "name": "circle",
            "triggers": [{"type": "deviceId", "key": device.rpartition("/")[2], "outputIds": [["n"]]}],
            "nodes": [{"id": "n", **node}],
        }
        await server.call("POST", f"{path}/flows", body, status=201)
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        await runs_end(House(server.system, ManualClock(), bytes.fromhex(path.rpartition("/")[2])))
        assert server.system.component(FlowRunner).runs == HOPS_MAX


async def test_a_dry_run_reads_and_changes_nothing(server: Server) -> None:
    application = await new_application(server)
    path = f"/applications/{application}/flows"
    nodes = [
        {"id": "r", **api("devices", "get"), "outputIds": [["w"]]},
        {"id": "w", **api("devices", "post", device={"name": "x"})},
    ]
    trigger = {"type": "virtualButton", "key": "b", "outputIds": [["r"]]}
    flow = await server.call("POST", path, {"name": "f", "triggers": [trigger], "nodes": nodes}, status=201)
    shown = await server.call("POST", f"{path}/{flow['id']}/test", {})
    assert shown["steps"][0]["payload"]["data"]["answer"]["result"]["count"] == 0
    assert (shown["error"]["nodeId"], shown["error"]["name"]) == ("w", "NotInDryRun")


# Files.


def create_file(**config: Any) -> Json:
    given = {"fileNameTemplate": "a.txt", "parentDirectoryTemplate": "/up/", "resultPath": "data.made"}
    return {"type": "FileCreateNode", "config": given | config}


def get_file(path: str = "/up/a.txt", **config: Any) -> Json:
    given = {"filePathTemplate": path, "destination": "data.got"}
    return {"type": "FileGetNode", "config": given | config}


@pytest.mark.parametrize("private", [False, True])
async def test_a_file_is_created_and_read(server: Server, private: bool) -> None:
    application = await new_application(server)
    tree: Json = {"private": private}
    text = {"contentTypeTemplate": "text/plain", "fileContentsTemplate": "é {{data.n}}"}
    found = data_of(
        await run_nodes(
            server,
            application,
            [create_file(**text, **tree), get_file(encodingTemplate="hex", **tree)],
            {"n": 1},
        )
    )
    made, got = found["made"], found["got"]
    assert (made["name"], made["parentDirectory"], made["contentType"]) == ("a.txt", "/up/", "text/plain")
    assert (made["authorType"], made["fileSize"], made["status"]) == ("flow", 4, "completed")
    assert got["value"] == "c3a92031"
    assert got["metadata"]["id"] == made["id"]
    link = data_of(await run_nodes(server, application, [get_file(isDownloadURL=True, **tree)]))["got"]
    async with httpx.AsyncClient() as client:
        assert (await client.get(link["value"])).content.decode() == "é 1"


async def test_a_file_is_replaced_only_if_that_is_asked_for(server: Server) -> None:
    application = await new_application(server)
    first = {"fileContentsTemplate": "one"}
    made = data_of(await run_nodes(server, application, [create_file(**first)]))["made"]
    again = data_of(await run_nodes(server, application, [create_file(**first)]))["made"]
    assert "error" in again
    other = {
        "fileContentsTemplate": "ff00",
        "encodingTemplate": "hex",
        "shouldOverwrite": True,
        "contentTypeTemplate": "image/png",
    }
    replaced = data_of(await run_nodes(server, application, [create_file(**other)]))["made"]
    assert (replaced["id"], replaced["fileSize"], replaced["contentType"]) == (made["id"], 2, "image/png")
    got = data_of(await run_nodes(server, application, [get_file(encodingTemplate="hex")]))["got"]
    assert got["value"] == "ff00"


async def test_a_file_may_come_from_a_url(start_server: StartServer) -> None:
    async with start_server(callback_private_networks=True) as server:
        application = await new_application(server)
        first = await run_nodes(server, application, [create_file(fileContentsTemplate="one")])
        node = create_file(fileNameTemplate="b.txt", fileUrlTemplate="{{data.url}}")
        found = data_of(
            await run_nodes(server, application, [node, get_file("/up/b.txt")], data_of(first)["made"])
        )
        assert found["got"]["value"] == "one"


@pytest.mark.parametrize(
    ("node", "path", "message"),
    [
        (get_file("/none"), "got", "There is no file at this path."),
        (get_file(encodingTemplate="rot13"), "got", "The encoding is 'rot13'; give one of"),
        (
            create_file(fileContentsTemplate="xy", encodingTemplate="hex"),
            "made",
            "config.fileContentsTemplate:",
        ),
        (create_file(fileNameTemplate="{{data.none}}"), "made", "config.fileNameTemplate:"),
        (create_file(contentTypeTemplate="png"), "made", "config.fileNameTemplate:"),
        (
            create_file(fileUrlTemplate="http://127.0.0.1:1"),
            "made",
            "config.fileUrlTemplate: 127.0.0.1 is not a public address",
        ),
    ],
)
async def test_what_is_refused_is_told(server: Server, node: Json, path: str, message: str) -> None:
    found = data_of(await run_nodes(server, await new_application(server), [node]))[path]
    assert found["error"]["message"].startswith(message), found
