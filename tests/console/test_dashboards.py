"""Dashboards in the console: made, drawn, changed, shared with a password, and read without an account."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.console.console_page import ConsolePage, console_page
from tests.console.drawing import middle
from tests.e2e.conftest import Server
from tests.e2e.test_dashboards import PASSWORD
from tests.e2e.test_reports import block
from tests.e2e.test_roles import PASSWORD as MEMBER_PASSWORD
from tests.e2e.test_roles import make_farm

pytestmark = pytest.mark.slow

Json = dict[str, Any]
LARGE = 12345678901234567890
"""A whole number that a double cannot hold."""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = f"data:image/png;base64,{PIXEL}"


async def house(server: Server) -> tuple[str, str]:
    """An application with two devices that reported; its path, and the id of the first device."""
    application = await server.application("house")
    ids = []
    for name, values in (("pump", (1, 2, 3)), ("valve", (5, 6, 9))):
        device = await server.device(application, name)
        for value in values:
            await server.call(
                "POST", f"{device}/state", {"data": {"temp": value, "label": f"48.{value},9.{value}"}}
            )
        ids.append(device.rpartition("/")[2])
    return application, ids[0]


def all_blocks(device: str, table: str) -> list[Json]:
    """A block of each type that has a look of its own."""
    temp = {"attribute": "temp"}
    one = {**temp, "deviceIds": ["{{ctx.device}}"]}
    area = {"type": "area", "y1": 2, "y2": 4, "yAxisId": "a"}
    text = "# Farm\n- one **bold** [link](https://example.com)\n<b>no</b>"
    warm = {"condition": "{{value}} > 2", "color": "orange", "label": "**warm**: {{value}}"}
    return [
        block(28, "indicator", "Lamp", {"segments": [{**temp, "deviceIds": [device]}], "conditions": [warm]}),
        block(0, "section-header", "Start", {"content": text}),
        block(2, "graph", "Course", {"segments": [temp], "decorators": [area], "precision": 1}),
        block(4, "gauge", "Newest", {"segment": one, "gaugeMin": 0, "gaugeMax": 10}),
        block(6, "pie", "Shares", {"segments": [temp]}),
        block(8, "bar", "Bars", {"segments": [temp]}),
        block(10, "map", "Places", {"attribute": "label"}),
        block(12, "device-list", "Devices", {"additionalAttributes": ["temp"]}),
        block(14, "event-list", "Events", {}),
        block(16, "device-count", "Count", {"segments": [{"id": "all devices", "query": "{}"}]}),
        block(18, "data-table", "Rows", {"dataTableId": table}),
        block(20, "image", "Picture", {"imageUrl": PICTURE}),
        block(22, "image", "Elsewhere", {"imageUrl": "https://example.com/a.png"}),
        block(24, "iframe", "Page", {"url": "javascript:alert(1)"}),
        block(26, "gauge", "Broken", {"segment": {**temp, "query": "{{ctx.q}}"}}),
    ]  # fmt: skip


async def test_a_dashboard_is_drawn_with_all_its_blocks(server: Server, console: ConsolePage) -> None:
    application, device = await house(server)
    columns = [{"name": "place", "dataType": "string", "constraint": "optional"}]
    table = (await server.call("POST", f"{application}/data-tables", {"name": "t", "columns": columns}))["id"]
    await server.call("POST", f"{application}/data-tables/{table}/rows", [{"place": "cellar"}])
    await server.call(
        "POST", f"{application}/events", {"level": "critical", "subject": "Leak", "state": "new"}
    )
    other = (await server.call("GET", f"{application}/devices?filterField=name&filter=valve"))["items"][0][
        "id"
    ]
    parameters = [
        {"name": "device", "type": "deviceId", "defaultValue": device,
         "validationConfig": {"deviceIds": [device, other]}},
        {"name": "q", "type": "string", "defaultValue": "no query"},
        {"name": "room", "type": "deviceTag", "defaultValue": {"key": "room", "value": "1"},
         "validationConfig": {"deviceTags": [{"value": "kitchen"}]}},
    ]  # fmt: skip
    body = {
        "name": "all",
        "blocks": all_blocks(device, table),
        "contextConfiguration": parameters,
        "refreshRate": 5,
    }
    made = await server.call("POST", f"{application}/dashboards", body)
    await console.go(f"#{application}/dashboards/{made['id']}")

    def at(name: str) -> Any:
        return console.at("region", name)

    await at("Start").says("Farm")
    await at("Start").says("one bold link")
    await at("Start").says("<b>no</b>")  # not as HTML
    await at("Course").at("image", re.compile(r"^Course\. temp, pump: 3\.0, temp, valve: 9\.0$")).shown()
    await at("Course").at(css=".u-series:last-child .u-value").says("9.0")
    await at("Newest").at("image", "Newest: 3 of 0 to 10").shown()
    await at("Shares").at("image", "Shares: temp, pump 25%, temp, valve 75%").shown()
    await at("Bars").says("temp, valve")
    await (
        at("Places").at("image", re.compile("^Places: places of 2 devices: 0 connected, 2 reporting")).shown()
    )
    await at("Devices").says("reporting")
    await at("Events").says("Leak")
    address = await at("Devices").at("link", "pump").attribute("href")
    assert address == f"#{application}/devices/{device}"
    await at("Count").says("2")
    await at("Rows").says("cellar")
    await at("Lamp").says("warm: 3")
    await at("Picture").at(css="img").shown()
    await at("Elsewhere").says("the console loads nothing from other sites")
    await at("Page").says("Page: javascript:alert(1)")
    await at("Page").at("link").gone()
    await at("Broken").says("query: is not JSON")
    # It is read again by itself.
    await server.call("POST", f"{application}/devices/{device}/state", {"data": {"temp": 4}})
    await at("Newest").at("image", "Newest: 4 of 0 to 10").shown()
    # A tag may have only a value. A parameter and the range are in the address.
    await console.at("combobox", "room").choose("=kitchen")
    await console.comes_to(re.compile(r"ctx.room=%3Dkitchen"))
    await console.at("combobox", "device").choose("valve")
    await at("Newest").at("image", "Newest: 9 of 0 to 10").shown()
    await console.at("combobox", "Range").choose("1 hour")
    await console.comes_to(re.compile(rf"ctx.device={other}"))
    await console.comes_to(re.compile(r"duration=3600000"))
    await console.reload()
    await at("Newest").at("image", "Newest: 9 of 0 to 10").shown()


async def test_a_dashboard_is_made_changed_and_deleted(server: Server, console: ConsolePage) -> None:
    application, _ = await house(server)
    await console.go(f"#{application}/dashboards")
    await console.sees("There are no dashboards yet")
    await console.at("button", "Create a dashboard").click()
    await console.at("textbox", re.compile("^Name")).fill("Pumps")
    await console.at("dialog").at("button", "Create").click()
    await console.sees("This dashboard has no blocks yet")
    await console.at("button", "Add a block").click()
    await console.at("combobox", "What it shows").choose("Values of devices as bars")
    await console.at("textbox", re.compile("^Title")).fill("Temperatures")
    await console.at("combobox", "Attribute").fill("temp")
    await console.at("dialog").at("button", "Add").click()
    await console.at("region", "Temperatures").says("temp, valve")
    await console.at("button", "Save").click()
    await console.at("button", "Edit as JSON").click()
    editor = console.at("textbox", "JSON")
    shown = json.loads(await editor.value())
    async with console.expecting("status of 400"):
        await editor.fill(json.dumps({**shown, "refreshRate": 1}))
        await console.at("button", "Save").click()
        await console.sees("refreshRate: ")  # the server's sentence
        await editor.fill(json.dumps({"name": "All pumps"}))
        await console.at("button", "Save").click()
        await console.sees("description: is null")
    await editor.fill(json.dumps({**shown, "name": "All pumps", "refreshRate": 30}))
    await console.at("button", "Save").click()
    await console.at("heading", "All pumps").shown()
    parameter = {"name": "serial", "type": "number", "defaultValue": LARGE}
    (dashboard,) = (await server.call("GET", f"{application}/dashboards"))["items"]
    path = f"{application}/dashboards/{dashboard['id']}"
    await server.call("PATCH", path, {"contextConfiguration": [parameter]})
    await console.reload()
    text = await editor.value()
    assert str(LARGE) in text
    await editor.fill(text.replace("30", "1e999"))
    await console.sees("1e999 is too large")
    await editor.fill(text.replace('"All pumps"', '"Every pump"'))
    await console.at("button", "Save").click()
    await console.at("heading", "Every pump").shown()
    stored = await server.call("GET", path)
    assert [each["defaultValue"] for each in stored["contextConfiguration"]] == [LARGE]
    await console.at("button", "Show the dashboard").click()
    await console.sees("every 30 s")
    await console.at("button", "Edit the blocks").click()
    await console.at("button", "Remove Temperatures").click()
    await console.at("button", "Save").click()
    await console.sees("This dashboard has no blocks yet")
    await console.at("button", "Delete").click()
    await console.at("dialog").at("button", "Delete").click()
    await console.sees("There are no dashboards yet")


async def test_a_dashboard_of_a_user_shows_several_applications(server: Server, console: ConsolePage) -> None:
    await house(server)
    await server.application("barn")
    await console.go("#/dashboards")
    await console.at("button", "Create a dashboard").click()
    await console.at("textbox", re.compile("^Name")).fill("Mine")
    await console.at("dialog").at("button", "Create").click()
    for application, count in (("house", "2"), ("barn", "0")):
        await console.at("heading", "Mine").shown()
        if application != "house":
            await console.at("button", "Edit the blocks").click()
        await console.at("button", "Add a block").click()
        await console.at("combobox", "Application").choose(application)
        await console.at("button", "Next").click()
        await console.at("combobox", "What it shows").choose("Number of devices")
        await console.at("textbox", re.compile("^Title")).fill(application)
        await console.at("dialog").at("button", "Add").click()
        await console.at("region", application).says(count)
        await console.at("button", "Save").click()
        await console.sees("The dashboard is saved.")
    await console.go("#/dashboards")
    await console.at("link", "Mine").shown()


def places(dashboard: Json) -> dict[str, list[int]]:
    """Where each block stands: column, row, width and height, by its title."""
    names = ("startX", "startY", "width", "height")
    return {each["title"]: [each[name] for name in names] for each in dashboard["blocks"]}


async def edit_blocks(console: ConsolePage) -> None:
    """Until then the page has the same blocks, which cannot be arranged."""
    await console.at("button", "Edit the blocks").click()
    await console.at("button", "Undo").shown()


async def test_blocks_are_arranged_by_mouse_and_keyboard_and_saved_at_once(
    server: Server, console: ConsolePage
) -> None:
    application, _ = await house(server)
    blocks = [
        {**block(row, "section-header", title, {"content": title}), "startX": column, "width": 4, "height": 2}
        for title, column, row in (("A", 0, 0), ("B", 4, 0), ("C", 0, 2))
    ]
    made = await server.call("POST", f"{application}/dashboards", {"name": "plan", "blocks": blocks})
    path = f"{application}/dashboards/{made['id']}"
    await console.go(f"#{path}")
    await edit_blocks(console)
    area = json.loads(
        await console.run(
            """new Promise((done) => requestAnimationFrame(() => {
                const board = document.querySelector(".board"), style = getComputedStyle(board);
                done(JSON.stringify([(board.clientWidth + parseFloat(style.columnGap)) / 8,
                    parseFloat(style.gridAutoRows) + parseFloat(style.rowGap)]));
            }))"""
        )
    )

    async def stands(title: str, place: list[int]) -> None:
        column, row, width, height = place
        script = f"""(() => {{
            const {{ gridColumn, gridRow }} = document.querySelector('section[aria-label="{title}"]').style;
            return gridColumn + ", " + gridRow;
        }})()"""
        await console.gives(script, f"{column + 1} / span {width}, {row + 1} / span {height}")

    # A moves down onto C, which moves up past it; then to the right, where B stays.
    await console.at("region", "A").drag_by(0, 2 * area[1])
    await stands("A", [0, 2, 4, 2])
    await stands("C", [0, 0, 4, 2])
    # C is made wider by its corner; B makes room.
    await console.at("region", "C").at(css="[data-resize]").drag_by(2 * area[0], 0)
    await stands("C", [0, 0, 6, 2])
    await stands("B", [4, 2, 4, 2])
    await console.at("button", "Undo").click()
    await stands("C", [0, 0, 4, 2])
    await stands("B", [4, 0, 4, 2])
    # By keys: B one row down and one column narrower; several steps are undone as one.
    await console.at("region", "B").press("ArrowDown")
    for key in ("ArrowDown", "Shift+ArrowLeft", "Shift+ArrowLeft", "ArrowRight"):
        await console.press(key)
    await stands("B", [5, 2, 2, 2])
    await console.sees("B: column 6, row 3, 2 wide, 2 high")
    await console.press("Control+z")
    await stands("B", [4, 2, 2, 2])
    await console.press("Delete")
    await console.at("region", "B").gone()
    await console.at("button", "Undo").click()
    await stands("B", [4, 2, 2, 2])
    assert places(await server.call("GET", path)) == places(made)  # nothing is stored before it is saved
    await console.press("Control+s")
    await console.sees("The dashboard is saved.")
    await console.at("button", "Edit the blocks").shown()
    stored = await server.call("GET", path)
    assert places(stored) == {"A": [0, 2, 4, 2], "B": [4, 2, 2, 2], "C": [0, 0, 4, 2]}
    # What somebody else saves meanwhile is not overwritten.
    await edit_blocks(console)
    await console.at("region", "A").press("ArrowRight")
    await server.call("PATCH", path, {"description": "other"})
    async with console.expecting("status of 412"):
        await console.at("button", "Save").click()
        await console.at("alert").shown()
    await console.at("button", "Cancel").click()
    await console.at("button", "Discard").click()
    await console.at("button", "Edit the blocks").shown()
    assert places(await server.call("GET", path)) == places(stored)
    # On a phone a finger drags a block by its grip, in a plan with lower rows.
    await console.viewport(390, 844, mobile=True)
    await console.command("Emulation.setTouchEmulationEnabled", enabled=True)
    await edit_blocks(console)
    await stands("A", [0, 2, 4, 2])
    grip = await middle(console.at("region", "A").at(css="[data-grip]"))
    for type, down in (("touchStart", 0), ("touchMove", 60), ("touchMove", 115)):
        await console.command(
            "Input.dispatchTouchEvent", type=type, touchPoints=[{"x": grip["x"], "y": grip["y"] + down}]
        )
    await console.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    await stands("A", [0, 4, 4, 2])


async def test_a_dashboard_is_shared_with_a_password(
    server: Server, console: ConsolePage, tmp_path: Path
) -> None:
    application, device = await house(server)
    gauge = block(0, "gauge", "Newest", {"segment": {"attribute": "temp", "deviceIds": [device]}})
    made = await server.call("POST", f"{application}/dashboards", {"name": "Pumps", "blocks": [gauge]})
    place = f"{application}/dashboards/{made['id']}"
    await console.go(f"#{place}")
    await console.at("button", "Share").click()
    async with console.expecting("status of 400"):
        await console.at("dialog").at("textbox", re.compile("^Password")).fill("short")
        await console.at("button", "Make it public").click()
        await console.sees("password: has 5 characters; give 12 to")
    await console.at("dialog").at("textbox", re.compile("^Password")).fill(PASSWORD)
    await console.at("button", "Make it public").click()
    await console.sees("This dashboard is public, with a password.")
    link = await console.at("dialog").at("link").text()
    assert link == f"{server.url}/console#/shared/{made['id']}"
    async with (
        console_page(
            server.url, tmp_path / "reader", place=link.removeprefix(f"{server.url}/console")
        ) as reader,
        reader.expecting("status of 401", "status of 401", "status of 404"),
    ):
        await reader.viewport(390, 844, mobile=True)
        await reader.sees("This dashboard has a password")
        await reader.at("textbox", re.compile("^Password")).fill("wrong")
        await reader.press("Enter")
        await reader.sees("password: is not the password of this dashboard.")
        await reader.at("textbox", re.compile("^Password")).fill(PASSWORD)
        await reader.press("Enter")
        await reader.at("region", "Newest").says("3")
        await reader.at("button", "Edit the blocks").gone()
        assert await reader.run("document.documentElement.scrollWidth <= innerWidth")
        await console.at("button", "Make it private").click()
        await reader.at("button", "Read again").click()
        await reader.sees("There is no dashboard")
        await reader.reload()
        await reader.sees("There is no public dashboard at this link.")


async def test_who_only_reads_is_offered_no_change_of_a_dashboard(server: Server, page: ConsolePage) -> None:
    farm = await make_farm(server)
    device = await server.device(farm.barn, "scale")
    blocks = [block(0, "event-list", "Events", {})]
    made = await server.call("POST", f"{farm.barn}/dashboards", {"name": "Barn", "blocks": blocks})
    await farm.join("ann", "view")
    await page.log_in("ann@example.com", MEMBER_PASSWORD)
    await page.go(f"#{farm.barn}/dashboards/{made['id']}")
    await page.at("region", "Events").says("None.")
    await page.sees("You may read this application and change nothing")
    for name in ("Share", "Edit the blocks", "Edit as JSON", "Change", "Delete"):
        await page.at("button", name).gone()
    # Not by the address of the editor either.
    await page.go(f"#{farm.barn}/dashboards/{made['id']}?edit=blocks")
    await page.at("button", "Save").gone()
    await page.at("region", "Events").says("None.")
    await page.go(f"#{device}")
    await page.at("heading", "scale").shown()
    await page.at("button", "Make a dashboard").gone()
