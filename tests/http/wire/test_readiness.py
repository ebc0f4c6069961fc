"""Waiting for many sockets with one registration each: no edge is lost, and no wait outlives its reason."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.patience import PATIENCE_S
from trunkline.http.wire.readiness import Readiness


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


@pytest.fixture
async def readiness() -> AsyncIterator[Readiness]:
    with closing(Readiness()) as readiness:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(readiness.run)
            yield readiness
            nursery.cancel_scope.cancel()


async def waited(readiness: Readiness, sock: socket.socket) -> bool:
    """Whether a wait for the socket ends by itself."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def give_up() -> None:
                await wait_all_tasks_blocked()
                scope.cancel()

            nursery.start_soon(give_up)
            await readiness.wait(sock.fileno())
            nursery.cancel_scope.cancel()
    return not scope.cancelled_caught


async def test_what_came_before_it_was_watched_has_come(
    readiness: Readiness, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    theirs.send(b"x")
    readiness.add(ours.fileno())
    assert await waited(readiness, ours)
    assert ours.recv(10) == b"x"
    assert not await waited(readiness, ours)


async def test_what_comes_while_nobody_waits_is_not_lost(
    readiness: Readiness, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    readiness.add(ours.fileno())
    for _ in range(3):
        theirs.send(b"x")
        await wait_all_tasks_blocked()
        assert await waited(readiness, ours)
        assert ours.recv(10) == b"x"
        assert not await waited(readiness, ours)


async def test_a_wait_ends_with_what_comes(
    readiness: Readiness, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    readiness.add(ours.fileno())
    came: list[bytes] = []

    async def wait() -> None:
        await readiness.wait(ours.fileno())
        came.append(ours.recv(10))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert came == []
        theirs.send(b"late")
    assert came == [b"late"]


async def test_an_edge_tells_only_of_what_is_new_unless_told_that_there_is_more(
    readiness: Readiness, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    readiness.add(ours.fileno())
    theirs.send(b"abc")
    assert await waited(readiness, ours)
    ours.recv(1)
    assert not await waited(readiness, ours)
    readiness.mark_readable(ours.fileno())
    assert await waited(readiness, ours)
    assert not await waited(readiness, ours)


async def test_a_callback_that_has_left_something_is_called_again(
    readiness: Readiness, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    readiness.add(ours.fileno())
    came: list[bytes] = []

    def on_readable() -> bool:
        came.append(ours.recv(1))
        if len(came) < 3:
            readiness.mark_readable(ours.fileno())
        return len(came) < 3

    async def wait() -> None:
        while len(came) < 3:
            await readiness.wait(ours.fileno(), on_readable)

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            theirs.send(b"abc")
    assert came == [b"a", b"b", b"c"]


async def test_the_end_that_came_with_the_last_bytes_is_seen(
    readiness: Readiness, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    readiness.add(ours.fileno())
    theirs.send(b"last")
    theirs.shutdown(socket.SHUT_WR)
    assert await waited(readiness, ours)
    assert ours.recv(10) == b"last"
    assert await waited(readiness, ours)
    assert ours.recv(10) == b""


async def test_a_wait_can_be_ended_and_cancelled(
    readiness: Readiness, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    readiness.add(ours.fileno())
    readiness.wake(ours.fileno())  # nobody waits
    assert not await waited(readiness, ours)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(readiness.wait, ours.fileno())
        await wait_all_tasks_blocked()
        readiness.wake(ours.fileno())
    theirs.send(b"x")
    assert await waited(readiness, ours)


async def test_a_wait_that_is_cancelled_before_its_task_runs_loses_nothing(
    readiness: Readiness, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    theirs.send(b"x")
    readiness.add(ours.fileno())
    await wait_all_tasks_blocked()
    with trio.CancelScope() as scope:
        scope.cancel()
        await readiness.wait(ours.fileno())
    assert scope.cancelled_caught
    assert await waited(readiness, ours)
    assert not await waited(readiness, ours)


async def test_nothing_is_left_of_a_socket_for_the_next_one_of_its_number(readiness: Readiness) -> None:
    first, theirs = socket.socketpair()
    number = first.fileno()
    readiness.add(number)
    theirs.send(b"x")
    await wait_all_tasks_blocked()
    readiness.discard(number)
    first.close()
    theirs.close()
    second, theirs = socket.socketpair()
    with second, theirs:
        assert second.fileno() == number
        readiness.add(number)
        assert not await waited(readiness, second)


async def test_what_can_be_done_at_once_wakes_nobody(
    readiness: Readiness, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    readiness.add(ours.fileno())
    done: list[bytes] = []
    woken: list[bool] = []

    def instead() -> bool:
        done.append(ours.recv(10))
        return done[-1] != b"wake"

    async def wait() -> None:
        await readiness.wait(ours.fileno(), instead)
        woken.append(True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        for sent in (b"1", b"2"):
            theirs.send(sent)
            with trio.fail_after(PATIENCE_S):
                while sent not in done:
                    await trio.lowlevel.checkpoint()
            await wait_all_tasks_blocked()
            assert (done[-1], woken) == (sent, [])
        theirs.send(b"wake")
    assert (done, woken) == ([b"1", b"2", b"wake"], [True])


async def test_who_wakes_the_task_on_the_way_wakes_it_once(
    readiness: Readiness, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    readiness.add(ours.fileno())

    def instead() -> bool:
        ours.recv(10)
        readiness.wake(ours.fileno())
        return False

    async with trio.open_nursery() as nursery:
        nursery.start_soon(readiness.wait, ours.fileno(), instead)
        await wait_all_tasks_blocked()
        theirs.send(b"x")
    assert not await waited(readiness, ours)
