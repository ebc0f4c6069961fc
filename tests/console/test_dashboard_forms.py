"""Blocks of dashboards are configured by forms with a preview: a board of six blocks, made as a person makes it."""

from __future__ import annotations

import re

import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow

ATTRIBUTES = [
    {"name": "load", "dataType": "number"},
    {"name": "mode", "dataType": "string"},
    {"name": "pressure", "dataType": "number"},
]


async def works(server: Server) -> str:
    """An empty dashboard of an application with two devices that reported; its path."""
    application = await server.application("works")
    for name, load in (("boiler", 60), ("kiln", 90)):
        device = await server.device(application, name, attributes=ATTRIBUTES)
        for mode in ("idle", "on"):
            state = {"load": load, "mode": mode, "pressure": 2.345}
            await server.call("POST", f"{device}/state", {"data": state})
    made = await server.call("POST", f"{application}/dashboards", {"name": "Works"})
    return f"{application}/dashboards/{made['id']}"


async def begin(console: ConsolePage, kind: str, title: str, attribute: str = "") -> None:
    """Open the form of a new block, and fill in what all have."""
    await console.at("button", "Add a block").click()
    await console.at("combobox", "What it shows").choose(kind)
    await console.at("textbox", re.compile("^Title")).fill(title)
    if attribute:
        await console.at("combobox", "Attribute").fill(attribute)


async def add(console: ConsolePage, title: str) -> None:
    await console.at("dialog").at("button", "Add").click()
    await console.at(css="dialog").gone()
    await console.at("region", title).shown()


async def test_a_board_of_six_blocks_is_made_with_forms(server: Server, console: ConsolePage) -> None:
    path = await works(server)
    await console.go(f"#{path}?edit=blocks")
    preview = console.at(css=".block-preview")
    # A dial of one device, chosen by its name, with a unit and thresholds that have words.
    await begin(console, "Newest value on a dial", "Load of the kiln", "load")
    await console.at("searchbox", "Search Devices to add").fill("kil")
    await console.at("button", "Add kiln").click()
    await console.at("textbox", re.compile("^Unit")).fill("%")
    await console.at("button", "Add a threshold").click()
    await preview.says("High 90 %")
    await preview.at("image", "Load of the kiln: 90 % of 0 to 100 %").shown()
    # What the server refuses is said in the form.
    await console.at("textbox", re.compile("^Unit")).fill("x" * 17)
    async with console.expecting("status of 400"):
        await preview.says("blocks[0].config.unit")
    await console.at("textbox", re.compile("^Unit")).fill("%")
    await add(console, "Load of the kiln")
    await begin(console, "Newest value and its course", "Pressure", "pressure")
    await console.at("textbox", re.compile("^Decimals")).fill("1")
    await preview.says("2.3 pressure, boiler")
    await add(console, "Pressure")
    await begin(console, "States over time", "Modes", "mode")
    await preview.at("image", "mode, boiler: now on").shown()
    await add(console, "Modes")
    await begin(console, "Values of devices as bars", "Loads", "load")
    await console.at("textbox", re.compile("^Unit")).fill("%")
    await add(console, "Loads")
    await begin(console, "Events", "Open events")
    await add(console, "Open events")
    # By the keyboard alone: n opens the form, Enter in a field adds the block.
    await console.at("region", "Modes").press("n")
    await console.at("combobox", "What it shows").choose("Values over time")
    await console.at("combobox", "Attribute").fill("load")
    await console.press("Enter")
    await console.at(css="dialog").gone()
    await console.at("region", "graph").press("Enter")
    await console.at("textbox", re.compile("^Title")).fill("Course")
    await console.at("combobox", "Range").choose("last 6 hours")
    await console.press("Enter")
    await console.at(css="dialog").gone()
    await console.at("region", "Course").press("ArrowDown")
    await console.press("Control+s")
    await console.sees("The dashboard is saved.")
    # A percentage is a share of 100, not of the largest bar.
    await console.at("region", "Loads").says("load, kiln 90 %")
    await console.gives("document.querySelector('.bars li:last-child .bar span').style.width", "90%")
    stored = (await server.call("GET", path))["blocks"]
    dial, spark, modes, loads, events, course = (each["config"] for each in stored)
    assert (dial["gaugeType"], dial["unit"], dial["gaugeMin"], dial["gaugeMax"]) == ("dial", "%", 0, 100)
    assert dial["thresholds"] == [
        {"color": "#4ba35d", "label": "OK"},
        {"value": 80, "color": "#d9962b", "label": "High"},
    ]
    assert len(dial["segment"]["deviceIds"]) == 1
    assert (spark["displayType"], spark["precision"]) == ("sparkline", 1)
    assert (modes["displayType"], modes["segments"]) == ("timeline", [{"attribute": "mode"}])
    assert loads["unit"] == "%"
    assert events["query"] == '{"state": {"$ne": "resolved"}}'
    assert (course["duration"], course["segments"]) == (6 * 3_600_000, [{"attribute": "load"}])


async def test_a_block_without_a_form_is_edited_as_json(server: Server, console: ConsolePage) -> None:
    path = await works(server)
    frame = {"blockType": "iframe", "startX": 0, "startY": 0, "width": 4, "height": 2, "title": "Page"}
    await server.call("PATCH", path, {"blocks": [frame]})
    await console.go(f"#{path}?edit=blocks")
    await console.at("button", "Edit Page").click()
    editor = console.at("textbox", "The block as JSON")
    text = await editor.value()
    await editor.fill(
        text.replace('"title": "Page"', '"title": "Own page", "config": {"url": "https://example.com"}')
    )
    await console.at("button", "Apply").click()
    await console.at("region", "Own page").says("Page: https://example.com")
    await console.at("button", "Save").click()
    await console.sees("The dashboard is saved.")
    assert (await server.call("GET", path))["blocks"][0]["config"] == {"url": "https://example.com"}
