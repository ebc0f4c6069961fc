"""Workflows as records: what is sent comes back, what makes no sense is refused with its place, lists and versions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.conftest import Server

Json = dict[str, Any]

BUTTON: Json = {
    "type": "virtualButton",
    "key": "somewhere-press",
    "config": {},
    "meta": {
        "category": "trigger", "name": "virtualButton", "label": "Press", "x": 340, "y": 40.5, "id": "press",
        "uiId": "Xy12", "payload": '{"on": true}', "deviceId": None, "outputCount": 1,
    },
    "outputIds": [["ask"]],
}  # fmt: skip
TIMER: Json = {
    "type": "timer",
    "key": "tick",
    "config": {"cron": "0 6 * * 1-5", "tz": "Europe/Berlin"},
    "meta": {"name": "timer", "timerTypeSelect": "cron", "weekdays": [1, 2], "timeAt": "06:00"},
    "outputIds": [["ask", "note"], []],
}
STATE: Json = {
    "type": "deviceTag",
    "key": "floor/2",
    "config": {"attributeWhitelist": ["temp"], "maxAge": 5, "triggerOn": "both", "allowInvalid": False},
    "meta": {"name": "deviceIdsTags", "timeUnit": "minutes"},
}
NODES: list[Json] = [
    {
        "id": "ask",
        "type": "ConditionalNode",
        "config": {"expression": "{{data.on}} === true"},
        "meta": {"category": "logic", "name": "conditional", "x": 340, "y": 140},
        "outputIds": [[], ["loop"]],
    },
    {"id": "loop", "type": "LoopNode", "config": {"parallel": True}, "outputIds": [["note"], ["cap"]]},
    {"id": "cap", "type": "LoopCapNode", "meta": {"groupId": "loop"}, "outputIds": [[]]},
    {"id": "note", "type": "NodeOfAnotherServer", "config": {"deep": [{"a": [None, 1.0, 1, ""]}]}},
    {"type": "AnnotationNode", "meta": {"content": 'Büro 2 / "north"'}},
]
GLOBALS: list[Json] = [{"key": "limit", "json": '{"temp": 27}'}]
FLOW: Json = {
    "name": "climate",
    "description": "",
    "shortDescription": "Keeps it warm",
    "iconData": "data:image/png;base64,iVBORw0KGgo=",
    "docsUrl": "https://example.com/climate",
    "category": "logic",
    "enabled": False,
    "minimumAgentVersion": "1.20.0",
    "triggers": [BUTTON, TIMER, STATE],
    "nodes": NODES,
    "globals": GLOBALS,
}
CUSTOM: Json = {
    "name": "average",
    "flowClass": "customNode",
    "customNodeSupports": ["edge"],
    "triggers": [{"type": "customNodeStart", "key": "customNodeStart", "outputIds": [["end"]]}],
    "nodes": [{"id": "end", "type": "CustomNodeCapNode", "config": {"branchIndexTemplate": 0}}],
    "customNodeConfig": {
        "outputCount": 1,
        "resultMode": "required",
        "fields": [
            {"type": "section", "label": "Input"},
            {
                "type": "select",
                "label": "Unit",
                "id": "unit",
                "defaultValue": "C",
                "options": [{"value": "C"}],
            },
            {"type": "numberTemplate", "label": "Most", "id": "most", "validMax": 2.5, "required": True},
        ],
    },
}


def using(node_id: str, version: str = "default") -> Json:
    """A node that uses a custom node."""
    config = {"customNodeId": node_id, "customNodeVersion": version, "fields": [{"id": "most", "value": "1"}]}
    return {"id": "use", "type": "CustomNodeExecuteNode", "config": config, "outputIds": [[]]}


async def make(server: Server, flows: str, **fields: Any) -> Json:
    """A new workflow."""
    made: Json = await server.call("POST", flows, {"name": "flow", **fields}, status=201)
    return made


async def flows_of(server: Server) -> str:
    """The path of the workflows of a new application."""
    return f"{await server.application()}/flows"


async def test_a_workflow_comes_back_as_it_was_sent_and_is_changed_and_deleted(server: Server) -> None:
    flows = await flows_of(server)
    made = await make(server, flows, **FLOW)
    assert FLOW.items() <= made.items()
    assert (made["flowClass"], made["_type"], made["flowId"]) == ("cloud", "flow", made["id"])
    assert made["stats"] == {"runCount": 0, "errorCount": 0, "byVersion": {}}
    assert made["_links"]["self"]["href"] == f"{flows}/{made['id']}"
    path = f"{flows}/{made['id']}"
    assert await server.call("GET", path) == made
    changed = await server.call("PATCH", path, {"nodes": NODES[:4], "enabled": True, "iconData": None})
    assert changed["nodes"] == NODES[:4]
    assert changed["triggers"] == FLOW["triggers"]
    assert "iconData" not in changed
    assert changed["_etag"] != made["_etag"]
    stale = {"If-Match": f'"{made["_etag"]}"'}
    await server.call("PATCH", path, {"name": "late"}, headers=stale, status=412)
    await server.call("DELETE", path, headers=stale, status=412)
    application = await server.call("GET", flows.removesuffix("/flows"))
    assert application["summary"]["flowCount"] == 1
    assert await server.call("DELETE", path) == {"success": True}
    for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        refusal = await server.call(method, path, body, status=404)
        assert refusal["message"] == f"There is no workflow {made['id']} here."
    empty = await make(server, flows)
    assert (empty["triggers"], empty["nodes"], empty["globals"], empty["enabled"]) == ([], [], [], True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nodes": [{"id": "a", "type": "X"}, {"id": "a", "type": "X"}]}, "nodes[0].id: Node IDs must be unique"),
        ({"nodes": [{"id": "a", "type": "X", "outputIds": [["a"]]}]}, "nodes[0].outputIds[0]: A node cannot connect"),
        (
            {"triggers": [{"type": "timer", "outputIds": [[], ["b"]]}]},
            "triggers[0].outputIds[1]: Referenced output ID b does not exist.",
        ),
        ({"triggers": [{"type": "udp"}]}, "triggers[0].type: udp is not valid for cloud workflows; it is valid for"),
        ({"triggers": [{"type": "customNodeStart"}]}, "triggers[0].type: customNodeStart is not valid for cloud"),
        ({"triggers": [{"type": "timer", "config": {"second": 5}}]}, "triggers[0].config.second: there is no such"),
        ({"triggers": [{"type": "timer", "meta": {"name": "webhook"}}]}, "triggers[0].meta.name: "),
        ({"triggers": [{"type": "tick"}]}, "triggers[0].type: "),
        ({"nodes": [{"id": "a"}]}, "nodes[0].type: "),
        ({"globals": [{"key": "a", "json": "{"}]}, "globals[0].json: is not JSON text"),
        ({"globals": [{"key": "a", "json": "1"}, {"key": "a", "json": "2"}]}, "globals[1].key: a appears twice"),
        ({"nodes": [{"type": "X", "config": {"a": [] }, "id": "x" * 1025}]}, "nodes[0].id: "),
        ({"defaultVersionId": "a" * 24}, "defaultVersionId: "),
    ],
)  # fmt: skip
async def test_what_makes_no_sense_is_refused_with_its_place_and_nothing_is_stored(
    server: Server, wrong: Json, message: str
) -> None:
    flows = await flows_of(server)
    kept = await make(server, flows, nodes=NODES[3:4])
    for method, path in (("POST", flows), ("PATCH", f"{flows}/{kept['id']}")):
        if method == "PATCH" or "defaultVersionId" not in wrong:
            refusal = await server.call(method, path, {"name": "flow", **wrong}, status=400)
            assert refusal["message"].startswith(message), refusal
    problems = kept.pop("problems")
    assert [each["nodeType"] for each in problems] == ["NodeOfAnotherServer"]
    assert (await server.call("GET", flows))["items"] == [kept]


async def test_versions_are_fixed_but_for_their_notes_and_found_by_id_and_by_name(server: Server) -> None:
    flows = await flows_of(server)
    flow = await make(server, flows, triggers=[TIMER | {"outputIds": []}])
    path = f"{flows}/{flow['id']}"
    versions = f"{path}/versions"
    body = {
        "version": "v1.0 bär %",
        "notes": "first",
        "triggers": [BUTTON | {"outputIds": []}],
        "nodes": NODES[3:4],
    }
    made = await server.call("POST", versions, body, status=201)
    assert body.items() <= made.items()
    assert (made["globals"], made["enabled"], made["name"], made["flowClass"]) == ([], True, "flow", "cloud")
    by_name = f"{versions}/v1.0%20b%C3%A4r%20%25"
    for each in (by_name, f"{versions}/{made['id']}"):
        assert await server.call("GET", each) == made
    assert made["_links"]["self"]["href"] == f"{versions}/{made['id']}"
    changed = await server.call("PATCH", by_name, {"notes": "better", "enabled": False})
    assert changed.items() >= {"notes": "better", "enabled": False, "nodes": NODES[3:4]}.items()
    await server.call("PATCH", by_name, {"nodes": []}, status=400)

    taken = await server.call("POST", versions, body, status=400)
    assert taken["message"].startswith("version: there is already a version 'v1.0 bär %'")
    replaced = await server.call(
        "POST", f"{versions}?allowReplacement=true", {"version": body["version"]}, status=201
    )
    assert (replaced["id"], replaced["nodes"]) == (made["id"], [])
    assert "notes" not in replaced
    for reserved in ("develop", "Default"):
        refusal = await server.call("POST", versions, {"version": reserved}, status=400)
        assert refusal["message"] == f"version: {reserved!r} is reserved; give another name."
    refusal = await server.call("POST", versions, {"version": "a/b"}, status=400)
    assert refusal["message"].startswith("version: 'a/b' has a slash")

    develop = await server.call("GET", f"{versions}/develop")
    assert (develop["version"], develop["triggers"], develop["id"]) == (
        "develop",
        flow["triggers"],
        flow["id"],
    )
    assert await server.call("GET", f"{versions}/{flow['id']}") == develop
    assert await server.call("GET", f"{versions}/default") == develop
    await server.call("PATCH", path, {"defaultVersionId": made["id"]})
    assert (await server.call("GET", f"{versions}/default"))["id"] == made["id"]
    for method in ("PATCH", "DELETE"):
        await server.call(method, f"{versions}/develop", {} if method == "PATCH" else None, status=400)
    kept = await server.call("DELETE", by_name, status=400)
    assert "is the default version" in kept["message"]
    await server.call("PATCH", path, {"defaultVersionId": None})
    await server.call("DELETE", by_name)
    missing = await server.call("GET", by_name, status=404)
    assert missing["message"] == "This workflow has no version 'v1.0 bär %'."
    await server.call("POST", versions, {"version": body["version"]}, status=201)

    other = await make(server, flows)
    stranger = f"{flows}/{other['id']}/versions/{made['id']}"
    await server.call("GET", stranger, status=404)
    await server.call("PATCH", f"{flows}/{other['id']}", {"defaultVersionId": replaced["id"]}, status=400)
    await server.call("GET", f"{flows}/{'0' * 24}/versions", status=404)


async def names(server: Server, path: str, **query: Any) -> list[str]:
    """The names of the items of a list."""
    listed = await server.call("GET", path, params=query)
    assert listed["count"] == len(listed["items"])
    return [each["name"] for each in listed["items"]]


async def test_lists_are_narrowed_by_class_trigger_version_and_query(server: Server) -> None:
    flows = await flows_of(server)
    device = "6920c0de00000000000000aa"
    by_device = {"type": "deviceId", "key": device, "config": {"maxAge": 5}}
    alpha = await make(server, flows, name="alpha", triggers=[by_device])
    beta = await make(
        server, flows, name="Beta", triggers=[{"type": "webhook", "key": "hook"}], nodes=NODES[3:4]
    )
    gamma = await make(server, flows, name="gamma", flowClass="edge", enabled=False)
    for flow, version, triggers in ((alpha, "v1", []), (beta, "v1", [by_device]), (gamma, "v2", [])):
        body = {"version": version, "triggers": triggers, "notes": flow["name"]}
        made = await server.call("POST", f"{flows}/{flow['id']}/versions", body, status=201)
        flow["version"] = made["id"]
    assert await names(server, flows) == ["alpha", "Beta"]
    assert await names(server, flows, sortField="creationDate", sortDirection="desc", perPage=1) == ["Beta"]
    assert await names(server, flows, flowClass="edge") == ["gamma"]
    assert await names(server, flows, filterField="name", filter="B*") == ["Beta"]

    trigger = {"triggerFilter[0][type]": "deviceId", "triggerFilter[0][key]": device}
    assert await names(server, flows, **trigger) == ["alpha"]
    await server.call("PATCH", f"{flows}/{alpha['id']}", {"defaultVersionId": alpha["version"]})
    await server.call("PATCH", f"{flows}/{beta['id']}", {"defaultVersionId": beta["version"]})
    assert await names(server, flows, **trigger) == ["Beta"]  # the default version counts
    either = {"triggerFilter[0][type]": "timer", "triggerFilter[1][key]": device}
    assert await names(server, flows, **either) == ["Beta"]

    async def found(query: str, **more: Any) -> list[str]:
        return await names(
            server, flows, query=query, flowClass="embedded", filterField="name", filter="x", **more
        )

    assert await found('{"enabled": false}') == ["gamma"]  # a query replaces the other filters
    assert await found("{}") == ["alpha", "Beta", "gamma"]
    assert await found('{"triggers": {"type": "deviceId", "config": {"maxAge": 5}}}') == ["alpha"]
    assert await found('{"triggers": {"type": "deviceId", "config": {"maxAge": true}}}') == []
    assert await found('{"triggers": {"$ne": {"type": "deviceId"}}}') == ["Beta", "gamma"]
    assert await found('{"nodes": {"type": "NodeOfAnotherServer"}}') == ["Beta"]
    assert await found(json.dumps({"defaultVersion": beta["version"]})) == ["Beta"]
    assert await found('{"triggers": {"type": "deviceId"}}', allVersions=True) == ["alpha", "Beta"]
    assert await names(server, flows, **{"query[triggers][type]": "webhook"}) == ["Beta"]
    bracketed = {"query[triggers][$eq][type]": "deviceId", "query[triggers][$eq][config][maxAge]": "5"}
    assert await names(server, flows, **bracketed) == ["alpha"]
    for wrong in ('{"triggers": {"key": "a"}}', '{"nodes": {"type": "a", "x": 1}}', '{"colour": 1}'):
        await server.call("GET", flows, params={"query": wrong}, status=400)

    versions = f"{flows}/version"
    assert await names(server, versions, version="v1") == ["alpha", "Beta"]
    assert await names(server, versions, version="v1", sortDirection="desc", perPage=1) == ["Beta"]
    assert await names(server, versions, version="v1", **trigger) == ["Beta"]
    assert await names(server, versions, version="v2", flowClass="edge") == ["gamma"]
    assert await names(server, versions, version="develop") == ["alpha", "Beta"]
    assert await names(server, versions, version="v1", query=json.dumps({"flowId": beta["id"]})) == ["Beta"]
    defaults = await server.call("GET", versions, params={"version": "default"})
    assert [each["notes"] for each in defaults["items"]] == ["alpha", "Beta"]
    assert defaults["items"][0]["_links"]["self"]["href"].endswith(f"/versions/{alpha['version']}")
    await server.call("GET", versions, status=400)

    mine = f"{flows}/{beta['id']}/versions"
    for version in ("v10", "V9"):
        await server.call("POST", mine, {"version": version, "nodes": NODES[3:4]}, status=201)

    async def listed(**query: Any) -> list[str]:
        answer = await server.call("GET", mine, params=query)
        assert answer["flowId"] == beta["id"]
        return [each["version"] for each in answer["items"]]

    assert await listed() == ["v1", "v10", "V9"]
    assert await listed(filterField="version", filter="v1*") == ["v1", "v10"]
    assert await listed(sortField="id", sortDirection="desc", perPage=2, page=1) == ["v1"]
    assert await listed(query='{"version": {"$startsWith": "v1"}}', filterField="version", filter="V9") == [
        "v1",
        "v10",
    ]
    assert await listed(query='{"nodes": {"type": "NodeOfAnotherServer"}, "name": "Beta"}') == ["v10", "V9"]


async def test_custom_nodes_are_offered_counted_and_shown_with_what_uses_them(server: Server) -> None:
    flows = await flows_of(server)
    node = await make(server, flows, **CUSTOM)
    assert CUSTOM.items() <= node.items()
    assert node["customNodeUseCount"] == 0
    await make(server, flows, **{**CUSTOM, "name": "off", "enabled": False})
    user = await make(server, flows, name="user", nodes=[using(node["id"]), {"type": "X"}])
    twice = await make(server, flows, name="twice", nodes=[using(node["id"], "develop")])
    path = f"{flows}/{node['id']}"
    assert (await server.call("GET", path))["customNodeUseCount"] == 2
    await server.call("DELETE", f"{flows}/{twice['id']}")
    assert (await server.call("GET", path))["customNodeUseCount"] == 1
    palette = await server.call("GET", f"{flows}/palette")
    (offered,) = palette["customNodes"]
    types = {each["type"]: each for each in palette["nodeTypes"]}
    level = {
        "name": "level",
        "kind": "choice",
        "required": False,
        "options": ["info", "verbose", "warn", "error"],
    }
    assert types["DebugNode"]["settings"][2] == level
    statements = [
        {"name": "expression", "kind": "expression", "required": True},
        {"name": "resultPath", "kind": "path", "required": True},
    ]
    flags = [each for each in types["DeleteEventNode"]["settings"] if each["kind"] == "flag"]
    assert flags == [{"name": "deleteMultiple", "kind": "flag", "required": False, "default": True}]
    assert types["MathNode"]["settings"] == [
        {"name": "statements", "kind": "rows", "required": False, "rows": statements}
    ]
    assert {"type": "deviceCommand", "flowClasses": ["edge", "embedded"]} in palette["triggerTypes"]
    assert types["ConditionalNode"]["summary"] == "Output 1 if an expression is true, else output 0."
    assert offered["compatibleFlowClasses"] == {
        "cloud": False, "experience": False, "customNode": True, "edge": True, "embedded": False,
    }  # fmt: skip
    assert (offered["version"], offered["customNodeConfig"]) == ("develop", CUSTOM["customNodeConfig"])
    version = await server.call("POST", f"{path}/versions", {"version": "v1", "minimumAgentVersion": "1.2.0"})
    await server.call("PATCH", path, {"defaultVersionId": version["id"]})
    shown = await server.call("GET", f"{flows}/{user['id']}?includeCustomNodes=true")
    (used,) = shown["customNodes"]
    assert (used["version"], used["flowVersionId"]) == ("v1", version["id"])
    assert used["compatibleFlowClasses"]["edge"] == "1.2.0"
    assert "customNodes" not in await server.call("GET", f"{flows}/{user['id']}")
    await server.call("PATCH", f"{flows}/{user['id']}", {"nodes": []})
    assert (await server.call("GET", path))["customNodeUseCount"] == 0


async def test_triggers_that_nothing_starts_are_told_of(server: Server) -> None:
    application = await server.application()
    blank = {"type": "deviceId", "key": "", "meta": {"uiId": "a"}}
    complete = [
        {"type": "event", "key": "any", "meta": {"uiId": "c"}},
        {"type": "direct", "meta": {"uiId": "d"}},
    ]
    triggers = [blank, *complete, {"type": "inboundEmail", "key": "x", "meta": {"uiId": "b"}}]
    made = await server.call("POST", f"{application}/flows", {"name": "f", "triggers": triggers})
    path = f"{application}/flows/{made['id']}"
    told = (await server.call("GET", path))["problems"]
    assert {each["nodeId"]: each["message"] for each in told} == {
        "a": "key: is not set, so the trigger never fires; give the id of a device.",
        "b": "type: nothing starts triggers of the type inboundEmail on this server.",
    }
    await server.call("PATCH", path, {"triggers": complete})
    assert "problems" not in await server.call("GET", path)
