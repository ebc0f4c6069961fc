"""Settings that no node reads: they are ignored, and the workflow and its runs say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import button, create_flow, run_again
from tests.actors.house import running_house
from trunkline.actors.engine.program import problems_of
from trunkline.actors.engine.unknown_settings import TOLD_MAX, unknown_settings

MATH = {"statements": [{"expression": "1 + 1", "resultPath": "data.a"}]}


@pytest.mark.parametrize(
    ("type", "config", "told"),
    [
        ("MathNode", MATH, []),
        ("MathNode", {**MATH, "statments": [1]}, ["config.statments: ", "(did you mean statements?)"]),
        (
            "MathNode",
            {"statements": [{"expresion": "1", "resultPath": "data.a"}]},
            ["config.statements[0].expresion: ", "(did you mean expression?)"],
        ),
        ("MathNode", {**MATH, "zzz": "", "yyy": None, "xxx": [], "www": False}, []),
        ("DataTableInsertRowNode", {"rowFeilds": [{"a": 1}]}, ["(did you mean rowFields?)"]),
        ("SwitchNode", {"switchTemplate": "a", "cases": [{"caseTemplate": "a", "caseLabel": "A"}]}, []),
        ("LoopCapNode", {"loopNodeId": "a"}, []),
        ("UpdateDeviceNode", {"idTemplate": "a"}, []),
        ("AnnotationNode", {"anything": 1}, []),
        ("ModbusReadNode", {"anything": 1}, []),
    ],
)
def test_what_no_node_reads_is_told_of(type: str, config: dict[str, Any], told: list[str]) -> None:
    found = unknown_settings(type, config)
    assert len(found) == bool(told)
    for part in told:
        assert part in found[0]
    assert all(f"is not a setting of {type}, so it is ignored" in each for each in found)


def test_few_of_many_are_told_of() -> None:
    rows = [{f"x{number}": 1} for number in range(50)]
    assert len(unknown_settings("MathNode", {"statements": rows})) == TOLD_MAX


def test_a_workflow_names_what_it_ignores() -> None:
    definition = {"triggers": [], "nodes": [node("m", "MathNode", {**MATH, "resultPth": "data.x"})]}
    (problem,) = problems_of(definition)
    assert (problem["nodeId"], problem["nodeType"]) == ("m", "MathNode")
    assert problem["message"].startswith("config.resultPth: is not a setting of MathNode, so it is ignored")


def test_a_workflow_names_what_it_ignores_also_of_a_node_that_cannot_run() -> None:
    definition = {"triggers": [], "nodes": [node("c", "ConditionalNode", {"expresion": "1"})]}
    messages = [each["message"] for each in problems_of(definition)]
    assert messages[0].startswith("config.expression: is not set")
    assert messages[1].startswith(
        "config.expresion: is not a setting of ConditionalNode, so it is ignored (did you"
    )
    assert len(messages) == 2


@pytest.mark.parametrize(
    ("type", "wrong", "right", "needed"),
    [
        ("event", ["bad", "Info", ""], ["info", "critical", "any"], "a level, or any"),
        ("deviceId", ["pump", "a" * 23, "a" * 25], ["a" * 24, "A" * 24], "the id of a device"),
        ("webhook", ["hook"], ["0" * 24], "the id of a webhook"),
        (
            "deviceTag",
            ["floor=1", "/", "a b/c", "floor"],
            ["floor/1", "floor/", "/1", "a/b/c"],
            "key/value of a tag",
        ),
        (
            "mqttTopic",
            ["a/#/b", "a+/b", "a#"],
            ["a/+/b", "#", "a/b", "a/#", "+", "a//b/", "/"],
            "a topic, which",
        ),
    ],
)
def test_a_workflow_names_triggers_whose_keys_nothing_matches(
    type: str, wrong: list[str], right: list[str], needed: str
) -> None:
    definition = {"nodes": [], "triggers": [{"type": type, "key": key} for key in [*wrong, *right]]}
    messages = [each["message"] for each in problems_of(definition)]
    assert len(messages) == len(wrong)
    for key, message in zip(wrong, messages, strict=True):
        what = f"is {key!r}" if key else "is not set"
        assert message.startswith(f"key: {what}, so the trigger never fires; give {needed}")


def test_a_workflow_names_triggers_that_nothing_can_start() -> None:
    broker = {"integrationId": "a" * 24}
    triggers: list[dict[str, Any]] = [
        {"type": "mqttTopic", "key": "losant/x"},
        {"type": "mqttTopic", "key": "$SYS/#", "config": {"integrationId": "local"}},
        {"type": "mqttTopic", "key": "x", "config": {"integrationId": "nope"}},
        {"type": "appFile"},
        {"type": "appFile", "key": "a/b.txt"},
        {"type": "virtualButton", "key": "b"},
        {"type": "virtualButton", "key": "b"},
        {"type": "virtualButton"},
        {"type": "mqttTopic", "key": "losant/x", "config": broker},
        {"type": "mqttTopic", "key": "x", "config": {"integrationId": "losant"}},
        {"type": "appFile", "key": "/a/"},
        {"type": "virtualButton", "meta": {"uiId": "u"}},
    ]
    assert [each["message"][:53] for each in problems_of({"nodes": [], "triggers": triggers})] == [
        "key: is 'losant/x', so the trigger never fires; give "[:53],
        "key: is '$SYS/#', so the trigger never fires; give a t"[:53],
        "config.integrationId: is 'nope', so the trigger never "[:53],
        "key: is not set, so the trigger never fires; give the "[:53],
        "key: is 'a/b.txt', so the trigger never fires; give th"[:53],
        "key: 'b' is also the key of triggers[5], so a press of"[:53],
        "key: is not set, so no press names this button; give a"[:53],
    ]


async def test_each_run_notes_it(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        nodes = [node("m", "MathNode", {**MATH, "resultPth": "x"}, ["d"]), node("d", "DebugNode")]
        flow = await create_flow(house, [button(["m"])], nodes)
        run = await run_again(house, flow)
        assert (run.outcome, run.debug[0][3]["data"]) == ("completed", {"a": 2})
        ((at, message, count),) = run.notes
        assert (run.nodes[at][0], count) == ("m", 1)
        assert message.startswith("config.resultPth: ")
