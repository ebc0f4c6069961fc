"""The connections of the simulation: what arrives, what is cut, and what the server is told of it."""

from __future__ import annotations

import select
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
import trio

from tests.simulation.inner_wires import InnerSocket
from tests.simulation.network import Network
from tests.simulation.pipes import HOLDS_BYTES
from tests.simulation.wires import CUTS, PROCESS, Lost, ServerSocket, Wire

DATA = bytes(range(256)) * 20


async def connected(nursery: trio.Nursery, seed: int) -> tuple[Network, Wire, ServerSocket]:
    network = Network(Random(seed), Counter())
    nursery.start_soon(network.run)
    wire = network.http.connect()
    socket, _ = network.http.accept()
    return network, wire, socket


async def taken(network: Network, socket: ServerSocket, readable: int) -> bytes:
    """All that the server receives until the end, as the engine does: by the events of `epoll`."""
    epoll, got = network.epoll(), b""
    epoll.register(socket.fileno(), select.EPOLLIN | select.EPOLLRDHUP)
    with network.below_sockets():
        while True:
            with trio.move_on_after(readable) as waiting:
                await trio.lowlevel.wait_readable(epoll.fileno())
            if waiting.cancelled_caught:
                return got
            for _ in epoll.poll(0, 1):
                try:
                    while data := socket.recv(100):
                        got += data
                    return got
                except BlockingIOError:
                    pass
                except ConnectionResetError:
                    return got


@pytest.mark.parametrize("how", CUTS)
async def test_a_cut_lets_the_bytes_before_it_arrive(autojump_clock: trio.abc.Clock, how: str) -> None:
    for seed in range(5):
        async with trio.open_nursery() as nursery:
            network, wire, socket = await connected(nursery, seed)
            wire.to_server.cut_after(333, how)

            async def send(wire: Wire = wire) -> None:
                try:
                    await wire.send(DATA)
                except Lost:
                    assert wire.was_cut == how

            nursery.start_soon(send)
            got = await taken(network, socket, 60)
            assert DATA.startswith(got)
            assert len(got) == 333
            assert wire.is_lost is (how != "silent")
            nursery.cancel_scope.cancel()


async def test_a_pipe_holds_no_more_than_it_may(autojump_clock: trio.abc.Clock) -> None:
    async with trio.open_nursery() as nursery:
        _, wire, socket = await connected(nursery, 1)
        sent = socket.send(bytes(1 << 21))
        assert sent == wire.to_client.holds_bytes
        assert sent in HOLDS_BYTES
        with pytest.raises(BlockingIOError):
            socket.send(b"x")
        assert not socket.events() & select.EPOLLOUT
        got = 0
        while got < sent:
            got += len(await wire.receive())
        assert socket.events() & select.EPOLLOUT
        nursery.cancel_scope.cancel()


async def test_both_directions_end_behind_what_was_sent(autojump_clock: trio.abc.Clock) -> None:
    async with trio.open_nursery() as nursery:
        network, wire, socket = await connected(nursery, 2)
        await wire.send(b"question")
        assert await taken(network, socket, 5) == b"question"
        socket.send(b"answer")
        socket.close()
        answer = b""
        while data := await wire.receive():
            answer += data
        assert answer == b"answer"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("seed", range(5))
async def test_what_a_process_has_sent_before_it_died_arrives_and_then_the_end(
    autojump_clock: trio.abc.Clock, tmp_path: Path, seed: int
) -> None:
    network = Network(Random(seed), Counter())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(network.run)
        with as_process(1), network.bound_in(tmp_path, "sock") as listener:
            with as_process(0):
                ours = network.connect_in(tmp_path, "sock", b"first ")
            theirs, _ = listener.accept()
            assert ours.send(DATA) == len(DATA)
            network.kill(0)
            with pytest.raises(OSError, match="the socket is closed"):
                ours.recv(1)
            with network.below_sockets():
                assert await received(theirs) == b"first " + DATA
            with pytest.raises(BrokenPipeError):
                theirs.send(b"answer")
            network.kill(1)
            with pytest.raises(ConnectionRefusedError):
                network.connect_in(tmp_path, "sock")
        nursery.cancel_scope.cancel()


@contextmanager
def as_process(number: int) -> Iterator[None]:
    token = PROCESS.set(number)
    try:
        yield
    finally:
        PROCESS.reset(token)


async def received(socket: InnerSocket) -> bytes:
    got = b""
    while True:
        try:
            piece = socket.recv(100)
        except BlockingIOError:
            await trio.lowlevel.wait_readable(socket.fileno())
            continue
        if not piece:
            return got
        got += piece
