"""Clients that ask for much and read nothing cost bounded memory, over HTTP/2 as well."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
import trio
import trustme

from tests.e2e.server_process import OWNER, ServerProcess, started
from tests.http.other_protocols import H2Peer
from tests.http.tls_client import TlsStream, trusting, write_certificate
from tests.patience import PATIENCE_S

CONNECTIONS = 8
REQUESTS = 100
GROWTH_BYTES_MAX = 64 * 2**20
"""All answers together would be 1.1 GB."""


async def asked(server: ServerProcess, context: ssl.SSLContext | None) -> H2Peer:
    """A connection whose windows are closed, with many requests for the largest page asset."""
    port = urlsplit(server.url).port
    assert port is not None
    stream: Any = await trio.open_tcp_stream("127.0.0.1", port)
    if context is not None:
        context.set_alpn_protocols(["h2"])
        stream = TlsStream(stream, context)
        await stream.do_handshake()
    client = H2Peer(stream, window_bytes=0)
    numbers = [client.begin("GET", "/docs/swagger-ui-bundle.js") for _ in range(REQUESTS)]
    await client.head(numbers[0])
    return client


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
async def test_answers_behind_closed_windows_cost_bounded_memory(tmp_path: Path, tls: bool) -> None:
    arguments, context = [], None
    if tls:
        authority = trustme.CA()
        files, context = write_certificate(authority, tmp_path), trusting(authority)
        arguments = ["--certfile", files["certfile"], "--keyfile", files["keyfile"]]
    env = {**OWNER, "TRUNKLINE_HTTP2_PRIOR_KNOWLEDGE": "true"}
    async with started(tmp_path / "data", *arguments, env=env, cold=True) as server:
        server.url = (await server.prints(r" at (https?://\S+) "))[1]
        process = psutil.Process(server.process.pid)
        with trio.fail_after(PATIENCE_S):
            await (await asked(server, context)).stream.aclose()
            before = process.memory_info().rss
            clients = [await asked(server, context) for _ in range(CONNECTIONS)]
            assert await server.call("GET", "/healthz") == {"status": "alive"}
            grown = process.memory_info().rss - before
        assert grown < GROWTH_BYTES_MAX, f"{grown / 2**20:.0f} MiB"
        for client in clients:
            await client.stream.aclose()
