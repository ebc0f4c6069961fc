"""A Chromium without a window, driven over its debugging protocol: a page, and JavaScript run in it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from trio_websocket import WebSocketConnection, open_websocket_url

from tests.patience import PATIENCE_S

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
"""None where there is none."""

_QUIET = ("quic", "gpu", "background-networking", "component-update", "sync")
_MESSAGE_BYTES_MAX = 1 << 26


class Page:
    """A page that is shown."""

    def __init__(self, connection: WebSocketConnection, session: str) -> None:
        self._connection = connection
        self._session = session
        self._calls = 0

    async def run(self, script: str) -> Any:
        """The value of an expression, or of the promise that it is. An exception of the page fails the test."""
        given: dict[str, Any] = {"expression": script, "awaitPromise": True, "returnByValue": True}
        answer = await self.command("Runtime.evaluate", **given)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """The value of an expression as soon as it is true."""
        look = f"const value = ({expression}); value ? found(value) : setTimeout(look, 20)"
        return await self.run(f"new Promise((found) => {{ const look = () => {{ {look} }}; look(); }})")

    async def command(self, method: str, *, ends_with: str = "", **parameters: Any) -> Any:
        """A command of the protocol and its answer; with `ends_with`, when this event has come as well."""
        self._calls += 1
        call = {"id": self._calls, "method": method, "params": parameters, "sessionId": self._session}
        await self._connection.send_message(json.dumps(call))
        answer = None
        while answer is None or ends_with:
            message = json.loads(await self._connection.get_message())
            assert message.get("method") != "Runtime.exceptionThrown", message
            if message.get("method") == ends_with:
                ends_with = ""
            if message.get("id") == self._calls:
                assert "result" in message, message
                answer = message["result"]
        return answer


@asynccontextmanager
async def shown(url: str, profile: Path) -> AsyncIterator[Page]:
    """A page in a browser of its own, loaded. All waiting in it is bounded."""
    assert CHROMIUM is not None
    options = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in _QUIET)]
    options += [f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"]
    with trio.fail_after(PATIENCE_S):
        process = await trio.lowlevel.open_process(
            [CHROMIUM, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            async with open_websocket_url(
                await _address(process), max_message_size=_MESSAGE_BYTES_MAX
            ) as connection:
                tab = await _command(connection, "Target.createTarget", url="about:blank")
                session = await _command(
                    connection, "Target.attachToTarget", targetId=tab["targetId"], flatten=True
                )
                page = Page(connection, session["sessionId"])
                await page.command("Page.enable")
                await page.command("Runtime.enable")
                await page.command("Page.navigate", ends_with="Page.loadEventFired", url=url)
                yield page
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


async def _address(process: trio.Process) -> str:
    assert process.stderr is not None
    said = b""
    async for piece in process.stderr:
        said += piece
        if found := re.search(rb"DevTools listening on (ws://\S+)\n", said):
            return found[1].decode()
    raise AssertionError(f"the browser ended: {said.decode()}")


async def _command(connection: WebSocketConnection, method: str, **parameters: Any) -> Any:
    """A command to the browser itself, before there is a page."""
    await connection.send_message(json.dumps({"id": 0, "method": method, "params": parameters}))
    while True:
        message = json.loads(await connection.get_message())
        if message.get("id") == 0:
            return message["result"]
