"""Connections of bytes over TLS: with the server's certificate, and with those of clients where they are asked for."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.http.tls_client import TlsStream, trusting, write_certificate
from tests.http.wire.byte_sessions import speaking, take
from tests.patience import PATIENCE_S
from trunkline.http.wire.engine import REAP_S


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def pem(tmp_path: Path, authority: trustme.CA) -> dict[str, Any]:
    """A certificate for localhost, and clients may present one of the same authority."""
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    files = write_certificate(authority, tmp_path)
    return {**files, "ca_certs": str(tmp_path / "authority.pem"), "client_certificates": "optional"}


def der(certificate: trustme.LeafCert) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate.cert_chain_pems[0].bytes().decode())


@pytest.mark.usefixtures("silent")
async def test_the_session_gets_the_certificate_that_was_verified(
    pem: dict[str, Any], authority: trustme.CA
) -> None:
    issued = authority.issue_cert("device@example.com")
    with_one = trusting(authority)
    issued.configure_cert(with_one)
    async with speaking(tls=True, **pem) as served:
        for context, expected in ((with_one, der(issued)), (trusting(authority), None)):
            peer, session = await served.connect_with(context)
            assert session.peer is not None
            assert session.peer.tls
            assert session.peer.certificate == expected
            await peer.send(b"hello")
            assert await take(peer, 5) == b"hello"


@pytest.mark.usefixtures("silent")
async def test_a_certificate_of_another_authority_is_refused(
    pem: dict[str, Any], authority: trustme.CA
) -> None:
    stranger = trusting(authority)
    trustme.CA().issue_cert("device@example.com").configure_cert(stranger)
    async with speaking(tls=True, **pem) as served:
        stream = await trio.open_tcp_stream("127.0.0.1", served.port)
        async with stream:
            client = TlsStream(stream, stranger)
            await client.do_handshake()  # the refusal comes after it
            with pytest.raises(trio.BrokenResourceError), trio.fail_after(PATIENCE_S):
                await client.receive_some(5)
        await served.wired.deserted()
        assert not served.sessions


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("protocols", [["mqtt"], ["x-unknown", "mqtt"]])
async def test_a_client_may_offer_a_protocol(
    protocols: list[str], pem: dict[str, Any], authority: trustme.CA
) -> None:
    context = trusting(authority)
    context.set_alpn_protocols(protocols)
    async with speaking(tls=True, **pem) as served:
        peer, _ = await served.connect_with(context)
        await peer.send(b"hello")
        assert await take(peer, 5) == b"hello"


async def test_a_replaced_certificate_is_for_new_connections(
    pem: dict[str, Any], authority: trustme.CA, log: list[dict[str, Any]]
) -> None:
    other = trustme.CA()
    async with speaking(tls=True, **pem) as served:
        earlier, _ = await served.connect_with(trusting(authority))
        write_certificate(other, Path(pem["certfile"]).parent)
        served.wired.config.reload()
        for peer in (earlier, (await served.connect_with(trusting(other)))[0]):
            await peer.send(b"hello")
            assert await take(peer, 5) == b"hello"
    assert [entry["event"] for entry in log] == ["the certificate is reloaded"]


@pytest.mark.usefixtures("silent")
async def test_a_handshake_that_does_not_come_is_not_waited_for(
    pem: dict[str, Any], mock_clock: MockClock
) -> None:
    async with speaking(tls=True, limits={"head_timeout_s": 10}, **pem) as served:
        stream = await trio.open_tcp_stream("127.0.0.1", served.port)
        async with stream:
            await wait_all_tasks_blocked()
            assert served.wired.engine.connections == 1
            mock_clock.jump(10)
            await wait_all_tasks_blocked()
            mock_clock.jump(REAP_S)
            await wait_all_tasks_blocked()
            assert (served.wired.engine.connections, served.wired.engine.timed_out) == (0, 1)
        assert not served.sessions


@pytest.mark.usefixtures("silent")
async def test_http_with_tls_and_bytes_without_are_served_together(
    pem: dict[str, Any], authority: trustme.CA
) -> None:
    async with speaking(tls=False, **pem) as served:
        assert served.wired.url.startswith("https://")
        peer, session = await served.connect()
        await peer.send(b"hello")
        assert await take(peer, 5) == b"hello"
        assert session.peer is not None
        assert (session.peer.tls, session.peer.certificate) == (False, None)
