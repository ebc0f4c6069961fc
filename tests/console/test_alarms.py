"""The pages of alarms: from a rule that is made by a form, to the alarm, the mail, and its end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import EMAIL, Server
from tests.e2e.receivers import kept_messages

pytestmark = pytest.mark.slow


async def test_a_rule_is_made_by_a_form_and_its_alarm_is_seen_mailed_acknowledged_and_ended(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    device = await server.device(application, "pump")
    for temp in (35, 20):
        await server.call("POST", f"{device}/state", {"data": {"temp": temp}})
    await console.go(f"#{application}/alarms")
    await console.sees("Nothing is watched yet")
    await console.at("button", "Create a rule").click()
    form = console.at("dialog")
    await form.at("textbox", "Name").fill("Too warm")
    await form.at("combobox", re.compile("^Attribute")).choose("temp")
    await form.at("combobox", "How it compares").choose("is above")
    await form.at("textbox", "Value").fill("30")
    await form.at("textbox", re.compile("^Back by")).fill("2")
    await form.at("combobox", "Severity").choose("critical")
    await form.at("textbox", re.compile("^Mail to")).fill("night@example.com")
    await form.at("button", re.compile("^What would it have done")).click()
    await console.sees("1 alarm on 1 device in 2 states of 1 device.")
    await form.at("button", "Create").click()
    await console.sees("temp is above 30, until it is back by 2")
    await console.sees("night@example.com")

    await console.go(f"#{application}/alarms")
    await console.sees("No alarm is open.")
    await server.call("POST", f"{device}/state", {"data": {"temp": 31}})
    await console.sees("temp is above 30: it was 31.")
    await console.at("link", re.compile("^Alarms 1$")).shown()
    await console.at("button", "Acknowledge: Too warm: pump").click()
    await console.sees("acknowledged")
    await console.at("link", re.compile("^Alarms$")).shown()
    (mail,) = kept_messages(Path(server.settings.data_dir))
    assert (mail["To"], mail["Subject"]) == ("night@example.com", "[critical] Too warm: pump")
    await server.call("POST", f"{device}/state", {"data": {"temp": 20}})
    await console.sees("No alarm is open.")

    await console.at("link", "Rules").click()
    await console.at("link", "Too warm").click()
    await console.at("button", "Change").click()
    form = console.at("dialog")
    await form.at("textbox", re.compile("^For minutes")).fill("5")
    await form.at("textbox", re.compile("^Mail to")).fill("")
    await form.at("button", "Save").click()
    await console.sees("temp is above 30 for 5 minutes, until it is back by 2")
    await console.sees("nobody")
    (rule,) = (await server.call("GET", f"{application}/alarm-rules"))["items"]
    assert (rule["durationSeconds"], rule.get("notify"), rule["severity"]) == (300, None, "critical")

    await console.go(f"#{application}/alarms/groups")
    await console.at("button", "Create a group").click()
    form = console.at("dialog")
    await form.at("textbox", "Name").fill("Night shift")
    await form.at("textbox", re.compile("^Mail to")).fill("desk@example.com")
    await form.at("checkbox", EMAIL).click()
    await form.at("button", "Create").click()
    await console.sees(f"desk@example.com, {EMAIL}")
    await console.at("link", "Alarms").click()
    await console.at("link", "Rules").click()
    await console.at("button", "Create a rule").click()
    form = console.at("dialog")
    await form.at("textbox", "Name").fill("Fault")
    await form.at("combobox", "What is wrong").choose("An event says so")
    await form.at("textbox", re.compile("^Subject")).fill("leak *")
    await form.at("checkbox", "Night shift").click()
    await form.at("button", "Create").click()
    await console.sees("an event of level error or above about leak *")
    await console.sees("all devices, and events without one")
    await console.go(f"#{application}/alarms")
    event = {"level": "error", "subject": "leak in hall 2"}
    await server.call("POST", f"{application}/events", event, status=201)
    await console.sees("An event of level error or above about leak *: leak in hall 2.")
    mails = kept_messages(Path(server.settings.data_dir))[-2:]
    assert {str(mail["To"]) for mail in mails} == {"desk@example.com", EMAIL}
