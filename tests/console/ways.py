"""Five things that people do all day, timed in a real browser from the login on, with their clicks and characters.

    .venv/bin/python -m tests.console.ways [--phone]

With `--phone` the window has 390 by 844 pixels. Prints a table; clicks and characters of the login do not count. The
time is that of a script that looks for each element and waits for each answer, without the time in which a person
reads. A choice in a list counts as two clicks. Tests assert none of it, because machines differ.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio

from tests.console.console_page import ConsolePage
from tests.e2e.browser import opened
from tests.e2e.conftest import EMAIL, PASSWORD, Server, running_server
from tests.e2e.link_peer import linked

ATTRIBUTES = [
    {"name": "temperature", "dataType": "number", "attributeTags": {"unit": "°C"}},
    {"name": "pressure", "dataType": "number", "attributeTags": {"unit": "bar"}},
    {"name": "mode", "dataType": "string"},
]
STATE = {"temperature": 21.5, "pressure": 1.2, "mode": "on"}
HOUR_S = 3600


class CountedPage(ConsolePage):
    """A page that counts what its person does."""

    clicks = 0
    characters = 0
    is_phone = False

    async def open(self, name: str) -> None:
        """Choose a page in the menu, which a phone hides."""
        if self.is_phone:
            await self.settled()  # the menu closes when the page changes
            await self.at("button", "Menu").click()
        await self.at("link", name).click()

    async def command(self, method: str, *, ends_with: str = "", **parameters: Any) -> Any:
        """See `Page`."""
        type = parameters.get("type")
        if method == "Input.dispatchMouseEvent" and type == "mousePressed":
            self.clicks += 1
        elif method == "Input.insertText":
            self.characters += len(parameters["text"])
        elif method == "Input.dispatchKeyEvent" and type == "keyDown":
            self.characters += 1
        return await super().command(method, ends_with=ends_with, **parameters)

    async def function(self, handle: str, script: str, *arguments: Any) -> Any:
        """See `ElementPage`."""
        if "this.options" in script:
            self.clicks += 2
        return await super().function(handle, script, *arguments)


class Plant:
    """A server with an application of four devices, of which one is silent."""

    def __init__(self, server: Server, application: str, devices: dict[str, str]) -> None:
        self.server, self.application, self.devices = server, application, devices

    @classmethod
    async def make(cls, server: Server) -> Plant:
        """Make the devices; all but one report again after an hour."""
        application = await server.application("plant")
        devices = {
            name: await server.device(application, name, attributes=ATTRIBUTES)
            for name in ("boiler", "chiller", "compressor", "pump")
        }
        plant = cls(server, application, devices)
        await plant.report(*devices)
        server.move_clock(HOUR_S)
        await plant.report("boiler", "chiller", "compressor")
        return plant

    async def report(self, *names: str) -> None:
        """Let devices report."""
        for name in names:
            await self.server.call("POST", f"{self.devices[name]}/state", {"data": STATE})


async def find_the_silent_device(plant: Plant, page: CountedPage) -> None:
    """From the first page to the page of the device that is silent."""
    await page.sees("1 of 4 devices is silent")
    await page.at("link", "pump", nth=0).click()
    await page.at("heading", "pump").shown()


async def send_a_command(plant: Plant, page: CountedPage) -> None:
    """To a device that is connected, until it has acknowledged."""
    token, _ = await plant.server.device_token(plant.devices["boiler"])
    async with linked(plant.server, plant.devices["boiler"], token) as (peer, _):
        await page.open("Devices")
        await page.at("link", "boiler").click()
        await page.at("link", "Commands").click()
        await page.at("textbox", "Name").fill("restart")
        await page.at("button", "Send").click()
        _, number, *_ = await peer.next()
        await peer.send(4, number)
        await page.sees("acknowledged")


async def make_a_dashboard(plant: Plant, page: CountedPage) -> None:
    """Of a device, with six blocks or more."""
    await page.open("Devices")
    await page.at("link", "chiller").click()
    await page.at("button", "Make a dashboard").click()
    await page.comes_to(re.compile("/dashboards/"))
    await page.at("region", "temperature", nth=0).says("21.5")
    (board,) = (await plant.server.call("GET", f"{plant.application}/dashboards"))["items"]
    assert len(board["blocks"]) >= 6


async def make_an_alarm(plant: Plant, page: CountedPage) -> None:
    """A mail when a temperature is above 30 for two minutes, on any device."""
    await page.open("Alarms")
    await page.at("button", "Create a rule", nth=0).click()
    form = page.at("dialog")
    await form.at("textbox", "Name").fill("Too warm")
    await form.at("combobox", re.compile("^Attribute")).choose("temperature")
    await form.at("textbox", "Value").fill("30")
    await form.at("textbox", re.compile("^For minutes")).fill("2")
    await form.at("textbox", re.compile("^Mail to")).fill("night@example.com")
    await form.at("button", "Create").click()
    await page.sees("temperature is above 30 for 2 minutes")


async def add_a_device(plant: Plant, page: CountedPage) -> None:
    """Until its first state has arrived by the program that the page shows."""
    await page.open("Devices")
    await page.at("link", "Add devices", nth=0).click()
    await page.at("textbox", "Name").fill("fan")
    await page.at("textbox", "What it reports").fill("speed=number rpm")
    await page.at("button", "Create the device").click()
    program = await page.at(css=".connect .snippet pre").text()
    await trio.run_process(["sh", "-c", program], capture_stdout=True, stderr=subprocess.STDOUT)
    await page.sees("fan has reported")


WAYS: tuple[Callable[[Plant, CountedPage], Awaitable[None]], ...] = (
    find_the_silent_device,
    send_a_command,
    make_a_dashboard,
    make_an_alarm,
    add_a_device,
)


async def main(is_phone: bool) -> None:
    """Go each way once, each with a login of its own."""
    print("| way | seconds | clicks | characters |\n|---|---|---|---|")  # noqa: T201
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with running_server(folder / "data") as server:
            plant = await Plant.make(server)
            for way in WAYS:
                async with opened(folder / way.__name__, CountedPage) as page:
                    page.is_phone = is_phone
                    await page.begin(server.url, folder)
                    if is_phone:
                        await page.viewport(390, 844, mobile=True)
                    began_s = trio.current_time()
                    await page.log_in(EMAIL, PASSWORD)
                    page.clicks = page.characters = 0
                    await way(plant, page)
                    took_s = trio.current_time() - began_s
                    what = way.__name__.replace("_", " ")
                    print(f"| {what} | {took_s:.1f} | {page.clicks} | {page.characters} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    trio.run(main, "--phone" in sys.argv[1:])
