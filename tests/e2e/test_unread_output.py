"""A server continues if its output cannot be written: to a closed pipe, or to a full disk."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import httpx
import pytest
import trio

from tests.e2e.server_process import CLI, OWNER, ServerProcess, environment
from tests.patience import PATIENCE_S
from tests.ports import reserved_port

pytestmark = pytest.mark.slow


def closed_pipe() -> IO[bytes]:
    """The end to write to of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "wb", buffering=0)


def full_disk() -> IO[bytes]:
    """A device of the kernel on which there is never room."""
    return Path("/dev/full").open("wb", buffering=0)


@pytest.fixture
def port() -> Iterator[str]:
    """A port that is free: with its output gone, the server cannot say which one it has taken."""
    with reserved_port() as number:
        yield str(number)


@pytest.mark.parametrize("output", [closed_pipe, full_disk])
async def test_output_that_nobody_gets_ends_no_server(
    tmp_path: Path, port: str, output: Callable[[], IO[bytes]]
) -> None:
    command = ["serve", "--demo", "--port", port, "--data", str(tmp_path / "data"), "--limits", "off"]
    with output() as nowhere:
        process = await trio.lowlevel.open_process(
            [sys.executable, *CLI, *command], stdout=nowhere, stderr=nowhere, env=environment(OWNER)
        )
    server = ServerProcess(process, tmp_path / "data", tmp_path / "no.log")
    server.url = f"http://127.0.0.1:{port}"
    try:
        await answers(server)
        server.token = await server.log_in()
        device = await server.device(await server.application())
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        # The demo says that it runs, and it does.
        with trio.fail_after(PATIENCE_S):
            while (await server.call("GET", "/applications"))["totalCount"] < 2:
                await trio.lowlevel.checkpoint()
        assert process.poll() is None
        server.send_signal(signal.SIGTERM)
        assert await server.ended() == 0
    finally:
        process.kill()


async def answers(server: ServerProcess) -> None:
    """Return when the server takes connections."""
    with trio.fail_after(PATIENCE_S):
        while server.process.poll() is None:
            try:
                await server.call("GET", "/readyz", token="")
                return
            except httpx.ConnectError:
                await trio.sleep(0.01)
    raise AssertionError(f"it ended with {server.process.returncode}")
