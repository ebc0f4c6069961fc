"""Dry runs of workflows through the server: versions, stubs, scripts, refusals, and that nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.conftest import Server

TRIGGER = {"type": "deviceTag", "key": "kind/sensor", "outputIds": [["hot"]]}


def definition(limit: int) -> dict[str, object]:
    """Is it hotter than `limit`? Then a script converts the temperature, and a node of an unknown type is reached."""
    return {
        "triggers": [TRIGGER],
        "nodes": [
            {
                "id": "hot",
                "type": "ConditionalNode",
                "config": {"expression": f"{{{{data.temperature}}}} > {limit}"},
                "outputIds": [[], ["convert"]],
            },
            {
                "id": "convert",
                "type": "RawFunctionNode",
                "config": {"script": "payload.data.fahrenheit = payload.data.temperature * 1.8 + 32;"},
                "outputIds": [["beam"]],
            },
            {"id": "beam", "type": "TeleportNode", "outputIds": [["told"]]},
            {
                "id": "told",
                "type": "DebugNode",
                "config": {"message": "{{data.fahrenheit}} F", "property": "data"},
            },
        ],
    }


async def test_a_workflow_is_run_with_a_given_payload(server: Server) -> None:
    application = await server.application()
    flow = await server.call("POST", f"{application}/flows", {"name": "heat", **definition(30)}, status=201)
    path = f"{application}/flows/{flow['id']}"
    test = f"{path}/test"
    shown = await server.call("POST", test, {"data": {"temperature": 30}})
    assert [(step["nodeId"], step["output"]) for step in shown["steps"]] == [("hot", 0)]
    assert [problem["nodeId"] for problem in shown["problems"]] == ["beam"]
    shown = await server.call("POST", test, {"data": {"temperature": 31}})
    assert shown["error"]["message"] == "Nodes of the type TeleportNode do not run on this server."
    stubbed = {"data": {"temperature": 35}, "stubs": {"beam": {"set": {"data.beamed": True}}}}
    shown = await server.call("POST", test, stubbed)
    (told,) = shown["debug"]
    assert told["message"] == "95 F"
    assert told["value"] == {"temperature": 35, "fahrenheit": 95, "beamed": True}
    assert shown["steps"][-1]["payload"]["flowName"] == "heat"

    # A version stays as it was; develop changes.
    await server.call("POST", f"{path}/versions", {"version": "v1", **definition(30)}, status=201)
    await server.call("PATCH", path, {"nodes": definition(40)["nodes"]})
    for version, steps in (("develop", 1), ("v1", 4), ("default", 1)):
        shown = await server.call("POST", test, {**stubbed, "flowVersion": version})
        assert len(shown["steps"]) == steps
    # A definition that is not saved takes the place of the version.
    shown = await server.call("POST", test, {**stubbed, "flowVersion": "v1", "definition": definition(50)})
    assert len(shown["steps"]) == 1
    assert (await server.call("GET", path))["nodes"][0]["config"] == {
        "expression": "{{data.temperature}} > 40"
    }
    wrong = {"triggers": [{**TRIGGER, "outputIds": [["gone"]]}]}
    refusals = [
        ({"definition": wrong}, 400, "definition.triggers[0].outputIds[0]: Referenced output ID gone"),
        ({"definition": {}}, 400, "has no trigger, so nothing can run"),
        ({"flowVersion": "v2"}, 404, "no version 'v2'"),
        ({"trigger": "x"}, 400, "trigger: this version of the workflow has no trigger 'x'"),
        ({"stubs": {"x": {}}}, 400, "stubs: this version of the workflow has no node 'x'"),
        ({"stubs": {"beam": {"set": {"data..x": 1}}}}, 400, "stubs.beam.set: "),
        ({"other": 1}, 400, "other"),
    ]
    for body, status, sentence in refusals:
        answer = await server.call("POST", test, body, status=status)
        assert sentence in answer["message"]
    await server.call("POST", f"{application}/flows/{'0' * 24}/test", {}, status=404)
    assert (await server.call("GET", f"{path}/errors"))["errors"] == []


async def test_a_script_without_an_end_costs_only_its_own_run(start_server: Callable[..., Any]) -> None:
    async with start_server(limits={"script_cpu_s": 0.1}) as server:
        application = await server.application()
        flow = await server.call(
            "POST",
            f"{application}/flows",
            {
                "name": "endless",
                "triggers": [{"type": "timer", "key": "t", "config": {"seconds": 1}, "outputIds": [["f"]]}],
                "nodes": [{"id": "f", "type": "RawFunctionNode", "config": {"script": "for (;;) {}"}}],
            },
            status=201,
        )
        path = f"{application}/flows/{flow['id']}"
        shown = await server.call("POST", f"{path}/test", {})
        assert shown["error"]["name"] == "ScriptTimeout"
        await server.call(
            "PATCH",
            path,
            {"nodes": [{"id": "f", "type": "RawFunctionNode", "config": {"script": "return 5;"}}]},
        )
        assert (await server.call("POST", f"{path}/test", {}))["steps"][0]["payload"] == 5


async def test_a_field_of_a_custom_node_that_becomes_no_json_is_named(server: Server) -> None:
    flows = f"{await server.application()}/flows"
    field = {"id": "rows", "type": "jsonTemplate", "label": "Rows"}
    custom = {
        "name": "custom",
        "flowClass": "customNode",
        "customNodeConfig": {"outputCount": 1, "resultMode": "none", "fields": [field]},
        "triggers": [{"type": "customNodeStart", "key": "customNodeStart", "outputIds": [[]]}],
    }
    id = (await server.call("POST", flows, custom, status=201))["id"]
    config = {"customNodeId": id, "fields": [{"id": "rows", "value": "{{data.no}}"}]}
    node = {"id": "hot", "type": "CustomNodeExecuteNode", "config": config}
    user = await server.call(
        "POST", flows, {"name": "user", "triggers": [TRIGGER], "nodes": [node]}, status=201
    )
    error = (await server.call("POST", f"{flows}/{user['id']}/test", {}))["error"]
    assert error["name"] == "InvalidJsonTemplate"
    assert error["message"].startswith("config.fields[0].value: The text of the template is not valid JSON")
