"""Workflows in the console: the picture, the draft, versions, runs with their paths, replays, and what is stored."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.console.console_page import ConsolePage, console_page, login_of
from tests.console.drawing import add, box, drawn, nodes, saved
from tests.e2e.conftest import Server, running_server

pytestmark = pytest.mark.slow

LARGE = 12345678901234567890
"""A whole number that a double cannot hold."""

SELECTED = """(() => {
    const text = document.querySelector("textarea");
    return text.value.slice(text.selectionStart, text.selectionEnd);
})()"""


def definition(limit: int) -> dict[str, Any]:
    """A press of the button fails if the temperature is above the limit."""
    return {
        "triggers": [{"type": "virtualButton", "key": "press", "meta": {"label": "Measure"}, "outputIds": [["warm"]]}],
        "nodes": [
            {
                "id": "warm",
                "type": "ConditionalNode",
                "config": {"expression": f"{{{{data.temperature}}}} > {limit}"},
                "meta": {"label": "Too warm?"},
                "outputIds": [["fine"], ["stop"]],
            },
            {"id": "fine", "type": "DebugNode", "config": {"message": "All is well."}, "meta": {"label": "Fine"}},
            {
                "id": "stop",
                "type": "ThrowErrorNode",
                "config": {"messageTemplate": "It is {{data.temperature}} degrees."},
                "meta": {"label": "Give up"},
            },
        ],
        "globals": [],
    }  # fmt: skip


async def workflow(server: Server, **more: Any) -> tuple[str, str]:
    """The path of a workflow with a version `v2` that has a higher limit, and the place of its page."""
    application = await server.application()
    flow = await server.call("POST", f"{application}/flows", {"name": "vents", **definition(30), **more})
    path = f"{application}/flows/{flow['id']}"
    await server.call("POST", f"{path}/versions", {"version": "v2", "notes": "Higher.", **definition(50)})
    return path, f"#{path.replace('/flows/', '/workflows/')}"


async def test_a_failed_run_is_found_understood_and_replayed(server: Server, console: ConsolePage) -> None:
    path, place = await workflow(server)
    await console.go(place)
    await console.at("link", re.compile("^Too warm")).click()
    await console.sees("{{data.temperature}} > 30")
    await console.at("button", "Measure").click()
    await console.at("textbox", re.compile("Payload")).fill('{"temperature": 41}')
    await console.at("button", "Press").click()
    await console.sees("Pressed.")
    await console.at("link", "Runs").click()
    await console.sees("Give up: It is 41 degrees.")
    await console.at("region", "Runs").at("link", nth=0).click()
    await console.sees("The node Give up failed with Error: It is 41 degrees.")
    await console.at("link", re.compile("^Give up.*failed here")).shown()
    await console.at("link", re.compile("^Fine.*not visited")).shown()
    await console.at("button", "Replay").click()
    await console.at(css="dialog").at("combobox", "Version").choose("v2")
    await console.at(css="dialog").at("button", "Replay").click()
    await console.sees("The replay has ended: completed")
    await console.at("link", "Open the new run").click()
    await console.at("link", re.compile("^Fine.*visited 1 time")).shown()
    await console.sees("All is well.")

    async def two_failed() -> bool:
        return bool((await server.call("GET", f"{path}/runs?outcome=failed"))["totalCount"] == 2)

    async with console.hidden():  # nothing tells the page that the run has ended
        await console.at("button", "Replay").click()
        await console.at(css="dialog").at("button", "Replay").click()
        await console.sees("The new run has not ended yet.")
        await console.soon(two_failed, "two failed runs")
    await console.sees("The replay has ended: failed")


async def test_all_failed_runs_are_replayed_in_parts(chromium: None, tmp_path: Path) -> None:
    async with (
        running_server(tmp_path / "data", limits={"replayed_runs_max": 2}) as server,
        console_page(server.url, tmp_path, login=await login_of(server)) as console,
    ):
        path, place = await workflow(server)
        for degrees in (31, 32, 33):
            press = {"key": "press", "payload": {"temperature": degrees}}
            await server.call("POST", f"{path}/virtualButton", press)
        await console.go(f"{place}/errors")
        await console.sees("3 messages that differ in numbers only")
        for escape, said in (
            (True, "2 runs queued again. The later ones were not"),
            (False, "3 runs queued again."),
        ):
            await console.at("button", "Replay the failed runs").click()
            await console.at(css="dialog").at("combobox", "Version").choose("v2")
            async with console.held("*/runs/replay") as asked:
                await console.at(css="dialog").at("button", "Replay").click()
                await asked()
                if escape:
                    await console.press("Escape")
                    await console.at(css="dialog").gone()
            await console.sees(said)
        calls = [each for each in console.requests if each.endswith("/runs/replay")]
        assert len(calls) == 1 + 2


async def test_workflows_are_imported_listed_and_exported(
    server: Server, console: ConsolePage, tmp_path: Path
) -> None:
    path, place = await workflow(server, nodes=[{"id": "warm", "type": "NoSuchNode"}])
    await console.go(place)
    async with console.download() as file:
        await console.at("button", "Export").click()
        exported = await file()
    given = json.loads(exported.read_text())
    given["flows"][0]["name"] = "copy of the vents"
    exported.write_text(json.dumps(given))
    more = tmp_path / "more.json"
    timer = {"type": "timer", "config": {"seconds": 3600}}
    more.write_text(json.dumps({"name": "every hour", "enabled": False, "triggers": [timer]}))
    await console.at("navigation", "Application").at("link", "Workflows").click()
    await console.at("button", "Import").click()
    await console.at(css='dialog input[type="file"]').upload(exported, more)
    async with console.held("*/flows/import") as asked:
        await console.at(css="dialog").at("button", "Import").click()
        await asked()
        await console.press("Escape")
        await console.at(css="dialog").gone()
    await console.sees(
        "2 workflows and 1 version were imported. 1 part of them cannot run on this server as they"
    )
    await console.sees("Nodes of the type NoSuchNode do not run on this server.")
    await console.at(css="dialog").at("button", "Close").click()
    await console.sees("3 workflows")
    # All types of the palette can be chosen, also those of devices.
    await console.at("combobox", "Trigger").choose("on boot")
    await console.at("combobox", "Trigger").choose("timer")
    await console.sees("every 3600 s")
    await console.sees("1 workflow")
    await console.at("button", "Enable every hour").click()
    await console.sees("every hour is enabled.")
    listed = await server.call("GET", path.rpartition("/")[0])
    assert [each["enabled"] for each in listed["items"] if each["name"] == "every hour"] == [True]


async def test_a_draft_is_edited_tried_and_made_a_version(server: Server, console: ConsolePage) -> None:
    path, place = await workflow(server)
    await console.go(f"{place}/edit?as=json")
    text = console.at("textbox", "The draft as JSON")
    wrong = definition(60)
    wrong["nodes"][0]["outputIds"] = [["fine"], ["nowhere"]]
    await text.fill(json.dumps(wrong))
    async with console.expecting("status of 400"):
        await console.at("button", "Save").click()
        await console.sees("nodes[0].outputIds[1]: Referenced output ID nowhere does not exist.")
    await console.gives(SELECTED, '["nowhere"]')
    better = definition(60)
    better["nodes"][0]["meta"]["serial"] = LARGE
    await text.fill(json.dumps(better))
    await console.at("link", "Try before saving").click()
    await console.at("textbox", "data of the payload").fill('{"temperature": 59}')
    await console.at("button", "Run without effects").click()
    await console.sees("The run completed.")
    await console.at("link", "not saved").click()
    await console.at("button", "Name and description").click()
    await console.at(css="dialog").at("textbox", "Name").fill("vents of the barn")
    await console.at(css="dialog").at("button", "Save").click()
    await console.at("heading", "vents of the barn").shown()
    assert "somebody else" not in await console.run("document.body.innerText")
    await console.at("button", "Save").click()
    await console.sees("The draft is saved.")
    assert (await server.call("GET", path))["nodes"][0]["config"] == {
        "expression": "{{data.temperature}} > 60"
    }
    await console.go(f"{place}/edit?as=json")
    await console.reload()
    assert str(LARGE) in await text.value()
    await text.fill((await text.value()).replace("Too warm?", "Warm?"))
    await console.at("button", "Save").click()
    await console.sees("The draft is saved.")
    assert (await server.call("GET", path))["nodes"][0]["meta"] == {"label": "Warm?", "serial": LARGE}
    await console.at("link", "Versions").click()
    await console.at("button", "Compare v2").shown()
    # What others have saved since the page was opened is a part of the version.
    better["nodes"][0]["meta"]["label"] = "Hot?"
    await server.call("PATCH", path, {"nodes": better["nodes"]})
    await console.at("button", "Create a version").click()
    await console.at(css="dialog").at("textbox", "Name").fill("v3")
    await console.at(css="dialog").at("button", "Create").click()
    await console.at("button", "Make default: v3").shown()
    made = await server.call("GET", f"{path}/versions/v3")
    assert made["nodes"][0]["meta"] == {"label": "Hot?", "serial": LARGE}
    await console.at("button", "Make default: v3").click()
    await console.at(css="dialog").at("button", "Run it").click()
    await console.sees("A version runs by default")
    await console.at("button", "Compare v2").click()
    await console.sees("3 lines added, 2 removed.")
    await console.at("region", re.compile("^Lines that differ between v2")).says('> 60"')
    await console.at("link", "Try").click()
    await console.at("textbox", "data of the payload").fill('{"temperature": 61}')
    await console.at("button", "Run without effects").click()
    await console.sees("The node Give up failed with Error: It is 61 degrees.")
    await console.at("link", re.compile("^Give up.*failed here")).shown()
    await console.sees("Payload after step 1")
    assert (await server.call("GET", f"{path}/runs"))["totalCount"] == 0


async def test_a_version_with_an_ampersand_is_compared_opened_and_tried(
    server: Server, console: ConsolePage
) -> None:
    types = {"in": "deviceIdConnect", "out": "deviceIdDisconnect", "gone": "deviceIdDisconnect"}
    given = {
        "triggers": [
            {"type": type, "key": "kept", "meta": {"label": f"When {id}"}, "outputIds": [[id]]}
            for id, type in types.items()
        ],
        "nodes": [{**each, "meta": {"label": f"Say {each['id']}"}} for each in nodes(*types)],
    }
    path, place = await workflow(server, **given)
    await server.call("POST", f"{path}/versions", {"version": "a&b", **given})
    await console.go(f"{place}/versions")
    await console.at("button", "Compare a&b").click()
    await console.sees("They are the same.")
    await console.at("link", "a&b").click()
    await console.sees("About this version")
    await console.go(f"{place}/try?version=a%26b")
    # Each trigger is tried, also one that has nothing of its own.
    for id in types:
        await console.at("combobox", "Trigger").choose(f"When {id} kept")
        await console.at("button", "Run without effects").click()
        await console.at("link", re.compile(f"^Say {id}.*visited 1 time")).shown()


async def test_a_refused_save_is_told_and_can_be_made_again(server: Server, console: ConsolePage) -> None:
    large = {"id": "large", "type": "DebugNode", "config": {"serial": LARGE}}
    path = await drawn(server, console, nodes=[large])
    await add(console, "Wait")
    await server.call("PATCH", path, {"nodes": [large, {"id": "other", "type": "DebugNode"}]})
    async with console.expecting("status of 412"):
        await console.at("button", "Save").click()
        await console.sees("saved by somebody else")
    await console.at("button", "Undo all changes").click()
    await box(console, "other").shown()
    await add(console, "Wait")
    found = await saved(server, console, path)
    assert [each["type"] for each in found["nodes"]] == ["DebugNode", "DebugNode", "DelayNode"]
    assert found["nodes"][0] == large
    await console.at("button", "Undo").click()
    await console.at("link", "JSON").click()
    assert str(LARGE) in await console.at("textbox", "The draft as JSON").value()
    await console.at("link", "Picture").click()
    # It is told also after the tab was left.
    await add(console, "Timer")
    await console.at("textbox", "Seconds").fill("0")
    async with console.expecting("status of 400"):
        async with console.held("*/flows/*") as asked:
            await console.at("button", "Save").click()
            await asked()
            await console.at("link", "Runs").click()
            await console.at("link", "Picture").gone()
        await console.sees("The draft is not saved: triggers[0].config.seconds")
    await console.comes_to(re.compile("/runs$"))


async def test_errors_are_grouped_and_storage_is_changed(server: Server, console: ConsolePage) -> None:
    path, place = await workflow(server)
    for degrees in (31, 32, 33):
        press = {"key": "press", "payload": {"temperature": degrees}}
        await server.call("POST", f"{path}/virtualButton", press)
    await console.go(f"{place}/errors")
    await console.sees("3 messages that differ in numbers only")
    await console.at("link", "Last run").click()
    await console.sees("It is 33 degrees.")
    await console.at("link", "Data").click()
    await console.sees("Nothing is stored")
    await console.at("button", "Set a value").click()
    await console.at(css="dialog").at("textbox", "Key").fill("limit")
    await console.at(css="dialog").at("textbox", "Value").fill("[1, 2]")
    await console.at(css="dialog").at("button", "Save").click()
    await console.sees("1 entry")
    assert await server.call("GET", f"{path}/storage") == {"limit": [1, 2]}
    await server.call("PATCH", f"{path}/storage", {"key": "limit", "value": {"serial": LARGE, "next": None}})
    await console.reload()
    await console.sees(f"serial: {LARGE}")
    await console.at("button", "Change limit").click()
    value = console.at(css="dialog").at("textbox", "Value")
    await value.fill((await value.value()).replace('"next"', '"last"'))
    await console.at(css="dialog").at("button", "Save").click()
    await console.at(css="dialog").gone()
    assert await server.call("GET", f"{path}/storage") == {"limit": {"serial": LARGE, "last": None}}
    await server.call("PATCH", f"{path}/storage", {"key": "limit", "value": None})
    await console.reload()
    await console.at("button", "Change limit").click()
    await value.holds("null")
    await console.at(css="dialog").at("button", "Save").click()
    await console.at(css="dialog").gone()
    assert await server.call("GET", f"{path}/storage") == {"limit": None}
    await console.at("button", "Remove limit").click()
    await console.at(css="dialog").at("button", "Remove").click()
    await console.sees("Nothing is stored")


async def test_a_template_asks_for_names_and_makes_a_workflow_that_runs(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    made = {"name": "boiler", "attributes": [{"name": "temperature", "dataType": "number"}]}
    device = await server.call("POST", f"{application}/devices", made)
    await console.go(f"#{application}/workflows")
    await console.at("button", "Create a workflow", nth=0).click()
    form = console.at("dialog")
    await form.at("textbox", "Name").fill("too hot")
    await form.at("combobox", "Begin with").choose("Create an event when a value is too high")
    await form.at("searchbox", "Search Device to choose").fill("boil")
    await form.at("button", "Choose boiler").click()
    await form.at("textbox", "Attribute").fill("temperature")
    await form.at("textbox", "Highest good value").fill("80")
    await form.at("button", "Create").click()
    await console.sees("State of a device")
    for value in (79, 81, 82):
        await server.call(
            "POST", f"{application}/devices/{device['id']}/state", {"data": {"temperature": value}}
        )
    while not (found := await server.call("GET", f"{application}/events"))["items"]:
        pass
    (event,) = found["items"]
    assert (event["subject"], event["level"], event["deviceName"]) == (
        "temperature is too high",
        "warning",
        "boiler",
    )
    await console.at("link", "Runs").click()
    await console.at("link", "boiler").shown()


async def test_the_editor_connects_the_yes_and_says_what_can_never_fire(
    server: Server, console: ConsolePage
) -> None:
    path = await drawn(server, console)
    for name in ("State of a device", "If a condition holds", "Create an event"):
        await add(console, name)
    found = await saved(server, console, path)
    condition, event = found["nodes"]
    assert condition["outputIds"] == [[], [event["id"]]]
    await console.sees("the trigger never fires; give the id of a device.")
    device = await server.device(path.partition("/flows/")[0], name="pump")
    await box(console, "@0").click()
    await console.at("searchbox", "Search Device to choose").fill("pum")
    await console.at("button", "Choose pump").click()
    found = await saved(server, console, path)
    assert found["triggers"][0]["key"] == device.rpartition("/")[2]
    assert "never fires" not in await console.shows()
