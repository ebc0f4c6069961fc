"""A connection to real NATS servers: logins, TLS, what breaks, and what is told of it."""

from __future__ import annotations

import base64
import binascii
import secrets
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trustme
from structlog.testing import capture_logs

from tests.nats_servers import NatsServer, free_ports, nats_servers
from tests.patience import PATIENCE_S
from trunkline.store.errors import LogUnreachable
from trunkline.store.nats_address import Address
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.nats_login import NOBODY, Login, signed

pytestmark = pytest.mark.slow

USER = 0xA0
SEED_OF_USER = bytes([0x90 | USER >> 5, (USER & 31) << 3])
"""The first bytes of a seed: that it is one, and of what."""


def seed(kind: bytes = SEED_OF_USER) -> str:
    """A new seed of an nkey."""
    raw = kind + secrets.token_bytes(32)
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).rstrip(b"=").decode()


@asynccontextmanager
async def connected(
    servers: Sequence[Address], login: Login = NOBODY, context: ssl.SSLContext | None = None
) -> AsyncIterator[NatsConnection]:
    connection = NatsConnection(servers, login, context=context)
    async with trio.open_nursery() as nursery:
        await nursery.start(connection.run)
        yield connection
        nursery.cancel_scope.cancel()


async def exchanged(connection: NatsConnection, payload: bytes = b"hello") -> None:
    """What is sent to a subject of this client comes to it, as soon as there is a connection."""
    with trio.fail_after(PATIENCE_S):
        while True:
            try:
                await exchanged_at_once(connection, payload)
                return
            except LogUnreachable:
                continue


async def exchanged_at_once(connection: NatsConnection, payload: bytes) -> None:
    async with connection.messages() as replies:
        await connection.send(replies.subject, payload, {"Number": "1"}, reply="back")
        message = await replies.next(PATIENCE_S)
    assert (message.payload, message.headers, message.reply) == (payload, {"Number": "1"}, "back")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    async with nats_servers(tmp_path) as (one,):
        yield one


async def test_messages_come_as_they_were_sent(server: NatsServer) -> None:
    async with connected([server.address]) as connection:
        for payload in (b"", b"a\r\nb", bytes(range(256)) * 4000):
            await exchanged(connection, payload)
        assert connection.server == server.address


async def test_a_request_gets_its_answer_among_many(server: NatsServer) -> None:
    async with (
        connected([server.address]) as one,
        connected([server.address]) as other,
        other.messages() as asked,
        trio.open_nursery() as nursery,
    ):

        async def ask(number: int) -> None:
            answer = await one.request(asked.subject, b"%d" % number, wait_s=PATIENCE_S)
            assert answer.payload == b"answer %d" % number

        await exchanged(other)  # so the server knows that it listens
        for number in range(50):
            nursery.start_soon(ask, number)
        questions = [await asked.next(PATIENCE_S) for _ in range(50)]
        for question in reversed(questions):
            await other.send(question.reply, b"answer " + question.payload)


async def test_where_nobody_answers_it_is_said_at_once(server: NatsServer) -> None:
    async with connected([server.address]) as connection:
        with pytest.raises(LogUnreachable, match="has no JetStream that could answer"):
            await connection.request("nobody", wait_s=PATIENCE_S)
        async with connection.messages() as silent:
            with pytest.raises(LogUnreachable, match=r"did not answer for 0\.05 s"):
                await connection.request(silent.subject, wait_s=0.05)
            assert (await silent.next(PATIENCE_S)).payload == b""
            with pytest.raises(LogUnreachable, match=r"Nothing came from the log for 0\.01 s"):
                await silent.next(0.01)


# Logins.


async def problem_of(address: Address, login: Login = NOBODY, context: ssl.SSLContext | None = None) -> str:
    """Why there is no connection."""
    async with connected([address], login, context) as connection:
        with pytest.raises(LogUnreachable) as refusal:
            await connection.request("any", wait_s=1.5)
    assert str(refusal.value) == f"There is no connection to the log: {connection.problem}."
    return connection.problem


async def test_a_user_with_a_password(tmp_path: Path) -> None:
    right = Login(user="node", password=secrets.token_hex(8))
    users = f'authorization {{ users: [{{ user: "{right.user}", password: "{right.password}" }}] }}'
    async with nats_servers(tmp_path, more=users) as (server,):
        async with connected([server.address], right) as connection:
            await exchanged(connection)
        wrong = Login(user="node", password="wrong-one")
        problem = await problem_of(server.address, wrong)
        assert problem == f"{server.address}: the server refuses: Authorization Violation"
        assert "wrong-one" not in repr(wrong)


async def test_a_token(tmp_path: Path) -> None:
    token = secrets.token_hex(8)
    async with nats_servers(tmp_path, more=f'authorization {{ token: "{token}" }}') as (server,):
        async with connected([server.address], Login(token=token)) as connection:
            await exchanged(connection)
        assert "Authorization Violation" in await problem_of(server.address)


async def test_an_nkey(tmp_path: Path) -> None:
    right, other = seed(), seed()
    public, _ = signed(right, b"")
    async with nats_servers(tmp_path, more=f"authorization {{ users: [{{ nkey: {public} }}] }}") as (server,):
        async with connected([server.address], Login(seed=right)) as connection:
            await exchanged(connection)
        assert "Authorization Violation" in await problem_of(server.address, Login(seed=other))


def test_what_is_no_seed_of_a_user_is_refused() -> None:
    right = seed()
    other = right[:30] + ("A" if right[30] != "A" else "B") + right[31:]
    for wrong in (
        "",
        "SU",
        "x" * 58,
        right[:-1] + "1",
        right[:20],
        other,
        seed(b"\x92\x00"),
        seed(b"\x05\x00"),
    ):
        with pytest.raises(ValueError, match="is not the seed of an nkey of a user") as refusal:
            signed(wrong, b"nonce")
        assert len(wrong) < 10 or wrong not in str(refusal.value)


async def test_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    tls = f'tls {{ cert_file: "{tmp_path / "cert.pem"}", key_file: "{tmp_path / "key.pem"}" }}'
    context = ssl.create_default_context()
    authority.configure_trust(context)
    async with nats_servers(tmp_path, more=tls) as (server,):
        async with connected([server.address._replace(tls=True)], context=context) as connection:
            await exchanged(connection)
        async with connected([server.address], context=context) as connection:
            await exchanged(connection)  # the server says that it wants TLS
        assert "certificate verify failed" in await problem_of(server.address)


async def test_a_server_without_tls_gets_no_password_where_tls_is_wanted(server: NatsServer) -> None:
    problem = await problem_of(server.address._replace(tls=True), Login(user="a", password="b"))
    assert problem.startswith(f"tls://127.0.0.1:{server.port}: ")


# What breaks.


async def test_after_a_kill_a_request_fails_and_the_next_connection_serves_others(tmp_path: Path) -> None:
    async with nats_servers(tmp_path) as (server,), trio.open_nursery() as nursery:
        async with connected([server.address]) as connection, connection.messages() as silent:
            failed = trio.Event()

            async def ask() -> None:
                with pytest.raises(LogUnreachable, match="nobody can say whether it received"):
                    await connection.request(silent.subject, wait_s=PATIENCE_S)
                failed.set()

            nursery.start_soon(ask)
            await silent.next(PATIENCE_S)
            await server.kill()
            await failed.wait()
            with pytest.raises(LogUnreachable, match="connection to the log broke"):
                await silent.next(PATIENCE_S)
            await server.start(nursery)
            await exchanged(connection)
            assert connection.connections >= 2
        nursery.cancel_scope.cancel()


async def test_the_first_server_that_is_there_is_used(tmp_path: Path, server: NatsServer) -> None:
    (port,) = free_ports(1)
    async with connected([Address("127.0.0.1", port, tls=False), server.address]) as connection:
        await exchanged(connection)
        assert connection.server == server.address


async def test_a_server_that_stands_still_is_left(tmp_path: Path, server: NatsServer) -> None:
    (tmp_path / "other").mkdir()
    async with (
        nats_servers(tmp_path / "other") as (other,),
        connected([server.address, other.address]) as connection,
    ):
        await exchanged(connection)
        await server.stand_still()
        with pytest.raises(LogUnreachable):
            await connection.request("nobody", wait_s=PATIENCE_S)
        await exchanged(connection)
        assert connection.server == other.address
        await server.go_on()


async def test_what_is_no_nats_server_is_told() -> None:
    async def speak(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, speak, 0, host="127.0.0.1"))
        port = listener.socket.getsockname()[1]
        problem = await problem_of(Address("127.0.0.1", port, tls=False))
        assert problem == f"nats://127.0.0.1:{port}: A line begins with b'HTTP/1.1 400 Bad Req'"
        nursery.cancel_scope.cancel()


async def test_the_problem_of_each_server_is_logged_once() -> None:
    """Until there was a connection; each round goes through all of them."""
    rounds = 0
    third = trio.Event()

    async def leave(_stream: trio.SocketStream) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            third.set()

    with capture_logs() as logged:
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(partial(trio.serve_tcp, leave, 0, host="127.0.0.1"))
            ports = [*free_ports(2), listener.socket.getsockname()[1]]
            servers = [Address("127.0.0.1", port, tls=False) for port in ports]
            async with connected(servers) as connection:
                with trio.fail_after(PATIENCE_S):
                    await third.wait()
                problem = connection.problem
            nursery.cancel_scope.cancel()
    told = [line["problem"] for line in logged]
    assert [each.partition(": ")[0] for each in told] == [str(each) for each in servers]
    assert problem == "; ".join(told)


# Addresses.


def test_addresses() -> None:
    assert Address.of("nats://a") == Address("a", 4222, tls=False)
    assert Address.of("tls://a.example.com:5000/") == Address("a.example.com", 5000, tls=True)
    assert str(Address.of("nats://[::1]:4223")) == "nats://[::1]:4223"


@pytest.mark.parametrize("url", ["a", "a:4222", "http://a", "nats://", "nats://a:b", "nats://a:99999"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not the address of a NATS server, such as nats://host:4222"):
        Address.of(url)


@pytest.mark.parametrize("url", ["nats://me:hidden@a", "nats://a/b", "nats://a?x=hidden"])
def test_an_address_has_no_password_and_none_is_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="no password and no path") as refusal:
        Address.of(url)
    assert "hidden" not in str(refusal.value)
