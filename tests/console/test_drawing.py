"""The picture of a draft is changed by mouse and keyboard, and stays the same document as its JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.console.console_page import ConsolePage
from tests.console.target import Target
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow


async def drawn(server: Server, console: ConsolePage, **definition: Any) -> str:
    """The path of a workflow, with the picture of its draft open."""
    application = await server.application()
    flow = await server.call("POST", f"{application}/flows", {"name": "vents", **definition})
    path = f"{application}/flows/{flow['id']}"
    await console.go(f"#{path.replace('/flows/', '/workflows/')}/edit")
    await console.at("group", re.compile("^The draft")).shown()
    return path


def box(console: ConsolePage, key: str) -> Target:
    """The box of a part."""
    return console.at(css=f'[data-part="{key}"]')


def output(console: ConsolePage, key: str, number: int = 0) -> Target:
    """The handle of an output of a part."""
    return console.at(css=f'[data-of="{key}"][data-output="{number}"]')


async def saved(server: Server, console: ConsolePage, path: str) -> Any:
    """The draft, after it was saved in the page."""
    await console.at("button", "Save").click()
    await console.at("link", "Try before saving").gone()  # a note may be that of the save before
    return await server.call("GET", path)


def nodes(*names: str, **outputs: list[list[str]]) -> list[dict[str, Any]]:
    """Debug nodes with these ids, and the outputs of some of them."""
    return [{"id": each, "type": "DebugNode", "outputIds": outputs.get(each, [])} for each in names]


async def test_parts_are_connected_and_lines_removed_by_mouse(server: Server, console: ConsolePage) -> None:
    button = {"type": "virtualButton", "key": "press", "meta": {"x": 0, "y": 0}}
    a, b = nodes("a", "b")
    placed = [{**a, "meta": {"x": -150, "y": 120}}, {**b, "meta": {"x": 120, "y": 240}}]
    path = await drawn(server, console, triggers=[button], nodes=placed)
    await output(console, "@0").drag_to(box(console, "a"))
    await output(console, "a").drag_to(box(console, "b"))
    await output(console, "b").drag_by(150, 60)
    await output(console, "b").drag_to(box(console, "@0"))
    await console.sees("No line leads to a trigger.")
    found = await saved(server, console, path)
    assert found["triggers"][0]["outputIds"] == [["a"]]
    assert [each["outputIds"] for each in found["nodes"]] == [[["b"]], []]
    await console.at(css=".flow-line").click()
    await console.at("button", "Remove the line from Virtual button to Debug").click()
    await console.at(css=".flow-line").click()
    await console.press("Delete")
    found = await saved(server, console, path)
    assert found["triggers"][0]["outputIds"] == [[]]
    assert found["nodes"][0]["outputIds"] == [[]]
    await console.press("Control+z")
    await console.press("Control+z")
    await console.press("Control+Z")
    assert (await saved(server, console, path))["triggers"][0]["outputIds"] == [["a"]]


async def test_the_first_move_fixes_the_places_of_all_parts(server: Server, console: ConsolePage) -> None:
    button = {"type": "virtualButton", "key": "press", "outputIds": [["a", "b"]]}
    path = await drawn(server, console, triggers=[button], nodes=nodes("a", "b"))
    await box(console, "a").drag_by(-60, 40)
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
    assert await console.at(css="[data-part]").count() == 2
    await console.at("button", "Undo").click()
    assert await console.at(css="[data-part]").count() == 121
    found = await saved(server, console, path)
    assert found["nodes"] == text["nodes"]
    assert found["triggers"] == before["triggers"]
