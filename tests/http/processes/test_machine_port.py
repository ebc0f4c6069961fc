"""What one machine says to another: it arrives as it was sent, and nobody without the secret is heard."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from tests.patience import PATIENCE_S
from trunkline.http.hosting.machine_tls import NAME, contexts_of
from trunkline.http.hosting.unix_sockets import bound_in, connect_in
from trunkline.http.processes import machine_port
from trunkline.http.processes.channel import SOCKET_NAME
from trunkline.http.processes.machine_port import PROTOCOL, MachinePort, host_and_port
from trunkline.limits.settings import Settings

KEY, OTHER_KEY = bytes(range(32)), bytes(32)


class Side:
    """A machine with its port."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.joinpath(name).mkdir()
        self.directory = folder / name
        self.port = MachinePort.bound(Settings(data_dir=str(self.directory)))
        self.owner: str | None = None
        self.file = self.directory / "copy"

    def machine(self, key: bytes = KEY, command: list[str] | None = None) -> Any:
        return SimpleNamespace(
            key=key,
            owner_address=lambda: self.owner,
            copy_command=command or ["false"],
            new_file=lambda: self.file,
        )

    def door(self) -> trio.SocketStream:
        """A connection as a door makes it. Raises OSError while nobody listens."""
        return trio.SocketStream(trio.socket.from_stdlib_socket(connect_in(self.directory, SOCKET_NAME)))

    async def opened(self) -> trio.SocketStream:
        with trio.fail_after(PATIENCE_S):
            while True:
                try:
                    return self.door()
                except OSError:
                    await trio.lowlevel.checkpoint()

    async def closed(self) -> None:
        with trio.fail_after(PATIENCE_S):
            while (self.directory / SOCKET_NAME).exists():
                await trio.lowlevel.checkpoint()


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[tuple[Side, Side]]:
    one, two = Side(tmp_path, "one"), Side(tmp_path, "two")
    with closing(one.port), closing(two.port):
        yield one, two


@asynccontextmanager
async def echoes(side: Side) -> AsyncIterator[None]:
    """An owner that sends back what it is sent."""

    async def echo(stream: trio.SocketStream) -> None:
        async with stream:
            async for piece in stream:
                await stream.send_all(piece)

    with bound_in(side.directory, SOCKET_NAME) as sock:
        sock.listen()
        async with trio.open_nursery() as nursery:
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
            nursery.start_soon(trio.serve_listeners, echo, [listener])
            yield
            nursery.cancel_scope.cancel()


async def exactly(stream: trio.SocketStream, size: int) -> bytes:
    data = b""
    with trio.fail_after(PATIENCE_S):
        while len(data) < size:
            piece = await stream.receive_some()
            assert piece, data
            data += piece
    return data


async def test_doors_reach_the_owner_on_another_machine_as_long_as_it_is_that(
    sides: tuple[Side, Side], nursery: trio.Nursery
) -> None:
    one, two = sides
    nursery.start_soon(one.port.serve, one.machine())
    nursery.start_soon(two.port.pass_on, two.machine())
    with pytest.raises(OSError, match="No such file"):
        two.door()
    async with echoes(one):
        two.owner = one.port.address
        sent = os.urandom(300_000)
        async with await two.opened() as first, await two.opened() as second:
            async with trio.open_nursery() as sending:
                sending.start_soon(first.send_all, sent)
                assert await exactly(first, len(sent)) == sent
            await second.send_all(b"x")
            assert await exactly(second, 1) == b"x"
            two.owner = None
            await two.closed()
            assert await first.receive_some() == b""
        two.owner = one.port.address
        async with await two.opened() as again:
            await again.send_all(b"again")
            assert await exactly(again, 5) == b"again"


@pytest.mark.parametrize("what", ["key", "protocol"])
async def test_a_machine_with_another_secret_or_version_is_not_heard(
    sides: tuple[Side, Side], nursery: trio.Nursery, what: str
) -> None:
    one, _ = sides
    nursery.start_soon(one.port.serve, one.machine(OTHER_KEY if what == "key" else KEY))
    async with echoes(one):
        context = contexts_of(KEY, PROTOCOL if what == "key" else "trunkline-machines-0").client
        stream = await trio.open_tcp_stream(*host_and_port(one.port.address))
        secure = trio.SSLStream(stream, context, server_hostname=NAME)
        heard = b""
        with trio.fail_after(PATIENCE_S), suppress(trio.BrokenResourceError):
            await secure.send_all(machine_port.PASS_ON + b"hello")
            heard = bytes(await secure.receive_some())
        assert heard == b"", "it is closed without a word"


async def test_who_says_nothing_is_disconnected_and_so_are_many(
    sides: tuple[Side, Side], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    one, _ = sides
    nursery.start_soon(one.port.serve, one.machine())
    await trio.testing.wait_all_tasks_blocked()
    streams = [
        await trio.open_tcp_stream(*host_and_port(one.port.address))
        for _ in range(machine_port.BEGINNING_MAX + 1)
    ]
    with trio.fail_after(machine_port.BEGIN_S - 1):
        assert await streams[-1].receive_some() == b""
    assert await streams[0].receive_some() == b""
    for stream in streams:
        await stream.aclose()


async def test_a_copy_arrives_whole_or_is_asked_for_again(
    sides: tuple[Side, Side], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    one, two = sides
    data = os.urandom(300_000)
    (one.directory / "data").write_bytes(data)
    command = ["sh", "-c", f"cat {one.directory / 'data'}; test -e {one.directory / 'ready'}"]
    nursery.start_soon(one.port.serve, one.machine(command=command))
    two.owner = one.port.address
    async with trio.open_nursery() as fetching:
        fetching.start_soon(two.port.fetch, two.machine())
        with trio.fail_after(PATIENCE_S):
            while not two.file.exists() or two.file.stat().st_size < len(data):
                await trio.lowlevel.checkpoint()
        (one.directory / "ready").touch()
    assert two.file.read_bytes() == data


def test_a_port_that_is_taken_is_told_with_its_setting(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match="Choose another cluster_address"):
            MachinePort.bound(
                Settings(
                    data_dir=str(tmp_path),
                    cluster_address=address,
                    cluster_nats="nats://a",
                    cluster_node="a",
                    blobs="/x",
                )
            )
