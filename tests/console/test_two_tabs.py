"""Two people change the same: the second one is told, and overwrites nothing that was not seen."""

from __future__ import annotations

import re
from functools import partial

import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow


async def test_a_refused_change_of_a_dashboard_can_be_made_again(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    made = await server.call("POST", f"{application}/dashboards", {"name": "Pumps", "blocks": []})
    path = f"{application}/dashboards/{made['id']}"
    await console.go(f"#{path}")
    form = console.at("dialog")
    await console.at("button", "Change").click()
    await server.call("PATCH", path, {"name": "All pumps"})
    await form.at("textbox", re.compile("^Description")).fill("of the north")
    async with console.expecting("status of 412"):
        await form.at("button", "Save").click()
        await form.says("the record has changed")
    # What somebody else has changed is there, and the next change is of that.
    await form.at("button", "Cancel").click()
    await console.at("heading", "All pumps").shown()
    await console.at("button", "Change").click()
    await form.at("textbox", re.compile("^Description")).fill("of the north")
    await form.at("button", "Save").click()
    await console.sees("of the north")
    # A text of the JSON is kept, and read again when it is left.
    await console.at("button", "Edit as JSON").click()
    editor = console.at("textbox", "JSON")
    await server.call("PATCH", path, {"name": "Every pump"})
    await editor.fill((await editor.value()).replace("north", "south"))
    async with console.expecting("status of 412"):
        await console.at("button", "Save").click()
        await console.sees("the record has changed")
    assert "of the south" in await editor.value()
    await console.at("button", "Show the dashboard").click()
    await console.at("heading", "Every pump").shown()


async def test_a_template_and_a_readme_are_not_saved_over_those_of_somebody_else(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    body = {"name": "Home", "viewType": "page", "body": "first\r\nline"}
    view = await server.call("POST", f"{application}/experience/views", body)
    path = f"{application}/experience/views/{view['id']}"
    places = {
        f"/experience/views/{view['id']}": (path, "body", "Body"),
        "/settings/readme": (f"{application}/readme", "content", "Text"),
    }
    for place, (source, field, label) in places.items():
        await console.go(f"#{application}{place}")
        if field == "content":
            await console.at("button", "Write").click()
        text = console.at("textbox", re.compile(f"^{label}"))
        await text.fill("mine")
        await server.call("PATCH", source, {field: "of somebody else"})
        await console.at("button", "Save").click()
        await console.sees(f"{field}: somebody else has saved it since it was read here.")
        assert (await server.call("GET", source))[field] == "of somebody else"
        assert await text.value() == "mine"
        # What was read again is changed, also several times.
        await console.reload()
        if field == "content":
            await console.at("button", "Write").click()
        for written in ("second", "third"):
            await text.fill(written)
            await console.at("button", "Save").click()
            await console.soon(partial(has, server, source, field, written), f"{source} with {written}")
            if field == "content":
                await console.at("button", "Write").click()


async def has(server: Server, source: str, field: str, wanted: str) -> bool:
    """Whether the field of a record is so."""
    return bool((await server.call("GET", source))[field] == wanted)


async def test_a_form_sends_what_was_changed_in_it(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    group = await server.call("POST", f"{application}/alarm-groups", {"name": "Night shift", "emails": []})
    flow = await server.call("POST", f"{application}/flows", {"name": "Pumps"})
    form = console.at("dialog")
    places = {
        f"/alarms/groups/{group['id']}": (f"{application}/alarm-groups/{group['id']}", "Change"),
        f"/workflows/{flow['id']}/edit": (f"{application}/flows/{flow['id']}", "Name and description"),
    }
    for place, (source, button) in places.items():
        await console.go(f"#{application}{place}")
        await console.at("button", button).click()
        await form.at("textbox", re.compile("^Description")).fill("of the north")
        await server.call("PATCH", source, {"name": "Another name"})
        await form.at("button", "Save").click()
        await form.gone()
        stored = await server.call("GET", source)
        assert (stored["name"], stored["description"]) == ("Another name", "of the north")
