"""The transport of a cleartext connection: what is left of a send, and how each direction ends."""

from __future__ import annotations

import math
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.patience import PATIENCE_S
from trunkline.http.wire.readiness import RECEIVE_BYTES, Readiness
from trunkline.http.wire.socket_transport import LINGER_S, WRITE_STEP_BYTES, SocketTransport
from trunkline.http.wire.transport import ClientGone, Transport

LARGE = bytes(range(256)) * (1 << 14)
"""More than the buffers of both sockets hold."""
WRITE_TIMEOUT_S = 20.0


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as theirs:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, WRITE_STEP_BYTES)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WRITE_STEP_BYTES)
        theirs.connect(listening.getsockname())
        ours, _ = listening.accept()
        with ours:
            for end in (ours, theirs):
                end.setblocking(False)
            yield ours, theirs


@pytest.fixture
async def transport(ends: tuple[socket.socket, socket.socket]) -> AsyncIterator[Transport]:
    with closing(Readiness()) as readiness:
        transport = SocketTransport(ends[0], readiness, WRITE_TIMEOUT_S)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(readiness.run)
            yield transport
            nursery.cancel_scope.cancel()
        transport.detach()


async def read(sock: socket.socket, size: int) -> bytes:
    data = b""
    with trio.fail_after(PATIENCE_S):
        while len(data) < size:
            await trio.lowlevel.wait_readable(sock)
            data += sock.recv(size - len(data))
    return data


async def test_what_a_socket_takes_at_once_needs_no_flush(
    transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    assert transport.send_nowait(b"all of it")
    assert not transport.has_unsent
    assert await read(ends[1], 9) == b"all of it"


async def test_the_rest_of_a_send_is_flushed_in_order(
    transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    assert not transport.send_nowait(LARGE)
    assert transport.has_unsent
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.flush)
        assert await read(ends[1], len(LARGE)) == LARGE
    assert not transport.has_unsent
    assert transport.write_deadline_s == math.inf


async def test_nothing_is_sent_into_the_middle_of_a_message(transport: Transport) -> None:
    assert not transport.send_nowait(LARGE)
    with pytest.raises(AssertionError):
        transport.send_nowait(b"in between")


async def test_a_send_that_is_cancelled_leaves_its_rest_to_the_next_one(
    transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.send, LARGE)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert transport.has_unsent
    assert transport.write_deadline_s == math.inf, "nobody waits for the client any more"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.send, b"and more")
        assert await read(ends[1], len(LARGE) + 8) == LARGE + b"and more"
    assert not transport.has_unsent


async def test_the_write_deadline_moves_with_each_step(
    transport: Transport, ends: tuple[socket.socket, socket.socket], mock_clock: MockClock
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.send, LARGE)
        await wait_all_tasks_blocked()
        mock_clock.jump(WRITE_TIMEOUT_S - 1)
        await read(ends[1], 16 * WRITE_STEP_BYTES)
        await wait_all_tasks_blocked()
        assert transport.write_deadline_s == trio.current_time() + WRITE_TIMEOUT_S
        nursery.cancel_scope.cancel()


async def test_a_client_that_is_gone_is_told_by_each_way_to_send(
    transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    assert not transport.send_nowait(LARGE)
    ends[1].close()
    with pytest.raises(ClientGone):
        await transport.flush()
    assert transport.gone
    with pytest.raises(ClientGone):
        await transport.send(b"more")


async def test_receiving_tells_nothing_yet_from_nothing_more(
    transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    assert transport.receive_nowait() is None
    assert not transport.has_input()
    ends[1].send(b"last")
    assert transport.has_input()
    ends[1].shutdown(socket.SHUT_WR)
    assert (transport.receive_nowait(), transport.input_ended) == (b"last", False)
    assert (transport.receive_nowait(), transport.input_ended, transport.gone) == (b"", True, False)
    with trio.fail_after(PATIENCE_S):
        assert await transport.receive() == b""
    assert transport.send_nowait(b"the other half is open")


async def test_more_than_one_receive_takes_is_not_lost(
    transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    sent = 0
    with trio.fail_after(PATIENCE_S):
        while sent <= RECEIVE_BYTES:
            sent += ends[1].send(bytes(RECEIVE_BYTES))
        received = 0
        while received < sent:
            received += len(await transport.receive())


async def test_a_wait_calls_back_until_it_is_told_to_end(
    transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    received: list[bytes | None] = []

    def on_readable() -> bool:
        received.append(transport.receive_nowait())
        return received[-1] != b"end"

    async def wait() -> None:
        await transport.wait(on_readable)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        for data in (b"one", b"two", b"end"):
            await wait_all_tasks_blocked()
            ends[1].send(data)
    assert [data for data in received if data is not None] == [b"one", b"two", b"end"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        transport.wake()


async def test_the_end_behind_the_last_bytes_reaches_the_callback(
    transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    received: list[bytes | None] = []

    def on_readable() -> bool:
        received.append(transport.receive_nowait())
        return received[-1] != b""

    ends[1].send(b"last")
    ends[1].shutdown(socket.SHUT_WR)
    with trio.fail_after(PATIENCE_S):
        while not transport.input_ended:
            await transport.wait(on_readable)
    assert [data for data in received if data is not None] == [b"last", b""]


async def test_lingering_closes_one_half_and_drops_what_comes(
    transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    ends[1].send(b"unread before")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.linger)
        await wait_all_tasks_blocked()
        assert transport.read_deadline_s <= trio.current_time() + LINGER_S
        assert not transport.has_input()
        assert ends[1].recv(10) == b""
        ends[1].send(b"unread behind")
        await wait_all_tasks_blocked()
        assert not transport.has_input()
        ends[1].close()


async def test_lingering_drops_also_what_was_left_unread(
    transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    """Its event is over: the callback had a reason to leave it."""
    left = trio.Event()

    def leave() -> bool:
        left.set()
        return True

    async def wait() -> None:
        await transport.wait(leave)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        ends[1].send(b"unread")
        await left.wait()
        nursery.cancel_scope.cancel()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.linger)
        await wait_all_tasks_blocked()
        assert not transport.has_input()
        ends[1].close()


async def test_the_last_bytes_are_sent_without_waiting(
    transport: Transport, ends: tuple[socket.socket, socket.socket]
) -> None:
    ends[1].send(b"unread")
    transport.send_last(b"bye")
    assert ends[1].recv(10) == b"bye"
    assert ends[1].recv(10) == b""
    assert not transport.has_input()


@pytest.mark.parametrize("is_waiting", [True, False])
async def test_the_end_is_noticed_behind_more_than_one_read(
    transport: Transport, ends: tuple[socket.socket, socket.socket], is_waiting: bool
) -> None:
    """All comes with one event: the bytes of several reads, and the end behind them."""
    received: list[bytes] = []

    async def receive() -> None:
        while data := await transport.receive():
            received.append(data)

    ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * RECEIVE_BYTES)
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            if is_waiting:
                nursery.start_soon(receive)
                await wait_all_tasks_blocked()
            # Nothing else runs in between, so the kernel reports it as one.
            ends[1].send(bytes(RECEIVE_BYTES))
            ends[1].send(b"the rest")
            ends[1].shutdown(socket.SHUT_WR)
            if not is_waiting:
                await wait_all_tasks_blocked()
                nursery.start_soon(receive)
    assert transport.input_ended
    assert b"".join(received) == bytes(RECEIVE_BYTES) + b"the rest"
