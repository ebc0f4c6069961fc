"""The palette and the forms beside the picture of a draft."""

from __future__ import annotations

import re

import pytest

from tests.console.console_page import ConsolePage
from tests.console.drawing import add, box, drawn, nodes, saved
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow


async def test_custom_nodes_are_offered_with_their_own_settings(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    tones = [{"value": "low"}, {"value": "high"}]
    fields = [
        {"type": "stringTemplate", "label": "Greeting", "id": "greeting", "defaultValue": "Hello"},
        {
            "type": "select",
            "label": "Tone",
            "id": "tone",
            "defaultValue": "low",
            "options": tones,
        },
    ]
    config = {"outputCount": 2, "resultMode": "none", "fields": fields}
    custom = {"name": "greet", "flowClass": "customNode", "customNodeConfig": config}
    made = await server.call("POST", f"{application}/flows", custom)
    path = await drawn(server, console, application=application)
    await add(console, "greet")
    await console.at("textbox", "Greeting").fill("Good morning")
    await console.at("combobox", "Tone").choose("high")
    (node,) = (await saved(server, console, path))["nodes"]
    assert node["config"] == {
        "customNodeId": made["id"],
        "fields": [{"id": "greeting", "value": "Good morning"}, {"id": "tone", "value": "high"}],
    }
    assert await console.at(css="[data-output]").count() == 2


async def test_what_the_server_refuses_is_opened(server: Server, console: ConsolePage) -> None:
    path = await drawn(server, console, nodes=nodes("a"))
    await add(console, "Timer")
    await console.at("textbox", "Seconds").fill("0")
    await box(console, "a").click()
    await console.sees("DebugNode")
    async with console.expecting("status of 400"):
        await console.at("button", "Save").click()
        await console.at("heading", "Timer").shown()
    await console.sees("triggers[0].config.seconds")
    await console.at(css=".flow-box.trigger").at(css=".flow-badge").shown()
    await console.at("textbox", "Seconds").fill("90")
    assert (await saved(server, console, path))["triggers"][0]["config"] == {"seconds": 90}


async def test_parts_are_renamed_copied_and_deleted_with_their_lines(
    server: Server, console: ConsolePage
) -> None:
    button = {"type": "virtualButton", "key": "press", "outputIds": [["a"]]}
    loop = {"id": "loop", "type": "LoopNode", "config": {"more": {"kept": 1}}, "outputIds": [["c"], ["a"]]}
    odd = {"id": "odd", "type": "OddNode", "config": {"a": 1}}
    path = await drawn(server, console, triggers=[button], nodes=[loop, *nodes("a", "c", a=[["c"]]), odd])
    await box(console, "a").click()
    await console.at("textbox", "Id").fill("c")
    await console.sees("id: another node is c; give each its own.")
    await console.at("textbox", "Id").fill("first")
    await console.press("Enter")
    await box(console, "first").shown()
    await console.at("combobox", "Level").choose("warn")
    await console.at("button", "Duplicate").click()
    found = await saved(server, console, path)
    assert found["triggers"][0]["outputIds"] == [["first"]]
    assert found["nodes"][0] == {**loop, "outputIds": [["c"], ["first"]]}
    first, copy = found["nodes"][1], found["nodes"][4]
    assert first == {"id": "first", "type": "DebugNode", "config": {"level": "warn"}, "outputIds": [["c"]]}
    assert {**copy, "id": "first"} == first
    await console.at("button", "Fit").click()
    await box(console, "first").click()
    await console.at("button", "Delete part").click()
    found = await saved(server, console, path)
    assert (found["triggers"][0]["outputIds"], found["nodes"][0]["outputIds"]) == ([[]], [["c"], []])
    await box(console, "loop").click()
    await console.at("textbox", "More").fill("")
    await console.at("textbox", "More").fill('{"kept": 2}')
    await box(console, "odd").click()
    await console.sees("Nodes of this type do not run on this server.")
    await console.at("textbox", "Configuration").fill("[2]")
    await console.sees('config is not an object, such as {"a": 1}. It is not in the draft yet.')
    await console.at("textbox", "Configuration").fill('{"a": 12345678901234567890}')
    found = await saved(server, console, path)
    assert [each["config"] for each in (found["nodes"][0], found["nodes"][2])] == [
        {"more": {"kept": 2}},
        {"a": 12345678901234567890},
    ]


async def test_a_narrow_window_has_a_picture_to_look_at_and_the_form(
    server: Server, console: ConsolePage
) -> None:
    await console.viewport(390, 844, mobile=True)
    path = await drawn(server, console, nodes=nodes("a", "b"))
    await console.sees("In a narrow window the picture is only to look at.")
    assert await console.at(css="[data-output]").count() == 0
    await console.at("link", re.compile("^Debug"), nth=0).click()
    await console.at("combobox", "Leads to").choose("Debug")
    assert (await saved(server, console, path))["nodes"][0]["outputIds"] == [["b"]]
