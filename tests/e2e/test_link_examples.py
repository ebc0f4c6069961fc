"""The clients of `docs/examples/` against a real server: while it is stopped, and then killed; and over TLS.

Their WebSocket is that of others: the Python package `websockets`, that of Node, and the package `ws` of Node.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio
import trustme

from tests.e2e.server_process import ServerProcess, serving
from tests.http.tls_client import write_certificate
from tests.patience import PATIENCE_S
from tests.ports import reserved_port

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FIRST_MS = 1_700_000_000_000
STATES = 150
"""Those that are sent to each life of the server: more than the window."""


def python(_directory: Path) -> list[str]:
    return [sys.executable, str(EXAMPLES / "link_client.py")]


def node(_directory: Path) -> list[str]:
    """Node with its own WebSocket, which some versions have only by an option."""
    for command in (["node"], ["node", "--experimental-websocket"]):
        if runs(*command, "-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)"):
            return [*command, str(EXAMPLES / "link_client.mjs")]
    pytest.skip("this version of node has no WebSocket")


def node_ws(directory: Path) -> list[str]:
    """Node with the package `ws`."""
    if not runs("node", "-e", "require('ws')"):
        pytest.skip("node does not find the package ws; install it and name its place in NODE_PATH")
    preload = directory / "preload.cjs"
    preload.write_text("globalThis.WebSocket = require('ws');")
    return ["node", "--require", str(preload), str(EXAMPLES / "link_client.mjs")]


def runs(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


class Example:
    """A client in a process of its own."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.sent = 0
        self._received = b""

    async def send(self, states: int) -> None:
        assert self.process.stdin is not None
        numbers = range(self.sent, self.sent + states)
        lines = [b'[%d, {"temp": %d}]\n' % (FIRST_MS + number, number) for number in numbers]
        await self.process.stdin.send_all(b"".join(lines))
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

    async def used(self, server: ServerProcess, device: str, name: str) -> None:
        """It has sent states, has printed a command, and has more to send."""
        await self.send(STATES // 2)
        await server.call("POST", f"{device}/command", {"name": name})
        assert await self.command() == name
        await self.send(STATES // 2)


@asynccontextmanager
async def started(command: list[str], env: Mapping[str, str]) -> AsyncIterator[Example]:
    process = await trio.lowlevel.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **env}
    )
    try:
        yield Example(process)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def connected(server: ServerProcess, device: str) -> None:
    while not (await server.call("GET", device))["connectionInfo"]["connected"]:
        pass


async def stored_once(server: ServerProcess, device: str, states: int, commands: int) -> None:
    query = {"limit": 1000, "start": 1}
    found = await server.call("GET", f"{device}/state", params=query)
    assert [state["data"]["temp"] for state in reversed(found)] == list(range(states))
    assert (await server.call("GET", f"{device}/payloadCounts"))["deviceState"] == states
    log = await server.call("GET", f"{device}/command", params=query)
    assert [entry["status"] for entry in log] == ["acknowledged"] * commands


@pytest.mark.slow
@pytest.mark.parametrize("example", [python, node, node_ws])
async def test_an_example_stores_everything_once_over_restarts(
    tmp_path: Path, example: Callable[[Path], list[str]]
) -> None:
    data, command = tmp_path / "data", example(tmp_path)
    async with AsyncExitStack() as stack:
        port = stack.enter_context(reserved_port())
        stack.enter_context(trio.fail_after(PATIENCE_S))
        arguments = ("--port", str(port), "--limits", "off")
        async with serving(data, *arguments) as server:
            device = await server.device(await server.application())
            token, _ = await server.device_token(device)
            url = f"ws://127.0.0.1:{port}{device}/link"
            client = await stack.enter_async_context(started([*command, url, token], {}))
            await connected(server, device)
            await client.used(server, device, "first")
            assert await server.terminate() == 0
        async with serving(data, *arguments) as server:
            await client.used(server, device, "second")
            await server.kill()
        async with serving(data, *arguments) as server:
            await client.used(server, device, "third")
            await client.end()
            await stored_once(server, device, 3 * STATES, 3)


@pytest.mark.slow
@pytest.mark.parametrize("example", [python, node, node_ws])
async def test_an_example_over_tls(tmp_path: Path, example: Callable[[Path], list[str]]) -> None:
    command, authority = example(tmp_path), trustme.CA()
    files, trusted = write_certificate(authority, tmp_path), tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(trusted))
    env = {"SSL_CERT_FILE": str(trusted), "NODE_EXTRA_CA_CERTS": str(trusted)}
    arguments = ("--certfile", files["certfile"], "--keyfile", files["keyfile"], "--limits", "off")
    with trio.fail_after(PATIENCE_S):
        async with serving(tmp_path / "data", *arguments) as server:
            device = await server.device(await server.application())
            token, _ = await server.device_token(device)
            url = f"{server.url.replace('http', 'ws', 1)}{device}/link"
            async with started([*command, url, token], env) as client:
                await connected(server, device)
                await client.used(server, device, "first")
                await client.end()
            await stored_once(server, device, STATES, 1)


@pytest.mark.slow
@pytest.mark.parametrize("example", [python, node, node_ws])
async def test_an_example_names_what_is_not_stored_and_ends_with_status_1(
    tmp_path: Path, example: Callable[[Path], list[str]]
) -> None:
    command = example(tmp_path)
    good = b'[%d, {"temp": 0}]\n' % FIRST_MS
    refused = b'[%d, {"nope": 1}]\n' % FIRST_MS
    with trio.fail_after(PATIENCE_S):
        async with serving(tmp_path / "data", "--limits", "off") as server:
            device = await server.device(await server.application())
            token, _ = await server.device_token(device)
            url = f"{server.url.replace('http', 'ws', 1)}{device}/link"
            for lines, status, told in (
                (b"\n" + good + b"  \n", 0, []),
                (refused, 1, ['"nope"' if command[0] == "node" else "'nope'"]),
                (
                    b'temp=1\n\n{"temp": 1}\n[1, "a"]\n[1, {}]\n[1, {"temp": 1}\n'
                    + b'[%d, {"temp": 1}]\n' % (FIRST_MS + 1),
                    1,
                    [f"line {number} is left out: " for number in (1, 3, 4, 5, 6)],
                ),
            ):
                done = await trio.run_process(
                    [*command, url, token], stdin=lines, capture_stdout=True, capture_stderr=True, check=False
                )
                said = [line for line in done.stderr.decode().splitlines() if " is " in line]
                assert (done.returncode, len(said)) == (status, len(told)), done.stderr
                assert all(part in line for part, line in zip(told, said, strict=True)), said
            await stored_once(server, device, 2, 0)
