"""TLS sessions and the files of a server: what a client may resume, when new files are used, and how an end is told."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.http.other_protocols import H2Peer
from tests.http.raw_wire import Peer, Receive, Scope, Send, Wired, application, reply, serving, whole_body
from tests.http.tls_client import TlsStream, trusting, write_certificate
from tests.patience import PATIENCE_S
from trunkline.http.wire.asgi import CLIENT_CERTIFICATE
from trunkline.http.wire.engine import REAP_S

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
PROTOCOLS = pytest.mark.parametrize("protocol", ["http/1.1", "h2"])
NOBODY = "nobody"
RELOADED = "the certificate is reloaded"
REFUSED = "the certificate cannot be reloaded; the earlier one stays in use"


async def who(scope: Scope, receive: Receive, send: Send) -> None:
    """Reply with the digest of the client's certificate."""
    await whole_body(receive)
    certificate = scope.get("state", {}).get(CLIENT_CERTIFICATE)
    await reply(send, (NOBODY if certificate is None else sha256(certificate).hexdigest()).encode())


APP = application(who)


class Client:
    """A connection in one of the protocols."""

    def __init__(self, stream: TlsStream) -> None:
        self.stream, self.tls = stream, stream.tls
        self.peer: H2Peer | Peer = (
            H2Peer(stream) if stream.tls.selected_alpn_protocol() == "h2" else Peer(stream)
        )

    async def ask(self) -> str:
        """The reply to a request; with it also the ticket of a session has come."""
        if isinstance(self.peer, H2Peer):
            return (await self.peer.ask()).body.decode()
        return (await self.peer.exchange(GET)).body.decode()


async def connected(
    wired: Wired, context: ssl.SSLContext, session: ssl.SSLSession | None = None, protocol: str = "http/1.1"
) -> Client:
    """A connection after its handshake."""
    context.set_alpn_protocols([protocol])
    stream = TlsStream((await wired.connect()).stream, context, session)
    await stream.do_handshake()
    assert stream.tls.selected_alpn_protocol() == protocol
    return Client(stream)


def device(authority: trustme.CA, context: ssl.SSLContext) -> str:
    """Give a client a certificate; returns its digest."""
    issued = authority.issue_cert("device@example.com")
    issued.configure_cert(context)
    return sha256(ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())).hexdigest()


def write_authorities(authority: trustme.CA, directory: Path) -> str:
    """Write the authority of client certificates; returns the file."""
    authority.cert_pem.write_to_path(str(directory / "authority.pem"))
    return str(directory / "authority.pem")


# Sessions.


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("with_certificate", [False, True])
@PROTOCOLS
async def test_a_session_is_resumed_and_its_client_is_known(
    tmp_path: Path, version: ssl.TLSVersion, with_certificate: bool, protocol: str
) -> None:
    authority = trustme.CA()
    settings = write_certificate(authority, tmp_path)
    context = trusting(authority)
    context.maximum_version = version
    name = NOBODY
    if with_certificate:
        settings["ca_certs"] = write_authorities(authority, tmp_path)
        name = device(authority, context)
    async with serving(APP, **settings) as wired:
        session = None
        for turn in range(3):
            client = await connected(wired, context, session, protocol)
            assert await client.ask() == name
            assert client.tls.session_reused is (turn > 0)
            session = client.tls.session


async def test_a_ticket_is_sent_for_each_handshake(tmp_path: Path) -> None:
    """One: what the server sends after the handshake is less than two would be."""
    authority = trustme.CA()
    async with serving(APP, **write_certificate(authority, tmp_path)) as wired:
        client = await connected(wired, trusting(authority))
        await wait_all_tasks_blocked()
        assert 200 < len(await client.stream.received()) < 400


# Files.


@PROTOCOLS
async def test_a_renewed_certificate_is_for_new_connections_and_wrong_files_change_nothing(
    tmp_path: Path, protocol: str, log: list[dict[str, Any]]
) -> None:
    authority, other = trustme.CA(), trustme.CA()
    context = trusting(authority, other)
    async with serving(APP, **write_certificate(authority, tmp_path)) as wired:
        first = await connected(wired, context, None, protocol)
        assert await first.ask() == NOBODY

        wired.config.reload()
        same = await connected(wired, context, first.tls.session, protocol)
        assert same.tls.session_reused, "the files are the same, and so are the sessions"

        write_certificate(other, tmp_path)
        wired.config.reload()
        renewed = await connected(wired, context, first.tls.session, protocol)
        assert await renewed.ask() == NOBODY
        assert not renewed.tls.session_reused, "the client has to see the new certificate"
        assert renewed.tls.getpeercert(True) != first.tls.getpeercert(True)

        other.issue_cert("localhost").private_key_pem.write_to_path(str(tmp_path / "key.pem"))
        wired.config.reload()
        third = await connected(wired, context, renewed.tls.session, protocol)
        assert third.tls.session_reused
        for client in (first, same, third):
            assert await client.ask() == NOBODY
        assert [entry["event"] for entry in log] == ["the certificate is unchanged", RELOADED, REFUSED]


@pytest.mark.parametrize(
    ("validity", "told"),
    [
        ({"not_after": datetime(2001, 5, 6, tzinfo=UTC)}, ("the certificate has expired", "at")),
        ({"not_before": datetime(2901, 5, 6, tzinfo=UTC)}, ("the certificate is not valid yet", "before")),
    ],
)
async def test_a_certificate_that_is_not_valid_now_is_used_with_a_warning(
    tmp_path: Path, validity: dict[str, Any], told: tuple[str, str], log: list[dict[str, Any]]
) -> None:
    authority = trustme.CA()
    settings = write_certificate(authority, tmp_path, **validity)
    event, field = told
    (moment,) = validity.values()
    warned = {
        "event": event,
        "certfile": settings["certfile"],
        field: moment.isoformat(),
        "log_level": "warning",
    }
    async with serving(APP, **settings) as wired:
        assert log == [warned]
        write_certificate(authority, tmp_path)
        wired.config.reload()
        assert await (await connected(wired, trusting(authority))).ask() == NOBODY
        write_certificate(authority, tmp_path, **validity)
        wired.config.reload()
        assert [entry["event"] for entry in log] == [event, RELOADED, RELOADED, event]


async def test_a_session_does_not_outlive_the_trust_in_its_client(
    tmp_path: Path, log: list[dict[str, Any]]
) -> None:
    authority, devices, successor = trustme.CA(), trustme.CA(), trustme.CA()
    settings = write_certificate(authority, tmp_path)
    settings["ca_certs"] = write_authorities(devices, tmp_path)
    context = trusting(authority)
    name = device(devices, context)
    async with serving(APP, **settings) as wired:
        earlier = await connected(wired, context)
        assert await earlier.ask() == name
        write_authorities(successor, tmp_path)
        wired.config.reload()
        refused = await connected(wired, context, earlier.tls.session)
        await refused.stream.send_all(GET)
        with pytest.raises(trio.BrokenResourceError):
            await refused.stream.receive_some(1)
        name = device(successor, context)
        assert await (await connected(wired, context)).ask() == name


async def test_changed_files_are_noticed_and_wrong_ones_are_told_of_once(
    tmp_path: Path, log: list[dict[str, Any]]
) -> None:
    """All files change at once, as they do where a link names the folder with the current ones."""
    authority, live = trustme.CA(), tmp_path / "live"
    for name in ("first", "wrong", "second"):
        (tmp_path / name).mkdir()
        write_certificate(authority, tmp_path / name)
    (tmp_path / "wrong" / "key.pem").write_text("no key")

    def choose(name: str) -> None:
        (tmp_path / "next").symlink_to(tmp_path / name)
        (tmp_path / "next").replace(live)

    async def shown(wired: Wired) -> bytes | None:
        return (await connected(wired, trusting(authority))).tls.getpeercert(True)

    async def logged(*events: str) -> None:
        with trio.fail_after(PATIENCE_S):
            while [entry["event"] for entry in log] != [*events]:
                await trio.lowlevel.checkpoint()

    choose("first")
    files: dict[str, Any] = {"certfile": str(live / "chain.pem"), "keyfile": str(live / "key.pem")}
    async with serving(APP, **files) as wired, trio.open_nursery() as nursery:
        nursery.start_soon(wired.config.follow, 0)
        first = await shown(wired)
        choose("wrong")
        await logged(REFUSED)
        assert [await shown(wired) for _ in range(20)] == [first] * 20
        choose("second")
        await logged(REFUSED, RELOADED)
        assert await shown(wired) != first
        nursery.cancel_scope.cancel()


# The end.


@PROTOCOLS
@pytest.mark.parametrize("reason", ["idle", "drain"])
async def test_a_client_is_told_of_the_end(
    tmp_path: Path, protocol: str, reason: str, mock_clock: MockClock
) -> None:
    """It could not tell an end from an attacker who cuts the connection otherwise."""
    authority = trustme.CA()
    limits = {"connection_idle_s": 5}
    async with serving(APP, limits=limits, **write_certificate(authority, tmp_path)) as wired:
        client = await connected(wired, trusting(authority), None, protocol)
        await client.ask()
        await wait_all_tasks_blocked()
        if reason == "drain":
            wired.drain()
        else:
            mock_clock.jump(5)
            await wait_all_tasks_blocked()
            mock_clock.jump(REAP_S)
        with trio.fail_after(PATIENCE_S):
            while await client.stream.receive_some(1000):
                pass
