"""The pages of events: what appears while somebody reads, and how one event or many are responded to."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.console.console_page import ConsolePage, console_page, login_of
from tests.console.target import Target
from tests.e2e.conftest import Server, running_server

pytestmark = pytest.mark.slow

LARGE = 9007199254740993
"""A whole number that a double cannot hold."""


async def make(server: Server, application: str, subject: str, level: str = "error", **more: Any) -> str:
    """Create an event; returns its path."""
    body = {"subject": subject, "level": level, **more}
    made = await server.call("POST", f"{application}/events", body)
    return f"{application}/events/{made['id']}"


def row_of(console: ConsolePage, path: str) -> Target:
    """The row of an event in the list."""
    return console.at(css=f'tr:has(a[href="#{path}"])')


async def search(console: ConsolePage, field: str, text: str) -> None:
    """Search a list for a text without blanks, and wait for the list."""

    async def look() -> bool:
        return f"filter={text}" in await console.place()

    await console.at("searchbox", field).fill(text)
    await console.soon(look, f"{text!r} in the address")
    await console.settled()


async def test_new_events_wait_until_they_are_asked_for(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    device = (await server.device(application, "pump")).rpartition("/")[2]
    other = (await server.device(application, "pump2")).rpartition("/")[2]
    await console.go(f"#{application}/events")
    await console.sees("There are no events yet")
    # The name of a device may begin with that of another.
    await console.settled()
    field = console.at(css=".device-field")
    await field.fill("")
    async with console.held("*/devices/*"):
        await console.type("pump2")
        await field.holds("pump2")
    await console.comes_to(re.compile(f"device={other}$"))
    await field.fill("")
    await console.sees("There are no events yet")
    await console.at(css=".empty summary").click()
    await console.sees(f"curl -s -X POST '{server.url}{application}/events'")
    await console.at("button", "Create an event").click()
    form = console.at("dialog")
    await form.at("textbox", re.compile("^Subject")).fill("The door is open")
    await form.at("combobox", "Level").choose("critical")
    await form.at("textbox", re.compile("^Tags")).fill("site=north")
    await form.at("button", "Create").click()
    await console.at("link", "The door is open").shown()
    await console.at("link", re.compile("^Open, critical 1")).shown()
    await console.sees("live")

    async with console.held("*/events?*", answered=True) as asked:
        await console.at("button", "Subject").click()
        await asked()
        hot = await make(server, application, "The pump is hot", "warning", deviceId=device)
        await console.sees("1 new event.")
    await console.settled()
    await console.sees("1 new event.")
    await console.at("link", "The pump is hot").gone()
    await console.at("button", "Show").click()
    row = row_of(console, hot)
    await row.at("link", "pump").shown()
    # A row changes where it is, and those that do not match are not announced.
    await console.at("combobox", "Level").choose("warning")
    await console.at("link", "The door is open").gone()
    await search(console, "Search events", "pump*is")
    await server.call("PATCH", hot, {"state": "acknowledged"})
    await row.says("acknowledged")
    await make(server, application, "The lamp is off", "info")
    await make(server, application, "The pump is cold", "warning")
    await console.sees("1 new event.")
    await server.call("DELETE", hot)
    await row.says("(deleted)")
    await console.reload()
    await console.at("link", "The pump is cold").shown()
    await console.at("row").counts(2)  # the head, and one event: the filter is in the address


async def test_one_event_is_responded_to_and_followed(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    path = await make(server, application, "The pump is hot", data={"temperature": LARGE}, message="At once.")
    await console.go(f"#{application}/events")
    await console.at("button", "Acknowledge: The pump is hot").click()
    await console.at("dialog").at("textbox", re.compile("^Comment")).fill("I look at it.")
    await console.at("dialog").at("button", "Acknowledge").click()
    await console.sees("The event is acknowledged.")
    await console.at("link", "The pump is hot").click()
    await console.sees(f"temperature: {LARGE}")
    await console.sees("I look at it.")
    await console.at("textbox", re.compile("^Comment")).fill("The valve was closed.")
    await console.at("button", "Resolve").click()
    await console.at("button", "Open again").shown()
    shown = await server.call("GET", path)
    assert [update["comment"] for update in shown["updates"]] == ["I look at it.", "The valve was closed."]
    assert shown["state"] == "resolved"
    # What somebody else does is seen at once.
    await server.call("PATCH", path, {"comment": "I have seen it too.", "level": "info"})
    await console.sees("I have seen it too.")
    await console.at("button", "Change").click()
    await console.at("dialog").at("textbox", re.compile("^Subject")).fill("The valve was closed")
    await console.at("dialog").at("button", "Save").click()
    await console.at("heading", "The valve was closed").shown()
    await console.at("button", "Delete").click()
    await console.at("dialog").at("button", "Delete").click()
    await console.sees("There are no events yet")


async def test_many_events_are_resolved_by_a_job_and_exported(chromium: None, tmp_path: Path) -> None:
    async with (
        running_server(tmp_path / "data", limits={"changed_events_max": 3}) as server,
        console_page(server.url, tmp_path, login=await login_of(server)) as console,
    ):
        application = await server.application()
        faults = [await make(server, application, f"Fault {number}") for number in range(5)]
        await make(server, application, "Not a fault", "info")
        await console.go(f"#{application}/events?filter=f*lt%20&level=error")
        await console.sees("5 events")
        for fault in faults[:2]:
            await row_of(console, fault).at("checkbox", "Select this row").click()
        chosen = console.at("group", "Selected events")
        await chosen.says("2 events selected")
        await chosen.at("button", "Acknowledge").click()
        await console.at("dialog").at("button", "Acknowledge").click()
        await console.sees("2 events are acknowledged.")
        await chosen.gone()
        await console.at("checkbox", "Select this row").click()
        await chosen.at("button", "Select all 5 events that match").click()
        await console.at("checkbox", "Select this row", nth=1).click()
        await chosen.says("2 events selected")
        await chosen.at("button", "Select all 5 events that match").click()
        await chosen.at("button", "Resolve").click()
        await console.at("dialog").at("textbox", re.compile("^Comment")).fill("All at once.")
        await console.at("dialog").at("button", "Resolve").click()
        await console.at("dialog", "Resolve 5 events").says("completed")
        await console.at("dialog").at("button", "Close").click()
        await row_of(console, faults[4]).says("resolved")
        events = (await server.call("GET", f"{application}/events"))["items"]
        assert {each["subject"]: each["state"] for each in events} == {
            **{f"Fault {number}": "resolved" for number in range(5)},
            "Not a fault": "new",
        }
        await search(console, "Search events", "FAULT")
        await console.at("button", "Export").click()
        await console.at("dialog").at("combobox", "Format").choose("JSON")
        await console.at("dialog").at("button", "Export").click()
        async with console.download() as file:
            await console.at("link", re.compile("^Download")).click()
            exported = json.loads((await file()).read_text())
        assert len(exported) == 5
