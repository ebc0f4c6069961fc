"""The keys of the console, and where the focus is after them."""

from __future__ import annotations

import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow

FOCUS = """(({ activeElement: { localName, textContent } }) =>
    localName === "body" ? localName : `${localName} ${textContent}`)(document)"""

IN_SIGHT = """(() => {
    const link = document.querySelector(".side [aria-current]"), { left, top, bottom } = link.getBoundingClientRect();
    return [top + 1, bottom - 1].every((y) => document.elementFromPoint(left + 9, y) === link);
})()"""


async def focus(console: ConsolePage, wanted: str) -> None:
    """Wait until the element with the focus is this one: its name and its text."""

    async def look() -> bool:
        return str(await console.run(FOCUS)) == wanted

    await console.soon(look, f"the focus of {wanted}")


async def test_the_heading_of_a_view_gets_the_focus(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await server.device(application, "mast")
    await console.go(f"#{application}")
    await console.sees("Is the fleet reporting?")
    await console.reload()
    await console.sees("Is the fleet reporting?")
    await console.gives(FOCUS, "body")
    await console.viewport(1280, 900)
    await console.gives(
        "(({ scrollHeight, clientHeight }) => scrollHeight <= clientHeight)(document.querySelector('.side'))",
        True,
    )
    await console.press("g")
    await console.press("d")
    await focus(console, "h1 Devices")
    await console.at("link", "mast").shown()
    await console.press("j")
    await console.press("Enter")
    await focus(console, "h1 mast")
    await console.press("Tab")
    await focus(console, "button Copy the id")

    await console.go(f"#{application}/settings")
    await focus(console, "h1 Settings")
    for place, tabs in (
        ("settings", ("Readme", "General")),
        ("experience", ("Users", "Endpoints", "Groups")),
        ("certificates", ("Of authorities", "Of devices")),
        ("files", ("Public", "Private")),
        ("settings/stored", ("Resource jobs", "Notebooks")),
        ("devices", ("Silent", "All")),
    ):
        await console.go(f"#{application}/{place}")
        for tab in tabs:
            await console.at("link", tab).click()
            await console.settled()
            await focus(console, f"a {tab}")
    await console.press("/")
    await console.type("mast")
    await console.at("link", "mast").shown()
    await console.gives("document.activeElement.value", "mast")


async def test_a_form_that_is_saved_keeps_the_focus_and_what_is_typed(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    await console.go(f"#{application}/settings")
    await console.at("textbox", "Name").fill("barn")
    await console.at("button", "Save").click()
    await console.sees("The settings are saved")
    await console.settled()
    await focus(console, "button Save")

    description = console.at("textbox", "Description")
    async with console.held(f"*{application}") as asked:
        await console.at("textbox", "Name").fill("stable")
        await console.at("button", "Save").click()
        await asked()
        await description.fill("Where the cows are")
    await console.settled()
    await description.holds("Where the cows are")
    assert (await server.call("GET", application))["name"] == "stable"
    await server.call("PATCH", application, {"name": "by somebody else"})
    await console.at("button", "Save").click()
    await console.settled()
    stored = await server.call("GET", application)
    assert (stored["name"], stored["description"]) == ("by somebody else", "Where the cows are")


async def test_the_heading_takes_the_focus_from_no_field(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await console.go(f"#{application}")
    await console.at("heading", "Overview").shown()
    script = """{
        const field = document.createElement("input");
        document.body.append(field);
        field.focus();
    }"""
    await console.run(script)
    await console.go(f"#{application}/devices")
    await console.at("heading", "Devices").shown()
    await console.settled()
    await focus(console, "input ")


async def test_the_link_to_the_current_section_is_in_sight(server: Server, console: ConsolePage) -> None:
    """Its box is that of an element that a click in its corners would reach."""
    application = await server.application()
    await console.viewport(1280, 600)
    for place, name in (("settings", "Settings"), ("events", "Events"), ("experience", "Experience")):
        await console.go(f"#{application}/{place}")
        await console.at("heading", name).shown()

        async def look() -> bool:
            return bool(await console.run(IN_SIGHT))

        await console.soon(look, f"the link to {name} in sight")
