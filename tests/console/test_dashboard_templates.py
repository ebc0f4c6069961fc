"""Dashboards are made in one click from what devices report."""

from __future__ import annotations

import re

import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow

ATTRIBUTES = [
    {"name": "load", "dataType": "number", "attributeTags": {"unit": "%"}},
    {"name": "heat", "dataType": "number", "attributeTags": {"unit": "°C"}},
    {"name": "mode", "dataType": "string"},
    {"name": "place", "dataType": "gps"},
    {"name": "unused", "dataType": "number"},
]


async def test_a_dashboard_is_made_of_a_device_and_of_the_fleet(server: Server, console: ConsolePage) -> None:
    application = await server.application("works")
    device = await server.device(application, "boiler", attributes=ATTRIBUTES)
    await server.device(application, "spare", attributes=ATTRIBUTES[:1])
    for load in (10, 20):
        values = {"load": load, "heat": 71.5, "mode": "on", "place": "48.1,9.2"}
        await server.call("POST", f"{device}/state", {"data": values})
    await server.call(
        "POST", f"{application}/events", {"level": "warning", "subject": "Leak", "state": "new"}
    )
    # From the page of the device: its attributes that have reported.
    await console.go(f"#{device}")
    await console.at("button", "Make a dashboard").click()
    await console.comes_to(re.compile("/dashboards/"))
    await console.at("heading", "boiler").shown()
    await console.at("region", "load", nth=0).says("20 %")
    await console.at("region", "heat", nth=0).says("71.5 °C")
    await console.at("region", "States").at("image", "mode: now on").shown()
    (board,) = (await server.call("GET", f"{application}/dashboards"))["items"]
    titles = [each["title"] for each in board["blocks"]]
    # One graph for each unit, because they have no scale in common.
    assert titles == ["load", "heat", "load", "heat", "States", "Way", "Connections", "Events"]
    # Of all devices, from the form of a new dashboard.
    await console.go(f"#{application}/dashboards")
    await console.at("button", "Create a dashboard").click()
    await console.at("textbox", re.compile("^Name")).fill("Plant")
    begins = console.at("combobox", "Begins with")
    await begins.choose("one device: newest values, charts, states, connections")
    await console.at("dialog").at("button", "Create").click()
    await console.sees("device: choose the device")
    await begins.choose("all devices: health, events, newest values, places")
    await console.at("dialog").at("button", "Create").click()
    await console.at("heading", "Plant").shown()
    await console.at("region", "Health").says("All that were seen report")
    await console.at("region", "Health").says("1 were never seen")
    await console.at("region", "Open events").says("1 warning")
    await console.at("region", "Newest open events").says("Leak")
    await console.at("region", "Newest values").says("boiler reporting")
    await console.at("region", "Newest values").says("spare never seen")
    await console.at(
        "image", "Places: places of 1 device: 0 connected, 1 reporting, 0 never seen, 0 silent"
    ).shown()
