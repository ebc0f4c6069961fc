"""Every page of the console on the demo loads without a fault, wide and narrow, and is not wider than the window."""

from __future__ import annotations

import pytest

from tests.console.console_page import ConsolePage
from tests.console.demo_server import DemoServer
from tests.console.tour import WINDOWS, tour

pytestmark = pytest.mark.slow

TOO_WIDE = "Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)"
HEADINGS = "document.querySelectorAll('h1').length"
PROBLEM = "document.querySelector('.problem')?.innerText ?? ''"


@pytest.mark.first
@pytest.mark.timeout(600)
async def test_every_page_loads(demo_console: ConsolePage, demo: DemoServer) -> None:
    page, names = demo_console, []
    async for stop in tour(page, demo):
        names.append(stop.name)
        await page.gives(HEADINGS, 1)
        await page.gives(PROBLEM, "")
        for size, (width, height) in WINDOWS.items():
            if size != "wide":  # as it is given
                await page.viewport(width, height)
                await page.settled()
            await page.gives(TOO_WIDE, 0, f"{stop.name} at {width} pixels")
    assert {"overview", "devices", "device", "log-in"} <= set(names)
    assert len(names) == len(set(names))
