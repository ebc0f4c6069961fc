"""The form of an alarm rule changes what is changed in it, and nothing else."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow

NOTIFY: Final = {
    "repeatSeconds": 3600,
    "quietHours": {"start": "22:00", "end": "06:00", "timeZone": "Asia/Tokyo"},
    "tellsEnd": True,
}


async def rule_of_everything(server: Server, application: str) -> dict[str, Any]:
    """A rule of which the form does not show everything: its description, its query, and a user whom it tells."""
    me = (await server.call("GET", "/me"))["id"]
    later = {"afterSeconds": 300, "emails": ["boss@example.com"], "url": "https://example.com/alarm"}
    made: dict[str, Any] = await server.call(
        "POST",
        f"{application}/alarm-rules",
        {
            "name": "Code",
            "description": "Ask the fitter.",
            "condition": {"type": "attribute", "attribute": "code", "comparison": "equals", "value": "007"},
            "deviceQuery": {"name": {"$startsWith": "pump"}},
            "durationSeconds": 90,
            "notify": {"steps": [{"userIds": [me]}, later], **NOTIFY},
        },
    )
    return made


async def test_a_changed_rule_keeps_what_the_form_does_not_show(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    for name in ("pump", "fan"):
        attributes = [{"name": "code", "dataType": "string"}]
        device = await server.device(application, name, attributes=attributes)
        await server.call("POST", f"{device}/state", {"data": {"code": "007"}})
    made = await rule_of_everything(server, application)
    path = f"{application}/alarm-rules/{made['id']}"
    await console.go(f"#{application}/alarms/rules/{made['id']}")
    await console.at("button", "Change").click()
    form = console.at("dialog")
    # The trial is of the same devices and the same value.
    await form.at("button", re.compile("^What would it have done")).click()
    await form.says("in 1 state of 1 device.")
    await form.at("textbox", "Name").fill("The code")
    # Somebody else changes the rule meanwhile.
    await server.call("PATCH", path, {"severity": "critical"})
    await form.at("button", "Save").click()
    await console.at("heading", "The code").shown()
    changed = await server.call("GET", path)
    kept = ("description", "condition", "deviceQuery", "durationSeconds", "notify")
    assert {name: changed[name] for name in kept} == {name: made[name] for name in kept}
    assert (changed["name"], changed["severity"]) == ("The code", "critical")
    # A new address is told beside the user, and the later steps stay.
    await console.at("button", "Change").click()
    await form.at("textbox", re.compile("^Mail to")).fill("desk@example.com")
    await form.at("button", "Save").click()
    await console.sees("desk@example.com")
    changed = await server.call("GET", path)
    first, later = made["notify"]["steps"]
    told = {**made["notify"], "steps": [{**first, "emails": ["desk@example.com"]}, later]}
    assert changed["notify"] == told


async def test_quiet_hours_without_an_end_are_refused(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    made = await rule_of_everything(server, application)
    await console.go(f"#{application}/alarms/rules/{made['id']}")
    await console.at("button", "Change").click()
    form = console.at("dialog")
    await form.at("textbox", re.compile("^until")).fill("")
    await form.at("button", "Save").click()
    await form.says("quietEnd is empty; give the time from which nobody is told and the time until then")
    assert (await server.call("GET", f"{application}/alarm-rules/{made['id']}"))["notify"] == made["notify"]
