"""A connection is reused, checked, reopened, timed and bounded; failures say if the request may have been executed."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from tests.patience import PATIENCE_S
from tests.ports import reserved_port
from trunkline.bench.client import Connection
from trunkline.bench.errors import BenchError, ConnectFailed, ConnectionBroken, ProtocolViolation, TimedOut
from trunkline.bench.transport import Origin

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

TEST_ONLY_PEM = """
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg3OTuwowTPGBe8x3y
HYRpukmZigu7ARrgOK4dnHNFwvqhRANCAASrJJ5i5q7ZcRle4V2/29sPfXdEkhv5
vFkyqZ6JKlLp1N9uHM1zt32yyRb6gQ6n6yxq8VIPmLQ2zo/+4v2jlsLH
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBgzCCASmgAwIBAgIUQYfV9yL/9pBGOjwIhPt0aWDLr6EwCgYIKoZIzj0EAwIw
HjEcMBoGA1UEAwwTdHJ1bmtsaW5lIHRlc3Qgb25seTAgFw0yMDAxMDEwMDAwMDBa
GA8yMTIwMDEwMTAwMDAwMFowHjEcMBoGA1UEAwwTdHJ1bmtsaW5lIHRlc3Qgb25s
eTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKsknmLmrtlxGV7hXb/b2w99d0SS
G/m8WTKpnokqUunU324czXO3fbLJFvqBDqfrLGrxUg+YtDbOj/7i/aOWwsejQzBB
MA8GA1UdEQQIMAaHBH8AAAEwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQUGIxB
bpI0VN+lLpQ4iIcx10dALH0wCgYIKoZIzj0EAwIDSAAwRQIhAOngl/ZlMlafbUDt
Amde634lOa0eKBxzbmOSrYCEdrC8AiA05rSjUXNE17MqZdAHVusRmWTe2KvI+gqe
YaMapM+YzA==
-----END CERTIFICATE-----
"""
"""A self-signed certificate for 127.0.0.1 with its key: made for this test, trusted by nothing else."""


class Peer:
    """A server that runs ``script(peer, connection number, stream)`` and notes what it received."""

    def __init__(self, script: Callable[[Peer, int, trio.SocketStream], Awaitable[None]]) -> None:
        self.script = script
        self.connections = 0
        self.requests: list[bytes] = []
        self.origin = Origin("127.0.0.1", 0, False, "")

    async def start(self, nursery: trio.Nursery) -> Peer:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.origin = Origin("127.0.0.1", listener.socket.getsockname()[1], False, "/api")
        nursery.start_soon(trio.serve_listeners, self._handle, [listener])
        return self

    async def _handle(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        async with stream:
            await self.script(self, self.connections, stream)

    async def receive(self, stream: trio.SocketStream) -> bool:
        data = bytes(await stream.receive_some(65_536))
        if data:
            self.requests.append(data)
        return bool(data)


async def answer_all(peer: Peer, number: int, stream: trio.SocketStream) -> None:
    while await peer.receive(stream):
        await stream.send_all(OK)


async def test_one_connection_serves_many_requests(nursery: trio.Nursery) -> None:
    peer = await Peer(answer_all).start(nursery)
    with trio.fail_after(PATIENCE_S):
        async with Connection(peer.origin, token="secret") as connection:
            for _ in range(3):
                response = await connection.request("POST", "/x?a=1", b'{"a":1}', {"X-Mine": "1"})
                assert (response.status, response.body) == (200, b"ok")
    assert (peer.connections, connection.connects) == (1, 1)
    assert peer.requests[0] == (
        b"POST /api/x?a=1 HTTP/1.1\r\nhost: " + peer.origin.authority.encode() + b"\r\n"
        b"authorization: Bearer secret\r\nx-mine: 1\r\n"
        b"content-type: application/json\r\ncontent-length: 7\r\n\r\n"
        b'{"a":1}'
    )


async def test_interim_answers_are_skipped(nursery: trio.Nursery) -> None:
    async def script(peer: Peer, number: int, stream: trio.SocketStream) -> None:
        await peer.receive(stream)
        await stream.send_all(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK
        )

    peer = await Peer(script).start(nursery)
    with trio.fail_after(PATIENCE_S):
        async with Connection(peer.origin) as connection:
            assert (await connection.request("GET", "/")).body == b"ok"


async def test_connection_close_is_obeyed(nursery: trio.Nursery) -> None:
    async def script(peer: Peer, number: int, stream: trio.SocketStream) -> None:
        await peer.receive(stream)
        await stream.send_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    peer = await Peer(script).start(nursery)
    with trio.fail_after(PATIENCE_S):
        async with Connection(peer.origin) as connection:
            await connection.request("GET", "/")
            await connection.request("GET", "/")
    assert peer.connections == 2


async def test_an_idle_connection_that_the_server_closed_is_replaced_before_use(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.bench.client.IDLE_PROBE_S", -1.0)
    closed = trio.Event()

    async def script(peer: Peer, number: int, stream: trio.SocketStream) -> None:
        await peer.receive(stream)
        await stream.send_all(OK)
        if number == 1:
            await stream.aclose()
            closed.set()
        else:
            await trio.sleep_forever()

    peer = await Peer(script).start(nursery)
    with trio.fail_after(PATIENCE_S):
        async with Connection(peer.origin) as connection:
            await connection.request("POST", "/", b"{}")
            await closed.wait()
            assert (await connection.request("POST", "/", b"{}")).status == 200
            assert connection.connects == 2


async def test_unasked_bytes_do_not_answer_the_next_request(nursery: trio.Nursery) -> None:
    async def script(peer: Peer, number: int, stream: trio.SocketStream) -> None:
        await peer.receive(stream)
        await stream.send_all(
            OK + (b"HTTP/1.1 500 Wrong\r\nContent-Length: 0\r\n\r\n" if number == 1 else b"")
        )
        await peer.receive(stream)

    peer = await Peer(script).start(nursery)
    with trio.fail_after(PATIENCE_S):
        async with Connection(peer.origin) as connection:
            await connection.request("GET", "/")
            assert (await connection.request("GET", "/")).status == 200
    assert peer.connections == 2


async def test_a_connection_cut_before_the_answer_is_made_again(
    nursery: trio.Nursery,
) -> None:
    async def script(peer: Peer, number: int, stream: trio.SocketStream) -> None:
        await peer.receive(stream)
        if number > 1:
            await stream.send_all(OK)

    peer = await Peer(script).start(nursery)
    with trio.fail_after(PATIENCE_S):
        async with Connection(peer.origin) as connection:
            with pytest.raises(ConnectionBroken) as caught:
                await connection.request("POST", "/", b"{}")
            assert caught.value.maybe_done
            assert (await connection.request("POST", "/", b"{}")).status == 200


async def test_a_slow_answer_times_out_and_its_late_bytes_are_never_read(nursery: trio.Nursery) -> None:
    release = trio.Event()

    async def script(peer: Peer, number: int, stream: trio.SocketStream) -> None:
        await peer.receive(stream)
        await stream.send_all(OK)
        if number == 1:
            if await peer.receive(stream):
                await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nla")
            await release.wait()

    peer = await Peer(script).start(nursery)
    with trio.fail_after(PATIENCE_S):
        async with Connection(peer.origin, timeout_s=PATIENCE_S) as connection:
            await connection.request("GET", "/")
            connection.timeout_s = 0.02
            with pytest.raises(TimedOut) as caught:
                await connection.request("POST", "/", b"{}")
            assert caught.value.maybe_done
            connection.timeout_s = PATIENCE_S
            assert (await connection.request("GET", "/")).body == b"ok"
    release.set()


async def test_a_cancelled_request_leaves_a_closed_connection(nursery: trio.Nursery) -> None:
    scope = trio.CancelScope()

    async def script(peer: Peer, number: int, stream: trio.SocketStream) -> None:
        await peer.receive(stream)
        if number > 1:
            await stream.send_all(OK)
        else:
            scope.cancel()
        await trio.sleep_forever()

    peer = await Peer(script).start(nursery)
    with trio.fail_after(PATIENCE_S):
        async with Connection(peer.origin) as connection:
            with scope:
                await connection.exchange(connection.encode("GET", "/"))
            assert scope.cancelled_caught
            assert (await connection.request("GET", "/")).body == b"ok"


async def test_what_is_not_http_is_a_clear_error(nursery: trio.Nursery) -> None:
    async def script(peer: Peer, number: int, stream: trio.SocketStream) -> None:
        await stream.send_all(b"220 mail.example ESMTP\r\n\r\n")
        await trio.sleep_forever()

    peer = await Peer(script).start(nursery)
    with trio.fail_after(PATIENCE_S):
        async with Connection(peer.origin) as connection:
            with pytest.raises(ProtocolViolation, match="not HTTP/1"):
                await connection.request("GET", "/")


async def test_nobody_listening_is_a_clear_error() -> None:
    with reserved_port() as port:
        async with Connection(Origin("127.0.0.1", port, False, "")) as connection:
            with pytest.raises(
                ConnectFailed, match=f"127[.]0[.]0[.]1:{port} cannot be reached: connection refused"
            ) as caught:
                await connection.request("GET", "/")
    assert not caught.value.maybe_done


async def test_a_large_request_is_sent_whole(nursery: trio.Nursery) -> None:
    received = 0

    async def script(peer: Peer, number: int, stream: trio.SocketStream) -> None:
        nonlocal received
        while received < 8_000_000:
            received += len(await stream.receive_some(65_536))
        await stream.send_all(OK)

    peer = await Peer(script).start(nursery)
    with trio.fail_after(PATIENCE_S):
        async with Connection(peer.origin) as connection:
            assert (await connection.request("POST", "/", b"x" * 8_000_000)).status == 200
    assert received > 8_000_000


async def test_tls_is_spoken_and_the_certificate_is_checked(
    nursery: trio.Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.bench.client.IDLE_PROBE_S", -1.0)
    file = tmp_path / "server.pem"
    file.write_text(TEST_ONLY_PEM, encoding="ascii")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)

    async def handler(raw: trio.SocketStream) -> None:
        stream = trio.SSLStream(raw, context, server_side=True, https_compatible=True)
        try:
            while await stream.receive_some(65_536):
                await stream.send_all(OK)
        except trio.BrokenResourceError:
            await trio.aclose_forcefully(raw)

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, handler, [listener])
    origin = Origin.parse(f"https://127.0.0.1:{listener.socket.getsockname()[1]}")
    with trio.fail_after(PATIENCE_S):
        async with Connection(origin) as connection:
            with pytest.raises(ConnectFailed, match="certificate verify failed: self-signed"):
                await connection.request("GET", "/")
            monkeypatch.setenv("SSL_CERT_FILE", str(file))
            for _ in range(3):
                assert (await connection.request("GET", "/")).body == b"ok"


def test_origins() -> None:
    assert Origin.parse("http://127.0.0.1:8080/") == Origin("127.0.0.1", 8080, False, "")
    assert Origin.parse("https://example.org/api") == Origin("example.org", 443, True, "/api")
    assert Origin.parse("http://[::1]:81").authority == "[::1]:81"
    assert Origin.parse("https://example.org").authority == "example.org"
    for wrong in ("127.0.0.1:8080", "ftp://x", "http://", "http://x:99999"):
        with pytest.raises(BenchError):
            Origin.parse(wrong)
