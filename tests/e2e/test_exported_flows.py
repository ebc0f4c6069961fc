"""Workflows in the form of exports are imported, run, and do what they are for."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Server
from tests.e2e.experience_browser import PASSWORD, browser, page, user
from tests.e2e.experiences import Experience, new_experience
from tests.e2e.exported_flows import ALARM, DEVICES, LOG_IN, ORDERS, moved
from tests.e2e.test_flow_runs import runs_end
from tests.e2e.test_webhooks import send, webhook

LOG_IN_PAGE = "{{#if pageData.failed}}No, {{pageData.email}}.{{/if}}<form>"
DEVICES_PAGE = (
    "{{request.query.welcome}}:"
    "{{#each pageData}}{{name}} in {{place}}: {{celsius}} C, {{fahrenheit}} F;{{/each}}"
)


@pytest.fixture
async def exp(server: Server) -> Experience:
    made = await new_experience(server)
    await made.make("slugs", slug="farm")
    return made


async def device(exp: Experience, name: str, place: str, celsius: float | None) -> str:
    made = await exp.server.call(
        "POST",
        f"{exp.application}/devices",
        {
            "name": name,
            "tags": [{"key": "place", "value": place}],
            "attributes": [{"name": "temperature", "dataType": "number"}],
        },
        status=201,
    )
    if celsius is not None:
        state = {"data": {"temperature": celsius}}
        await exp.server.call("POST", f"{exp.application}/devices/{made['id']}/state", state)
    return str(made["id"])


async def test_a_user_logs_in_and_sees_the_devices_of_the_own_groups(exp: Experience) -> None:
    server = exp.server
    barn = await device(exp, "Barn", "north & east", 20)
    await device(exp, "Silo", "south", 5)
    one, _ = await user(exp, firstName="Åsa")
    await exp.make("groups", name="keepers", deviceIds=[barn], experienceUserIds=[one])
    ids = {
        "log-in page": await page(exp, "log-in", LOG_IN_PAGE),
        "devices page": await page(exp, "devices", DEVICES_PAGE),
    }
    for name, method, route, access in (
        ("log-in", "get", "/log-in", "public"),
        ("log-in form", "post", "/log-in", "public"),
        ("devices", "get", "/devices", "authenticated"),
    ):
        made = await exp.make("endpoints", method=method, route=route, access=access)
        ids[name] = made["id"]
    imported = await server.call(
        "POST", f"{exp.application}/flows/import", moved([LOG_IN, DEVICES], ids), status=201
    )
    assert [each["name"] for each in imported["flows"]] == ["Log in", "List the devices of a user"]
    at = browser(exp)
    assert (await at.get("/devices")).status_code == 401
    shown = await at.get("/log-in")
    assert (shown.status_code, shown.text) == (200, "<form>")
    form = {"email": "ONE@example.com", "password": "wrong horse"}
    wrong = await at.send("POST", "/log-in", data=form)
    assert (wrong.status_code, wrong.text) == (401, "No, ONE@example.com.<form>")
    assert "set-cookie" not in wrong.headers
    right = await at.send("POST", "/log-in", data=form | {"password": PASSWORD})
    assert (right.status_code, right.headers["location"]) == (302, "/devices?welcome=%C3%85sa")
    cookie = right.headers["set-cookie"]
    assert cookie.endswith("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict")
    members = {"Cookie": cookie.partition(";")[0]}
    listed = await at.get("/devices?welcome=Hi", **members)
    assert (listed.status_code, listed.text) == (200, "Hi:Barn in north &amp; east: 20 C, 68 F;")
    assert (await at.get("/log-in", **members)).headers["location"] == "/devices"
    assert (await exp.get(f"users/{one}"))["lastLogin"]


async def test_a_hot_oven_makes_an_event_and_gets_a_command(server: Server) -> None:
    application = await server.application()
    await server.call("POST", f"{application}/flows/import", moved([ALARM], {}), status=201)
    tags = [{"key": "kind", "value": "oven"}, {"key": "place", "value": "hall 2"}]
    types = {"temperature": "number", "door": "boolean"}
    body = {
        "name": "Oven 7",
        "tags": tags,
        "attributes": [{"name": name, "dataType": type} for name, type in types.items()],
    }
    oven = (await server.call("POST", f"{application}/devices", body, status=201))["id"]
    other = (await server.call("POST", f"{application}/devices", body | {"tags": []}, status=201))["id"]
    state = f"{application}/devices/{oven}/state"
    for celsius, door in ((80, False), (80.5, True), (91.26, False)):
        await server.call("POST", state, {"data": {"temperature": celsius, "door": door}})
    await server.call("POST", f"{application}/devices/{other}/state", {"data": {"temperature": 99}})
    await runs_end(server)
    (event,) = (await server.call("GET", f"{application}/events"))["items"]
    expected = {
        "level": "warning",
        "subject": "Oven 7 is hot",
        "message": "91.3 C at hall 2",
        "deviceId": oven,
        "eventTags": {"kind": "oven"},
        "sourceType": "flow",
    }
    assert {name: event[name] for name in expected} == expected
    (command,) = await server.call("GET", f"{application}/devices/{oven}/command")
    assert (command["name"], command["payload"]) == ("cool", {"to": 80, "event": event["id"]})
    assert await server.call("GET", f"{application}/devices/{other}/command") == []


async def test_an_order_that_a_webhook_takes_is_a_row_of_a_table(server: Server) -> None:
    hook = await webhook(server, waitForReply=True)
    application = f"/applications/{hook['applicationId']}"
    columns = [
        {"name": name, "dataType": type, "constraint": "required"}
        for name, type in (("part", "string"), ("amount", "number"))
    ]
    made = await server.call(
        "POST", f"{application}/data-tables", {"name": "orders", "columns": columns}, status=201
    )
    ids = {"table": made["id"], "webhook": hook["id"]}
    await server.call("POST", f"{application}/flows/import", moved([ORDERS], ids), status=201)
    refused = await send(server, hook["address"], json={"part": "bolt", "amount": 0})
    assert (refused.status_code, refused.text.partition(":")[0]) == (400, "data.body.amount")
    taken = await send(server, hook["address"], json={"part": "bolt", "amount": 12})
    assert taken.status_code == 201
    (row,) = (await server.call("GET", f"{application}/data-tables/{made['id']}/rows"))["items"]
    assert (row["part"], row["amount"]) == ("bolt", 12)
    assert taken.json()["id"] == row["id"]
