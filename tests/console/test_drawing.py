"""The picture of a draft is changed by mouse, touch and keyboard, and stays the same document as its JSON."""

from __future__ import annotations

import json
import re

import pytest

from tests.console.console_page import ConsolePage
from tests.console.drawing import add, box, drawn, middle, nodes, output, saved
from tests.console.target import Target
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow


async def test_parts_are_connected_and_lines_removed_by_mouse(server: Server, console: ConsolePage) -> None:
    button = {"type": "virtualButton", "key": "press", "meta": {"x": 0, "y": 0}}
    a, b = nodes("a", "b")
    placed = [{**a, "meta": {"x": -150, "y": 120}}, {**b, "meta": {"x": 120, "y": 240}}]
    path = await drawn(server, console, triggers=[button], nodes=placed)
    await output(console, "@0").drag_to(box(console, "a"))
    await output(console, "a").drag_to(box(console, "b"))
    await output(console, "b").drag_by(8, -8)
    await output(console, "b").drag_to(box(console, "@0"))
    await console.sees("No line leads to a trigger.")
    found = await saved(server, console, path)
    assert found["triggers"][0]["outputIds"] == [["a"]]
    assert [each["outputIds"] for each in found["nodes"]] == [[["b"]], []]
    await console.at(css=".flow-line").click()
    await console.at("button", "Remove the line from Virtual button to Debug message").click()
    await console.at(css=".flow-line").click()
    await console.press("Delete")
    found = await saved(server, console, path)
    assert found["triggers"][0]["outputIds"] == [[]]
    assert found["nodes"][0]["outputIds"] == [[]]
    for keys in ("Control+z", "Control+z", "Control+z", "Control+Shift+z"):
        await console.press(keys)
    found = await saved(server, console, path)
    assert (found["triggers"][0]["outputIds"], found["nodes"][0]["outputIds"]) == ([["a"]], [["b"]])
    await console.at("button", "Redo").click()
    found = await saved(server, console, path)
    assert (found["triggers"][0]["outputIds"], found["nodes"][0]["outputIds"]) == ([[]], [["b"]])
    await console.at(css=".flow-line").click()
    await box(console, "b").click()
    await console.press("Delete")
    found = await saved(server, console, path)
    assert [(each["id"], each["outputIds"]) for each in found["nodes"]] == [("a", [[]])]


async def test_a_line_to_nothing_asks_what_follows(server: Server, console: ConsolePage) -> None:
    path = await drawn(server, console, nodes=[{"id": "a", "type": "ConditionalNode"}])
    await output(console, "a", 1).drag_by(-60, 130)
    await console.sees("Choose what follows If a condition holds, true.")
    await console.type("delay")
    await console.press("Enter")
    await console.at("textbox", "Note").fill("Not too soon.")
    found = await saved(server, console, path)
    first, delay = found["nodes"]
    assert first["outputIds"] == [[], [delay["id"]]]
    assert delay["type"] == "DelayNode"
    assert delay["meta"]["description"] == "Not too soon."
    assert delay["meta"]["x"] < first["meta"]["x"]
    assert delay["meta"]["y"] > first["meta"]["y"] + 100
    await output(console, delay["id"]).drag_by(-130, -20)
    await console.sees("Choose what follows Wait.")
    await box(console, "a").click()
    await console.at("textbox", "Expression").shown()
    assert "Choose what follows" not in await console.shows()


async def test_the_first_move_fixes_the_places_of_all_parts(server: Server, console: ConsolePage) -> None:
    button = {"type": "virtualButton", "key": "press", "outputIds": [["a", "b"]]}
    path = await drawn(server, console, triggers=[button], nodes=nodes("a", "b"))
    await box(console, "a").drag_by(-60, 40)
    await console.settled()
    await console.gives("document.activeElement.dataset.part", "a")
    first = await saved(server, console, path)
    places = {
        each.get("id", "press"): (each["meta"]["x"], each["meta"]["y"])
        for each in [*first["triggers"], *first["nodes"]]
    }
    assert places["a"][1] == places["b"][1] + 40
    await box(console, "b").click()
    await console.press("ArrowRight")
    await console.press("ArrowRight")
    second = await saved(server, console, path)
    assert second["nodes"][1]["meta"] == {"x": places["b"][0] + 16, "y": places["b"][1]}
    assert second["nodes"][0] == first["nodes"][0]
    await console.at("button", "Undo").click()
    assert (await saved(server, console, path))["nodes"] == first["nodes"]
    await box(console, "a").drag_to(box(console, "b"))
    third = await saved(server, console, path)
    assert abs(third["nodes"][0]["meta"]["x"] - third["nodes"][1]["meta"]["x"]) > 190 or (
        abs(third["nodes"][0]["meta"]["y"] - third["nodes"][1]["meta"]["y"]) > 60
    )
    await console.at("button", "Arrange in layers").click()
    fourth = await saved(server, console, path)
    assert fourth["nodes"][0]["meta"]["y"] == fourth["nodes"][1]["meta"]["y"]


async def test_nothing_is_lost_between_picture_and_json(server: Server, console: ConsolePage) -> None:
    odd = {"config": {"deep": [{"a": None}], "\u00e4": 0.1}, "meta": {"color": "red"}}
    unknown = {"id": "odd", "type": "OddNode", **odd}
    many = nodes(*[f"n{number}" for number in range(120)])
    meta = {"uiId": "u", "payload": "[1]"}
    button = {"type": "virtualButton", "key": "press", "meta": meta, "outputIds": [["odd"]]}
    globals = [{"key": "limit", "json": "1"}]
    path = await drawn(server, console, triggers=[button], nodes=[unknown, *many], globals=globals)
    before = await server.call("GET", path)
    await box(console, "n7").click()
    await console.press("Delete")
    await console.at("link", "JSON").click()
    text = json.loads(await console.at("textbox", "The draft as JSON").value())
    assert text["nodes"] == [each for each in before["nodes"] if each["id"] != "n7"]
    assert (text["triggers"], text["globals"]) == (before["triggers"], before["globals"])
    await console.at("textbox", "The draft as JSON").fill(json.dumps({**text, "nodes": [unknown]}))
    await console.at("link", "Picture").click()
    await output(console, "@0").shown()
    await console.at(css="[data-part]").counts(2)
    await console.at("button", "Undo").click()
    await console.at(css="[data-part]").counts(121)
    found = await saved(server, console, path)
    assert found["nodes"] == text["nodes"]
    assert found["triggers"] == before["triggers"]


async def test_a_draft_that_is_half_written_is_shown(server: Server, console: ConsolePage) -> None:
    loop = {"id": "loop", "type": "LoopNode", "outputIds": [["after"], ["cap"]]}
    cap = {"id": "cap", "type": "LoopCapNode"}
    path = await drawn(server, console, nodes=[loop, cap, *nodes("after")])
    report = {"type": "deviceTag", "key": "a/b", "config": {"attributeWhitelist": "temperature"}}
    half = {"triggers": [report], "nodes": [loop, cap]}
    await console.go(f"#{path.replace('/flows/', '/workflows/')}/edit?as=json")
    await console.at("textbox", "The draft as JSON").fill(json.dumps(half))
    await console.at("link", re.compile("^States of devices by tag")).shown()
    await console.at("link", "Picture").click()
    await box(console, "@0").click()
    await console.at("textbox", "Attribute whitelist").holds('"temperature"')


async def test_a_workflow_is_built_by_mouse_and_runs(server: Server, console: ConsolePage) -> None:
    path = await drawn(server, console)
    await add(console, "Virtual button")
    await console.at("textbox", "Name of the part").fill("Measure")
    await add(console, "If a condition holds")
    await console.at("textbox", "Expression").fill("{{data.temperature}} <= 30")
    await console.sees("ConditionalNode")
    (conditional,) = await console.run(PARTS.replace("TYPE", "if a condition holds"))
    await add(console, "Debug message")
    await console.at("textbox", "Name of the part").fill("Cool")
    hot = console.at("group", "Parts to add").at("button", "Fail")
    await hot.drag_to(box(console, conditional), x=180, y=120)
    await console.at("textbox", "Name of the part").fill("Hot")
    await console.at("textbox", "Message").fill("It is hot.")
    (error,) = await console.run(PARTS.replace("TYPE", "fail"))
    await output(console, conditional, 0).drag_to(box(console, error))
    found = await saved(server, console, path)
    button, (warm, cool, stop) = found["triggers"][0], found["nodes"]
    assert button["outputIds"] == [[warm["id"]]]
    assert warm["outputIds"] == [[stop["id"]], [cool["id"]]], "a click connects the yes"
    assert [each["meta"]["label"] for each in (button, cool, stop)] == ["Measure", "Cool", "Hot"]
    assert (warm["config"], stop["config"]) == (
        {"expression": "{{data.temperature}} <= 30"},
        {"messageTemplate": "It is hot."},
    )
    assert "problems" not in found
    await console.at("link", "Graph").click()
    await console.at("button", "Measure").click()
    await console.at("textbox", re.compile("Payload")).fill('{"temperature": 41}')
    await console.at("button", "Press").click()
    await console.sees("Pressed.")
    await console.at("link", "Runs").click()
    await console.at("region", "Runs").at("link", nth=0).click()
    await console.at("link", re.compile("^Hot.*failed here")).shown()
    await console.at("link", re.compile("^Cool.*not visited")).shown()


PARTS = """[...document.querySelectorAll(".flow-canvas [data-part]")]
    .filter((box) => box.querySelector(".detail").textContent === "TYPE").map((box) => box.dataset.part)"""


async def test_a_workflow_is_built_without_a_pointer(server: Server, console: ConsolePage) -> None:
    path = await drawn(server, console)
    for type, name in (
        ("virtual button", "virtual button"),
        ("conditional", "if a condition holds"),
        ("debug", "debug message"),
    ):
        await console.press("/")
        await console.press("Control+a")
        await console.type(type)
        await console.press("Enter")
        await console.sees(f"{name} ")
        await console.press("Escape")
    await console.at("link", re.compile("^Virtual button")).press("Enter")
    await console.sees("virtualButton")
    await console.press("Escape")
    await console.press("/")
    await console.press("Control+a")
    await console.type("generate id")
    await console.press("Enter")
    await console.sees("GenerateIdNode")
    await console.at("link", re.compile("^Virtual button")).press("Enter")
    await console.sees("virtualButton")
    await console.at("combobox", "Leads to").choose("Generate id")
    await console.at("link", re.compile("^Debug")).press("Enter")
    await console.sees("DebugNode")
    await console.at("link", re.compile("^Debug")).press("ArrowDown")
    await console.press("Control+s")
    await console.sees("The draft is saved.")
    found = await server.call("GET", path)
    conditional, debug, id = found["nodes"]
    assert found["triggers"][0]["outputIds"] == [[conditional["id"], id["id"]]]
    assert conditional["outputIds"] == [[], [debug["id"]]]
    await console.at("link", re.compile("^Debug")).press("Delete")
    await console.press("Control+s")
    await console.at("link", re.compile("^Debug")).gone()
    await console.sees("Saved.")
    assert [each["type"] for each in (await server.call("GET", path))["nodes"]] == [
        "ConditionalNode",
        "GenerateIdNode",
    ]


async def touch(console: ConsolePage, start: Target, x: float, y: float) -> None:
    """Put a finger on an element, move it so many px, and lift it."""
    at = await middle(start)
    for type, part in (("touchStart", 0), ("touchMove", 0.5), ("touchMove", 1)):
        point = {"x": at["x"] + part * x, "y": at["y"] + part * y}
        await console.command("Input.dispatchTouchEvent", type=type, touchPoints=[point])
    await console.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])


async def test_parts_are_moved_and_connected_by_touch(server: Server, console: ConsolePage) -> None:
    await console.command("Emulation.setTouchEmulationEnabled", enabled=True)
    a, b = nodes("a", "b")
    placed = [{**a, "meta": {"x": 0, "y": 0}}, {**b, "meta": {"x": 0, "y": 200}}]
    path = await drawn(server, console, nodes=placed)
    await touch(console, box(console, "b"), 40, 0)
    await console.sees("Not saved.")
    await touch(console, output(console, "a"), 40, 170)
    found = await saved(server, console, path)
    assert found["nodes"] == [
        {**placed[0], "outputIds": [["b"]]},
        {**placed[1], "meta": {"x": 40, "y": 200}},
    ]
