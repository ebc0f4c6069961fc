"""TLS: every bound of cleartext holds, with client certificates where the operator wants them."""

from __future__ import annotations

import socket
import ssl
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.http.other_protocols import pour
from tests.http.raw_wire import Peer, Receive, Scope, Send, Wired, application, echo, part, reply, serving
from tests.http.tls_client import TlsStream
from tests.patience import PATIENCE_S
from trunkline.http.hosting.sockets import engine_config
from trunkline.http.wire.engine import REAP_S
from trunkline.http.wire.readiness import Readiness
from trunkline.http.wire.tls_transport import TlsTransport
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings

pytestmark = pytest.mark.usefixtures("silent")

APP = application(echo)
GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
ENGINES = pytest.mark.parametrize("engine", ["fast", "stock"])


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def pem(tmp_path: Path, authority: trustme.CA) -> dict[str, Any]:
    """Files with a certificate for localhost, its key, and the authority."""
    issued = authority.issue_cert("localhost")
    files = {"certfile": "chain.pem", "keyfile": "key.pem", "ca_certs": "authority.pem"}
    paths = {key: str(tmp_path / name) for key, name in files.items()}
    for blob in issued.cert_chain_pems:
        blob.write_to_path(paths["certfile"], append=True)
    issued.private_key_pem.write_to_path(paths["keyfile"])
    authority.cert_pem.write_to_path(paths["ca_certs"])
    return paths


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """A client that trusts the authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def client(wired: Wired, context: ssl.SSLContext, *, http2: bool = False) -> httpx.AsyncClient:
    base = wired.url.replace("127.0.0.1", "localhost")
    return httpx.AsyncClient(base_url=base, verify=context, http2=http2, trust_env=False, timeout=PATIENCE_S)


@pytest.fixture
def secured(pem: dict[str, Any]) -> dict[str, Any]:
    return {key: pem[key] for key in ("certfile", "keyfile")}


@ENGINES
@pytest.mark.parametrize("http2", [False, True])
async def test_calls_over_tls(
    engine: str, http2: bool, secured: dict[str, Any], trusting: ssl.SSLContext
) -> None:
    async with serving(APP, engine, **secured) as wired:
        assert wired.url.startswith("https://127.0.0.1:")
        async with client(wired, trusting, http2=http2) as calls:
            for body in (b"hello", bytes(200_000)):
                answer = await calls.post("/a?b", content=body)
                assert answer.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
                assert len(answer.json()["body"]) == len(body)
                assert answer.headers["x-request-id"]
            given = await calls.get("/a", headers={"X-Request-Id": "mine-7"})
            assert given.headers["x-request-id"] == "mine-7"


@ENGINES
async def test_only_clients_with_a_certificate_of_the_authority_are_served(
    engine: str, pem: dict[str, Any], trusting: ssl.SSLContext, authority: trustme.CA
) -> None:
    async with serving(APP, engine, **pem) as wired:
        with pytest.raises((httpx.TransportError, ssl.SSLError)):
            async with client(wired, trusting) as calls:
                await calls.get("/a")
        stranger = ssl.create_default_context()
        authority.configure_trust(stranger)
        trustme.CA().issue_cert("device@example.com").configure_cert(stranger)
        with pytest.raises((httpx.TransportError, ssl.SSLError)):
            async with client(wired, stranger) as calls:
                await calls.get("/a")
        authority.issue_cert("device@example.com").configure_cert(trusting)
        async with client(wired, trusting) as calls:
            assert (await calls.get("/a")).status_code == 200


async def test_cleartext_to_a_tls_port_is_no_call_and_no_fault(secured: dict[str, Any]) -> None:
    async with serving(APP, **secured) as wired:
        peer = await wired.connect()
        await peer.send(GET)
        assert b"HTTP" not in await peer.rest()
        await peer.close()
        await wired.deserted()


async def test_a_handshake_that_does_not_come_is_not_waited_for(
    secured: dict[str, Any], mock_clock: MockClock
) -> None:
    async with serving(APP, limits={"head_timeout_s": 10}, **secured) as wired:
        await wired.connect()
        await wait_all_tasks_blocked()
        assert wired.engine.connections == 1
        mock_clock.jump(10)
        await wait_all_tasks_blocked()
        mock_clock.jump(REAP_S)
        await wait_all_tasks_blocked()
        assert wired.engine.connections == 0
        assert wired.engine.timed_out == 1


async def test_a_drain_does_not_wait_for_a_handshake(secured: dict[str, Any]) -> None:
    """With a grace of an hour: nothing here uses it."""
    async with serving(APP, limits={"drain_s": 3600, "head_timeout_s": 3600}, **secured) as wired:
        peer = await wired.connect()
        await wait_all_tasks_blocked()
        assert wired.engine.connections == 1
        await wired.stop()
        assert await peer.rest() == b""


async def over_tls(wired: Wired, context: ssl.SSLContext, **options: Any) -> Peer:
    """A raw connection over TLS, with HTTP/1.1."""
    peer = await wired.connect(**options)
    stream = trio.SSLStream(peer.stream, context, server_hostname="localhost", https_compatible=True)
    await stream.do_handshake()
    return Peer(stream)


async def test_requests_in_all_sizes_and_splits(secured: dict[str, Any], trusting: ssl.SSLContext) -> None:
    async with serving(APP, **secured) as wired:
        peer = await over_tls(wired, trusting)
        for size in (0, 1, 16_383, 16_384, 16_385, 65_536, 1_000_000):
            head = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size
            answer = await peer.exchange(head, bytes(size))
            assert (answer.status, len(answer.json()["body"])) == (200, size)
        await peer.send(GET + GET, *(bytes([byte]) for byte in GET))
        for _ in range(3):
            pipelined = await peer.answer()
            assert pipelined is not None
            assert pipelined.status == 200


@pytest.mark.parametrize("size", [0, 5, 100_000])
async def test_requests_in_one_piece_with_the_handshake_and_with_the_end_are_answered(
    size: int, secured: dict[str, Any], trusting: ssl.SSLContext
) -> None:
    """One event of the kernel tells of both, and perhaps of more than one receive takes."""
    post = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (size, b"x" * size)
    async with serving(APP, **secured) as wired:
        stream = TlsStream((await wired.connect()).stream, trusting)
        await stream.do_handshake(GET + post)
        peer = Peer(stream)
        answers = [await peer.answer() for _ in range(2)]
        await stream.send_eof(post + GET)
        answers += [await peer.answer() for _ in range(2)]
        assert [answer and len(answer.json()["body"]) for answer in answers] == [0, size, size, 0]
        assert await peer.answer() is None


async def test_half_a_request_in_one_piece_with_the_end_is_the_end(
    secured: dict[str, Any], trusting: ssl.SSLContext
) -> None:
    async with serving(APP, **secured) as wired:
        stream = TlsStream((await wired.connect()).stream, trusting)
        await stream.do_handshake()
        peer = Peer(stream)
        await peer.exchange(GET)
        await stream.send_eof(GET[:10])
        assert await peer.answer() is None


async def test_what_comes_right_behind_the_first_record_is_received_after_it(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """The first one came with the handshake; the event of the second is over before the first is received."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    ours, theirs = socket.socketpair()
    with ours, theirs, closing(Readiness()) as readiness, trio.fail_after(PATIENCE_S):
        ours.setblocking(False)
        client = TlsStream(trio.SocketStream(trio.socket.from_stdlib_socket(theirs)), trusting)
        transport = TlsTransport(ours, readiness, 20.0, context)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(readiness.run)
            nursery.start_soon(client.do_handshake, b"first")
            await transport.handshake()
            await client.send_all(b"second")
            await wait_all_tasks_blocked()
            assert [await transport.receive() for _ in range(2)] == [b"first", b"second"]
            nursery.cancel_scope.cancel()
        transport.detach()


async def test_the_scope_says_https(secured: dict[str, Any], trusting: ssl.SSLContext) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, scope["scheme"].encode())

    async with serving(application(app), **secured) as wired:
        assert (await (await over_tls(wired, trusting)).exchange(GET)).body == b"https"


async def test_connections_that_idle_are_closed(
    secured: dict[str, Any], trusting: ssl.SSLContext, mock_clock: MockClock
) -> None:
    async with serving(APP, limits={"head_timeout_s": 10, "connection_idle_s": 75}, **secured) as wired:
        silent = await over_tls(wired, trusting)
        answered = await over_tls(wired, trusting)
        await answered.exchange(GET)
        await wait_all_tasks_blocked()
        mock_clock.jump(10)
        await wait_all_tasks_blocked()
        mock_clock.jump(REAP_S)
        await wait_all_tasks_blocked()
        assert wired.engine.connections == 1
        mock_clock.jump(65)
        await wait_all_tasks_blocked()
        mock_clock.jump(REAP_S)
        await wired.deserted()
        await silent.rest()
        await answered.rest()
        assert wired.engine.timed_out == 2


async def test_a_body_that_does_not_come_is_answered(
    secured: dict[str, Any], trusting: ssl.SSLContext, mock_clock: MockClock
) -> None:
    async with serving(APP, limits={"body_timeout_s": 20}, **secured) as wired:
        peer = await over_tls(wired, trusting)
        await peer.send(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert (await peer.head() or b"").startswith(b"HTTP/1.1 100 ")
        await wait_all_tasks_blocked()
        mock_clock.jump(20)
        await wait_all_tasks_blocked()
        mock_clock.jump(REAP_S)
        answer = await peer.answer()
        assert answer is not None
        assert answer.error()[0] == 408
        assert await peer.rest() == b""


async def test_an_early_answer_reaches_a_client_that_goes_on_sending(
    secured: dict[str, Any], trusting: ssl.SSLContext
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, b"too large", 413)

    async with serving(application(app), **secured) as wired:
        for _ in range(20):
            peer = await over_tls(wired, trusting)
            await peer.send(
                b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n", bytes(1_000_000)
            )
            answer = await peer.answer()
            assert answer is not None
            assert (answer.status, answer.body) == (413, b"too large")
            await peer.close()
        await wired.deserted()


async def test_a_drain_answers_what_is_open(secured: dict[str, Any], trusting: ssl.SSLContext) -> None:
    """With a grace of an hour: nothing here uses it."""
    release = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, b"begin", more=True)
        await release.wait()
        await send(part(b" end"))

    async with serving(application(app), limits={"drain_s": 3600}, **secured) as wired:
        peer = await over_tls(wired, trusting)
        await peer.send(GET)
        assert await peer.head() is not None
        wired.drain()
        await wait_all_tasks_blocked()
        assert not wired.stopped.is_set()
        release.set()
        assert await peer.rest() == b"5\r\nbegin\r\n4\r\n end\r\n0\r\n\r\n"
        with trio.fail_after(PATIENCE_S):
            await wired.stopped.wait()


async def test_tls_connections_are_bounded_and_drained(
    secured: dict[str, Any], trusting: ssl.SSLContext
) -> None:
    bound = {"connections_max": 1}
    async with serving(APP, limits=bound, **secured) as wired, client(wired, trusting) as calls:
        posting = await over_tls(wired, trusting)
        await posting.send(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n")
        await wait_all_tasks_blocked()
        with pytest.raises((httpx.TransportError, ssl.SSLError)):
            await calls.get("/a")
        assert wired.engine.refused == 1
        assert (await posting.exchange(b"x")).status == 200
        assert (await calls.get("/a")).status_code == 200, "the other connection idles, so it gives way"
        assert wired.engine.places.displaced == 1
        # The connection of the client idles: it does not hold the server up.
        await wired.stop()


async def test_a_client_over_tls_that_never_reads_is_closed(
    mock_clock: MockClock, secured: dict[str, Any], trusting: ssl.SSLContext
) -> None:
    async with serving(application(pour), limits={"write_timeout_s": 20}, **secured) as wired:
        peer = await wired.connect(receive_buffer_bytes=65_536)
        tls = trio.SSLStream(peer.stream, trusting, server_hostname="localhost", https_compatible=True)
        await tls.send_all(GET)
        assert (await tls.receive_some(1000)).startswith(b"HTTP/1.1 200 ")
        await wait_all_tasks_blocked()
        assert wired.engine.connections == 1
        mock_clock.jump(20)
        await wait_all_tasks_blocked()
        mock_clock.jump(REAP_S)
        await wired.deserted()


async def test_a_client_that_leaves_does_not_keep_its_place(
    secured: dict[str, Any], trusting: ssl.SSLContext
) -> None:
    """The stock server would keep the connection until its idle time is over."""
    async with serving(APP, **secured) as wired:
        for http2 in (False, True):
            async with client(wired, trusting, http2=http2) as calls:
                await calls.get("/a")
            await wired.deserted()


def locked(key: bytes) -> bytes:
    """A private key, encrypted with a passphrase."""
    return load_pem_private_key(key, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"passphrase")
    )


WRONG = {
    "missing": ("keyfile", None, "cannot be read: No such file or directory; name a PEM file"),
    "locked": ("keyfile", locked, "is encrypted with a passphrase; decrypt it: openssl pkey -in"),
    "a certificate for a key": ("keyfile", lambda _: trustme.CA().cert_pem.bytes(), "has no private key"),
    "another key": (
        "keyfile",
        lambda _: trustme.CA().issue_cert("localhost").private_key_pem.bytes(),
        "cannot be used with certfile (",
    ),
    "no certificate": ("certfile", lambda _: b"no certificate", "has no certificate that can be used"),
    "no file of authorities": ("ca_certs", None, "cannot be read: No such file or directory"),
    "no authority": (
        "ca_certs",
        lambda _: b"",
        "has no certificate that can be used; name a PEM file with one",
    ),
    "a key for authorities": ("ca_certs", lambda key: key, "has no certificate that can be used"),
}
"""A setting, what its file holds then (None: there is none), and what is told."""


@pytest.mark.parametrize("name", WRONG)
def test_the_file_that_does_not_do_is_told_in_a_sentence(
    pem: dict[str, Any], name: str, log: list[dict[str, Any]]
) -> None:
    """At the start and where the files have changed."""
    key, make, told = WRONG[name]
    config = engine_config(Settings(**pem))
    file = Path(pem[key])
    content = None if make is None else make(Path(pem["keyfile"]).read_bytes())
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError) as refused:
        engine_config(Settings(**pem))
    assert str(refused.value).startswith(f"{key} ({file}) {told}")
    config.reload()
    assert [entry["problem"] for entry in log] == [str(refused.value)]
    log.clear()
