"""Imports of workflows: new ids wherever an export names its own, all or nothing."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import Server
from tests.e2e.test_flows import CUSTOM, STATE, Json, flows_of, names, using


async def test_an_import_gives_new_ids_wherever_the_export_names_its_own(server: Server) -> None:
    flows = await flows_of(server)
    old = {
        name: f"aaaaaaaaaaaaaaaaaaaaaaa{digit}" for digit, name in enumerate(("node", "flow", "v1", "device"))
    }
    button = {"type": "virtualButton", "key": f"{old['flow']}-press", "meta": {"id": "press"}}
    calls = {
        "id": "call",
        "type": "WorkflowTriggerNode",
        "config": {"triggerWorkflowId": old["flow"], "deviceId": old["device"], "text": f"{old['flow']}x"},
    }
    export: Json = {
        "flows": [
            {
                **CUSTOM,
                "id": old["node"],
                "_type": "flow",
                "stats": {"runCount": 7},
                "lastUpdated": "2024-01-01",
            },
            {
                "id": old["flow"],
                "name": "climate",
                "triggers": [button],
                "nodes": [using(old["node"]), calls],
                "defaultVersionId": old["v1"],
            },
        ],
        "flowVersions": [
            {
                "id": old["v1"],
                "flowId": old["flow"],
                "flowClass": "cloud",
                "version": "v1",
                "triggers": [STATE],
                "nodes": [using(old["node"])],
            }
        ],
    }
    answer = await server.call("POST", f"{flows}/import", export, status=201)
    node, flow = answer["flows"]
    (version,) = answer["flowVersions"]
    assert answer["importedFlowIdMap"] == {old["node"]: node["id"], old["flow"]: flow["id"]}
    assert answer["importedVersionIdMap"] == {old["v1"]: version["id"]}
    assert flow["defaultVersionId"] == version["id"]
    assert flow["triggers"][0]["key"] == f"{flow['id']}-press"
    assert flow["nodes"][0] == using(node["id"])
    kept = {"triggerWorkflowId": flow["id"], "deviceId": old["device"], "text": f"{old['flow']}x"}
    assert flow["nodes"][1]["config"] == kept
    assert (version["flowId"], version["nodes"]) == (flow["id"], [using(node["id"])])
    assert (await server.call("GET", f"{flows}/{node['id']}"))["customNodeUseCount"] == 1
    assert await names(server, flows, **{"triggerFilter[0][type]": "deviceTag"}) == ["climate"]

    def broken(where: str, position: int, **fields: Any) -> Json:
        parts = [*export[where]]
        parts[position] = {**parts[position], **fields}
        return {**export, where: parts}

    refused = [
        (broken("flows", 1, nodes=[{"type": ""}]), "flows[1].nodes[0].type: "),
        (broken("flows", 1, nodes=[{"type": "X", "outputIds": [["z"]]}]), "flows[1].nodes[0].outputIds[0]: "),
        (broken("flows", 1, id=old["node"]), "flows[1].id: "),
        (broken("flows", 1, defaultVersionId="b" * 24), "flows[1].defaultVersionId: "),
        (broken("flowVersions", 0, flowId="b" * 24), "flowVersions[0].flowId: "),
        (broken("flowVersions", 0, version="develop"), "flowVersions[0].version: "),
        (broken("flowVersions", 0, triggers=[{"type": "udp"}]), "flowVersions[0].triggers[0].type: udp"),
        ({**export, "flowVersions": export["flowVersions"] * 2}, "flowVersions[1].id: "),
        ({"flows": [{"name": "a"}] * 1001}, "flows: "),
    ]
    for body, message in refused:
        refusal = await server.call("POST", f"{flows}/import", body, status=400)
        assert refusal["message"].startswith(message), refusal
    assert await names(server, flows, query="{}") == ["average", "climate"]
    empty = await server.call("POST", f"{flows}/import", {}, status=201)
    assert empty == {"flows": [], "flowVersions": [], "importedFlowIdMap": {}, "importedVersionIdMap": {}}


async def test_an_import_takes_timers_that_never_fire_and_tells_of_them(server: Server) -> None:
    flows = await flows_of(server)
    timer = {"type": "timer", "key": "t1", "config": {}, "meta": {"id": "tick", "label": "Every day"}}
    answer = await server.call(
        "POST", f"{flows}/import", {"flows": [{"name": "f", "triggers": [timer]}]}, status=201
    )
    (flow,) = answer["flows"]
    sentence = "config.seconds: is not set and neither is cron, so the timer never fires; give one of them."
    assert flow["problems"] == [
        {"nodeId": "tick", "nodeType": "timer", "nodeLabel": "Every day", "message": sentence}
    ]
    path = f"{flows}/{flow['id']}"
    await server.call("PATCH", path, {"name": "g"})
    changed = await server.call("PATCH", path, {"triggers": [timer | {"config": {"seconds": 60}}]})
    assert "problems" not in changed
