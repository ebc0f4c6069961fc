"""The tab in which the draft of a workflow is drawn, as tests use it."""

from __future__ import annotations

import re
from typing import Any

from tests.console.console_page import ConsolePage
from tests.console.target import Target
from tests.e2e.conftest import Server


async def drawn(server: Server, console: ConsolePage, *, application: str = "", **definition: Any) -> str:
    """The path of a workflow, with the picture of its draft open."""
    application = application or await server.application()
    flow = await server.call("POST", f"{application}/flows", {"name": "vents", **definition})
    path = f"{application}/flows/{flow['id']}"
    await console.go(f"#{path.replace('/flows/', '/workflows/')}/edit")
    await console.at("group", re.compile("^The draft")).shown()
    await console.at(css=".flow-palette h3").shown()
    return path


def box(console: ConsolePage, key: str) -> Target:
    """The box of a part."""
    return console.at(css=f'[data-part="{key}"]')


def output(console: ConsolePage, key: str, number: int = 0) -> Target:
    """The handle of an output of a part."""
    return console.at(css=f'[data-of="{key}"][data-output="{number}"]')


async def saved(server: Server, console: ConsolePage, path: str) -> Any:
    """The draft, after it was saved in the page."""
    await console.at("button", "Save").click()
    await console.at("link", "Try before saving").gone()  # a note may be that of the save before
    return await server.call("GET", path)


def nodes(*names: str, **outputs: list[list[str]]) -> list[dict[str, Any]]:
    """Debug nodes with these ids, and the outputs of some of them."""
    return [{"id": each, "type": "DebugNode", "outputIds": outputs.get(each, [])} for each in names]


async def add(console: ConsolePage, name: str) -> None:
    """Click a part in the palette."""
    await console.at("group", "Parts to add").at("button", name).click()
