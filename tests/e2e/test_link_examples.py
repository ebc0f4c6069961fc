"""The clients of `docs/examples/` against a real server that is stopped, and then killed, while they send."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import ServerProcess, serving
from tests.patience import PATIENCE_S
from tests.ports import reserved_port

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FIRST_MS = 1_700_000_000_000
STATES = 150
"""Those that are sent to each life of the server: more than the window."""


def python() -> list[str]:
    return [sys.executable, str(EXAMPLES / "link_client.py")]


def node() -> list[str]:
    """Node with WebSocket, which some versions have only by an option."""
    for command in (["node"], ["node", "--experimental-websocket"]):
        if shutil.which("node") is None:
            pytest.skip("node is not installed")
        probe = [*command, "-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)"]
        if subprocess.run(probe, check=False, capture_output=True).returncode == 0:
            return [*command, str(EXAMPLES / "link_client.mjs")]
    pytest.skip("this version of node has no WebSocket")


class Example:
    """A client in a process of its own."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.sent = 0
        self._received = b""

    async def send(self, states: int) -> None:
        assert self.process.stdin is not None
        numbers = range(self.sent, self.sent + states)
        await self.process.stdin.send_all(
            b"".join(b'[%d, {"temp": %d}]\n' % (FIRST_MS + number, number) for number in numbers)
        )
        self.sent += states

    async def command(self) -> str:
        """The name of the next command that it prints."""
        assert self.process.stdout is not None
        while b"\n" not in self._received:
            received = await self.process.stdout.receive_some()
            assert received, "it has ended"
            self._received += received
        line, _, self._received = self._received.partition(b"\n")
        return str(json.loads(line)[1])

    async def end(self) -> None:
        """Wait until it has seen that all is stored; it prints nothing more."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        await self.process.stdin.aclose()
        self._received += await self.process.stdout.receive_some()
        assert (await self.process.wait(), self._received) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize("command", [python, node])
async def test_an_example_stores_everything_once_over_restarts(
    tmp_path: Path, command: Callable[[], list[str]]
) -> None:
    data, client = tmp_path / "data", command()
    async with AsyncExitStack() as stack:
        port = stack.enter_context(reserved_port())
        stack.enter_context(trio.fail_after(PATIENCE_S))
        arguments = ("--port", str(port), "--limits", "off")
        async with serving(data, *arguments) as server:
            device = await server.device(await server.application())
            token, _ = await server.device_token(device)
            url = f"ws://127.0.0.1:{port}{device}/link"
            example = await stack.enter_async_context(started([*client, url, token]))
            while not (await server.call("GET", device))["connectionInfo"]["connected"]:
                pass
            await used(server, device, example, "first")
            assert await server.terminate() == 0
        async with serving(data, *arguments) as server:
            await used(server, device, example, "second")
            await server.kill()
        async with serving(data, *arguments) as server:
            await used(server, device, example, "third")
            await example.end()
            query = {"limit": 1000, "start": 1}
            states = await server.call("GET", f"{device}/state", params=query)
            commands = await server.call("GET", f"{device}/command", params=query)
            counts = await server.call("GET", f"{device}/payloadCounts")
    assert [state["data"]["temp"] for state in reversed(states)] == list(range(3 * STATES))
    assert counts["deviceState"] == 3 * STATES
    assert [entry["status"] for entry in commands] == ["acknowledged"] * 3


@asynccontextmanager
async def started(command: list[str]) -> AsyncIterator[Example]:
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Example(process)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def used(server: ServerProcess, device: str, example: Example, name: str) -> None:
    """The example has sent states, has printed a command, and has more to send."""
    await example.send(STATES // 2)
    await server.call("POST", f"{device}/command", {"name": name})
    assert await example.command() == name
    await example.send(STATES // 2)
