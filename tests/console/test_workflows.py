"""Workflows in the console: the picture, runs with their paths, and the replay on another version."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.console.console_page import ConsolePage
from tests.e2e.conftest import Server

pytestmark = pytest.mark.slow


def definition(limit: int) -> dict[str, Any]:
    """A press of the button fails if the temperature is above the limit."""
    return {
        "triggers": [{"type": "virtualButton", "key": "press", "meta": {"label": "Measure"}, "outputIds": [["warm"]]}],
        "nodes": [
            {
                "id": "warm",
                "type": "ConditionalNode",
                "config": {"expression": f"{{{{data.temperature}}}} > {limit}"},
                "meta": {"label": "Too warm?"},
                "outputIds": [["fine"], ["stop"]],
            },
            {"id": "fine", "type": "DebugNode", "config": {"message": "All is well."}, "meta": {"label": "Fine"}},
            {
                "id": "stop",
                "type": "ThrowErrorNode",
                "config": {"messageTemplate": "It is {{data.temperature}} degrees."},
                "meta": {"label": "Give up"},
            },
        ],
        "globals": [],
    }  # fmt: skip


async def workflow(server: Server, **more: Any) -> tuple[str, str]:
    """The path of a workflow with a version `v2` that has a higher limit, and the place of its page."""
    application = await server.application()
    flow = await server.call("POST", f"{application}/flows", {"name": "vents", **definition(30), **more})
    path = f"{application}/flows/{flow['id']}"
    await server.call("POST", f"{path}/versions", {"version": "v2", "notes": "Higher.", **definition(50)})
    return path, f"#{path.replace('/flows/', '/workflows/')}"


async def test_a_failed_run_is_found_understood_and_replayed(server: Server, console: ConsolePage) -> None:
    _, place = await workflow(server)
    await console.go(place)
    await console.at("link", re.compile("^Too warm")).click()
    await console.sees("{{data.temperature}} > 30")
    await console.at("button", "Measure").click()
    await console.at("textbox", re.compile("Payload")).fill('{"temperature": 41}')
    await console.at("button", "Press").click()
    await console.sees("Pressed.")
    await console.at("link", "Runs").click()
    await console.sees("Give up: It is 41 degrees.")
    await console.at("region", "Runs").at("link", nth=0).click()
    await console.sees("The node Give up failed with Error: It is 41 degrees.")
    await console.at("link", re.compile("^Give up.*failed here")).shown()
    await console.at("link", re.compile("^Fine.*not visited")).shown()
    await console.at("button", "Replay").click()
    await console.at(css="dialog").at("combobox", "Version").choose("v2")
    await console.at(css="dialog").at("button", "Replay").click()
    await console.sees("The replay has ended: completed")
    await console.at("link", "Open the new run").click()
    await console.at("link", re.compile("^Fine.*visited 1 time")).shown()
    await console.sees("All is well.")
