"""Find what moves in a page of the console while its parts come: each answer of the server is late, in mixed order.

    .venv/bin/python -m tests.console.shifts            all pages
    .venv/bin/python -m tests.console.shifts devices    the pages whose names have this text

It prints the score of each page (the sum of the layout shifts that no input caused), and which controls moved.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import trio

from tests.console.tour import WINDOWS, demo_console, tour
from tests.e2e.browser import ProtocolError

DELAY_S_MIN: Final = 0.1
DELAY_S_MORE: Final = 0.5
"""An answer comes so much later at most, by its address and the size of the window."""

_OBSERVE: Final = """{
    const CONTROLS = "a, button, input, select, textarea, summary, [role=slider]";
    const element = (node) => (node instanceof Element ? node : node?.parentElement);
    const name = (node) => {
        const own = (each) => [each.localName, ...each.classList].join(".");
        const text = (node.ariaLabel || node.innerText || "").replace(/\\s+/g, " ").slice(0, 30);
        return `${node.parentElement ? own(node.parentElement) + " > " : ""}${own(node)} "${text}"`;
    };
    globalThis.shifts = [];
    new PerformanceObserver((list) => {
        for (const { value, hadRecentInput, sources } of list.getEntries()) {
            if (hadRecentInput) continue;
            const moved = sources.filter(({ node }) => {
                const found = element(node);
                return found && (found.closest(CONTROLS) || found.querySelector(CONTROLS));
            });
            globalThis.shifts.push({ value, moved: moved.map(({ node, previousRect, currentRect }) => ({
                name: name(element(node)),
                x: Math.round(currentRect.x - previousRect.x), y: Math.round(currentRect.y - previousRect.y),
                width: Math.round(currentRect.width - previousRect.width),
            })) });
        }
    }).observe({ type: "layout-shift", buffered: true });
}"""


async def main(wanted: str = "") -> None:
    """Print the score of each page, wide and narrow, and the controls that moved."""
    total, salt = 0.0, ""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            demo_console(Path(folder), patience_s=3600) as (demo, page),
            trio.open_nursery() as nursery,
        ):

            async def hold(request: str, url: str) -> None:
                await trio.sleep(DELAY_S_MIN + crc32(f"{salt} {url}".encode()) % 1000 / 1000 * DELAY_S_MORE)
                try:
                    await page.command("Fetch.continueRequest", requestId=request)
                except ProtocolError:
                    return  # the page asks no longer

            def paused(event: Any) -> None:
                nursery.start_soon(hold, event["requestId"], event["request"]["url"])

            page.on("Fetch.requestPaused", paused)
            await page.command("Page.addScriptToEvaluateOnNewDocument", source=_OBSERVE)
            async for stop in tour(page, demo):
                if wanted not in stop.name:
                    continue
                await page.command(
                    "Fetch.enable", patterns=[{"resourceType": "Fetch"}, {"resourceType": "XHR"}]
                )
                for size, (width, height) in WINDOWS.items():
                    salt = size
                    await page.viewport(width, height, mobile=size == "narrow")
                    await page.reload()
                    await page.settled()
                    found = await page.run("globalThis.shifts")
                    score = sum(each["value"] for each in found)
                    total += score
                    print(f"{score:.3f} {stop.name} {size}", flush=True)  # noqa: T201
                    for each in found:
                        for moved in each["moved"]:
                            by = f"{moved['x']:+} {moved['y']:+} pixels, {moved['width']:+} wider"
                            print(f"    {each['value']:.3f} {moved['name']}: {by}", flush=True)  # noqa: T201
                await page.command("Fetch.disable")
            nursery.cancel_scope.cancel()
    print(f"{total:.2f} in all pages")  # noqa: T201


if __name__ == "__main__":
    trio.run(partial(main, *sys.argv[1:]))
