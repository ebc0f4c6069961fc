"""Names and texts as long as they may be, without a blank, make no page wider than the window."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.console.console_page import ConsolePage
from tests.console.test_tour import TOO_WIDE
from tests.console.tour import WINDOWS
from tests.e2e.conftest import Server
from tests.e2e.test_reports import block

pytestmark = pytest.mark.slow

LONG: Final = "W" * 255
KEY: Final = "k" * 255
FLOW: Final = {
    "name": LONG,
    "description": LONG,
    "triggers": [{"type": "virtualButton", "key": "k", "meta": {"label": LONG}, "outputIds": [["x"]]}],
    "nodes": [
        {
            "id": "x",
            "type": "DebugNode",
            "config": {"message": LONG},
            "meta": {"label": LONG},
            "outputIds": [],
        }
    ],
}


async def make(server: Server, application: str) -> list[str]:
    """Records with long names of most kinds; the places of their pages."""

    async def one(kind: str, body: Any) -> str:
        made = await server.call("POST", f"{application}/{kind}", body)
        return str(made.get("id") or made.get("applicationKeyId"))

    attributes = [{"name": KEY, "dataType": "string"}, {"name": "t", "dataType": "number"}]
    fields = {
        "name": LONG,
        "description": LONG * 4,
        "attributes": attributes,
        "tags": [{"key": KEY, "value": LONG}],
    }
    device = await one("devices", fields)
    rule = {"type": "attribute", "attribute": "t", "comparison": "above", "value": 0}
    rule_id = await one("alarm-rules", {"name": LONG, "severity": "info", "condition": rule})
    await server.call("POST", f"{application}/devices/{device}/state", {"data": {KEY: "v" * 3000, "t": 1}})
    await server.call(
        "POST", f"{application}/devices/{device}/command", {"name": LONG, "payload": {"x": LONG * 8}}
    )
    table = await one(
        "data-tables",
        {"name": LONG, "columns": [{"name": KEY, "dataType": "string", "constraint": "optional"}]},
    )
    await one(f"data-tables/{table}/rows", {KEY: "v" * 3000})
    flow = await one("flows", FLOW)
    await server.call("POST", f"{application}/flows/{flow}/virtualButton", {"key": "k", "payload": {}})
    told = {
        "level": "critical",
        "subject": LONG,
        "message": LONG * 5,
        "deviceId": device,
        "data": {"a": LONG},
    }
    event = await one("events", told | {"eventTags": {KEY: LONG}})
    series = {"deviceIds": [device], "attribute": "t", "label": LONG}
    blocks = [
        block(0, "graph", LONG, {"segments": [series]}),
        block(1, "section-header", LONG, {"title": LONG, "content": LONG}),
        block(2, "device-list", LONG, {"columns": [{"type": "name"}]}),
        block(
            3,
            "indicator",
            LONG,
            {"segments": [series], "conditions": [], "defaultCondition": {"label": LONG}},
        ),
        block(4, "event-list", LONG, {}),
        block(5, "gauge", LONG, {"segment": series}),
    ]
    board = await one("dashboards", {"name": LONG, "blocks": blocks})
    hook = await one("webhooks", {"name": LONG})
    key = await one("keys", {"name": LONG, "description": LONG})
    recipe = await one("device-recipes", {"name": LONG, "deviceName": LONG, "tags": fields["tags"]})
    await one("privateFiles", {"name": LONG, "type": "directory", "parentDirectory": "/" + LONG})
    token = await one("tokens", {"name": LONG, "scope": ["devices.get"]})
    view = await one("experience/views", {"name": LONG, "viewType": "page", "body": LONG})
    group = await one("experience/groups", {"name": LONG})
    await server.call("PATCH", f"{application}/globals", [{"key": KEY, "json": f'"{LONG}"'}])
    return [
        *(
            "",
            "/devices",
            "/recipes",
            "/tables",
            "/alarms",
            "/alarms/rules",
            "/events",
            "/workflows",
            "/dashboards",
        ),
        *(
            "/files",
            "/jobs",
            "/webhooks",
            "/keys",
            "/credentials",
            "/actors",
            "/settings",
            "/settings/globals",
        ),
        *(
            f"/devices/{device}{tab}"
            for tab in ("", "/commands", "/states", "/connections", "/actor", "/settings")
        ),
        *(
            f"/workflows/{flow}{tab}"
            for tab in ("", "/edit", "/runs", "/versions", "/errors", "/try", "/data")
        ),
        *(f"/{kind}" for kind in (f"recipes/{recipe}", f"events/{event}", f"alarms/rules/{rule_id}")),
        *(f"/tables/{table}{query}" for query in ("", "?tab=columns", "?tab=import")),
        *(f"/dashboards/{board}{query}" for query in ("", "?edit=blocks", "?edit=1")),
        *(f"/experience/{tab}" for tab in ("views", f"views/{view}", "groups", f"groups/{group}")),
        *("/tokens", f"/tokens/{token}", f"/devices/{device}/connect", f"/devices/{device}/payloads"),
        *(f"/webhooks/{hook}", f"/keys/{key}", f"/files?directory=/{LONG}"),
    ]


@pytest.mark.timeout(300)
async def test_long_names_make_no_page_wider_than_the_window(server: Server, console: ConsolePage) -> None:
    application = await server.application(LONG)
    places = [f"#{application}{place}" for place in await make(server, application)]
    org = await server.organization(LONG)
    other = await server.call("POST", "/dashboards", {"name": LONG, "orgId": org[6:], "description": LONG})
    places += ["#/applications", "#/dashboards", f"#/dashboards/{other['id']}", "#/organizations"]
    places += [f"#/organizations/{org[6:]}{tab}" for tab in ("", "/settings", "/invitations", "/audit")]
    wide = {}
    for place in places:
        await console.go(place)
        for size, (width, height) in WINDOWS.items():
            await console.viewport(width, height)
            await console.settled()
            if too_wide := await console.run(TOO_WIDE):
                wide[place.replace(application, ""), size] = too_wide
    assert wide == {}
