"""The connections of a load: against a null server, over TLS, with large requests, and with failures."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.bench.test_bench_client import OK, TEST_ONLY_PEM
from tests.patience import PATIENCE_S
from tests.ports import reserved_port
from trunkline.bench import load_connection
from trunkline.bench.errors import ConnectFailed, ProtocolViolation
from trunkline.bench.framing import BODY_BYTES_MAX, Response
from trunkline.bench.load import Caller, Load, Tally
from trunkline.bench.null_server import null_server
from trunkline.bench.reactor import Reactor
from trunkline.bench.transport import Origin
from trunkline.bench.wire_protocol import HttpProtocol


class Raw(Caller):
    """Sends the same bytes again and again, and keeps the answers."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(Tally("raw"))
        self.raw = raw
        self.answers: list[Response] = []

    def request(self) -> bytes:
        return self.raw

    def acknowledged(self, response: Response) -> int:
        self.answers.append(response)
        return 1


pytestmark = pytest.mark.usefixtures("work_clock")

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    yield
    load_connection.resolve_address.cache_clear()


def drive(origin: Origin, caller: Caller, *, connections: int = 1, seconds: float = 0.05) -> Load:
    reactor = Reactor()
    load = Load(reactor, origin, [caller], connections=connections)
    try:
        load.open()
        load.run(seconds)
    finally:
        load.close()
        reactor.close()
    return load


async def serve(nursery: trio.Nursery, handler: Callable[[trio.SocketStream], Awaitable[object]]) -> Origin:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, handler, [listener])
    return Origin("127.0.0.1", listener.socket.getsockname()[1], tls=False, prefix="")


def test_the_null_server_answers_every_request_also_large_ones() -> None:
    size = 4_000_000
    large = Raw(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size)
    small = Raw(GET)
    with null_server() as origin:
        drive(origin, small, connections=3)
        drive(origin, large)
    for caller in (small, large):
        assert caller.tally.sent == caller.tally.acknowledged > 0
        assert {answer.body for answer in caller.answers} == {b'{"success":true}'}
    load_connection.resolve_address.cache_clear()
    with pytest.raises(ConnectFailed, match="connection refused"):
        drive(origin, small)


async def test_tls_is_spoken_and_the_certificate_is_checked(
    nursery: trio.Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.bench.load.OPENING_TIMEOUT_S", 0.1)
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

    origin = replace(await serve(nursery, handler), tls=True)
    caller = Raw(GET)
    with trio.fail_after(PATIENCE_S):
        with pytest.raises(ConnectFailed, match="certificate verify failed"):
            await trio.to_thread.run_sync(drive, origin, caller)
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        monkeypatch.setattr("trunkline.bench.load.OPENING_TIMEOUT_S", PATIENCE_S)
        await trio.to_thread.run_sync(lambda: drive(origin, caller, connections=2))
    nursery.cancel_scope.cancel()
    assert caller.tally.acknowledged == caller.tally.sent > 1
    assert {answer.body for answer in caller.answers} == {b"ok"}


async def test_a_server_that_hangs_up_leaves_the_call_unknown(nursery: trio.Nursery) -> None:
    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            if await stream.receive_some(65_536):
                await stream.send_all(OK)
                await stream.receive_some(65_536)

    origin, caller = await serve(nursery, handler), Raw(GET)
    with trio.fail_after(PATIENCE_S):
        load = await trio.to_thread.run_sync(lambda: drive(origin, caller, seconds=0.1))
    nursery.cancel_scope.cancel()
    assert caller.tally.breaks == caller.tally.unknown > 0
    assert load.reconnects >= caller.tally.breaks
    assert caller.tally.acknowledged > 0


async def test_a_server_that_speaks_no_http_is_no_answer(nursery: trio.Nursery) -> None:
    async def handler(stream: trio.SocketStream) -> None:
        async with stream:
            while await stream.receive_some(65_536):
                await stream.send_all(b"220 ready\r\n")

    origin, caller = await serve(nursery, handler), Raw(GET)
    with trio.fail_after(PATIENCE_S):
        await trio.to_thread.run_sync(lambda: drive(origin, caller))
    nursery.cancel_scope.cancel()
    assert caller.tally.acknowledged == 0
    assert caller.tally.breaks > 0


def test_a_host_that_does_not_answer_is_a_sentence() -> None:
    with (
        reserved_port() as port,
        pytest.raises(ConnectFailed, match=f"127[.]0[.]0[.]1:{port} cannot be reached: connection refused"),
    ):
        drive(Origin("127.0.0.1", port, tls=False, prefix=""), Raw(GET))


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_answers_are_framed_however_they_are_split(step: int) -> None:
    wire = (
        b"HTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        b"HTTP/1.1 204 No Content\r\n\r\n"
        b"HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
        b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
    )
    framing = HttpProtocol()
    answers = [one for at in range(0, len(wire), step) for one in framing.feed(wire[at : at + step])]
    assert [(one.status, one.body) for one in answers] == [
        (200, b"hello"),
        (204, b""),
        (429, b"abcde"),
        (201, b""),
    ]
    assert answers[2].headers["retry-after"] == "3"


def test_what_is_no_answer_or_too_long_is_told() -> None:
    with pytest.raises(ProtocolViolation, match=r"not HTTP/1\.1"):
        HttpProtocol().feed(b"SSH-2.0-x\r\n")
    framing = HttpProtocol()
    framing.feed(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1))
    framing.feed(bytes(BODY_BYTES_MAX))
    with pytest.raises(ProtocolViolation):
        framing.feed(b"x")
