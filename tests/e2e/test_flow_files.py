"""`trunkline flow test`: cases in files, what is told of them, and files that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.e2e.conftest import Server
from tests.e2e.test_flows import flows_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.http.cli.main import app

FLOW = {
    "name": "heat",
    "id": "what an export has, and no workflow needs",
    "triggers": [{"type": "timer", "key": "t", "outputIds": [["c"]]}],
    "nodes": [
        {
            "id": "c",
            "type": "ConditionalNode",
            "config": {"expression": "{{data.t}} > 30"},
            "outputIds": [["x"], ["f"]],
        },
        {"id": "f", "type": "RawFunctionNode", "config": {"script": "payload.data.f = payload.data.t * 2"}},
        {"id": "x", "type": "ThrowErrorNode", "config": {"messageTemplate": "too cold: {{data.t}}"}},
    ],
}
HOT = {"name": "hot", "data": {"t": 35}, "expect": {"nodes": ["c", "f"], "payload": {"data.f": 70}}}
COLD = {"name": "cold", "data": {"t": 3}, "expect": {"error": "Error"}}


def run(directory: Path, *cases: dict[str, Any], flow: Any = FLOW) -> Result:
    """Run cases from files in a directory below this one."""
    below = directory / "heat"
    below.mkdir(exist_ok=True)
    (below / "flow.json").write_text(json.dumps(flow))
    (below / "heat.test.json").write_text(json.dumps({"flow": "flow.json", "cases": cases}))
    return CliRunner().invoke(app, ["flow", "test", str(directory)])


def test_cases_that_are_as_expected(tmp_path: Path) -> None:
    result = run(tmp_path, HOT, COLD)
    assert result.exit_code == 0
    file = tmp_path / "heat" / "heat.test.json"
    assert result.output.splitlines() == [
        f"ok      {file}: hot",
        f"ok      {file}: cold",
        "All 2 cases passed.",
    ]


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ({**COLD, "expect": {}}, "error: None is expected, 'Error' came (at x: too cold: 3)."),
        ({**HOT, "expect": {"error": "Error"}}, "error: 'Error' is expected, None came."),
        ({**HOT, "expect": {"nodes": ["c"]}}, "nodes: ['c'] are expected, ['c', 'f'] were visited."),
        ({**HOT, "expect": {"payload": {"data.f": 71}}}, "payload: data.f is 70; 71 is expected."),
        ({**HOT, "expect": {"payload": {"data.g": 1}}}, "payload: data.g is nothing; 1 is expected."),
        ({**HOT, "stubs": {"y": {}}}, "stubs: this version of the workflow has no node 'y'."),
    ],
)
def test_a_case_that_is_not_as_expected_is_told_with_a_reason(
    tmp_path: Path, case: dict[str, Any], sentence: str
) -> None:
    result = run(tmp_path, case)
    assert result.exit_code == 1
    assert result.output.splitlines()[0].endswith(f"{case['name']}: {sentence}")
    assert isinstance(result.exception, Invalid)
    assert result.exception.message == f"{tmp_path}: 1 of 1 cases failed."


def test_a_random_number_is_the_same_every_day(tmp_path: Path) -> None:
    nodes = [
        {"id": "r", "type": "RandomNumberNode", "config": {"min": 1, "max": 1000, "resultPath": "data.n"}}
    ]
    triggers = [{"type": "timer", "key": "t", "outputIds": [["r"]]}]
    case = {"name": "r", "expect": {"payload": {"data.n": 865, "time": "2026-01-01T00:00:00.000Z"}}}
    assert run(tmp_path, case, flow={"triggers": triggers, "nodes": nodes}).output.startswith("ok")


def test_files_that_cannot_be_used_are_refused_with_a_sentence(tmp_path: Path) -> None:
    nothing = CliRunner().invoke(app, ["flow", "test", str(tmp_path)])
    assert isinstance(nothing.exception, Invalid)
    assert nothing.exception.message == f"{tmp_path}: there is no file *.test.json in it."
    for cases, sentence in (
        ([{}], "cases[0].name: is missing; this file needs it, a string of 1 to 255 characters."),
        ([{**HOT, "expct": {}}], "cases[0].expct: there is no such field in this file (did you mean expect"),
    ):
        refused = run(tmp_path, *cases)
        assert isinstance(refused.exception, Invalid)
        assert sentence in refused.exception.message
    (tmp_path / "heat" / "flow.json").unlink()
    assert isinstance(CliRunner().invoke(app, ["flow", "test", str(tmp_path)]).exception, Invalid | OSError)


EXPORT = """\
resourceType: Flow
resources:
  - id: ~exportplaceholderid-flow-heat~
    name: heat
    flowClass: cloud
    triggers: [{type: timer, key: t, config: {seconds: 60}, outputIds: [[c]]}]
    nodes: [{id: c, type: ConditionalNode, config: {expression: "{{data.t}} > 30"}, outputIds: [[], []]},
            {id: d, type: GetDeviceNode, config: {idTemplate: ~exportplaceholderid-device-pump~}}]
version: 1
"""


def test_cases_of_an_export_as_yaml(tmp_path: Path) -> None:
    (tmp_path / "heat.yaml").write_text(EXPORT)
    case = {"name": "hot", "data": {"t": 35}, "expect": {"nodes": ["c"]}}
    (tmp_path / "heat.test.json").write_text(json.dumps({"flow": "heat.yaml", "cases": [case]}))
    result = CliRunner().invoke(app, ["flow", "test", str(tmp_path)])
    assert result.output.splitlines()[-1] == "All 1 cases passed."
    (tmp_path / "heat.yaml").write_text("{resourceType: Flow, resources: [], version: 1}")
    result = CliRunner().invoke(app, ["flow", "test", str(tmp_path)])
    assert isinstance(result.exception, Invalid)
    assert result.exception.message == f"{tmp_path / 'heat.yaml'}: has no workflow."


async def test_an_export_as_yaml_is_converted_and_imported(server: Server, tmp_path: Path) -> None:
    (tmp_path / "heat.yaml").write_text(EXPORT)
    ids = tmp_path / "ids.json"
    ids.write_text('{"~exportplaceholderid-device-pump~": "aaaaaaaaaaaaaaaaaaaaaaaa"}')
    converted = CliRunner().invoke(app, ["flow", "convert", str(tmp_path / "heat.yaml")])
    assert converted.stderr.splitlines() == [
        "~exportplaceholderid-device-pump~ has no id (it stands there 1 times)."
    ]
    converted = CliRunner().invoke(app, ["flow", "convert", str(tmp_path / "heat.yaml"), "--ids", str(ids)])
    assert converted.stderr == ""
    flows = await flows_of(server)
    answer = await server.call("POST", f"{flows}/import", json.loads(converted.stdout), status=201)
    (flow,) = answer["flows"]
    assert (flow["name"], flow["enabled"], flow["nodes"][1]["config"]["idTemplate"]) == (
        "heat",
        False,
        "a" * 24,
    )
    ids.write_text("[")
    wrong = CliRunner().invoke(app, ["flow", "convert", str(tmp_path / "heat.yaml"), "--ids", str(ids)])
    assert isinstance(wrong.exception, Invalid)
    assert wrong.exception.message.startswith(f"{ids}: ")
