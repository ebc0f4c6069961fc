"""A workflow is told of what its author could read: by triggers no more than by nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.actors.engine.run_house import kept_runs, runs_end
from tests.actors.house import House, ManualClock
from tests.e2e.conftest import Server
from tests.e2e.test_mandates import press
from tests.e2e.test_roles import make_farm as make_organization
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.workflows.flows.run_records import RunRecord

Json = dict[str, Any]

SCOPES = ["flow.*", "flows.*", "flowVersion.*", "flowVersions.*"]
SECRET = "hush"


def flow_with(type: str, key: str, node: Json | None = None, **config: Any) -> Json:
    trigger = {"type": type, "key": key, "config": config, "outputIds": [["0"]]}
    nodes = [{"id": "0", "outputIds": [], **(node or {"type": "DebugNode", "config": {}})}]
    return {"name": type, "triggers": [trigger], "nodes": nodes}


async def flow_token(server: Server, application: str, *more: str) -> str:
    """A token that may do everything with workflows, and nothing else but `more`."""
    made = await server.call("POST", f"{application}/tokens", {"name": "flows", "scope": [*SCOPES, *more]})
    return str(made["token"])


async def runs_of(server: Server, path: str) -> list[RunRecord]:
    _, _, application, _, flow = path.split("/")
    id = bytes.fromhex(application)
    house = House(server.system, ManualClock(), id)
    await runs_end(house)
    return kept_runs(house, Ref("flow", id, bytes.fromhex(flow)))


async def put_file(server: Server, files: str) -> None:
    form = (await server.call("POST", files, {"name": "a", "type": "file", "fileSize": 1}, status=201))[
        "upload"
    ]
    async with server.client("") as client:
        sent = await client.post(form["url"], data=form["fields"], files={"file": ("a", b"x")})
    assert sent.is_success, sent.text


class Farm:
    """An application in which each type of trigger can be caused."""

    def __init__(self, server: Server, application: str, device: str, table: str) -> None:
        self.server = server
        self.application = application
        self.device = device
        self.table = table

    def keys(self) -> dict[str, str]:
        return {
            "deviceId": self.device.rpartition("/")[2],
            "deviceTag": "place/",
            "event": "any",
            "dataTable": self.table.rpartition("/")[2],
            "deviceCreate": "",
        }

    async def cause(self, type: str) -> None:
        call = self.server.call
        if type.startswith("device") and type != "deviceCreate":
            await call("POST", f"{self.device}/state", {"data": {"temp": 4, "label": SECRET}})
        elif type == "event":
            await call("POST", f"{self.application}/events", {"level": "info", "subject": SECRET}, status=201)
        elif type == "dataTable":
            await call("POST", f"{self.table}/rows", {"word": SECRET}, status=201)
        else:
            device = {"name": SECRET, "attributes": []}
            await call("POST", f"{self.application}/devices", device, status=201)


async def make_farm(server: Server) -> Farm:
    application = await server.application()
    device = await server.device(application)
    await server.call("PATCH", device, {"tags": [{"key": "place", "value": "barn"}]})
    column = {"name": "word", "dataType": "string", "constraint": "optional"}
    table = await server.call(
        "POST", f"{application}/data-tables", {"name": "words", "columns": [column]}, status=201
    )
    return Farm(server, application, device, f"{application}/data-tables/{table['id']}")


@pytest.mark.parametrize("type", ["deviceId", "deviceTag", "event", "dataTable", "deviceCreate"])
async def test_a_trigger_tells_nothing_that_the_author_may_not_read(server: Server, type: str) -> None:
    farm = await make_farm(server)
    token = await flow_token(server, farm.application)
    made = await server.call(
        "POST", f"{farm.application}/flows", flow_with(type, farm.keys()[type]), token=token, status=201
    )
    path = f"{farm.application}/flows/{made['id']}"
    await farm.cause(type)
    (run,) = await runs_of(server, path)
    assert run.error is not None
    assert run.error[1] == "Forbidden"
    assert "flows" in run.error[2]
    assert (run.outcome, run.trigger, run.debug) == ("failed", None, [])
    shown = await server.call("GET", f"{path}/runs")
    assert SECRET not in json.dumps(shown)
    # Somebody who may read it saves the workflow again.
    await server.call("PATCH", path, {"enabled": True})
    await farm.cause(type)
    run = (await runs_of(server, path))[-1]
    assert run.outcome == "completed"
    assert SECRET in json.dumps(run.debug)


@pytest.mark.parametrize("private", [False, True])
async def test_a_trigger_of_files_needs_the_right_to_read_such_a_file(server: Server, private: bool) -> None:
    farm = await make_farm(server)
    other, own = ("file.get", "privateFile.get") if private else ("privateFile.get", "file.get")
    paths = []
    for scope in (other, own):
        token = await flow_token(server, farm.application, scope)
        body = flow_with("appFile", "/")
        made = await server.call("POST", f"{farm.application}/flows", body, token=token, status=201)
        paths.append(f"{farm.application}/flows/{made['id']}")
    await put_file(server, f"{farm.application}/{'privateFiles' if private else 'files'}")
    assert [(await runs_of(server, path))[-1].outcome for path in paths] == ["failed", "completed"]


async def test_the_errors_of_others_are_told_to_who_may_read_their_runs(server: Server) -> None:
    farm = await make_farm(server)
    fails = {"type": "ThrowErrorNode", "config": {"message": "no"}}
    own = await server.call(
        "POST", f"{farm.application}/flows", flow_with("virtualButton", "b", fails), status=201
    )
    paths = []
    for scopes in ((), ("flowRun.get",)):
        token = await flow_token(server, farm.application, *scopes)
        body = flow_with("flowError", "e", scope="global")
        made = await server.call("POST", f"{farm.application}/flows", body, token=token, status=201)
        paths.append(f"{farm.application}/flows/{made['id']}")
    await press(server, f"{farm.application}/flows/{own['id']}", {"secret": SECRET})
    assert [(await runs_of(server, path))[-1].outcome for path in paths] == ["failed", "completed"]
    # A workflow is told of its own errors.
    body = flow_with("virtualButton", "b", fails)
    body["triggers"] += flow_with("flowError", "e", scope="local")["triggers"]
    body["triggers"][1]["outputIds"] = [["1"]]
    body["nodes"].append({"id": "1", "type": "DebugNode", "config": {}, "outputIds": []})
    token = await flow_token(server, farm.application)
    made = await server.call("POST", f"{farm.application}/flows", body, token=token, status=201)
    path = f"{farm.application}/flows/{made['id']}"
    await press(server, path)
    runs = {run.trigger_type: run.outcome for run in await runs_of(server, path)}
    assert runs == {"virtualButton": "failed", "flowError": "completed"}


async def test_a_member_who_was_removed_is_told_nothing_by_a_workflow_that_stays(server: Server) -> None:
    org = await make_organization(server)
    token = await org.join("carol", "collaborate")
    body = flow_with("event", "any")
    made = await server.call("POST", f"{org.barn}/flows", body, token=token, status=201)
    path = f"{org.barn}/flows/{made['id']}"
    event = {"level": "info", "subject": SECRET}
    await server.call("POST", f"{org.barn}/events", event, status=201)
    assert (await runs_of(server, path))[-1].outcome == "completed"
    await server.call("DELETE", f"{org.org}/member?userId={org.ids['carol']}")
    await server.call("POST", f"{org.barn}/events", event, status=201)
    run = (await runs_of(server, path))[-1]
    assert run.outcome == "failed"
    assert run.error is not None
    assert "carol@example.com" in run.error[2]


JWT = {"algorithm": "HS256", "secret": "s3cret" * 6}
DONE: tuple[tuple[str, str, Json], ...] = (
    ("devices.get", "device.getCompositeState", {"type": "GetDeviceNode", "config": {"includeState": True}}),
    (
        "device.get",
        "credential.get",
        {
            "type": "JWTCreateNode",
            "config": {"dataTemplate": "{}", "credentialNameTemplate": "jwt", "destinationPath": "data.jwt"},
        },
    ),
)
"""The scope that a token has, the one that its workflow lacks for a node, and the node."""


@pytest.mark.parametrize(("has", "lacks", "node"), DONE)
async def test_a_node_does_no_more_than_the_scopes_of_its_author(
    server: Server, has: str, lacks: str, node: Json
) -> None:
    application = await server.application()
    device = await server.call("POST", f"{application}/devices", {"name": "d"})
    credential = {"name": "jwt", "type": "jwt", "jwtConfig": JWT}
    await server.call("POST", f"{application}/credentials", credential, status=201)
    found = {"idTemplate": device["id"], "resultPath": "data.device"}
    config = node["config"] | (found if node["type"] == "GetDeviceNode" else {})
    body = flow_with("virtualButton", "go", {**node, "config": config})
    for scopes, is_refused in (((has,), True), ((has, lacks), False)):
        token = await flow_token(server, application, *scopes)
        flow = await server.call("POST", f"{application}/flows", body, token=token, status=201)
        dry = await server.call("POST", f"{application}/flows/{flow['id']}/test", {}, token=token)
        assert (f"no scope for {lacks}." in dry.get("error", {}).get("message", "")) == is_refused, dry
