"""Two people change the same: the second one is told, and overwrites nothing that was not seen."""

from __future__ import annotations

import re

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
