"""A real server that has no descriptor left: calls on open connections go on, what needs a file or a process is told.

Connections and commands that come meanwhile are answered when there are descriptors again.
"""

from __future__ import annotations

import itertools
import resource
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.server_process import ServerProcess, trunkline
from tests.faults.plan import COMPILER
from tests.faults.sweep import Disk
from tests.patience import PATIENCE_S

BUTTON = {"type": "virtualButton", "key": "go", "meta": {"id": "go"}, "outputIds": [["n"]]}
SCRIPT = {"id": "n", "type": "RawFunctionNode", "config": {"script": "payload.data.a = 1"}}
CLIENTS = 3
OPENS_A_FILE = {"a download"}
LATER = {"a file", "a large file", "an export"}
"""The refusal of a file ends the connection if it comes before the file, and an export is tried again by itself."""


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    if COMPILER is None:
        pytest.skip("there is no C compiler on this machine")
    return Disk(tmp_path)


class OneConnection(Server):
    """A server whose calls are all made on one connection, which stays open."""

    def __init__(self, server: Server) -> None:
        self.url, self.token = server.url, server.token
        limits = httpx.Limits(max_connections=1, keepalive_expiry=None)
        self.http = httpx.AsyncClient(
            base_url=self.url, limits=limits, timeout=PATIENCE_S, trust_env=False, verify=False
        )

    def client(self, token: str | None = None) -> Any:
        return self._opened(self.token if token is None else token)

    @asynccontextmanager
    async def _opened(self, token: str) -> AsyncIterator[httpx.AsyncClient]:
        self.http.headers["Authorization"] = f"Bearer {token}"
        if not token:
            del self.http.headers["Authorization"]
        yield self.http


@asynccontextmanager
async def without_descriptors(server: ServerProcess, kept: OneConnection) -> AsyncIterator[None]:
    """Let the server open nothing more, for a while. Connections that have ended it may still have to close."""
    pid = server.process.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    before, free = hard, lowest_free(pid)
    try:
        while free < before:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, hard))
            for _ in range(3):
                await kept.call("GET", "/me")
            before, free = free, lowest_free(pid)
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def lowest_free(pid: int) -> int:
    """The number of the next descriptor of a process."""
    used = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
    return next(number for number in itertools.count() if number not in used)


async def logged(server: ServerProcess, what: str, times: int) -> None:
    """Wait until the log of the server says something so many times."""
    with trio.fail_after(PATIENCE_S):
        while server.log.count(what) < times:  # noqa: ASYNC110 - another process writes it
            await trio.sleep(0.01)


async def test_calls_go_on_without_descriptors_and_who_comes_is_answered_later(disk: Disk) -> None:
    answers: list[int] = []
    listed: list[subprocess.CompletedProcess[str]] = []

    async def ask(server: ServerProcess) -> None:
        async with server.client() as client:
            answers.append((await client.get("/me")).status_code)

    async def list_users() -> None:
        listed.append(await trunkline("user", "list", "--data", str(disk.data)))

    async with disk.server() as server:
        kept = OneConnection(server)
        async with kept.http, trio.open_nursery() as nursery:
            assert await disk.ledger.upload(kept)
            flows = f"{disk.ledger.application}/flows"
            flow = await kept.call("POST", flows, {"name": "f", "triggers": [BUTTON], "nodes": [SCRIPT]})
            async with without_descriptors(server, kept):
                for _ in range(CLIENTS):
                    nursery.start_soon(ask, server)
                nursery.start_soon(list_users)
                await logged(server, "no descriptor is left for a new connection", 2)
                for name, work in disk.ledger.works.items():
                    if name not in LATER:
                        assert await work(kept) is (name not in OPENS_A_FILE), name
                refused = await kept.call("GET", disk.ledger.link, token="", status=503)
                assert refused["message"].startswith("The server has no descriptor left to open a file with;")
                unsent = await kept.call("POST", "/me/verify-email", status=503)
                assert "could not write it to its outbox" in unsent["message"]
                assert str(disk.data) not in unsent["message"]
                assert str(disk.data) in server.log, "only the operator is told of the file"
                tried = await kept.call("POST", f"{flows}/{flow['id']}/test", {"data": {}})
                assert "No process for scripts can be started" in tried["error"]["message"]
                assert not answers
                assert not listed
        assert answers == [200] * CLIENTS
        assert listed[0].returncode == 0
        assert server.log.count("no descriptor is left for a new connection") == 2, "it is told once each"
        for work in disk.ledger.works.values():
            await disk.ledger.until_it_works(server, work)
        await disk.ledger.audit(server)
        tried = await server.call("POST", f"{flows}/{flow['id']}/test", {"data": {}})
        assert "error" not in tried
