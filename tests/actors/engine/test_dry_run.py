"""Programs are run as their definitions say: order, branches, loops, bounds, errors and stubs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.engine.flow_cases import IDENTITY, Json, flow, node, run_dry
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.engine.dry_run import Stub
from trunkline.actors.engine.executor import DEPTH_MAX
from trunkline.actors.engine.nodes import loop


def visited(shown: Json) -> list[str]:
    return [step["nodeId"] for step in shown["steps"]]


def put(id: str, path: str, value: str, *outputs: list[str], type: str = "string") -> Json:
    rule = {"type": "set", "destination": path, "valueTemplate": value, "valueTemplateType": type}
    return node(id, "MutateNode", {"rules": [rule]}, *outputs)


async def test_the_payload_tells_what_started_the_run() -> None:
    shown = await run_dry(
        flow(node("d", "DebugNode"), globals=[{"key": "limit", "json": "[1, 2]"}]),
        data={"x": 1},
        payload={"relayId": "r"},
    )
    (told,) = shown["debug"]
    assert told["value"] == {
        **IDENTITY,
        "time": "2026-09-21T14:13:20.000Z",
        "data": {"x": 1},
        "triggerId": "t",
        "triggerType": "timer",
        "globals": {"limit": [1, 2]},
        "relayId": "r",
    }
    (step,) = shown["steps"]
    assert (step["nodeId"], step["nodeType"], step["nodeLabel"], step["output"]) == ("d", "DebugNode", "d", 0)
    assert step["payload"] == told["value"]
    assert shown["problems"] == []
    assert "error" not in shown


async def test_an_expression_may_use_helpers() -> None:
    definition = flow(
        node(
            "c",
            "ConditionalNode",
            {"expression": "{{length data.list}} == 2 && {{upper data.x}} == 'A'"},
            [],
            ["d"],
        ),
        node("d", "DebugNode"),
    )
    assert visited(await run_dry(definition, data={"list": [1, 2], "x": "a"})) == ["c", "d"]


@pytest.mark.parametrize(("value", "way"), [(31, "hot"), (30, "cold")])
async def test_a_condition_chooses_the_output(value: int, way: str) -> None:
    definition = flow(
        node("c", "ConditionalNode", {"expression": "{{data.x}} > 30"}, ["cold"], ["hot"]),
        node("cold", "DebugNode"),
        node("hot", "DebugNode"),
    )
    assert visited(await run_dry(definition, data={"x": value})) == ["c", way]


async def test_branches_have_payloads_of_their_own_and_are_followed_in_order() -> None:
    definition = flow(
        put("a", "data.seen", "a", ["b"]),
        node("b", "DebugNode", {"property": "data.seen"}),
        put("c", "data.other", "c", ["d"]),
        node("d", "DebugNode", {"property": "data"}),
        start=["a", "c"],
    )
    shown = await run_dry(definition)
    assert visited(shown) == ["a", "b", "c", "d"]
    assert [told["value"] for told in shown["debug"]] == ["a", {"other": "c"}]


async def test_a_bare_reference_keeps_the_type() -> None:
    definition = flow(
        put("a", "data.copy", "{{data.list}}", ["b"]),
        put("b", "data.text", "n={{data.list.[1]}}", ["c"]),
        put("c", "data.json", '{"n": {{data.list.[0]}}}', ["d"], type="json"),
        node("d", "DebugNode", {"property": "data"}),
    )
    (told,) = (await run_dry(definition, data={"list": [1, 2]}))["debug"]
    assert told["value"] == {"list": [1, 2], "copy": [1, 2], "text": "n=2", "json": {"n": 1}}


async def test_the_first_error_ends_the_run_and_names_the_node() -> None:
    definition = flow(
        put("a", "data.x", "1", ["b", "c"]),
        node("b", "ThrowErrorNode", {"messageTemplate": "too hot: {{data.t}}"}),
        node("c", "DebugNode"),
    )
    shown = await run_dry(definition, data={"t": 99})
    assert shown["error"] == {
        "nodeId": "b",
        "nodeType": "ThrowErrorNode",
        "nodeLabel": "b",
        "name": "Error",
        "message": "too hot: 99",
    }
    assert visited(shown) == ["a", "b"]


@pytest.mark.parametrize(
    ("type", "config", "problem"),
    [
        ("DelayNode", {"delay": 100}, "config.delay: gives 100; give 0 to 59 seconds."),
        ("DelayNode", {"delay": "x"}, "config.delay: gives 'x', not a number."),
        ("DelayNode", {"delay": "0"}, None),
        ("DelayNode", {"delay": "{{data.x}}"}, None),
        ("RandomNumberNode", {"min": 5, "max": 1}, "config.min: 5 is above config.max, which is 1."),
        ("RandomNumberNode", {"min": 101}, "config.min: 101 is above config.max, which is 100."),
        (
            "RandomNumberNode",
            {"max": "Infinity"},
            "config.min and config.max: are 0 and inf; give finite numbers.",
        ),
        ("RandomNumberNode", {"min": "{{data.x}}", "max": -1}, None),
        ("RandomNumberNode", {"min": -1, "max": -1}, None),
    ],
)
async def test_what_fails_each_run_by_a_constant_is_told_before(
    type: str, config: Json, problem: str | None
) -> None:
    made = node("n", type, {"resultPath": "data.n", **config} if type == "RandomNumberNode" else config)
    gone = node("a", "DebugNode")
    shown = await run_dry(flow(gone, made))
    assert [each["message"] for each in shown["problems"]] == ([] if problem is None else [problem])
    if problem is not None:
        assert (await run_dry(flow(made)))["error"]["message"] == problem


async def test_what_cannot_run_is_told_before_and_fails_only_where_it_is_reached() -> None:
    definition = flow(
        node("c", "ConditionalNode", {"expression": "{{data.x}}"}, ["gone"], ["bad"]),
        node("gone", "TeleportNode"),
        node("bad", "MathNode", {"statements": [{"expression": "1 +", "resultPath": "data.y"}]}),
    )
    shown = await run_dry(definition)
    assert shown["error"]["name"] == "UnsupportedNode"
    assert shown["error"]["message"] == "Nodes of the type TeleportNode do not run on this server."
    assert [(each["nodeId"]) for each in shown["problems"]] == ["gone", "bad"]
    assert "config.statements[0].expression" in shown["problems"][1]["message"]
    shown = await run_dry(definition, data={"x": True})
    assert (shown["error"]["nodeId"], shown["error"]["name"]) == ("bad", "ValidationError")


async def test_a_stub_takes_the_place_of_a_node() -> None:
    definition = flow(
        node("ask", "TeleportNode", {}, ["no"], ["yes"]),
        node("no", "DebugNode"),
        node("yes", "DebugNode", {"property": "data.answer.n"}),
    )
    shown = await run_dry(definition, stubs={"ask": Stub(output=1, set={"data.answer": {"n": 5}})})
    assert visited(shown) == ["ask", "yes"]
    assert shown["debug"][0]["value"] == 5
    assert shown["problems"] == []
    with pytest.raises(Invalid, match=r"stubs: this version of the workflow has no node 'x'\."):
        await run_dry(definition, stubs={"x": Stub()})


LOOP = {"loopSourcePath": "data.items", "currentItemPath": "data.item", "mapResultPath": "data.mapped"}


async def test_a_loop_maps_what_its_caps_name_and_keeps_the_changes_of_a_serial_body() -> None:
    definition = flow(
        node("loop", "LoopNode", LOOP, ["after"], ["add"]),
        node(
            "add",
            "MathNode",
            {"statements": [{"expression": "{{data.sum}} + {{data.item.value}}", "resultPath": "data.sum"}]},
            ["cap"],
        ),
        node("cap", "LoopCapNode", {"loopNodeId": "loop", "mapValuePath": "data.sum"}),
        node("after", "DebugNode", {"property": "data"}),
    )
    (told,) = (await run_dry(definition, data={"items": [1, 2, 3], "sum": 0}))["debug"]
    assert told["value"]["mapped"] == [1, 3, 6]
    assert told["value"]["sum"] == 6
    definition["nodes"][0]["config"] = {**LOOP, "parallel": True}
    (told,) = (await run_dry(definition, data={"items": [1, 2, 3], "sum": 0}))["debug"]
    assert told["value"] == {"items": [1, 2, 3], "sum": 0, "mapped": [1, 2, 3]}


async def test_a_body_without_a_cap_keeps_no_changes_and_a_break_ends_the_loop() -> None:
    definition = flow(
        node("loop", "LoopNode", LOOP, ["after"], ["change"]),
        put("change", "data.changed", "yes", ["last"]),
        node("last", "ConditionalNode", {"expression": "{{data.item.index}} == 1"}, [], ["stop"]),
        node("stop", "LoopCapNode", {"shouldBreak": True, "mapValuePath": "data.item.value"}),
        node("after", "DebugNode", {"property": "data"}),
    )
    shown = await run_dry(definition, data={"items": "abc"})
    assert visited(shown) == ["loop", "change", "last", "change", "last", "stop", "after"]
    assert shown["debug"][0]["value"]["mapped"] == [None, "b"]
    assert shown["debug"][0]["value"]["changed"] == "yes"
    definition["nodes"][2]["config"] = {"expression": "false"}
    shown = await run_dry(definition, data={"items": {"k": 1}})
    assert shown["debug"][0]["value"] == {"items": {"k": 1}, "mapped": [None]}


@pytest.mark.parametrize(
    ("given", "items"),
    [
        ([7], [{"value": 7, "index": 0, "first": True, "last": True}]),
        ({"k": 7}, [{"value": 7, "index": 0, "key": "k", "first": True, "last": True}]),
        (
            -1.5,
            [
                {"value": 0, "index": 0, "first": True, "last": False},
                {"value": 1, "index": 1, "first": False, "last": True},
            ],
        ),
        (True, []),
        (None, []),
    ],
)
async def test_the_items_of_a_loop_are_those_of_its_source(given: Any, items: list[Any]) -> None:
    """A number counts by its absolute value, rounded up, and only items of objects have keys. What no path names is
    mapped as the item."""
    definition = flow(node("loop", "LoopNode", LOOP, ["after"], ["cap"]), node("cap", "LoopCapNode"))
    definition["nodes"].append(node("after", "DebugNode", {"property": "data.mapped"}))
    (told,) = (await run_dry(definition, data={"items": given}))["debug"]
    assert told["value"] == items


async def test_the_loop_names_what_is_mapped_where_a_cap_does_not() -> None:
    config = {**LOOP, "mapValuePath": "data.item.value.name"}
    definition = flow(
        node("loop", "LoopNode", config, ["after"], ["is"]),
        node("is", "ConditionalNode", {"expression": "{{data.item.value.short}}"}, ["cap"], ["short"]),
        node("short", "LoopCapNode", {"mapValuePath": "data.item.value.short"}),
        node("cap", "LoopCapNode", {"mapValuePath": ""}),
        node("after", "DebugNode", {"property": "data.mapped"}),
    )
    items = [{"name": "north"}, {"name": "south", "short": "s"}, {}]
    (told,) = (await run_dry(definition, data={"items": items}))["debug"]
    assert told["value"] == ["north", "s", None]


async def test_a_parallel_loop_runs_every_pass_in_spite_of_breaks_and_errors() -> None:
    definition = flow(
        node("loop", "LoopNode", {**LOOP, "parallel": True}, ["after"], ["is"]),
        node("is", "ConditionalNode", {"expression": "{{data.item.value}} < 0"}, ["stop"], ["fail"]),
        node("fail", "ThrowErrorNode", {"messageTemplate": "{{data.item.value}} is negative"}),
        node("stop", "LoopCapNode", {"shouldBreak": True, "mapValuePath": "data.item.value"}),
        node("after", "DebugNode", {"property": "data.mapped"}),
    )
    shown = await run_dry(definition, data={"items": [1, 2]})
    assert shown["debug"][0]["value"] == [1, 2]
    shown = await run_dry(definition, data={"items": [1, -2, -3, 4]})
    assert visited(shown) == ["loop", "is", "stop", "is", "fail", "is", "fail", "is", "stop"]
    assert (shown["error"]["nodeId"], shown["error"]["message"]) == ("fail", "-2 is negative")


async def test_runs_are_bounded() -> None:
    endless = flow(put("a", "data.x", "1", ["b"]), put("b", "data.x", "2", ["a"]))
    assert (await run_dry(endless))["error"]["name"] == "TooManySteps"
    growing = flow(put("a", "data.x", "{{data.x}}{{data.x}}-", ["a2"]), put("a2", "data.y", "", ["a"]))
    assert (await run_dry(growing, data={"x": "xxxxxxxx"}))["error"]["name"] == "PayloadTooLarge"
    many = flow(node("loop", "LoopNode", {"loopSourcePath": "data.n"}, [], ["d"]), node("d", "DebugNode"))
    assert (await run_dry(many, data={"n": 101}))["error"]["name"] == "TooManyItems"
    nested = [
        node(f"l{depth}", "LoopNode", {"loopSourcePath": "data.one"}, [], [f"l{depth + 1}"])
        for depth in range(DEPTH_MAX + 1)
    ]
    shown = await run_dry(flow(*nested, node(f"l{DEPTH_MAX + 1}", "DebugNode")), data={"one": 1})
    assert shown["error"]["name"] == "TooDeep"


async def test_what_doubles_the_payload_ends_at_the_bound() -> None:
    rules = [{"type": "copy", "source": "data", "destination": f"data.x{number}"} for number in range(100)]
    doubling = flow(node("m", "MutateNode", {"rules": rules}))
    assert (await run_dry(doubling, data={"text": "x" * 100}))["error"]["name"] == "PayloadTooLarge"
    mapping = flow(
        node("loop", "LoopNode", {"loopSourcePath": "data.n", "mapResultPath": "data.m"}, [], ["cap"]),
        node("cap", "LoopCapNode", {"mapValuePath": "data"}),
    )
    shown = await run_dry(mapping, data={"n": 90, "text": "x" * 5_000})
    assert shown["error"]["message"] == "config.mapValuePath: the values have more than 100000 bytes."


async def test_the_copies_of_a_loop_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "COPIED_BYTES_MAX", 20_000)
    definition = flow(node("l", "LoopNode", {"loopSourcePath": "data.n"}))
    assert "error" not in await run_dry(definition, data={"n": 20})
    assert (await run_dry(definition, data={"n": 20, "text": "x" * 5_000}))["error"]["name"] == "TooMuchWork"


async def test_the_same_seed_gives_the_same_numbers() -> None:
    definition = flow(
        node("r", "RandomNumberNode", {"min": 1, "max": "{{data.most}}", "resultPath": "data.n"}, ["d"]),
        node("d", "DebugNode", {"property": "data.n"}),
    )
    runs = [(await run_dry(definition, data={"most": 1000}))["debug"][0]["value"] for _ in range(2)]
    assert runs[0] == runs[1]
    assert 1 <= runs[0] <= 1000


async def test_a_trigger_is_named_by_its_key_its_id_or_its_type() -> None:
    definition = flow(node("d", "DebugNode", {"property": "triggerId"}))
    definition["triggers"].append({"type": "webhook", "key": "w", "meta": {"id": "x"}, "outputIds": [["d"]]})
    for named, key in (("t", "t"), ("w", "w"), ("x", "w"), ("webhook", "w")):
        assert (await run_dry(definition, trigger=named))["debug"][0]["value"] == key
    with pytest.raises(Invalid, match="trigger: this version of the workflow has no trigger 'y'"):
        await run_dry(definition, trigger="y")
    with pytest.raises(Invalid, match="has no trigger, so nothing can run"):
        await run_dry({"nodes": []})


async def test_json_is_decoded_and_what_is_none_can_be_caught() -> None:
    config = {
        "source": "data.text",
        "destination": "data.value",
        "errorBehavior": "payloadPath",
        "errorPath": "data.error",
    }
    definition = flow(
        node("j", "JsonDecodeNode", config, ["d"]), node("d", "DebugNode", {"property": "data"})
    )
    (told,) = (await run_dry(definition, data={"text": '{"a": [1]}'}))["debug"]
    assert told["value"]["value"] == {"a": [1]}
    (told,) = (await run_dry(definition, data={"text": "{"}))["debug"]
    assert told["value"]["error"]["name"] == "ValidationError"
    definition["nodes"][0]["config"] = {"source": "data.text"}
    assert (await run_dry(definition, data={"text": "{"}))["error"]["name"] == "ValidationError"


async def test_a_switch_compares_texts_and_has_its_default_first() -> None:
    config = {
        "switchTemplate": "{{data.kind}}",
        "cases": [{"caseTemplate": "a"}, {"caseTemplate": "{{data.b}}"}],
    }
    definition = flow(
        node("s", "SwitchNode", config, ["other"], ["first"], ["second"]),
        *(node(id, "DebugNode") for id in ("other", "first", "second")),
    )
    for kind, way in (("a", "first"), (5, "second"), ("z", "other")):
        assert visited(await run_dry(definition, data={"kind": kind, "b": "5"})) == ["s", way]


async def test_a_script_changes_its_part_of_the_payload_or_returns_another() -> None:
    config = {"script": "payload.list.push(3); console.warn('n', payload.list.length);", "scopePath": "data"}
    definition = flow(
        node("f", "RawFunctionNode", config, ["d"]), node("d", "DebugNode", {"property": "data"})
    )
    shown = await run_dry(definition, data={"list": [1]})
    assert [(told["level"], told["message"], told["value"]) for told in shown["debug"]] == [
        ("warn", "n 2", None),
        ("info", "", {"list": [1, 3]}),
    ]
    definition["nodes"][0]["config"] = {"script": "return {data: payload.flowName};"}
    assert (await run_dry(definition))["debug"][0]["value"] == "Test"
    definition["nodes"][0]["config"] = {"script": "\nthrow new RangeError('too far');"}
    error = (await run_dry(definition))["error"]
    assert (error["nodeId"], error["name"], error["message"]) == (
        "f",
        "RangeError",
        "too far (line 2 of the script)",
    )
