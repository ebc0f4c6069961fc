"""The tab in which the draft of a workflow is drawn, as tests use it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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


class Pointer:
    """The mouse with its button pressed."""

    def __init__(self, console: ConsolePage, x: float, y: float) -> None:
        self._console = console
        self.x, self.y = x, y

    async def to(self, x: float, y: float) -> None:
        """Move it to a place in the window."""
        self.x, self.y = x, y
        await self._send("mouseMoved", buttons=1)

    async def over(self, target: Target) -> None:
        """Move it to the middle of an element."""
        at = await middle(target)
        await self.to(at["x"], at["y"])

    async def _send(self, type: str, **more: Any) -> None:
        await self._console.command("Input.dispatchMouseEvent", type=type, x=self.x, y=self.y, **more)


@asynccontextmanager
async def pressed(console: ConsolePage, target: Target) -> AsyncIterator[Pointer]:
    """Press the mouse in the middle of an element, and release it where it is at the end."""
    await target.hover()
    at = await middle(target)
    pointer = Pointer(console, at["x"], at["y"])
    await pointer._send("mousePressed", button="left", clickCount=1)
    yield pointer
    await pointer._send("mouseReleased", button="left", clickCount=1)


async def middle(target: Target) -> dict[str, float]:
    """Where the middle of an element is in the window."""
    script = """function () {
        const box = this.getBoundingClientRect();
        return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    }"""
    found: dict[str, float] = await target._call(script)
    return found


def nodes(*names: str, **outputs: list[list[str]]) -> list[dict[str, Any]]:
    """Debug nodes with these ids, and the outputs of some of them."""
    return [{"id": each, "type": "DebugNode", "outputIds": outputs.get(each, [])} for each in names]


async def add(console: ConsolePage, name: str) -> None:
    """Click a part in the palette."""
    await console.at("group", "Parts to add").at("button", name).click()
