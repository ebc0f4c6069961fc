"""What the role of a member does not allow is not offered, on any page of the application."""

from __future__ import annotations

import re
from contextlib import aclosing
from pathlib import Path
from typing import Final

import pytest

from tests.console.console_page import ConsolePage, console_page, login_of
from tests.console.demo_server import DemoServer
from tests.console.tour import tour
from tests.e2e.conftest import Server
from tests.e2e.test_roles import PASSWORD, Farm, make_farm

pytestmark = pytest.mark.slow

OFFERED: Final = """[...document.querySelectorAll("main :is(button, a.button, input[type=file])")]
    .filter((each) => each.checkVisibility() && !each.closest("th"))
    .map((each) => (each.getAttribute("aria-label") || each.innerText || each.type).trim())"""
"""The buttons of a page but those that order a table, and its fields for files."""
READING: Final = re.compile(
    r"Another condition|Busiest|Clear|Compare .*|Copy( the id)?|Download.*|Export.*|Fit|Fullest mailbox|Larger|Smaller"
    r"|Last used|List|Picture|Load again|Most refused|Most restarts|Oldest message|Notify me .*|Sound .*|Older"
    r"|One chart|Own|Pause|Read again|Recipes|Show .*|Subscribe|Values|Write as JSON|Zoom .*|\d+ (min|h|d|year)"
)
"""Buttons that change nothing, and those that change only what the page shows."""


@pytest.mark.timeout(600)
async def test_no_page_offers_a_change_to_who_only_reads(
    chromium: None, demo: DemoServer, tmp_path: Path
) -> None:
    org, application = f"/orgs/{demo.ids['orgId']}", demo.application
    body = {"destinationType": "organization", "destinationId": org[6:], "applicationIds": [application[14:]]}
    await demo.server.call("PATCH", "/me/transferResources", body)
    await Farm(demo.server, org, application, application).join("ann", "view")
    login = await login_of(demo.server, "ann@example.com", PASSWORD)
    found, pages = {}, 0
    async with (
        console_page(demo.server.url, tmp_path / "page", login=login) as page,
        aclosing(tour(page, demo)) as stops,
    ):
        async for stop in stops:
            if stop.place == "#/organizations":
                break  # all pages of the application are before it
            if application in stop.place:
                names = await page.run(OFFERED)
                found[stop.name] = [name for name in names if not READING.fullmatch(name.replace("\n", " "))]
                pages += 1
    assert pages > 50
    assert {name: names for name, names in found.items() if names} == {}


async def test_who_may_not_manage_an_application_is_offered_no_more_than_changes(
    server: Server, page: ConsolePage
) -> None:
    farm = await make_farm(server)
    attributes = [{"name": "level", "dataType": "number"}]
    recipe = {"name": "Tank", "attributes": attributes}
    recipe_id = (await server.call("POST", f"{farm.barn}/device-recipes", recipe))["id"]
    key = (await server.call("POST", f"{farm.barn}/keys", {"name": "of the barn"}))["id"]
    await farm.join("ann", "collaborate")
    await page.log_in("ann@example.com", PASSWORD)
    await page.go(f"#{farm.barn}/keys/{key}")
    await page.at("heading", "of the barn").shown()
    for name in ("Change", "Set inactive", "Delete"):
        await page.at("button", name).gone()
    await page.go(f"#{farm.barn}/settings")
    await page.at("button", "Save").shown()
    for name in ("Transfer to another owner", "Delete this application"):
        await page.at("button", name).gone()
    await page.go(f"#{farm.barn}/settings/copies")
    await page.at("button", "Clone").click()
    owner = page.at("dialog").at("combobox", "Owner of the clone")
    await owner.says("your account")
    assert await owner.text() == "your account"
    await page.at("dialog").at("button", "Clone").click()
    await page.at("dialog").gone()
    await page.sees("barn was cloned.")
    found = await server.call("GET", "/applications?filterField=name&filter=barn", token=farm.tokens["ann"])
    assert {each["ownerId"] for each in found["items"]} == {farm.org_id, farm.ids["ann"]}

    await page.go(f"#{farm.barn}/recipes/{recipe_id}")
    await page.at("button", "Create devices").shown()
    await page.at("checkbox", "With an access key for each device").gone()
    await page.go(f"#{farm.barn}/devices/add")
    await page.at("textbox", "Name").fill("tank")
    await page.at("combobox", "Recipe").choose("Tank")
    await page.at("button", "Create the device").click()
    await page.sees("tank is created, without access keys: your role does not allow them.")
    await page.at("heading", "tank").shown()
    await page.go(f"#{farm.barn}/devices/add")
    await page.at("button", "Many from a recipe").click()
    await page.at("textbox", "How many").fill("2")
    await page.at("button", "Create devices").click()
    await page.sees("2 devices created, without access keys: your role does not allow them.")
    await page.at("link", "pump-02").shown()

    owner = page.at("dialog").at("combobox", "Owner")
    for role, offered in (("collaborate", "your account"), ("edit", "your account farm")):
        await farm.change("ann", role=role)
        await page.go("#/applications")
        await page.at("button", "From a bundle").click()
        await owner.shown()
        assert (await owner.text()).split() == offered.split()
        await page.at("dialog").at("button", "Cancel").click()
