"""How quick the console is, in a real Chromium, with the server in a process of its own and its throttles lifted.

    .venv/bin/python -m tests.bench.console
    .venv/bin/python -m tests.bench.console --devices 100000 --minutes 10

What is 0 is left out. Prints one table: the time from a key press until the rows are shown, the time of the first
paint with a new profile, and, while one device reports 1,000 states a second, the frames a second and the memory of
the page that shows it. The memory is taken after a collection of garbage, so what grows there is held. Tests assert
none of it, because machines differ.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.console.console_page import ConsolePage, console_page, login_of
from tests.e2e.server_process import ServerProcess, serving
from trunkline.bench.link_client import LinkClient
from trunkline.bench.session import Json, Session, device_path

MIB = 2**20
CONNECTIONS = 16
FRAME_S = 0.05
"""The device sends a frame of rows so often."""
SAMPLE_S = 5.0
"""Frames are counted for so long, once in each sample."""
FRAMES = 30
"""A second: fewer are seen as jerks."""
PATIENCE_S = 3600.0

_BEGAN = """for (const type of ["keydown", "pointerdown"])
    addEventListener(type, () => { window.began = performance.now(); }, { capture: true });"""
_SHOWN = """new Promise((done) => {{
    const look = () => requestAnimationFrame(() => (({condition}) ? done(performance.now() - window.began) : look()));
    look();
}})"""
_PAINT = """new Promise((done) => new PerformanceObserver((list) => {
    for (const each of list.getEntries()) if (each.name === "first-contentful-paint") done(each.startTime);
}).observe({ type: "paint", buffered: true }))"""
_LOADED = """performance.getEntriesByType("resource").reduce(
    ([files, bytes], each) => [files + 1, bytes + each.transferSize], [1, 0])"""
_ROWS = "document.querySelectorAll('main tbody tr').length"
_LIST = f"document.querySelector('h1')?.textContent === 'Devices' && {_ROWS} > 1"
_FIRST_ROW = "document.querySelector('main tbody tr')?.innerText"


class Table:
    """What was measured: a line for each figure."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def add(self, what: str, figure: str) -> None:
        """Add a line, and print it at once."""
        self.lines.append((what, figure))
        print(f"{what}: {figure}", file=sys.stderr, flush=True)  # noqa: T201

    def __str__(self) -> str:
        rows = [("what", "measured"), ("---", "---"), *self.lines]
        return "\n".join(f"| {what} | {figure} |" for what, figure in rows)


async def shown_after(page: ConsolePage, condition: str) -> float:
    """Milliseconds from the last key press or click until the condition is true and drawn."""
    return float(await page.run(_SHOWN.format(condition=condition)))


async def measure_lists(server: ServerProcess, folder: Path, count: int, table: Table) -> None:
    """Open a list of many devices, and search in it."""
    session = Session(server.url, token=server.token, connections_max=CONNECTIONS)
    application = await session.find_application("fleet") or await session.create_application("fleet")
    counted = await session.call("GET", f"/applications/{application}/devices", query={"perPage": 1})
    await session.create_devices(application, [_device(each) for each in range(counted["totalCount"], count)])
    session.close()
    devices = f"#/applications/{application}"
    number = count // 2 + 3
    async with _logged_in(server, folder, devices) as page:
        await page.settled()
        await page.press("g")
        await page.press("d")
        table.add(f"{count:,} devices: the list opened", _ms([await shown_after(page, _LIST)]))
        times = []
        for each in (number, number + 1, number + 2):
            name = f"sensor-{each:06}"
            await page.press("/")
            await page.at(css="[data-search]").fill("")
            await page.type(name)
            times.append(await shown_after(page, f"{_ROWS} === 1 && {_FIRST_ROW}.includes('{name}')"))
        table.add("a name searched, from the last key", _ms(times))
        await page.at(css="[data-search]").fill("")
        await page.run(f"void (location.hash = {json.dumps(devices + '/devices?tag=floor%3D7')})")
        await page.settled()
        await page.run(f"void (location.hash = {json.dumps(devices + '/devices')})")
        await page.settled()
        times = []
        for floor in (7, 8, 9):
            await page.at(css="input.tag-filter").fill(f"floor={floor}")
            await page.press("Enter")
            times.append(await shown_after(page, f"{_FIRST_ROW}.includes('sensor-{floor:06}')"))
        table.add("a tag searched", _ms(times))


def _device(number: int) -> Json:
    tags = [{"key": "floor", "value": str(number % 50)}]
    return {"name": f"sensor-{number:06}", "tags": tags, "attributes": [{"name": "t", "dataType": "number"}]}


async def measure_starts(server: ServerProcess, folder: Path, starts: int, table: Table) -> None:
    """Load the console with new profiles: the login, and the overview of an application."""
    application = await server.application("small")
    await server.device(application)
    for name, place, ready in (
        ("the login", "", "document.querySelector('input[type=password]')"),
        ("the overview", f"#{application}", "document.querySelector('main .tile')"),
    ):
        paints, ends, loaded = [], [], (0, 0)
        for start in range(starts):
            profile = folder / f"start-{name[-1]}-{start}"
            async with (
                _logged_in(server, profile, place) if place else console_page(server.url, profile) as page
            ):
                paints.append(float(await page.run(_PAINT)))
                await page.until(ready)
                ends.append(float(await page.run("performance.now()")))
                await page.settled()
                loaded = tuple(await page.run(_LOADED))
        table.add(f"a new profile: first paint of {name}", _ms(paints))
        table.add(f"a new profile: {name} can be used", _ms(ends))
        table.add(f"a new profile: {name} loads", f"{loaded[0]} files, {loaded[1] / 1000:,.0f} kB")


async def measure_updates(
    server: ServerProcess, folder: Path, rate: int, minutes: float, table: Table
) -> None:
    """Show a device that reports so many states a second."""
    application = await server.application("busy")
    attributes = [{"name": name, "dataType": "number"} for name in ("level", "count")]
    made = await server.call("POST", f"{application}/devices", {"name": "busy", "attributes": attributes})
    path = device_path(application.rpartition("/")[2], made["id"])
    link = LinkClient(server.url, path, server.token)
    frames, heaps = [], []
    async with trio.open_nursery() as nursery:
        sent, reporting = [0], trio.CancelScope()
        nursery.start_soon(link.run)
        nursery.start_soon(_report, link, rate, sent, reporting)
        async with _logged_in(server, folder, f"#{path}") as page:
            await page.at(css="canvas").shown()
            began_s, before = trio.current_time(), sent[0]
            while trio.current_time() < began_s + minutes * 60:
                frames.append(await page.frames_per_second(SAMPLE_S))
                heaps.append(await page.heap_bytes())
                print(f"{frames[-1]:.0f} frames/s, {heaps[-1] / MIB:.1f} MiB", file=sys.stderr, flush=True)  # noqa: T201
            passed_s, reported = trio.current_time() - began_s, sent[0] - before
            reporting.cancel()
            await _caught_up(page, sent[0] - 1, table)
            nursery.cancel_scope.cancel()
    quarter = max(1, len(heaps) // 4)
    table.add("states a second to one page", f"{reported / passed_s:,.0f} for {passed_s / 60:.1f} minutes")
    table.add(
        "frames a second",
        f"{statistics.median(frames):.0f}; {FRAMES} or more in {sum(each >= FRAMES for each in frames)} of "
        f"{len(frames)} samples of {SAMPLE_S:.0f} s, never fewer than {min(frames):.0f}",
    )
    table.add(
        "memory of its JavaScript",
        f"{max(heaps[:quarter]) / MIB:.1f} MiB in the first quarter, {max(heaps[-quarter:]) / MIB:.1f} in the last",
    )


async def _report(link: LinkClient, rate: int, sent: list[int], reporting: trio.CancelScope) -> None:
    """Send states at this rate, each at a millisecond of its own."""
    next_s, count = trio.current_time(), round(rate * FRAME_S)
    step_ms = FRAME_S * 1000 / count
    with reporting:
        while True:
            now_ms = time.time_ns() // 1_000_000
            numbers = range(sent[0], sent[0] + count)
            rows = [
                [round(now_ms + place * step_ms), number % 977, number]
                for place, number in enumerate(numbers)
            ]
            with trio.CancelScope(shield=True):
                await link.send_rows(["level", "count"], rows)
            sent[0] += count
            next_s += FRAME_S
            await trio.sleep_until(next_s)


async def _caught_up(page: ConsolePage, last: int, table: Table) -> None:
    """Wait until the page shows the last value that was sent: it has taken all that came before."""
    began_s = trio.current_time()

    async def look() -> bool:
        return str(last) in (await page.shows()).replace(",", "")

    await page.soon(look, f"the value {last}")
    table.add("the page has all of them, after the last", f"{(trio.current_time() - began_s) * 1000:.0f} ms")


@asynccontextmanager
async def _logged_in(server: ServerProcess, folder: Path, place: str) -> AsyncIterator[ConsolePage]:
    """A page that starts with the login of the owner."""
    login = await login_of(server)
    given: dict[str, Any] = {"place": place, "before": _BEGAN, "login": login, "patience_s": PATIENCE_S}
    async with console_page(server.url, folder, **given) as page:
        yield page


def _ms(times: Sequence[float]) -> str:
    if len(times) == 1:
        return f"{times[0]:.0f} ms"
    return f"{statistics.median(times):.0f} ms ({min(times):.0f} to {max(times):.0f}, {len(times)} times)"


async def main(chosen: argparse.Namespace) -> None:
    """Measure what is chosen, and print the table."""
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with serving(chosen.data or folder / "data", "--limits", "off", cold=True) as server:
            if chosen.starts:
                await measure_starts(server, folder / "starts", chosen.starts, table)
            if chosen.devices:
                await measure_lists(server, folder / "lists", chosen.devices, table)
            if chosen.minutes:
                await measure_updates(server, folder / "updates", chosen.rate, chosen.minutes, table)
    print(table)  # noqa: T201


def arguments() -> argparse.Namespace:
    """What is measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.console")
    parser.add_argument("--devices", type=int, default=100_000, help="devices in the list (default 100000)")
    parser.add_argument("--rate", type=int, default=1000, help="states a second to one page (default 1000)")
    parser.add_argument("--minutes", type=float, default=0.5, help="how long they are sent (default 0.5)")
    parser.add_argument("--starts", type=int, default=5, help="new profiles (default 5)")
    parser.add_argument("--data", type=Path, help="a data directory that is kept; its devices are used again")
    return parser.parse_args()


if __name__ == "__main__":
    trio.run(main, arguments())
