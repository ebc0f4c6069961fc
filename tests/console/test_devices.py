"""The devices: the list, the states and the settings of one, and recipes."""

from __future__ import annotations

import csv
import json
import re

import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow

SHOWN = 50
"""The devices on a page of the list."""
TABLE_TOP = "document.querySelector('table').getBoundingClientRect().top + scrollY"
TYPED = """(() => {
    const field = document.querySelector("[data-search]");
    const type = (letter) => {
        field.value += letter;
        field.dispatchEvent(new Event("input", { bubbles: true }));
    };
    let frames = 6;
    const next = () => (frames-- ? requestAnimationFrame(next) : type("n"));
    const replace = history.replaceState;
    history.replaceState = (...given) => {
        history.replaceState = replace;
        history.replaceState(...given);
        type("o");
        next();
    };
    type("n");
})()"""
"""Types `non`: the second letter when the address gets the first one, the third when that is drawn."""
DECEMBER = "2024-12-01T00:00:00.000Z"


async def test_the_list_shows_health_and_the_values_that_are_chosen(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    tags = [{"key": "floor", "value": "1"}, {"key": "command", "value": "switch on:boolean"}]
    pump = await server.device(application, "pump", tags=tags)
    await server.device(application, "spare")
    await server.call("POST", f"{pump}/state", {"data": {"temp": 21.5, "on": True, "label": "auto"}})
    await console.go(f"#{application}/devices")
    first, second = (console.at(css="tbody tr", nth=number) for number in range(2))
    for text in ("Reporting", "pump", "21.5", "auto", "true"):
        await first.says(text)
    await console.gives(
        "[...document.querySelectorAll('td .tag')].map((each) => each.innerText)", ["floor=1"]
    )
    for text in ("Never seen", "spare", "never"):
        await second.says(text)
    await console.at("button", "Values").click()
    for name in ("temp", "on"):
        await console.at("dialog").at("checkbox", name).click()
    await console.at("dialog").at("button", "Show").click()
    await console.comes_to(re.compile(r"values=label$"))
    await console.gives(
        "[...document.querySelectorAll('th')].map((each) => each.innerText).includes('temp')", False
    )
    await first.says("auto")
    await console.go(f"#{application}/devices?show=silent")
    await console.sees("Nothing matches.")
    await console.go(f"#{application}/devices?show=neverSeen")
    await console.sees("1 device")
    await first.says("spare")  # with the values that were chosen last
    await console.gives(
        "[...document.querySelectorAll('th')].map((each) => each.innerText).includes('label')", True
    )
    await console.go(f"#{pump}")
    await console.at(css=".lead").says("Reporting")


async def test_devices_are_found_and_changed_together(server: Server, console: ConsolePage) -> None:
    async def typed() -> bool:
        return "filter=non" in await console.place()

    application = await server.application()
    await console.go(f"#{application}/devices/%zz")
    await console.sees("There is no such page")
    await console.go(f"#{application}/devices")
    await console.sees("There are no devices yet")
    await console.at(css=".empty summary").click()
    await console.sees(f"curl -s -X POST '{server.url}{application}/devices'")
    for number in range(SHOWN + 2):
        await server.device(
            application, f"pump-{number:02}", tags=[{"key": "floor", "value": str(number % 2)}]
        )
    mast = await server.device(application, "mast", deviceClass="gateway")
    await server.call("POST", f"{mast}/setConnectionStatus", {"status": "connected"})
    await console.go(f"#{application}/devices?page=9")
    await console.sees("Page 2 of 2")
    await console.go(f"#{application}/devices?sort=lastUpdated&direction=desc")
    await console.at("searchbox", "Search devices").fill("zzz")
    await console.sees("Nothing matches.")
    async with console.held("*/devices?*") as asked:
        await console.at("searchbox", "Search devices").fill("")
        await asked()
        assert "There are no devices yet" not in await console.shows()
        await console.gives("document.activeElement.matches('[data-search]')", True)
    await console.run(TYPED)
    await console.soon(typed, "three letters in the address")
    await console.at("searchbox", "Search devices").fill("")
    await console.sees(f"{SHOWN + 3} devices")
    await console.at("link", "Connected").click()
    await console.sees("1 device")
    await console.sees("gateway")
    await console.at("link", "Never seen").click()
    await console.sees(f"{SHOWN + 2} devices")
    await console.at("cell", "pump-00").shown()  # by name again, from the first
    await console.at("textbox", "Tags, such as floor=1, room").fill("floor=0")
    await console.press("Enter")
    await console.sees(f"{SHOWN // 2 + 1} devices")
    await console.at("searchbox", "Search devices").fill("PUMP-0 ")
    await console.sees("5 devices")
    await console.gives("document.querySelector('[data-search]').value", "PUMP-0 ")
    before = await console.run(TABLE_TOP)
    await console.at("checkbox", "Select all on this page").click()
    await console.sees("5 devices selected")
    assert await console.run(TABLE_TOP) == before  # the next row to select is where it was
    await console.at("button", "Change tags").click()
    await console.at("dialog").at("textbox", re.compile("^Set")).fill("room=a\nfloor=2")
    await console.at("dialog").at("button", "Change 5 devices").click()
    await console.sees("5 devices changed")
    await console.sees("Nothing matches.")
    found = await server.call("GET", f'{application}/devices?query={{"tags":{{"floor":"2","room":"a"}}}}')
    assert [each["name"] for each in found["items"]] == [f"pump-{number:02}" for number in range(0, 10, 2)]


async def test_a_query_is_written_with_help_and_all_that_match_are_deleted(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    for number in range(SHOWN + 2):
        await server.device(application, f"pump-{number:02}")
    await server.device(application, "mast")
    await console.go(f"#{application}/devices")
    await console.at(css=".query-box > summary").click()
    await console.at("textbox", "Query").fill('{"nam": "mast"}')
    async with console.expecting("status of 400"):
        await console.at("button", "Apply").click()
        await console.sees("query.nam:")
        await console.at(css="tbody tr").gone()
    await console.at("button", "Name begins with").click()
    await console.at("button", "Apply").click()
    await console.sees(f"{SHOWN + 2} devices")
    async with console.held("*%24contains*") as asked:
        await console.at("searchbox", "Search devices").fill("u*p")
        await asked()
    await console.settled()
    await console.at("checkbox", "Select all on this page").click()
    await console.at("button", f"Select all {SHOWN + 2} devices that match").click()
    await console.at("button", "Delete").click()
    await console.at("dialog").at("textbox").fill(str(SHOWN + 2))
    await console.at("dialog").at("button", f"Delete {SHOWN + 2} devices").click()
    await console.sees(f"{SHOWN + 2} devices deleted.")
    assert [each["name"] for each in (await server.call("GET", f"{application}/devices"))["items"]] == [
        "mast"
    ]
    await console.at("link", "Deleted").click()
    await console.at("checkbox", "Select this row").click()
    await console.at("button", "Restore").click()
    await console.at("dialog").at("button", "Restore 1 device").click()
    await console.sees("1 device restored.")
    await console.at("link", "All").click()
    await console.at("button", "Remove the query").click()
    await console.at(css="tbody tr").counts(1)
    await console.at("searchbox", "Search devices").fill("")
    await console.at(css="tbody tr").counts(2)


async def test_states_are_sent_read_exported_and_removed(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    device = await server.device(application)
    await server.call("POST", f"{device}/state", {"time": DECEMBER, "data": {"temp": 1}})
    await console.go(f"#{device}/states")
    await console.at("button", "Send a state").click()
    dialog = console.at("dialog")
    await dialog.at("textbox", re.compile("^temp")).fill("warm")
    async with console.expecting("status of 400"):
        await dialog.at("button", "Send").click()
        await console.sees("temp: ")
    await dialog.at("textbox", re.compile("^temp")).fill("1234567")
    await dialog.at("button", "Send").click()
    await console.sees("2 states")
    await console.sees("1,234,567")
    steps = await console.run("history.length")
    await console.run("document.querySelector('input[type=\"datetime-local\"]').focus()")
    await console.type("02022025")
    await console.press("Tab")
    await console.type("103059a")
    await console.sees("1 state")
    await console.gives("history.length", steps + 1)
    await console.comes_to(re.compile("until=1738488659000$"))
    await console.press("Backspace")  # a part of the time is missing
    await console.press("Enter")
    await console.settled()
    await console.comes_to(re.compile("until=1738488659000$"))
    await console.at("button", "Newest").click()
    await console.sees("2 states")
    await console.at("cell", "1,234,567").shown()
    await console.at(css="details.card summary").click()
    await console.at("checkbox", "temp").click()
    await console.at("cell", "1,234,567").gone()
    await console.comes_to(re.compile("columns=label%2Con$"))
    await console.at("checkbox", "temp").click()
    await console.at("button", "Download as CSV").click()
    await dialog.at("button", "Make the file").click()
    async with console.download() as file:
        await console.at("link", re.compile("^Download")).click()
        rows = list(csv.DictReader((await file()).read_text().splitlines()))
    assert [row["temp"] for row in rows] == ["1", "1234567"]
    await dialog.at("button", "Close").click()
    await console.go(f"#{device}/settings")
    await console.at("button", "Remove data").click()
    await dialog.at("textbox", re.compile("^Attributes")).fill("temp")
    await dialog.at("button", "Go on").click()
    await dialog.at("textbox").fill("pump")
    await dialog.at("button", "Remove data").click()
    await dialog.at("status").says("completed")
    await dialog.at("button", "Close").click()
    await console.go(f"#{device}")
    await console.sees("This device has not reported yet")


async def test_a_device_is_declared_changed_watched_and_deleted(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await console.go(f"#{application}/devices")
    made = [{"name": "level", "dataType": "number", "attributeTags": {"unit": "m³/h"}}]
    device = await server.device(application, attributes=made)
    await console.at("cell", "pump").click()
    await console.sees("This device has not reported yet")
    dialog = console.at("dialog")
    await console.go(f"#{device}/settings")
    await console.at("button", "Declare an attribute").click()
    await dialog.at("textbox", "Name").fill("label")
    await dialog.at("combobox", "Type").choose("string")
    await dialog.at("button", "Declare").click()
    await dialog.gone()
    await console.at(css="tbody tr", nth=0).says("level number m³/h")
    row = console.at(css="tbody tr", nth=1)
    await row.at("button", "Change label").click()
    await dialog.at("textbox", "Name").fill("tag")
    await dialog.at("textbox", "Unit").fill("kg")
    await dialog.at("button", "Save").click()
    await row.says("tag string kg")
    found = (await server.call("GET", device))["attributes"]
    assert [(each["name"], each["dataType"], each["attributeTags"]) for each in found] == [
        ("level", "number", {"unit": "m³/h"}),
        ("tag", "string", {"unit": "kg"}),
    ]
    await server.call("POST", f"{device}/state", {"data": {"level": 7.25}})
    await console.go(f"#{device}")
    await console.at(css='[data-attribute="level"]').says("7.25 m³/h")
    await console.at(css='[data-attribute="tag"]').says("none never reported")
    await console.at(css=".lead").says("Reporting expected every")
    await server.call("POST", f"{device}/state", {"data": {"tag": "north", "level": 8}})
    await console.at(css='[data-attribute="tag"]').says("north kg")
    await console.at("image", "level in the last six hours").shown()
    await console.go(f"#{device}/settings")
    await console.at("button", "Delete an attribute").click()
    await dialog.at("combobox", "Attribute").choose("tag")
    await dialog.at("button", "Go on").click()
    await dialog.at("button", "Delete").click()
    await row.gone()
    await console.at("link", "Actor").click()
    await console.sees("30 of 30")
    await console.sees("send_state")
    await console.at("link", "Payloads").click()
    await console.sees("For each day (UTC)")
    await console.at("link", "Settings", nth=1).click()
    await console.at("textbox", re.compile("^Tags")).fill("floor=1")
    await console.at("button", "Save", nth=0).click()
    await console.sees("The device is changed.")
    await console.sees("floor=1")
    await console.at("button", "Delete this device").click()
    await dialog.at("textbox").fill("pump")
    await dialog.at("button", "Delete").click()
    await console.sees("There are no devices yet")


async def test_tags_that_are_not_changed_stay_as_they_are(server: Server, console: ConsolePage) -> None:
    tags = [
        {"key": "note", "value": "line 1\nsite=north"},
        {"key": "pad", "value": " x "},
        {"key": "quoted", "value": '"a\\nb"'},
        {"key": "word", "value": '"on"'},
    ]
    device = await server.device(await server.application(), tags=tags)
    await console.go(f"#{device}/settings")
    field = console.at("textbox", re.compile("^Tags"))
    await field.shown()
    text = await console.run("document.querySelector('textarea[name=tags]').value")
    assert text.split("\n")[0] == r'note="line 1\nsite=north"'
    await field.fill(f"{text}\nfloor=1")
    await console.at("button", "Save", nth=0).click()
    await console.sees("floor=1")
    found = await server.call("GET", device)
    assert found["tags"] == [*tags, {"key": "floor", "value": "1"}]


async def test_many_devices_are_created_from_a_recipe(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await console.go(f"#{application}/recipes")
    await console.at("button", "Create a recipe", nth=0).click()
    dialog = console.at("dialog")
    await dialog.at("textbox", "Name of the recipe").fill("Pump")
    await dialog.at("textbox", re.compile("^Attributes")).fill('[{"name": "level", "dataType": "number"}]')
    await dialog.at("button", "Create").click()
    await console.at("button", "Edit as JSON").click()
    (recipe,) = (await server.call("GET", f"{application}/device-recipes"))["items"]
    path = f"{application}/device-recipes/{recipe['id']}"
    gateway = await server.device(application, "mast", deviceClass="gateway")
    change = {"description": "by somebody else", "gatewayId": gateway.rpartition("/")[2]}
    await server.call("PATCH", path, change)
    editor = dialog.at("textbox", "JSON")
    await editor.fill((await editor.value()).replace('"Pump"', '"Valve"'))
    await dialog.at("button", "Save").click()
    await console.at("heading", "Valve").shown()
    recipe = await server.call("GET", path)
    assert (recipe["name"], recipe["description"]) == ("Valve", "by somebody else")
    assert len(recipe["gatewayId"]) == 24
    await console.at("button", "Edit as JSON").click()
    shown = json.loads(await editor.value())
    del shown["gatewayId"], shown["tags"]
    await editor.fill(json.dumps(shown))
    async with console.expecting("status of 400"):
        await dialog.at("button", "Save").click()
        await dialog.at("alert").says("tags: ")
    await editor.fill(json.dumps({**shown, "tags": []}))
    await dialog.at("button", "Save").click()
    await dialog.gone()
    recipe = await server.call("GET", path)
    assert recipe.get("gatewayId") is None
    await console.at("textbox", "CSV with a header").fill('floor, label,"a, b"\n1,pump-1,\n2,pump-2,,3')
    await console.at("combobox", "Column of the descriptions").choose("a, b")
    await console.at("combobox", "Column of the names").choose("label")
    await console.at("button", "Create devices").click()
    await console.sees("1 device created, 1 line refused")
    await console.sees("The line has 4 fields, and the header has 3.")
    (made,) = (await server.call("GET", f"{application}/devices?filterField=name&filter=pump-*"))["items"]
    assert (made["name"], made["tags"][1]) == ("pump-1", {"key": "floor", "value": "1"})
    assert made["tags"][0] == {"key": "DeviceRecipe", "value": "Valve"}
    await console.at("button", "Some that are all the same").click()
    await console.at("textbox", "Number of devices").fill("1")
    await console.at("checkbox", "With an access key for each device").click()
    await console.at("button", "Create devices").click()
    await console.sees("The secrets are shown now and never again.")
    newest = console.at(css='figure[aria-label="The lines with the ids of the devices"] pre')
    secrets = await newest.text()
    await console.at("textbox", "Number of devices").fill("x")
    async with console.expecting("status of 400"):
        await console.at("button", "Create devices").click()
        await console.at("alert").says("count")
    assert await newest.text() == secrets
    await console.at("checkbox", "With an access key for each device").click()
    await console.at("textbox", "Number of devices").fill("101")
    await console.at("button", "Create devices").click()
    await dialog.at("status").says("completed")
    assert (await server.call("GET", f"{application}/devices?perPage=1"))["totalCount"] == 104
