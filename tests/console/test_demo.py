"""The demo gives every page of the console something to show."""

from __future__ import annotations

import pytest
import trio

from tests.console.demo_server import DemoServer
from tests.patience import PATIENCE_S

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

    events = (await call("GET", f"{application}/events"))["items"]
    assert {event["state"] for event in events} == {"new", "acknowledged", "resolved"}
    assert {event["level"] for event in events} == {"info", "warning", "error", "critical"}
    overview = await call("GET", f"{application}/overview")
    counted = overview["devices"]
    assert (counted["reporting"], counted["silent"], counted["neverSeen"]) == (6, 1, 2)
    assert overview["traffic"]["refused"] == {}

    greenhouse = f"{application}/devices/{demo.devices['greenhouse-north']}"
    assert len(await call("GET", f"{greenhouse}/state", params={"limit": 1000})) > 300
    assert await call("GET", f"{greenhouse}/command")
    blocks = (await call("GET", f"{application}/dashboards/{demo.ids['dashboardId']}"))["blocks"]
    assert len({block["blockType"] for block in blocks}) == len(blocks) >= 9


async def test_the_runs_of_the_demo_end_well_and_badly(demo: DemoServer) -> None:
    call, application = demo.server.call, demo.application
    flows = {
        each["name"]: f"{application}/flows/{each['id']}"
        for each in (await call("GET", f"{application}/flows"))["items"]
    }

    async def errors(name: str, runs: int) -> list[str]:
        with trio.fail_after(PATIENCE_S):
            while True:
                found = (await call("GET", f"{flows[name]}/runs"))["items"]
                if len(found) >= runs:
                    return [run["error"]["message"] for run in found if run.get("error")]

    assert await errors("watch the cold store", 3) == ["The reading has no temperature."]
    assert await errors("cool the greenhouse", 1) == []
