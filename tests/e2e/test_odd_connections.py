"""Connections that begin with something else than a request: answered or closed, and never quoted in the log."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trio

from tests.e2e.conftest import EMAIL
from tests.e2e.server_process import OWNER, ServerProcess, serving
from tests.http.other_protocols import UPGRADE, H2Peer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

SECRET = "Planted-horse-55"


def first_flight(*wrong: tuple[str, str]) -> bytes:
    """An HTTP/2 connection that begins with a login, and a wrong request behind it."""
    client = H2Peer(None)
    body = json.dumps({"email": EMAIL, "password": SECRET}).encode()
    bearer = ("authorization", f"Bearer {SECRET}")
    number = client.begin("POST", "/auth/user", ("content-type", "application/json"), bearer, end=False)
    client.h2.send_data(number, body, end_stream=True)
    if wrong:
        client.h2.send_headers(client.h2.get_next_available_stream_id(), wrong, end_stream=True)
    return client.h2.data_to_send()


def wrong_flights() -> list[bytes]:
    usual = ((":scheme", "http"), (":authority", "x"))
    return [
        first_flight((":method", "CONNECT"), (":authority", "x"), ("x", SECRET)),
        first_flight((":method", "CONNECT"), (":path", "/"), *usual, ("x", SECRET)),
        first_flight((":method", "GET"), (":path", f"/\xe9{SECRET}"), *usual),
        first_flight((":method", "GET"), *usual, ("x", SECRET)),
        first_flight((":method", "GET"), (":path", "/"), *usual, ("X-Upper", SECRET)),
        first_flight((":method", "GET"), (":path", "/"), *usual, ("content-length", SECRET)),
        first_flight() + SECRET.encode() * 1000,
        UPGRADE + SECRET.encode(),
        UPGRADE.replace(b"X-Own: 1", b"Sec-WebSocket-Protocol: \xff" + SECRET.encode()),
        b"PRI /" + SECRET.encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI /" + SECRET.encode() + b" HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /%0d%0a?password=" + SECRET.encode() + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"\x16\x03\x01" + SECRET.encode() * 100,
        b"POST /auth/user HTTP/1.1\r\nHost: x\r\nContent-Length: 9x\r\n\r\n" + SECRET.encode(),
    ]


async def send_to(server: ServerProcess, data: bytes) -> bytes:
    """What the server answers before it closes, or the client has seen enough."""
    port = urlsplit(server.url).port
    assert port is not None
    received = b""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        try:
            await stream.send_all(data)
            await stream.send_eof()
            async for piece in stream:
                received += piece
        except trio.BrokenResourceError:
            pass
    return received


@pytest.mark.parametrize("prior_knowledge", ["false", "true"])
async def test_nothing_of_a_request_is_logged(tmp_path: Path, prior_knowledge: str) -> None:
    env = {
        **OWNER,
        "TRUNKLINE_HTTP2_PRIOR_KNOWLEDGE": prior_knowledge,
        "TRUNKLINE_ACCESS_LOG": "true",
        "TRUNKLINE_ENGINE": "fast",
    }
    async with serving(tmp_path / "data", env=env) as server:
        for data in wrong_flights():
            with trio.fail_after(PATIENCE_S):
                answer = await send_to(server, data)
            assert answer, data
            assert SECRET.encode() not in answer or b"HTTP/1.1 40" in answer
        assert await server.call("GET", "/healthz") == {"status": "alive"}
        assert await server.terminate() == 0
        assert SECRET not in server.log
        assert "Traceback" not in server.log
        assert "failed" not in server.log.replace("login failed", "")
