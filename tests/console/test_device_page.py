"""The page of a device: its values and charts, live, and its commands."""

from __future__ import annotations

import re
import time

import pytest
import trio

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server
from tests.e2e.link_peer import linked

pytestmark = pytest.mark.slow

LARGE = 9007199254740993
"""A whole number that a double cannot hold."""
SHAPES = """import("/console/views/device/command_shapes.js").then(({ commandShapes }) => commandShapes(
    ["dim number", "lock until:json by"].map((value) => ({ key: "command", value })),
    [{ name: "dim", payload: 3 }, { name: "say", payload: "hello" }, { name: "say", payload: { text: "hi" } },
     { name: "move", payload: { x: 1, to: [2] } }, { name: "move", payload: { fast: true } }, { name: "stop" }],
).map(({ name, fields, last }) => {
    const text = fields.map(({ key, type }) => `${key.trim()}:${type}`).join(" ");
    return [name, text, last ?? null];
}))"""
"""The fields of commands: those of tags, then those of payloads, whose newest form it is."""
BREAKS = """import("/console/parts/gaps.js").then(({ gapsOf }) => [
    gapsOf([0, 10, 20, 30, 1830, 1840, 1850, 1860], [1, 2, 3, 4, 5, 6, null, 7]),
    gapsOf([0, 10, 90], [1, 2, 3]),
])"""
"""Where lines are broken: half an hour among values of every ten seconds; nothing where there are too few to tell."""


async def points(page: ConsolePage, attribute: str) -> int:
    """How many points the chart of an attribute has drawn last."""
    found = f"[...document.querySelectorAll('.charts > div')].find((each) => each.innerText.startsWith('{attribute}'))"
    return int(await page.run(f"Number({found}?.dataset.points ?? 0)"))


async def test_a_chart_joins_the_history_and_the_stream(server: Server, console: ConsolePage) -> None:
    """Each state is one point: those of the history, those of the stream, and those that are in both."""
    application = await server.application()
    device = await server.device(application)
    await console.go(f"#{device}")
    await console.sees("This device has not reported yet")
    now_ms = int(time.time() * 1000)

    def state(second: int) -> object:
        """Seconds are so far apart that the server and the page keep each of them in a chart of 15 minutes."""
        return {"time": now_ms - 600_000 + 2000 * second, "data": {"temp": second}}

    await server.call("POST", f"{device}/state", [state(second) for second in range(100)])
    await console.sees("temp 99")
    await console.reload()

    async with trio.open_nursery() as nursery:

        async def report() -> None:
            for second in range(100, 120):
                await server.call("POST", f"{device}/state", state(second))

        nursery.start_soon(report)
        await console.sees("temp 119")

    async def look() -> bool:
        return await points(console, "temp") == 120

    await console.soon(look, "120 points")
    await console.at("button", "1 h").click()
    await console.comes_to(re.compile(r"range=1h"))
    await console.at(css=".charts .u-over").drag(0.6, 0.95)
    await console.sees("Own range")
    await console.comes_to(re.compile(r"from="))
    await console.at("checkbox", "Chart of on").click()
    await console.sees("No values in this range.")


async def test_values_that_are_unusual_are_shown(server: Server, console: ConsolePage) -> None:
    """Numbers as large as a sensor reports when it is broken, and attributes named as properties of all objects."""
    application = await server.application()
    names = ("far", "near", "constructor", "valueOf")
    attributes = [{"name": name, "dataType": "number"} for name in names]
    device = await server.device(application, "odd", attributes=attributes)
    for far in (3.4028234e38, -1.5e308):
        await server.call("POST", f"{device}/state", {"data": {"far": far, "near": 2.5e-9}})
    await console.go(f"#{device}")
    for name, text in {"far": "-1.5E308", "near": "2.5E-9", "constructor": "none"}.items():
        await console.at(css=f'[data-attribute="{name}"]').says(text)
    await console.at("image", "far in the last six hours").shown()
    await console.at("image", "constructor in the last six hours").gone()
    await console.at("link", "States").click()
    await console.at(css="tbody tr", nth=1).says("3.40282E38 2.5E-9")
    await console.go(f"#{application}/devices")
    await console.at(css="tbody tr").says("-1.5E308 2.5E-9 -")


async def test_attributes_are_compared(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    attributes = [{"name": "temp", "dataType": "number"}, {"name": "power", "dataType": "number"}]
    device = await server.device(application, attributes=attributes)
    now_ms = int(time.time() * 1000)
    # The middle of the chart, which ends now, is next to the second state, even if the page is slow.
    values = [(800, 20, 7000), (430, 21, 7001), (60, 22, 7002)]
    states: list[object] = [
        {"time": now_ms - 1000 * ago, "data": {"temp": temp, "power": power}} for ago, temp, power in values
    ]
    states.append({"time": now_ms - 30_000, "data": {"temp": 19.12345678}})
    await server.call("POST", f"{device}/state", states)
    await console.go(f"#{device}")
    chart = console.at("image", re.compile(r"^temp\."))
    await chart.at(css=".u-over").hover()
    for name, value in (("temp", "21"), ("power", "7,001")):
        await (
            console.at("image", re.compile(rf"^{name}\.")).at(css=".u-series:last-child .u-value").says(value)
        )
    await console.at("button", "One chart").click()
    await console.at("image", "Attributes. temp: 19.1235, power (right): 7,002").shown()
    await console.reload()
    for row, value in ((2, "19.1235"), (3, "7,002")):  # the newest, with no pointer over the chart
        await console.at(css=f".u-legend tr:nth-child({row}) .u-value").says(value)
    assert await console.run(BREAKS) == [[[30, 1830]], []]
    await console.at("image", re.compile("^Attributes")).at(css=".u-over").drag(0.1, 0.9)
    await console.sees("Own range")
    await console.at("checkbox", "Chart of power").click()
    await console.at("image", "temp. temp: 21").shown()
    await console.at("button", "One chart").gone()


async def test_a_command_is_sent_and_acknowledged(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    tag = {"key": "command", "value": "setTarget value:number fast:boolean note"}
    device = await server.device(application, tags=[tag])
    await console.go(f"#{device}/commands")
    assert await console.run(SHAPES) == [
        ["dim", "payload:number", 3],
        ["lock", "until:json by:text", None],
        ["say", "payload:text", "hello"],
        ["move", "x:number to:json fast:boolean", {"x": 1, "to": [2]}],
        ["stop", "", None],
    ]
    await console.sees("No command was sent to this device")
    await console.at("button", "Another command").click()
    await console.at("textbox", "Name").fill("switch")
    await console.at("textbox", re.compile("^Payload")).fill(f'{{"on": {LARGE}}}')
    await console.at("textbox", re.compile("^Time to live")).fill("600")
    await console.at("button", "Send").click()
    await console.sees("waiting for the device to connect")
    await console.sees(f"on: {LARGE}")
    token, _ = await server.device_token(device)
    async with linked(server, device, token) as (peer, _):
        _, number, name, *_ = await peer.next()
        assert name == "switch"
        await console.sees("delivered to its connection")
        await peer.send(4, number)
        await console.sees("acknowledged")
        await console.at("button", "setTarget").click()
        await console.at("textbox", re.compile("^value")).fill("21.5")
        await console.at("combobox", "fast").choose("false (off)")
        await console.at("button", "Send setTarget").click()
        _, _, name, *rest = await peer.next()
        assert (name, {"value": 21.5, "fast": False} in rest) == ("setTarget", True)
        await console.at("button", "Send again switch").click()
        _, _, name, *rest = await peer.next()
        assert (name, {"on": LARGE} in rest) == ("switch", True)
        await console.at("button", "switch").click()
        await console.at("textbox", re.compile("^on")).holds(
            str(LARGE)
        )  # its field, with what it was sent last
    await console.go(f"#{device}/connections")
    await console.sees("not open")
    await console.sees("127.0.0.1")


async def test_commands_are_seen_that_no_stream_has_told_of(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    device = await server.device(application)
    async with console.held("*/commandStream*") as asked:
        await console.go(f"#{device}/commands")
        await asked()
        await console.sees("No command was sent to this device")
        await server.call("POST", f"{device}/command", {"name": "before"})
    await console.at(css="tbody").says("before")
    async with console.hidden():
        await console.sees("stale since")
        await server.call("POST", f"{device}/command", {"name": "while"})
    await console.at(css="tbody").says("while")
