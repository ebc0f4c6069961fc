"""Workflows act in the name of their authors: never more than the author may do now."""

from __future__ import annotations

import json
from typing import Any

from tests.actors.engine.run_house import kept_runs, runs_end
from tests.actors.house import House, ManualClock
from tests.e2e.conftest import Server
from tests.e2e.test_roles import Farm, make_farm
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.workflows.flows.run_records import RunRecord

Json = dict[str, Any]


def wired(*nodes: Json) -> Json:
    """A workflow whose nodes follow each other after a virtual button, with a debug node at the end."""
    parts = [
        {"id": str(at), **each, "outputIds": [[str(at + 1)]]}
        for at, each in enumerate([*nodes, {"type": "DebugNode"}])
    ]
    parts[-1]["outputIds"] = []
    button = {"type": "virtualButton", "key": "b", "outputIds": [["0"]]}
    return {"name": "caller", "triggers": [button], "nodes": parts}


def api(resource: str, action: str, **params: Json) -> Json:
    rows = [{"name": name, "type": "path", "value": f"data.{name}"} for name in params]
    config = {"resource": resource, "action": action, "params": rows, "responsePath": "data.answer"}
    return {"type": "LosantApiNode", "config": config}


async def press(server: Server, path: str, payload: Json | None = None) -> RunRecord:
    """Press the button of a workflow as the owner of everything, and return the run."""
    await server.call("POST", f"{path}/virtualButton", {"key": "b", "payload": payload or {}})
    _, _, application, _, flow = path.split("/")
    id = bytes.fromhex(application)
    house = House(server.system, ManualClock(), id)
    await runs_end(house)
    return kept_runs(house, Ref("flow", id, bytes.fromhex(flow)))[-1]


async def save(server: Server, application: str, token: str | None, *nodes: Json) -> str:
    """Create a workflow in the name of the bearer of a token; its path."""
    made = await server.call("POST", f"{application}/flows", wired(*nodes), token=token, status=201)
    return f"{application}/flows/{made['id']}"


def answer(run: RunRecord) -> Json:
    assert run.outcome == "completed", run.error
    found: Json = run.debug[-1][3]["data"]["answer"]
    return found


def refusal(run: RunRecord) -> str:
    """The sentence of a run that failed because its author may not do it."""
    assert run.error is not None
    assert run.error[1] == "Forbidden", run.error
    return str(run.error[2])


TOKEN = {"applicationApiToken": {"name": "mine", "scope": ["all.Application"]}}
CREATE: Json = {"type": "CreateDeviceNode", "config": {"nameTemplate": "made", "resultPath": "data.made"}}


async def test_a_member_gets_no_token_through_a_workflow(server: Server) -> None:
    farm = await make_farm(server)
    token = await farm.join("carol", "collaborate")
    body = TOKEN["applicationApiToken"]
    await server.call("POST", f"{farm.barn}/tokens", body, token=token, status=403)
    flow = await save(server, farm.barn, token, api("applicationApiTokens", "post", **TOKEN))
    got = answer(await press(server, flow, TOKEN))
    assert got["error"]["statusCode"] == 403, got
    # Somebody who may make tokens saves it: now it may.
    await server.call("PATCH", flow, {"enabled": True})
    assert answer(await press(server, flow, TOKEN))["result"]["token"]
    # Carol changes a node of it: it acts for her again.
    await server.call(
        "PATCH",
        flow,
        {"nodes": wired(api("applicationApiTokens", "post", **TOKEN))["nodes"]},
        token=token,
    )
    assert answer(await press(server, flow, TOKEN))["error"]["statusCode"] == 403


async def test_a_token_does_through_a_workflow_what_its_scopes_allow(server: Server) -> None:
    application = await server.application()
    body = {"name": "flows", "scope": ["flow.*", "flows.*"]}
    token = (await server.call("POST", f"{application}/tokens", body))["token"]
    await server.call("DELETE", application, token=token, status=403)
    for operation in (("application", "delete"), ("application", "export"), ("devices", "get")):
        flow = await save(server, application, token, api(*operation, options={}))
        got = answer(await press(server, flow))
        assert got["error"]["statusCode"] == 403, (operation, got)
    flow = await save(server, application, token, api("flows", "get"))
    assert answer(await press(server, flow))["result"]["count"] == 4
    made = await save(server, application, token, CREATE)
    assert "devices.post" in refusal(await press(server, made))
    assert (await server.call("GET", f"{application}/devices"))["totalCount"] == 0


async def test_what_an_author_may_ends_with_the_member_the_role_and_the_token(server: Server) -> None:
    farm = await make_farm(server)
    token = await farm.join("carol", "collaborate")
    flow = await save(server, farm.barn, token, CREATE)
    assert (await press(server, flow)).outcome == "completed"
    await farm.change("carol", role="view")
    assert "carol@example.com" in refusal(await press(server, flow))
    await farm.change("carol", role="collaborate")
    assert (await press(server, flow)).outcome == "completed"
    await server.call("DELETE", f"{farm.org}/member?userId={farm.ids['carol']}")
    assert "carol@example.com" in refusal(await press(server, flow))
    made = await server.call("POST", f"{farm.barn}/tokens", {"name": "robot"})
    flow = await save(server, farm.barn, made["token"], CREATE)
    assert (await press(server, flow)).outcome == "completed"
    await server.call("PATCH", f"{farm.barn}/tokens/{made['id']}", {"status": "inactive"})
    assert "robot" in refusal(await press(server, flow))
    assert await count(farm, "barn") == 3


async def count(farm: Farm, name: str) -> int:
    path = {"barn": farm.barn, "mill": farm.mill}[name]
    return int((await farm.server.call("GET", f"{path}/devices"))["totalCount"])


async def test_a_custom_node_has_the_rights_of_its_author_and_of_who_uses_it(server: Server) -> None:
    farm = await make_farm(server)
    token = await farm.join("carol", "collaborate")
    start = {"type": "customNodeStart", "key": "customNodeStart", "outputIds": [["0"]]}
    call = {"id": "0", **api("applicationApiTokens", "post", **TOKEN), "outputIds": [["1"]]}
    end = {"id": "1", "type": "CustomNodeCapNode", "config": {"resultSourcePath": "data"}}
    field = {"id": "applicationApiToken", "type": "payloadPath", "label": "token"}
    body = {
        "name": "helper",
        "flowClass": "customNode",
        "triggers": [start],
        "nodes": [call, {**end, "outputIds": []}],
        "customNodeConfig": {"outputCount": 1, "resultMode": "required", "fields": [field]},
    }
    used = await server.call("POST", f"{farm.barn}/flows", body, token=token, status=201)
    fields = [{"id": "applicationApiToken", "value": "data.applicationApiToken"}]
    config = {"customNodeId": used["id"], "fields": fields, "resultPath": "data"}
    node = {"type": "CustomNodeExecuteNode", "config": config}
    flow = await save(server, farm.barn, None, node)
    assert answer(await press(server, flow, TOKEN))["error"]["statusCode"] == 403
    await server.call("PATCH", f"{farm.barn}/flows/{used['id']}", {"nodes": body["nodes"]})
    assert answer(await press(server, flow, TOKEN))["result"]["token"]
    theirs = await save(server, farm.barn, token, node)
    assert answer(await press(server, theirs, TOKEN))["error"]["statusCode"] == 403


async def test_a_version_acts_for_who_made_it_or_made_it_run(server: Server) -> None:
    farm = await make_farm(server)
    token = await farm.join("carol", "collaborate")
    flow = await save(server, farm.barn, None, CREATE)
    version = {"version": "v1", **{name: wired(CREATE)[name] for name in ("triggers", "nodes")}}
    made = await server.call("POST", f"{flow}/versions", version, token=token, status=201)
    default = {"defaultVersionId": made["id"]}
    await server.call("PATCH", flow, default, token=token)
    assert (await press(server, flow)).outcome == "completed"
    await farm.change("carol", role="view")
    assert "carol" in refusal(await press(server, flow))
    await server.call("PATCH", flow, {"name": "renamed"})
    assert "carol" in refusal(await press(server, flow))
    await server.call("PATCH", flow, default)
    assert (await press(server, flow)).outcome == "completed"


async def test_what_comes_from_elsewhere_acts_for_who_brought_it(server: Server) -> None:
    farm = await make_farm(server)
    carol, dora = await farm.join("carol", "edit"), await farm.join("dora", "edit")
    flow = await save(server, farm.barn, carol, CREATE)
    brought = await server.call("GET", flow, token=dora)
    names = ("name", "triggers", "nodes", "flowClass")
    body = {"flows": [{name: brought[name] for name in names} | {"name": "copy"}], "flowVersions": []}
    copied = await server.call("POST", f"{farm.barn}/flows/import", body, token=dora)
    copy = f"{farm.barn}/flows/{copied['flows'][0]['id']}"
    options = {"ownerId": farm.org_id, "ownerType": "organization"}
    made = await server.call("POST", f"{farm.barn}/clone", options, token=dora)
    clone = f"/applications/{made['application']['id']}"
    found = await server.call("GET", f"{clone}/flows?filterField=name&filter=caller")
    cloned = f"{clone}/flows/{found['items'][0]['id']}"
    await farm.change("carol", role="view")
    for path in (copy, cloned):
        assert (await press(server, path)).outcome == "completed"
    await farm.change("dora", role="view")
    for path in (copy, cloned):
        assert "dora@example.com" in refusal(await press(server, path))


async def test_a_transferred_application_does_not_act_for_those_who_lost_it(server: Server) -> None:
    farm = await make_farm(server)
    token = await farm.join("carol", "edit")
    flow = await save(server, farm.barn, token, CREATE)
    kept = await save(server, farm.barn, None, CREATE)
    me = (await server.call("GET", "/me"))["id"]
    given = {"destinationId": me, "destinationType": "user", "applicationIds": [farm.barn.rpartition("/")[2]]}
    await server.call("PATCH", f"{farm.org}/transferResources", given)
    assert "carol@example.com" in refusal(await press(server, flow))
    assert (await press(server, kept)).outcome == "completed"


async def test_a_workflow_that_saves_another_passes_its_authors_on(server: Server) -> None:
    farm = await make_farm(server)
    token = await farm.join("carol", "collaborate")
    flow = await save(server, farm.barn, token, api("flows", "post", flow={}))
    wanted = wired(api("applicationApiTokens", "post", **TOKEN))
    made = answer(await press(server, flow, {"flow": wanted}))["result"]
    path = f"{farm.barn}/flows/{made['id']}"
    assert answer(await press(server, path, TOKEN))["error"]["statusCode"] == 403


async def test_a_dry_run_reads_in_the_name_of_its_caller(server: Server) -> None:
    application = await server.application()
    config = {"findMethod": "id", "idTemplate": "0" * 24, "resultPath": "data.d"}
    flow = await save(server, application, None, {"type": "GetDeviceNode", "config": config})
    body = {"name": "tester", "scope": ["flow.test"]}
    token = (await server.call("POST", f"{application}/tokens", body))["token"]
    shown = await server.call("POST", f"{flow}/test", {}, token=token)
    assert shown["error"]["name"] == "Forbidden"


async def test_the_audit_log_names_the_workflow_and_its_author(server: Server) -> None:
    farm = await make_farm(server)
    token = await farm.join("carol", "collaborate")
    flow = await save(server, farm.barn, token, api("devices", "post", device={}))
    await press(server, flow, {"device": {"name": "pump"}})
    entries = (await server.call("GET", f"{farm.org}/audit-logs"))["items"]
    (entry,) = [each for each in entries if each["requestResource"] == "devices"]
    assert (entry["actorType"], entry["actorId"]) == ("Flow", flow.rpartition("/")[2])
    assert (entry["onBehalfOfType"], entry["onBehalfOfName"]) == ("User", "carol@example.com")
    assert entry["onBehalfOfId"] == farm.ids["carol"]


async def test_who_reads_a_run_gets_no_token_that_it_made(server: Server) -> None:
    farm = await make_farm(server)
    reader = await farm.join("vera", "view")
    for resource, params in (("applicationApiTokens", TOKEN), ("applicationKeys", {"applicationKey": {}})):
        flow = await save(server, farm.barn, None, api(resource, "post", **params))
        made = answer(await press(server, flow, params))["result"]
        (run,) = (await server.call("GET", f"{flow}/runs", token=reader))["items"]
        shown = await server.call("GET", f"{flow}/runs/{run['id']}", token=reader)
        result = shown["debug"][-1]["value"]["data"]["answer"]["result"]
        assert result["id"] == made["id"]
        assert {"(hidden)"} == {result[name] for name in ("token", "secret") if name in made}
        assert made.get("token", made.get("secret")) not in json.dumps(shown)
