"""The page of the jobs: what runs now, what came of the others, and their results."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from tests.console.console_page import ConsolePage, console_page, login_of
from tests.e2e.conftest import Server
from tests.e2e.job_cases import CASES, ITEMS, LIMITS, MIDDLE
from tests.e2e.server_process import OWNER, serving
from tests.e2e.test_crash import FAULTY

pytestmark = pytest.mark.slow


async def test_a_job_appears_and_its_result_is_downloaded(server: Server, console: ConsolePage) -> None:
    application = await server.application()
    await server.device(application, "pump")
    await console.go(f"#{application}/jobs")
    await console.sees("There are no jobs yet")
    await console.at(css=".empty summary").click()
    await console.sees(f"curl -s -X POST '{server.url}{application}/devices/export'")
    await server.call("POST", f"{application}/devices/export", {})
    await console.at("link", "devices.export").click()
    await console.sees("completed")
    async with console.download() as file:
        await console.at("link", re.compile("^Download")).click()
        assert [row["name"] for row in csv.DictReader((await file()).read_text().splitlines())] == ["pump"]
    first = await console.place()
    await console.at("button", "Run again").click()
    await console.at("dialog").at("button", "Run again").click()
    await console.sees("The new job is queued.")
    await console.at("dialog").gone()
    assert await console.place() != first
    await console.sees("completed")
    await console.at("link", "Jobs", nth=1).click()
    await console.sees("2 jobs")
    await console.at("combobox", "Status").choose("Failed")
    await console.sees("Nothing matches.")


async def test_a_running_job_shows_its_progress(chromium: None, tmp_path: Path) -> None:
    """The server holds the job in its middle."""
    limits = tmp_path / "limits.toml"
    limits.write_text(LIMITS)
    more = {"program": FAULTY, "env": {**OWNER, "CRASH_HELD_JOB": MIDDLE}}
    async with serving(tmp_path / "data", "--limits", str(limits), **more) as held:
        order = await CASES["dataTableRows.export"].prepare(held)
        login, place = await login_of(held), f"#{order.application}/jobs"
        async with console_page(held.url, tmp_path, place=place, login=login) as page:
            await page.sees("There are no jobs yet")
            await held.call(order.method, order.path, order.body)
            await page.sees("in progress")
            await page.sees(f"of {ITEMS}")
            bar = page.at("progressbar", "Progress of the job")
            assert 0 < int(await bar.attribute("value") or 0) < ITEMS
