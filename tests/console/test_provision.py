"""Devices are added with a key each, a program to copy is run, and their first states appear."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from tests.console import qr_code
from tests.console.console_page import ConsolePage
from tests.console.test_account import modules
from tests.e2e.conftest import Server, running_server
from tests.e2e.mqtt_client import mqtt_client
from trunkline.http.mqtt.packets import SUCCESS, V3_1_1

pytestmark = pytest.mark.slow


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server with MQTT, without any application."""
    async with running_server(tmp_path / "data", mqtt_port=0) as running:
        yield running


async def run(*command: str) -> str:
    """Run a program and return what it prints."""
    done = await trio.run_process(command, capture_stdout=True, stderr=subprocess.STDOUT)
    return done.stdout.decode()


async def publish(server: Server, command: str) -> None:
    """Do what a command of `mosquitto_pub` does; the port is that of this server."""
    program, *words = shlex.split(command.replace("\\\n", " "))
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert (program, options["-h"], options["-p"], options["-q"]) == (
        "mosquitto_pub",
        "127.0.0.1",
        "1883",
        "1",
    )
    async with mqtt_client(server.mqtt_ports[0], V3_1_1) as client:
        answer = await client.connect(options["-i"], username=options["-u"], password=options["-P"].encode())
        assert answer.code == SUCCESS, answer
        await client.publish(options["-t"], options["-m"].encode(), qos=1)


async def call_as_the_sketch_does(server: Server, sketch: str) -> None:
    """Send the calls of a program for Arduino: a login, and a state."""
    assert f'URL = "{server.url}"' in sketch
    (login, state) = [
        (path, json.loads(body)) for path, body in re.findall(r'call\("(\S+?)", R"\((.*)\)"\)', sketch)
    ]
    token = (await server.call("POST", *login, token=""))["token"]
    await server.call("POST", *state, token=token)


async def test_a_device_is_added_and_its_programs_run_as_they_stand(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    await console.go(f"#{application}/devices")
    await console.at("link", "Add devices", nth=0).click()
    await console.at("textbox", "Name").fill("it's a pump")
    await console.at("button", "Create the device").click()
    await console.sees("attributes is empty; name at least one thing")
    await console.at("textbox", "What it reports").fill("temp=number °C\non=boolean\nlabel=string")
    await console.at("button", "Create the device").click()
    await console.sees("Waiting for the first state of it's a pump.")
    ((device,), (key,)) = [
        (await server.call("GET", f"{application}/{records}"))["items"] for records in ("devices", "keys")
    ]
    assert (key["deviceIds"], key["deviceTags"]) == ([device["id"]], [])
    access = json.loads(qr_code.read(await modules(console.at(css=".qr-code"))))
    secret = access.pop("secret")
    assert access == {"server": server.url, "deviceId": device["id"], "key": key["key"]}
    assert secret not in await console.place()

    program = console.at(css=".connect .snippet pre")
    assert '"success":true' in (await run("sh", "-c", await program.text())).replace(" ", "")
    await console.sees("it's a pump has reported")
    await console.sees("temp 21.5 °C")
    await console.at("button", "Python").click()
    assert "{'success': True}" in await run(sys.executable, "-c", await program.text())
    await console.at("button", "JavaScript").click()
    await program.says("await call(")
    await console.run(f"(async () => {{ {await program.text()} }})()")
    states = await server.call("GET", f"{application}/devices/{device['id']}/state?limit=9")
    assert [each["data"] for each in states] == [{"temp": 21.5, "on": True, "label": "text"}] * 3
    await console.at("button", "MQTT").click()
    await program.says("mosquitto_pub")
    await publish(server, await program.text())
    await console.at("button", "Arduino").click()
    await program.says("HTTPClient")
    await call_as_the_sketch_does(server, await program.text())
    states = await server.call("GET", f"{application}/devices/{device['id']}/state?limit=9")
    assert [each["data"] for each in states] == [{"temp": 21.5, "on": True, "label": "text"}] * 5
    await console.at("link", "Open the device").click()
    await console.at(css='[data-attribute="temp"]').says("21.5 °C")
    await console.at("link", "Connect").click()
    await console.at("button", "Make an access key").click()
    await console.sees("Waiting for the next state of it's a pump.")


async def test_many_devices_are_added_from_a_recipe_with_a_key_each(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    await console.go(f"#{application}/devices/add")
    await console.at("button", "Many from a recipe").click()
    await console.sees("There is no recipe yet.")
    attributes = [{"name": "level", "dataType": "number", "attributeTags": {"unit": "%"}}]
    await server.call("POST", f"{application}/device-recipes", {"name": "Tank", "attributes": attributes})
    await console.reload()
    await console.at("button", "Many from a recipe").click()
    await console.at("textbox", "Names").fill("tank")
    await console.at("textbox", "How many").fill("3")
    await console.at("textbox", "First number").fill("9")
    await console.at("button", "Create devices").click()
    await console.sees('pattern is "tank"; it must have a # for the number, such as pump-##.')
    await console.at("textbox", "Names").fill('"tank", ##')
    await console.at("button", "Create devices").click()
    await console.sees("0 of 3 have reported")
    async with console.download() as file:
        await console.at("link", "Download the keys").click()
        rows = list(csv.DictReader((await file()).read_text().splitlines()))
    assert [row["name"] for row in rows] == ['"tank", 09', '"tank", 10', '"tank", 11']
    given = {"deviceId": rows[1]["deviceId"], "key": rows[1]["accessKey"], "secret": rows[1]["accessSecret"]}
    token = (await server.call("POST", "/auth/device", given, token=""))["token"]
    other = {**given, "deviceId": rows[0]["deviceId"]}
    await server.call("POST", "/auth/device", other, token="", status=401)
    state = {"data": {"level": 40}}
    await server.call("POST", f"{application}/devices/{rows[1]['deviceId']}/state", state, token=token)
    await console.sees("1 of 3 have reported")
    await console.at(css="tbody tr", nth=1).says("arrived")
    await console.at("button", 'Connect "tank", 09').click()
    await console.sees('Waiting for the first state of "tank", 09.')
