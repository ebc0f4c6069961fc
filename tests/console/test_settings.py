"""The settings of an application in the console, its copies and its end."""

from __future__ import annotations

import re

import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow


async def test_settings_readme_and_globals_are_changed(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await console.go(f"#{application}/settings")
    await console.at("textbox", "Name").fill("barn")
    await console.at("textbox", "Description").fill("Where the cows are")
    await console.at("button", "Save").click()
    await console.sees("The settings are saved")
    stored = await server.call("GET", application)
    assert (stored["name"], stored["description"]) == ("barn", "Where the cows are")

    await console.at("link", "Readme").click()
    await console.at("button", "Write").click()
    text = "# Barn\n\nAsk **Ann**. <img src=x>\n\n- one\n- two"
    await console.at("textbox", re.compile("^Text")).fill(text)
    await console.at("button", "Save").click()
    await console.at("heading", "Barn").shown()
    await console.sees("<img src=x>")
    await console.at(css=".markdown li").counts(2)

    await console.at("link", "Globals").click()
    await console.at("button", "Create a global").click()
    await console.at("textbox", "Key").fill("limit")
    await console.at("textbox", "Value").fill("21.5")
    await console.at("button", "Save").click()
    await console.at("cell", "21.5").shown()
    await console.at("button", "Create a global").click()
    await console.at("textbox", "Key").fill("limit")
    await console.at("textbox", "Value").fill("22")
    await console.at("button", "Save").click()
    await console.sees("there is a global limit already")
    await console.at("button", "Cancel").click()
    other = [{"key": "limit", "description": "of the barn", "cloudOnly": True}]
    await server.call("PATCH", f"{application}/globals", other)
    await console.at("button", "Change limit").click()
    await console.at("textbox", "Value").fill('{"max": 8}')
    await console.at("button", "Save").click()
    await console.at("cell", '{"max": 8}').shown()
    (stored,) = (await server.call("GET", application))["globals"]
    assert stored == {"json": '{"max": 8}', **other[0]}
    await console.at("button", "Delete limit").click()
    await console.at("dialog").at("button", "Delete").click()
    await console.sees("There are no globals yet")


async def test_a_time_keeps_its_milliseconds(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await server.call("PATCH", application, {"expUserTokenCutoff": "2026-05-01T10:20:30.456Z"})
    await console.go(f"#{application}/settings")
    field = console.at(css='input[type="datetime-local"]')
    await field.holds("2026-05-01T12:20:30.456")
    assert await field.attribute("step") == "0.001"
    await console.run("""{
        const field = document.querySelector('input[type="datetime-local"]');
        field.value = "2026-05-01T12:21:00.456";
        field.dispatchEvent(new Event("input", { bubbles: true }));
    }""")
    await console.at("button", "Save").click()
    await console.sees("The settings are saved")
    stored = await server.call("GET", application)
    assert stored["expUserTokenCutoff"] == "2026-05-01T10:21:00.456Z"
    await field.fill("")  # deletes one part of it
    await console.at("button", "Save").click()
    await console.sees("expUserTokenCutoff: the date or the time is not complete")
    assert (await server.call("GET", application))["lastUpdated"] == stored["lastUpdated"]


async def test_an_application_is_exported_imported_and_deleted(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await server.device(application, "cow 7")
    await console.go(f"#{application}/settings/copies")
    await console.at("button", "Export").click()
    await console.at("checkbox", re.compile("^With its devices")).click()
    await console.at("dialog").at("button", "Export").click()
    async with console.download() as file:
        await console.at("link", "Download").click()
        bundle = await file()

    await console.at("button", "Close").click()
    for only_checked, said in ((True, "can be imported. Nothing was changed."), (False, "was imported.")):
        await console.at("button", "Import a bundle").click()
        form = console.at("dialog")
        await form.at(css='input[type="file"]').upload(bundle)
        await form.at("combobox").choose("keep the one that is there")
        if only_checked:
            await form.at("checkbox", "Only check it").click()
        await form.at("button", "Import").click()
        await console.sees(f"The bundle {said}")

    await console.go("#/applications")
    await console.at("button", "From a bundle").click()
    await console.at(css='input[type="file"]').upload(bundle)
    await console.at("button", "Import").click()
    await console.at("heading", "Overview").shown()
    copy = (await console.place()).removeprefix("#")
    assert copy != application
    (device,) = (await server.call("GET", f"{copy}/devices"))["items"]
    assert device["name"] == "cow 7"

    await console.go(f"#{copy}/settings")
    await console.at("button", "Delete this application").click()
    await console.at("textbox", re.compile("^To confirm")).fill("house")
    await console.at("dialog").at("button", "Delete").click()
    await console.at("heading", "Applications").shown()
    await server.call("GET", copy, status=404)


async def test_a_template_makes_an_application_and_is_applied_to_one(
    server: Server, console: ConsolePage
) -> None:
    await console.go("#/applications")
    await console.at("button", "From a template").click()
    await console.at("textbox", "Name").fill("stores")
    await console.at("button", "Create").click()
    await console.at("heading", "Overview").shown()
    made = (await console.place()).removeprefix("#")
    assert (await server.call("GET", f"{made}/devices"))["totalCount"] > 0
    await console.go(f"#{made}/settings/copies")
    await console.at("cell", "applied").shown()
    await console.at("button", re.compile("^Apply "), nth=0).click()
    async with console.expecting("status of 422"):
        await console.at("dialog").at("button", "Apply").click()
        await console.sees("Nothing was changed, because")
        await console.sees("ExperienceEndpoint")


async def test_archives_are_begun_run_and_ended(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await console.go(f"#{application}/settings/archives")
    await console.at("button", "Archive this application").click()
    await console.at("checkbox", re.compile("^Include events")).click()
    await console.at("button", "Save").click()
    await console.sees("Events yes")
    await console.at("button", "All events now").click()
    await console.at("dialog").says("completed")
    await console.at("button", "Close").click()
    await console.at("cell", "All events now").shown()
    await console.at("button", "End archiving").click()
    await console.at("button", "End it").click()
    await console.sees("Nothing is archived yet")


async def test_an_application_is_transferred_and_comes_back(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await server.organization("farm")
    await console.go(f"#{application}/settings")
    form = console.at("dialog")
    for owner, kind in (("farm", "organization"), ("yourself", "user")):
        await console.at("button", "Transfer to another owner").click()
        await form.at("combobox", "New owner").choose(owner)
        await form.at("button", "Transfer").click()
        await form.gone()
        assert (await server.call("GET", application))["ownerType"] == kind
        await console.sees("Owner farm" if kind == "organization" else "Owner your account")
