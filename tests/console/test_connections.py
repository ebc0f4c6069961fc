"""Connections of an application in the console: credentials, webhooks, integrations and topics."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from tests.console.console_page import ConsolePage, console_page, login_of
from tests.e2e.conftest import Server
from tests.e2e.mqtt_house import house_in
from trunkline.http.mqtt.packets import V3_1_1

pytestmark = pytest.mark.slow


async def test_a_credential_has_the_fields_of_its_type_and_never_shows_its_secret(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    await console.go(f"#{application}/credentials")
    await console.at("button", "Create a credential", nth=1).click()
    await console.at("textbox", "Name").fill("orders")
    await console.at("combobox", "Type").choose("A login to an SQL database (sql)")
    await console.at("combobox", "System").choose("pg")
    await console.at("textbox", "Host").fill("db.example.com")
    await console.at("textbox", "Username").fill("reader")
    await console.at("textbox", "Password").fill("not shown again")
    await console.at("button", "Create").click()
    await console.at("heading", "orders").shown()
    await console.sees("Host db.example.com")
    await console.sees("Nothing uses it")
    assert "not shown again" not in await console.shows()
    await console.at("button", "Change").click()
    await console.at("textbox", "Host").fill("db2.example.com")
    await console.at("button", "Save").click()
    await console.sees("Host db2.example.com")
    (stored,) = (await server.call("GET", f"{application}/credentials"))["items"]
    assert stored["sqlConfig"]["username"] == "reader"


async def test_the_address_of_a_webhook_can_be_called(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await console.go(f"#{application}/webhooks")
    await console.at("button", "Create a webhook", nth=1).click()
    await console.at("textbox", "Name").fill("orders")
    await console.at("textbox", re.compile("^Response code")).fill("202")
    await console.at("textbox", re.compile("^Basic auth username")).fill("o'brien")
    await console.at("textbox", re.compile("^Basic auth password")).fill("open sesame")
    await console.at("button", "Create").click()
    address = await console.at(css='figure[aria-label="The address"] pre').text()
    await console.sees("-u 'o'\\''brien:PASSWORD'")
    webhook = (await console.place()).rpartition("/")[2]
    trigger = {"type": "webhook", "key": webhook, "outputIds": []}
    flow = {"name": "order", "flowClass": "experience", "triggers": [trigger]}
    await server.call("POST", f"{application}/flows", flow)
    await console.reload()
    await console.at("link", "order").shown()
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
        assert (await client.post(address, json={})).status_code == 401
        assert (await client.post(address, json={}, auth=("o'brien", "open sesame"))).status_code == 202
    await console.at("button", "Change").click()
    await console.at("checkbox", re.compile("^Enabled")).click()
    await console.at("button", "Save").click()
    await console.sees("State disabled")


async def test_an_integration_shows_why_it_is_not_connected(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await console.go(f"#{application}/integrations")
    await console.at("button", "Create an integration", nth=1).click()
    await console.at("textbox", "Name").fill("broker")
    await console.at("textbox", re.compile("^Host")).fill("127.0.0.1")
    await console.at("button", "Create").click()
    await console.at("heading", "broker").shown()
    await console.sees("State failed")
    await console.sees("Last error")
    await console.at("link", "Integrations", nth=1).click()
    await console.at("cell", "failed").shown()


async def test_messages_of_topics_are_shown_while_they_are_published(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    await console.go(f"#{application}/topics?topic=barn/%2B/temperature")
    await console.sees("Nothing was published yet")
    publish = f"{application}/mqttPublishMessage"
    await server.call("POST", publish, {"topic": "barn/1/humidity", "message": "not for this filter"})
    await server.call("POST", publish, {"topic": "barn/1/temperature", "message": "19.5"})
    await console.at("cell", "19.5").shown()
    await console.at("textbox", "Topic").fill("barn/2/temperature")
    await console.at("textbox", "Message").fill("<b>21.5</b>")
    await console.at("button", "Publish").click()
    await console.at("cell", "<b>21.5</b>").shown()
    assert "not for this filter" not in await console.shows()
    await console.at("textbox", "Topics").fill("#")
    await console.at("button", "Subscribe").click()
    await console.sees("Nothing was published yet")
    await console.comes_to(f"#{application}/topics")


async def test_connected_mqtt_clients_are_shown_beside_the_topics(chromium: None, tmp_path: Path) -> None:
    async with (
        house_in(tmp_path / "data") as house,
        console_page(house.server.url, tmp_path, login=await login_of(house.server)) as console,
    ):
        await console.go(f"#{house.application}/topics")
        await console.sees("MQTT clients that are connected")
        async with house.client(), house.client("desk", V3_1_1):
            await console.go(f"#{house.application}/devices")
            await console.go(f"#{house.application}/topics")
            await console.at("cell", "desk").shown()
            await console.at("cell", "3.1.1, tcp").shown()
            await console.sees("2 connected")
            await console.at("link", house.id).click()
            await console.comes_to(f"#{house.device}")
