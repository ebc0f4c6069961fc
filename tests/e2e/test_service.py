"""A server under a service manager: it says that it is ready, alive and stopping, and takes a new certificate."""

from __future__ import annotations

import os
import pty
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trustme

from tests.e2e.conftest import Server, running_server
from tests.e2e.server_process import OWNER, ServerProcess, serving, started
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow


# What the manager is told.


@asynccontextmanager
async def manager(address: str) -> AsyncIterator[trio.socket.SocketType]:
    """The socket of a service manager."""
    with trio.socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        await listening.bind(address)
        yield listening


async def told(listening: trio.socket.SocketType, wanted: str) -> list[str]:
    """Wait for a state; returns all lines until and with the message that has it."""
    lines: list[str] = []
    with trio.fail_after(PATIENCE_S):
        while wanted not in lines:
            lines += (await listening.recv(4096)).decode().split("\n")
    return lines


@pytest.mark.parametrize("abstract", [False, True])
async def test_the_manager_is_told_that_it_is_ready_and_that_it_stops(tmp_path: Path, abstract: bool) -> None:
    name = f"trunkline-test-{os.getpid()}"
    address, variable = (f"\0{name}", f"@{name}") if abstract else (str(tmp_path / "s"), str(tmp_path / "s"))
    env = {**OWNER, "NOTIFY_SOCKET": variable}
    async with manager(address) as listening, started(tmp_path / "data", env=env) as server:
        lines = await told(listening, "READY=1")
        assert await server.listens()
        assert f"STATUS=Serving at {server.url}" in lines
        assert "WATCHDOG=1" not in lines, "nobody asked for it"
        assert await server.log_in(), "it is as ready as it said"
        server.send_signal(signal.SIGTERM)
        await told(listening, "STOPPING=1")
        assert await server.ended() == 0


async def test_a_watchdog_is_fed_while_the_event_loop_runs(tmp_path: Path) -> None:
    env = {**OWNER, "NOTIFY_SOCKET": str(tmp_path / "s"), "WATCHDOG_USEC": "200000"}
    async with manager(str(tmp_path / "s")) as listening, serving(tmp_path / "data", env=env) as server:
        for _ in range(3):
            await told(listening, "WATCHDOG=1")
        assert await server.terminate() == 0


async def test_a_watchdog_of_another_process_is_not_fed(tmp_path: Path) -> None:
    env = {**OWNER, "NOTIFY_SOCKET": str(tmp_path / "s"), "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
    async with manager(str(tmp_path / "s")) as listening, serving(tmp_path / "data", env=env) as server:
        server.send_signal(signal.SIGTERM)
        assert "WATCHDOG=1" not in await told(listening, "STOPPING=1")
        assert await server.ended() == 0


async def test_a_manager_that_is_gone_does_not_stop_the_server(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", env={**OWNER, "NOTIFY_SOCKET": str(tmp_path / "none")}) as server:
        assert await server.call("GET", "/me")
        assert await server.terminate() == 0
    assert "the service manager cannot be told" in server.log


async def test_a_start_that_fails_is_never_ready(tmp_path: Path) -> None:
    async with manager(str(tmp_path / "s")) as listening:
        env = {**OWNER, "NOTIFY_SOCKET": str(tmp_path / "s"), "TRUNKLINE_HOST": "192.0.2.1"}
        async with started(tmp_path / "data", env=env) as server:
            assert await server.ended() == 1
        with pytest.raises(BlockingIOError):
            socket.fromfd(listening.fileno(), socket.AF_UNIX, socket.SOCK_DGRAM).recv(1, socket.MSG_DONTWAIT)


# Addresses.


@pytest.mark.parametrize("public_url", ["", "https://devices.example.com"])
async def test_a_server_on_all_addresses_says_what_its_links_need(tmp_path: Path, public_url: str) -> None:
    env = {**OWNER, "TRUNKLINE_PUBLIC_URL": public_url}
    async with started(tmp_path / "data", "--host", "0.0.0.0", env=env) as server:
        port = (await server.prints(r"at http://0\.0\.0\.0:(\d+) "))[1]
        assert f"The console: http://127.0.0.1:{port}/console\n" in server.printed
        assert f"(the API: http://127.0.0.1:{port}/docs)" in server.printed
        assert ("an address at which nobody is reached; set public_url" in server.log) is (not public_url)
        assert await server.terminate() == 0


# SIGHUP.


def write_certificate(authority: trustme.CA, directory: Path) -> tuple[str, str]:
    """Write a new certificate for 127.0.0.1 and its key; returns the files."""
    issued = authority.issue_cert("127.0.0.1")
    chain, key = directory / "chain.pem", directory / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    return str(chain), str(key)


async def logs(server: ServerProcess, text: str) -> None:
    """Wait until a line has been logged."""
    with trio.fail_after(PATIENCE_S):
        while text not in server.log:
            await trio.lowlevel.checkpoint()


async def secured(server: Server, authority: trustme.CA) -> trio.SSLStream[trio.SocketStream]:
    """A new connection that has finished its handshake."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    host, port = server.url.removeprefix("https://").split(":")
    with trio.fail_after(PATIENCE_S):
        stream = await trio.open_tcp_stream(host, int(port))
        tls = trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)
        await tls.do_handshake()
    return tls


async def alive(tls: trio.SSLStream[trio.SocketStream]) -> None:
    """Make a call on an open connection."""
    with trio.fail_after(PATIENCE_S):
        await tls.send_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        while b'{"status":"alive"}' not in received:
            piece = await tls.receive_some(65_536)
            assert piece, received
            received += piece


@pytest.mark.parametrize("options", ["--engine=fast", "--engine=stock", "--processes=2"])
async def test_a_renewed_certificate_is_used_by_new_connections(tmp_path: Path, options: str) -> None:
    authority, other = trustme.CA(), trustme.CA()
    chain, key = write_certificate(authority, tmp_path)
    # The stock engine waits for the end of a connection that was broken off for as long as it may.
    (tmp_path / "config.toml").write_text("[limits]\ndrain_s = 0.5\n")
    tls = ("--certfile", chain, "--keyfile", key, options)
    async with started(tmp_path / "data", *tls, "--config", str(tmp_path / "config.toml")) as server:
        server.url = (await server.prints(r" at (https://\S+) "))[1]
        first = await secured(server, authority)
        write_certificate(other, tmp_path)
        server.send_signal(signal.SIGHUP)
        await logs(server, "the certificate is reloaded")
        second = await secured(server, other)
        with pytest.raises(trio.BrokenResourceError):
            await secured(server, authority)
        # Files that do not belong together change nothing.
        other.issue_cert("127.0.0.1").private_key_pem.write_to_path(key)
        server.send_signal(signal.SIGHUP)
        await logs(server, "the certificate cannot be reloaded")
        third = await secured(server, other)
        for stream in (first, second, third):
            await alive(stream)
            await trio.aclose_forcefully(stream)
        assert await server.terminate() == 0


async def test_a_renewed_certificate_is_noticed_without_a_signal(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    chain, key = write_certificate(authority, tmp_path)
    often = {"certificate_interval_s": 0.001}
    async with running_server(tmp_path / "data", certfile=chain, keyfile=key, limits=often) as server:
        first = await secured(server, authority)
        write_certificate(other, tmp_path)
        with trio.fail_after(PATIENCE_S):
            while True:
                try:
                    second = await secured(server, other)
                    break
                except trio.BrokenResourceError:
                    await trio.lowlevel.checkpoint()
        for stream in (first, second):
            await alive(stream)
            await trio.aclose_forcefully(stream)


async def test_a_hangup_without_a_certificate_changes_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        server.send_signal(signal.SIGHUP)
        await logs(server, "there is no certificate to reload")
        assert await server.call("GET", "/me")
        assert await server.terminate() == 0


async def test_a_server_stops_with_the_terminal_in_which_it_was_started(tmp_path: Path) -> None:
    terminal, inside = pty.openpty()
    try:
        async with serving(tmp_path / "data", stdin=inside) as server:
            os.close(inside)
            server.send_signal(signal.SIGHUP)
            await logs(server, "there is no certificate to reload")
            os.close(terminal)
            server.send_signal(signal.SIGHUP)
            assert await server.ended() == 0
    finally:
        for each in (terminal, inside):
            try:
                os.close(each)
            except OSError:
                continue
