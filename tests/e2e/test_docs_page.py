"""The page of the API in a real browser, where one is installed: it is filled in for the demo, and invents nothing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import started
from tests.patience import PATIENCE_S
from trunkline.http.routes import TABLE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ("quic", "gpu", "background-networking", "component-update", "sync")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


async def rendered(url: str, profile: Path) -> str:
    """The page as its scripts have made it."""
    assert CHROMIUM is not None
    options = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in QUIET)]
    options += [f"--user-data-dir={profile}", "--virtual-time-budget=30000", "--dump-dom"]
    with trio.fail_after(PATIENCE_S):
        done = await trio.run_process([CHROMIUM, *options, url], capture_stdout=True, capture_stderr=True)
    return done.stdout.decode()


async def test_the_page_is_filled_in_and_invents_no_filter(tmp_path: Path) -> None:
    async with started(tmp_path / "data", "--demo") as server:
        await server.prints("The token is valid for a day")
        assert await server.listens()
        server.token = await server.log_in()
        (application,) = (await server.call("GET", "/applications"))["items"]
        page = await rendered(f"{server.url}/docs#/Devices/devices.get", tmp_path / "profile")
    assert page.count('class="opblock ') == len(TABLE.routes)
    rows = dict(re.findall(r'<tr data-param-name="([^"]+)"[^>]*>(.*?)</tr>', page, re.S))
    given = {name: re.search(r'<input [^>]*value="([^"]*)"', row) for name, row in rows.items()}
    values = {name: found[1] for name, found in given.items() if found is not None}
    assert values.pop("applicationId") == application["id"]
    assert {name: value for name, value in values.items() if value} == {"page": "0", "perPage": "100"}
    assert {"query", "tagFilter", "filter", "parentId", "deviceClass"} <= values.keys()
