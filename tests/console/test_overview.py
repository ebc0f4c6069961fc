"""The first screen: the fleet, what is refused and what is on disk, live while devices report; then the server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import cast

import httpx
import pytest
import trio

from tests.console.console_page import ConsolePage, console_page, login_of
from tests.e2e.conftest import PASSWORD, Server, running_server
from tests.e2e.test_long_turns import hold_the_loop
from trunkline.actors import server_users
from trunkline.actors.core.runtime.machines import ClusterStatus, MachineLine, Machines
from trunkline.actors.core.runtime.work import Work
from trunkline.store.log import LogServer, LogState

pytestmark = pytest.mark.slow

DEVICES = 3


async def figure(page: ConsolePage, label: str) -> str:
    """The figure of a tile by its label."""
    found = f"[...document.querySelectorAll('.tile')].find((each) => each.innerText.startsWith({json.dumps(label)}))"
    return str(await page.run(f"({found})?.querySelector('.figure')?.innerText ?? ''"))


async def shows(page: ConsolePage, label: str, figures: str) -> None:
    """Wait until a tile shows this figure."""

    async def look() -> bool:
        return await figure(page, label) == figures

    await page.soon(look, f"{label}: {figures}")


async def moving(page: ConsolePage, label: str) -> None:
    """Wait until a tile shows a rate above 0."""

    async def look() -> bool:
        shown = await figure(page, label)
        return shown.endswith("/s") and float(shown[:-2].replace(",", "")) > 0

    await page.soon(look, f"{label}: above 0/s")


async def report(server: Server, device: str, data: object) -> int:
    """Send a state and return the status of the answer."""
    async with server.client() as client:
        return (await client.post(f"{device}/state", json={"data": data})).status_code


async def test_the_first_screen_is_live_while_a_load_runs(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    devices = [await server.device(application, f"pump-{number}") for number in range(DEVICES)]
    await console.go(f"#{application}")
    await shows(console, "Never seen", "3")
    await console.sees("Nothing was refused since")
    await console.at("region", "Health").says("No device has reported yet.")
    async with trio.open_nursery() as nursery:

        async def load() -> None:
            number = 0
            while True:
                number += 1
                assert await report(server, devices[number % 2], {"temp": number}) in (200, 429)

        nursery.start_soon(load)
        await shows(console, "Reporting", "2")
        await shows(console, "Never seen", "1")
        await console.at("link", re.compile("^Reporting")).click()
        await console.sees("2 devices")
        await console.comes_to(re.compile(r"show=reporting"))
        await console.go(f"#{application}")
        await moving(console, "States")
        await console.sees("send_state")
        nursery.cancel_scope.cancel()
    assert await report(server, devices[2], {"nothing": 1}) == 400
    await console.sees("invalid")
    await console.at("region", "Refused last").at("link", "pump-2").shown()
    await server.call("POST", f"{devices[0]}/setConnectionStatus", {"status": "connected"})
    await shows(console, "Connected", "1")
    await server.call("POST", f"{devices[0]}/command", {"name": "start"})
    await console.sees("1 in all")
    event = {"level": "critical", "subject": "Too hot", "state": "new"}
    await server.call("POST", f"{application}/events", event)
    await shows(console, "critical", "1")
    await console.at("region", "Health").says("1 new critical event is open.")
    await console.at("region", "Health").at("link", re.compile("event is open")).click()
    await console.comes_to(re.compile(r"events\?state=open"))
    await console.go(f"#{application}")
    await console.at(css=".server-line").says("free")
    await console.gives("document.title", "Critical - house - Trunkline")
    await console.go("#/applications")
    await console.at("region", "Health of all applications").says("1 of 1 application needs attention.")
    await console.at("region", "Health of all applications").at("link", "house").click()
    await console.at("link", "pump-2").click()
    await console.comes_to(f"#{devices[2]}")


async def test_operators_see_the_longest_turns_and_other_users_do_not(
    server: Server, console: ConsolePage, tmp_path: Path
) -> None:
    application = await server.application()
    await hold_the_loop(Work("call", "device.sendState", bytes.fromhex(application.rpartition("/")[2])))
    await console.go("#/server")
    table = console.at("region", re.compile("^Longest turns$"))
    for text in ("device.sendState", application.rpartition("/")[2], (await server.call("GET", "/me"))["id"]):
        await table.says(text)
    await console.sees("Connections ended by the server")
    menu = console.at("navigation", "Console")
    await menu.at("link", "Server").shown()
    await server_users.add_user(server.system, "eve@example.com", PASSWORD)
    async with (
        console_page(server.url, tmp_path / "other", place="#/server") as page,
        page.expecting("403 .*/metrics$"),
    ):
        await page.log_in("eve@example.com", PASSWORD)
        await page.sees("The figures of the whole server are for its operators")
        await page.at("region", re.compile("^Longest turns$")).gone()
        await page.go("#/applications")
        await page.at("button", "Create an application", nth=0).shown()
        await page.at("navigation", "Console").at("link", "Server").gone()


async def test_the_server_is_shown_from_its_counters(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    device = await server.device(application)
    await console.go("#/server")
    await console.sees("Calls by class")
    async with trio.open_nursery() as nursery:

        async def load() -> None:
            while True:
                await report(server, device, {"temp": 1})

        nursery.start_soon(load)
        await moving(console, "Messages handled")
        nursery.cancel_scope.cancel()
    async with httpx.AsyncClient(base_url=server.url) as client:
        assert "trunkline_commits_total" in (await client.get("/metrics")).text


async def test_the_machines_of_a_server_are_shown(server: Server, console: ConsolePage) -> None:
    machines = [
        MachineLine("a", [0], 3, 0, "127.0.0.1:1", 0.0, True),
        MachineLine("b", [], 3, 12, "127.0.0.1:2", 0.1, True),
        MachineLine("c", [], 2, 900, "127.0.0.1:3", 60.0, False),
    ]
    servers = [LogServer("n1", True, True), LogServer("n2", False, False)]
    status = ClusterStatus("tl-test-0", LogState(1, 900, 12_000), servers, machines, 1, [], 900, 12_000)
    server.system.component(Machines).status = lambda: status
    await console.go("#/server")
    await console.at("region", "Machines").says("c")
    rows = "[...document.querySelectorAll('[aria-label=\"NAME\"] tbody tr')].map((row) => row.innerText).join('|')"
    shown = await console.run(rows.replace("NAME", "Machines"))
    assert shown == "a\tserves\t1\t0|b\tfollows\t0\t12|c\tis not heard\t0\t900"
    shown = await console.run(rows.replace("NAME", "NATS servers of the log"))
    assert shown == "n1\thas all of the log|n2\tis not heard, or behind"
    lost = "The log does not answer: nothing can be stored."
    assert lost not in str(await console.run("document.body.innerText"))
    away = status._replace(log=None, servers=[])
    server.system.component(Machines).status = lambda: away
    await console.sees(lost)


async def test_the_figures_of_several_partitions_are_shown_together(chromium: None, tmp_path: Path) -> None:
    async with (
        running_server(tmp_path / "data", partitions=3) as server,
        console_page(server.url, tmp_path, login=await login_of(server)) as console,
    ):
        for name in ("one", "two"):
            device = await server.device(await server.application(name))
            await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        await console.go("#/server")
        await console.at("region", "Processes of the partitions").says("partition-2")
        rows = "[...document.querySelectorAll('[aria-label=\"Processes of the partitions\"] tbody tr')]"
        shown = await console.run(
            f"{rows}.map((row) => row.innerText.split('\\t').slice(0, 3).join(' ')).join('|')"
        )
        assert shown == "partition-0 answers 0|partition-1 answers 1|partition-2 answers 1"
        cells = f"{rows}.map((row) => row.innerText.split('\\t').slice(5, 8).map((cell) => cell.trim()).join(' / '))"
        for passed_on, waits, busy in [
            row.split(" / ") for row in cast("list[str]", await console.run(cells))
        ]:
            assert passed_on.endswith("/s"), passed_on
            assert waits.endswith(" B"), waits
            assert re.fullmatch(r"\d+ %", busy), busy
        started = await console.run("document.body.innerText")
        assert "Runs for" in str(started)


LATE = """{
    const late = new AbortController(), usual = AbortSignal.timeout;
    AbortSignal.timeout = () => late.signal;
    globalThis.late = () => late.abort(new DOMException("It is late.", "TimeoutError"));
    globalThis.usual = () => { AbortSignal.timeout = usual; };
}"""
"""Calls with a limit of time wait until the test says that they are late."""


async def test_figures_are_stale_when_the_server_does_not_answer(
    server: Server, console: ConsolePage
) -> None:
    application = await server.application()
    await server.device(application)
    await console.go(f"#{application}")
    await console.at(css=".is-live").shown()
    await console.run(LATE)
    async with console.held("*/overview*") as asked:
        await asked()
        await console.run("late()")
        await console.at(css=".is-stale").says("The server does not answer.")
        await shows(console, "Never seen", "1")
    await console.run("usual()")
    await console.at(css=".is-live").shown()
    await console.go("#/applications")
    await console.at("region", "Health of all applications").shown()
    await console.run(LATE)
    async with console.held("*/applications/health*") as asked:
        await asked()
        await console.run("late()")
        await console.at(css=".is-stale").says("The server does not answer.")
    await console.run("usual()")
    await console.go("#/server")
    await console.at("heading", "Calls by class").shown()
    await console.run(LATE)
    async with console.held("*/metrics") as asked:
        await asked()
        await console.run("late()")
        await console.sees("The counters cannot be read, so these are older. The server does not answer.")
    await console.run("usual()")
    await console.at("alert").gone()


async def test_actors_are_listed_by_what_is_wrong_with_them(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    busy = await server.device(application, "busy")
    refused = await server.device(application, "refused")
    for number in range(3):
        assert await report(server, busy, {"temp": number}) == 200
    assert await report(server, refused, {"nothing": 1}) == 400
    await console.go(f"#{application}/actors?kind=device")
    await console.sees("2 actors")
    await console.at(css="tbody tr td a", nth=0).says("busy")
    await console.at("button", "Most refused").click()
    await console.at(css="tbody tr:first-child").says("refused")
    await console.comes_to(re.compile(r"sort=refused"))
