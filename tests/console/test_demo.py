"""The demo gives every page of the console something to show, and all pages tell the same story."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.console.demo_server import DemoServer
from trunkline.bench.demo_incident import COMPRESSOR, FREEZER, STANDBY
from trunkline.bench.demo_plant import LOW_BATTERY
from trunkline.bench.demo_rules import BATTERY_RULE, FREEZER_LIMIT, TRIPPED_RULE
from trunkline.bench.history import to_iso

pytestmark = pytest.mark.slow

LISTS = (
    *("devices", "data-tables", "events", "flows", "dashboards", "device-recipes", "files", "privateFiles"),
    *("jobLogs", "webhooks", "integrations", "credentials", "keys", "tokens", "certificates"),
    *("experience/endpoints", "experience/views", "experience/users", "experience/groups"),
    *("experience/versions", "experience/domains", "experience/slugs"),
)


async def test_every_page_has_something_to_show(demo: DemoServer) -> None:
    call, application = demo.server.call, demo.application
    for name in LISTS:
        assert (await call("GET", f"{application}/{name}"))["items"], name
    table = f"{application}/data-tables/{demo.ids['dataTableId']}"
    assert (await call("GET", f"{table}/rows", params={"limit": 1}))["totalCount"] == 40
    organization = f"/orgs/{demo.ids['orgId']}"
    assert (await call("GET", f"{organization}/audit-logs"))["items"]

    recipes = {one["name"] for one in (await call("GET", f"{application}/device-recipes"))["items"]}
    devices = (await call("GET", f"{application}/devices", params={"perPage": 100}))["items"]
    assert len(devices) == 24
    assert {tag["value"] for one in devices for tag in one["tags"] if tag["key"] == "DeviceRecipe"} == recipes
    for name in demo.devices:
        path = f"{application}/devices/{demo.devices[name]}/state"
        assert len(await call("GET", path, params={"limit": 1000})) > 400, name
    blocks = (await call("GET", f"{application}/dashboards/{demo.ids['dashboardId']}"))["blocks"]
    assert len({block["blockType"] for block in blocks}) == 7


async def test_all_pages_tell_the_same_incident(demo: DemoServer) -> None:
    """History, alarm, event, log of alarms, run, command, audit log and rules agree about who, what and when."""
    call, application, told = demo.server.call, demo.application, demo.incident
    began, seen, standby, repaired = (
        to_iso(round(1000 * at_s)) for at_s in (told.began_s, told.seen_s, told.standby_s, told.repaired_s)
    )

    async def states(name: str) -> list[tuple[str, dict[str, Any]]]:
        path = f"{application}/devices/{demo.devices[name]}/state"
        found = await call("GET", path, params={"limit": 1000})
        return sorted((each["time"], each["data"]) for each in found)

    event = await call("GET", f"{application}/events/{demo.ids['eventId']}")
    assert (event["subject"], event["state"]) == (f"Freezer too warm: {FREEZER}", "resolved")
    assert event["eventTags"] == {"alarmRuleId": demo.ids["alarmRuleId"]}
    opened, updates = event["creationDate"], event["updates"]
    assert [each.get("state") for each in updates] == ["acknowledged", "resolved", None]
    closed = updates[1]["creationDate"]
    assert [updates[at]["creationDate"][:16] for at in (0, 2)] == [seen[:16], repaired[:16]]
    assert [each["sourceType"] for each in updates] == ["user", "device", "user"]
    assert began < opened < seen < standby < closed < repaired

    warm = [at for at, data in await states(FREEZER) if data["temperature"] > FREEZER_LIMIT]
    assert began < min(warm) < opened
    assert standby < max(warm) < closed
    down = [at for at, data in await states(COMPRESSOR) if not data["running"]]
    assert (min(down), max(down) < repaired) == (began, True)
    helps = [at for at, data in await states(STANDBY) if data["running"]]
    assert (min(helps), max(helps) < repaired) == (standby, True)

    commands = await call(
        "GET", f"{application}/devices/{demo.devices[STANDBY]}/command", params={"limit": 10}
    )
    assert [(one["time"][:16], one["payload"]) for one in commands] == [
        (repaired[:16], {"on": False}),
        (standby[:16], {"on": True}),
    ]
    flows = {one["name"]: one["id"] for one in (await call("GET", f"{application}/flows"))["items"]}
    runs = {
        name: (await call("GET", f"{application}/flows/{id}/runs"))["items"] for name, id in flows.items()
    }
    assert {run["outcome"] for found in runs.values() for run in found} == {"completed"}
    assert [run["time"][:16] for run in runs["start the standby compressor"]] == [standby[:16]]

    tables = {one["name"]: one["id"] for one in (await call("GET", f"{application}/data-tables"))["items"]}
    rows = (await call("GET", f"{application}/data-tables/{tables['alarm log']}/rows"))["items"]
    noted = [row["opened"] for row in rows]
    assert noted[0] == opened
    assert [run["time"][:16] for run in runs["log of alarms"]] == [at[:16] for at in reversed(noted)]
    entries = (await call("GET", "/me/audit-logs", params={"perPage": 100}))["items"]
    times = {entry["creationDate"][:16] for entry in entries}
    assert {seen[:16], repaired[:16]} <= times
    rules = (await call("GET", f"{application}/alarm-rules"))["items"]
    (learned,) = [rule["creationDate"] for rule in rules if rule["name"] == TRIPPED_RULE["name"]]
    assert learned > repaired


async def test_one_thing_is_wrong_now(demo: DemoServer) -> None:
    """A battery that has to be changed; everything else is well, and nothing says otherwise."""
    call, application = demo.server.call, demo.application
    (alarm,) = (await call("GET", f"{application}/alarms"))["items"]
    assert (alarm["deviceName"], alarm["alarmRuleName"]) == (LOW_BATTERY, BATTERY_RULE["name"])
    assert alarm["value"] < BATTERY_RULE["condition"]["value"]
    health = await call("GET", f"{application}/health")
    assert health["verdict"] == "warning"
    (reason,) = health["reasons"]
    assert [each["name"] for each in reason["items"]] == [f"{BATTERY_RULE['name']}: {LOW_BATTERY}"]
    overview = await call("GET", f"{application}/overview")
    counted = overview["devices"]
    assert (counted["reporting"], counted["silent"], counted["neverSeen"]) == (24, 0, 0)
    assert overview["traffic"]["refused"] == {}
    events = (await call("GET", f"{application}/events"))["items"]
    assert {event["state"] for event in events} == {"new", "acknowledged", "resolved"}
    assert [event["deviceName"] for event in events if event["state"] == "new"] == [LOW_BATTERY]
    board = f"{application}/dashboards/{demo.ids['dashboardId']}/data"
    blocks = (await call("POST", board, {}))["blocks"]
    said = json.dumps(blocks)
    assert '"problem"' not in said
    assert said.count("Cold enough") == 3
