"""Clients that ask for much and read nothing cost bounded memory, over HTTP/2 as well."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
import trio

from tests.e2e.server_process import OWNER, ServerProcess, serving
from tests.http.other_protocols import H2Peer
from tests.patience import PATIENCE_S

CONNECTIONS = 8
REQUESTS = 100
GROWTH_BYTES_MAX = 64 * 2**20
"""All answers together would be 1.1 GB."""


async def asked(server: ServerProcess) -> H2Peer:
    """A connection whose windows are closed, with many requests for the largest page asset."""
    port = urlsplit(server.url).port
    assert port is not None
    client = H2Peer(await trio.open_tcp_stream("127.0.0.1", port), window_bytes=0)
    numbers = [client.begin("GET", "/docs/swagger-ui-bundle.js") for _ in range(REQUESTS)]
    await client.head(numbers[0])
    return client


@pytest.mark.slow
async def test_answers_behind_closed_windows_cost_bounded_memory(tmp_path: Path) -> None:
    env = {**OWNER, "TRUNKLINE_HTTP2_PRIOR_KNOWLEDGE": "true"}
    async with serving(tmp_path / "data", env=env) as server:
        process = psutil.Process(server.process.pid)
        with trio.fail_after(PATIENCE_S):
            await trio.aclose_forcefully((await asked(server)).stream)
            before = process.memory_info().rss
            clients = [await asked(server) for _ in range(CONNECTIONS)]
            assert await server.call("GET", "/healthz") == {"status": "alive"}
            grown = process.memory_info().rss - before
        assert grown < GROWTH_BYTES_MAX, f"{grown / 2**20:.0f} MiB"
        for client in clients:
            await trio.aclose_forcefully(client.stream)
