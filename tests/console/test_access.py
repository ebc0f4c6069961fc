"""Access of devices and programs in the console: access keys, API tokens and certificates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.certificates import make_certificate
from tests.console.console_page import ConsolePage
from tests.console.demo_server import DemoServer
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow


async def test_the_secret_of_a_key_is_shown_once_and_logs_a_device_in(
    demo: DemoServer, demo_console: ConsolePage
) -> None:
    page, server = demo_console, demo.server
    await page.go(f"#{demo.application}/keys")
    await page.at("button", "Create an access key").click()
    await page.at("textbox", "Name (optional)").fill("key of the pump")
    name, device = next(iter(demo.devices.items()))
    await page.at("searchbox", "Search Devices by name to add").fill(name)
    await page.at("button", f"Add {name}").click()
    await page.at("button", f"Remove {name}").shown()
    await page.at("textbox", "Devices by tag (optional)").fill("floor")  # a key alone
    await page.at("button", "Create").click()
    await page.sees("It is shown now and never again")
    line = await page.at(css='figure[aria-label="Log a device in with curl"] pre').text()
    body = json.loads(line[line.index("-d '") + 4 : line.rindex("'")])
    assert body["deviceId"] == device
    await server.call("POST", "/auth/device", body, token="", status=200)
    other = {**body, "deviceId": list(demo.devices.values())[1]}
    await server.call("POST", "/auth/device", other, token="", status=401)
    await page.at("button", "I have copied it").click()
    await page.at("link", "key of the pump").click()
    await page.sees("The secret was shown when the key was created")
    await page.at(css="main .tag").says("floor")
    await page.at("button", "Set inactive").click()
    await page.sees("It is inactive now")
    await server.call("POST", "/auth/device", body, token="", status=401)
    await page.at("button", "Delete").click()
    await page.at("dialog").at("button", "Delete").click()
    await page.at("heading", "Access keys").shown()
    await page.at("link", "key of the pump").gone()


async def test_a_secret_is_shown_also_if_the_dialog_is_closed_before_it_comes(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    await console.go(f"#{application}/keys")
    await console.at("button", "Create an access key", nth=0).click()
    async with console.held("*/keys") as asked:
        await console.at("dialog").at("button", "Create").click()
        await asked()
        await console.press("Escape")
        await console.at("dialog").gone()
    await console.sees("It is shown now and never again.")


async def test_a_token_can_do_what_its_scopes_say(demo: DemoServer, demo_console: ConsolePage) -> None:
    page, server = demo_console, demo.server
    await page.go(f"#{demo.application}/tokens")
    await page.at("button", "Create an API token").click()
    await page.at("textbox", "Name").fill("reports")
    read = page.at(css='input[value="all.Application.read"]')
    await read.click()
    async with page.expecting("status of 400"):
        await page.at("button", "Create").click()
        await page.at("alert").says("scope: is empty")
    await read.click()
    await page.at("searchbox", "Search in Scopes").fill("device.sendCommand")
    await page.at(css='input[value="device.sendCommand"]').click()
    await page.at("button", "Create").click()
    token = await page.at(css='figure[aria-label="The secret"] pre').text()
    await server.call("GET", f"{demo.application}/devices", token=token)
    device = next(iter(demo.devices.values()))
    command = {"name": "setTarget", "payload": {"value": 27}}
    await server.call("POST", f"{demo.application}/devices/{device}/command", command, token=token)
    await server.call("DELETE", f"{demo.application}/devices/{device}", token=token, status=403)
    await page.at("button", "I have copied it").click()
    await page.at("link", "reports").click()
    await page.sees("device.sendCommand Send a command")


async def test_a_certificate_is_read_from_a_file(
    demo: DemoServer, demo_console: ConsolePage, tmp_path: Path
) -> None:
    page = demo_console
    file = tmp_path / "pump.pem"
    file.write_text(make_certificate("pump 7"))
    await page.go(f"#{demo.application}/certificates")
    await page.at("button", "Create a certificate").click()
    async with page.expecting("status of 400"):
        await page.at("button", "Create").click()
        await page.at("alert").says("certificate: ")
    await page.at(css='input[type="file"]').upload(file)
    await page.at("button", "Create").click()
    await page.at("heading", "pump 7").shown()
    await page.sees("30 days left")
