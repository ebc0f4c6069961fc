"""Every list that is empty says what to do next, and the calls that it shows work as they stand."""

from __future__ import annotations

import json
import os
import sys

import pytest
import trio

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow

PLACES = """import("/console/routes.js").then(({ ROUTES }) => ROUTES.map((row) => row.path)
    .filter((path) => path.startsWith("/applications/:app/") && path.lastIndexOf(":") === 14))"""
SNIPPET = "[...document.querySelectorAll('.empty figure[aria-label=\"With %s\"] pre')].map((each) => each.innerText)"
SETTLED = """document.querySelector("main h1:not([data-left])")
    && !document.querySelector("main").innerText.includes("Loading.")"""
WITHOUT_CALL = {"actors", "settings", "topics"}
"""Pages whose first record comes by other ways than one call."""


async def run(command: list[str], token: str) -> str:
    """What a command prints; it fails the test if it ends with another code than 0."""
    environment = {**os.environ, "TOKEN": token}
    done = await trio.run_process(
        command, env=environment, capture_stdout=True, capture_stderr=True, check=False
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout.decode()


@pytest.mark.parametrize("language", ["curl", "Python"])
async def test_the_calls_of_an_empty_list_work(language: str, server: Server, console: ConsolePage) -> None:
    application = await server.application()
    token = await server.log_in()
    shell = ["sh", "-c"] if language == "curl" else [sys.executable, "-c"]
    without = set()
    for path in await console.run(PLACES):
        place = path.replace("/applications/:app", application)
        await console.run("document.querySelector('main h1')?.setAttribute('data-left', '')")
        await console.go(f"#{place}")
        with trio.fail_after(30):
            await console.until(SETTLED)
        if not (snippets := await console.run(SNIPPET % language)):
            without.add(path.rpartition("/")[2])
            continue
        if path.endswith("/certificates"):
            assert "BEGIN CERTIFICATE" in snippets[0]  # the reader puts a certificate in
            continue
        made = json.loads(await run([*shell, snippets[0]], token))
        assert "message" not in made or "id" in made, (path, made)
        await console.reload()
        await console.at(css="main table").shown()
    assert without == WITHOUT_CALL
