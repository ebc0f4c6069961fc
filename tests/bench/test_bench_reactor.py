"""The reactor runs callbacks in order, waits for descriptors, and stops on request."""

from __future__ import annotations

import gc
import socket
from collections.abc import Iterator

import pytest

from trunkline.bench.reactor import READABLE, WRITABLE, Reactor, clock, gc_paused


@pytest.fixture
def reactor() -> Iterator[Reactor]:
    reactor = Reactor()
    yield reactor
    reactor.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def test_timers_come_in_the_order_of_their_times(reactor: Reactor) -> None:
    seen: list[str] = []
    now_s = clock()
    reactor.call_at(now_s + 0.003, lambda: (seen.append("third"), reactor.stop()))  # type: ignore[arg-type, func-returns-value]
    reactor.call_at(now_s + 0.002, lambda: seen.append("second"))
    reactor.call_at(now_s - 5, lambda: seen.append("first"))
    assert reactor.run(now_s + 10)
    assert seen == ["first", "second", "third"]


def test_nothing_is_waited_for_after_a_timer_has_stopped_it(
    reactor: Reactor, pair: tuple[socket.socket, socket.socket]
) -> None:
    seen: list[int] = []
    reactor.watch(pair[0].fileno(), READABLE, seen.append)
    pair[1].send(b"x")
    reactor.call_at(clock(), reactor.stop)
    assert reactor.run(clock() + 10)
    assert seen == []


def test_the_end_ends_it(reactor: Reactor) -> None:
    assert not reactor.run(clock())
    reactor.call_at(clock() + 1000, reactor.stop)
    assert not reactor.run(clock() + 0.001)


def test_a_descriptor_is_told_of_while_it_is_watched(
    reactor: Reactor, pair: tuple[socket.socket, socket.socket]
) -> None:
    left, right = pair
    seen: list[bytes] = []

    def take(events: int) -> None:
        assert events == READABLE
        seen.append(left.recv(100))
        reactor.stop()

    reactor.watch(left.fileno(), READABLE, take)
    right.send(b"one")
    assert reactor.run(clock() + 10)
    right.send(b"two")
    assert reactor.run(clock() + 10)
    assert seen == [b"one", b"two"]
    reactor.forget(left.fileno())
    reactor.forget(left.fileno())
    right.send(b"three")
    assert not reactor.run(clock() + 0.001)


def test_other_events_can_be_waited_for(reactor: Reactor, pair: tuple[socket.socket, socket.socket]) -> None:
    seen: list[int] = []
    reactor.watch(pair[0].fileno(), READABLE, lambda events: (seen.append(events), reactor.stop()))  # type: ignore[arg-type, func-returns-value]
    assert not reactor.run(clock() + 0.001)
    reactor.change(pair[0].fileno(), WRITABLE)
    assert reactor.run(clock() + 10)
    assert seen == [WRITABLE]


def test_a_line_that_an_earlier_event_closed_is_not_called(reactor: Reactor) -> None:
    pairs = [socket.socketpair() for _ in range(2)]
    seen: list[int] = []

    def take(number: int) -> None:
        seen.append(number)
        for left, _ in pairs:
            reactor.forget(left.fileno())
        reactor.stop()

    for number, (left, right) in enumerate(pairs):
        reactor.watch(left.fileno(), READABLE, lambda events, number=number: take(number))  # type: ignore[misc]
        right.send(b"x")
    assert reactor.run(clock() + 10)
    assert len(seen) == 1
    for ends in pairs:
        for end in ends:
            end.close()


def test_the_collector_rests_during_a_measurement_and_is_back_after_it() -> None:
    during: list[bool] = []

    def fail() -> None:
        with gc_paused():
            during.append(gc.isenabled())
            raise KeyError

    assert gc.isenabled()
    with pytest.raises(KeyError):
        fail()
    assert (during, gc.isenabled()) == ([False], True)
