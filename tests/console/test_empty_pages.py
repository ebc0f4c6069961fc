"""Every list that is empty says what it is for, and has one main button; the calls that it folds away work."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest
import trio

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

PLACES = """import("/console/routes.js").then(({ ROUTES }) => ROUTES.map((row) => row.path)
    .filter((path) => path.startsWith("/applications/:app/") && path.lastIndexOf(":") === 14))"""
SNIPPET = "[...document.querySelectorAll('.empty figure[aria-label=\"With %s\"] pre')].map((each) => each.textContent)"
EMPTY = """[...document.querySelectorAll("main div.empty")].map((each) => [
    document.querySelectorAll("main .lead").length + each.querySelectorAll("p:not(details *)").length,
    each.querySelectorAll(".primary").length,
    each.querySelectorAll("details[open]").length])"""
"""Of each list that is empty: its sentences and those of the head, its main buttons, its calls that are not folded."""
SETTLED = """document.querySelector("main h1:not([data-left])")
    && !document.querySelector("main").innerText.includes("Loading.")"""
WITHOUT_CALL = {"actors", "add", "rules", "settings", "topics"}
"""Pages whose first record comes by other ways than one call; the first alarm rule by that of the page before."""


WITHOUT_BUTTON = {"actors", "files"}
"""Lists whose first record comes by itself, or by the fields above them."""

SHELLS = {"curl": ["sh", "-c"], "Python": [sys.executable, "-c"]}


async def run(command: list[str], token: str) -> Any:
    """The JSON that a command prints; it fails the test if it ends with another code than 0."""
    environment = {**os.environ, "TOKEN": token}
    done = await trio.run_process(
        command, env=environment, capture_stdout=True, capture_stderr=True, check=False
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return json.loads(done.stdout)


async def test_the_calls_of_an_empty_list_work(server: Server, console: ConsolePage) -> None:
    """Those for curl in the application that is shown; those for Python in another one, where nothing is yet."""
    application, other = await server.application("curl"), await server.application("Python")
    token = await server.log_in()
    without = set()
    for path in await console.run(PLACES):
        place = path.replace("/applications/:app", application)
        await console.run("document.querySelector('main h1')?.setAttribute('data-left', '')")
        await console.go(f"#{place}")
        with trio.fail_after(PATIENCE_S):
            await console.until(SETTLED)
        for sentences, buttons, open_calls in await console.run(EMPTY):
            assert sentences >= 1, path
            assert buttons == (path.rpartition("/")[2] not in WITHOUT_BUTTON), path
            assert open_calls == 0, path
        snippets = {language: await console.run(SNIPPET % language) for language in SHELLS}
        if not any(snippets.values()):
            without.add(path.rpartition("/")[2])
            continue
        if path.endswith("/certificates"):
            assert all(
                "BEGIN CERTIFICATE" in text for text, *_ in snippets.values()
            )  # the reader puts one in
            continue
        in_other = snippets["Python"][0].replace(application, other)
        assert in_other != snippets["Python"][0]
        for command in ([*SHELLS["curl"], snippets["curl"][0]], [*SHELLS["Python"], in_other]):
            made = await run(command, token)
            assert "message" not in made or "id" in made, (path, made)
        await console.reload()
        await console.at(css="main table, main .all-well").shown()
    assert without == WITHOUT_CALL
