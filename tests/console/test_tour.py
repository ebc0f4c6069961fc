"""Every page of the console on the demo loads without a fault, wide and narrow, and is not wider than the window.

Its title names the application, and its heading is at the same height as on every other page.
"""

from __future__ import annotations

import pytest

from tests.console.console_page import ConsolePage
from tests.console.demo_server import DemoServer
from tests.console.tour import WINDOWS, tour

pytestmark = pytest.mark.slow

TOO_WIDE = "Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)"
HEADINGS = "document.querySelectorAll('h1').length"
HEAD_TOP = "Math.round(document.querySelector('.frame h1')?.getBoundingClientRect().top ?? -1)"
"""Where the heading begins; -1 on a page without the navigation."""
APPLICATION = "document.querySelector('.side .application')?.innerText ?? ''"
PROBLEM = "document.querySelector('.problem')?.innerText ?? ''"


@pytest.mark.first
@pytest.mark.timeout(600)
async def test_every_page_loads(demo_console: ConsolePage, demo: DemoServer) -> None:
    page, names, tops = demo_console, [], {}
    async for stop in tour(page, demo):
        names.append(stop.name)
        await page.gives(HEADINGS, 1)
        await page.gives(PROBLEM, "")
        application, title = await page.run(APPLICATION), await page.run("document.title")
        assert title.endswith(f" - {application} - Trunkline" if application else " - Trunkline"), title
        tops[stop.name] = await page.run(HEAD_TOP)
        for size, (width, height) in WINDOWS.items():
            if size != "wide":  # as it is given
                await page.viewport(width, height)
                await page.settled()
            await page.gives(TOO_WIDE, 0, f"{stop.name} at {width} pixels")
    assert len(set(tops.values()) - {-1}) == 1, tops
    assert {"overview", "devices", "device", "log-in"} <= set(names)
    assert len(names) == len(set(names))
