"""A load starts calls when they are due, measures from that time, and counts every call."""

from __future__ import annotations

import pytest

from tests.bench.simulation import Knock, SimulatedConnection, World
from trunkline.bench.errors import BenchError, ConnectFailed
from trunkline.bench.framing import Response
from trunkline.bench.load import Load, Tally
from trunkline.bench.transport import Origin

ORIGIN = Origin("127.0.0.1", 1, tls=False, prefix="")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr("trunkline.bench.load.clock", world.clock)
    monkeypatch.setattr("trunkline.bench.load.CallConnection", SimulatedConnection)
    return world


def opened(
    world: World, *, callers: int, connections: int, rate: float | None = None
) -> tuple[Load, list[Knock]]:
    tally = Tally("knocks")
    knocks = [Knock(tally, world) for _ in range(callers)]
    load = Load(world, ORIGIN, knocks, connections=connections, rate=rate)  # type: ignore[arg-type]
    load.open()
    return load, knocks


def test_a_closed_loop_calls_again_as_soon_as_the_answer_is_there(world: World) -> None:
    world.answer = lambda now_s: 0.25
    load, (knock,) = opened(world, callers=1, connections=1)
    load.run(1.0)
    assert knock.times == [0.0, 0.25, 0.5, 0.75]
    assert (knock.tally.sent, knock.tally.acknowledged, knock.tally.unknown) == (4, 4, 0)
    assert knock.tally.latency.max_s == 0.25


def test_works_take_turns_and_none_is_called_twice_at_a_time(world: World) -> None:
    world.answer = lambda now_s: 0.1
    load, knocks = opened(world, callers=3, connections=2)
    load.run(0.55)
    assert [knock.times for knock in knocks] == [
        pytest.approx([0.0, 0.1, 0.3, 0.4]),
        pytest.approx([0.0, 0.2, 0.3, 0.5]),
        pytest.approx([0.1, 0.2, 0.4, 0.5]),
    ]


def test_an_open_loop_starts_calls_at_fixed_times_whatever_the_server_does(world: World) -> None:
    world.answer = lambda now_s: 0.35
    load, (knock, *others) = opened(world, callers=8, connections=8, rate=10)
    load.run(1.0)
    times = sorted(time for one in (knock, *others) for time in one.times)
    assert times == pytest.approx([n / 10 for n in range(10)])
    assert knock.tally.latency.max_s == knock.tally.service.max_s == pytest.approx(0.35, abs=1e-5)


def test_latency_counts_from_the_intended_start_where_a_stall_made_calls_wait(world: World) -> None:
    """One connection, ten calls a second of 1 ms each; the one at 0.5 s takes a second."""
    world.answer = lambda now_s: 1.0 if 0.45 < now_s < 0.55 else 0.001
    load, (knock,) = opened(world, callers=1, connections=1, rate=10)
    load.run(3.0)
    tally = knock.tally
    assert tally.sent == tally.acknowledged == tally.latency.count == 30
    assert load.unsent == 0
    # Those due at 0.6, 0.7, ... 1.4 s waited for the stall to end; measured from their sending nobody would know.
    assert tally.service.percentile(96) < 0.002
    assert [
        round(tally.latency.percentile(100 * (30 - slower) / 30), 2) for slower in range(10)
    ] == pytest.approx([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.31, 0.21, 0.11], abs=0.011)


def test_starts_that_never_found_a_free_connection_are_told_with_their_waiting(world: World) -> None:
    world.answer = lambda now_s: 100.0
    load, (knock,) = opened(world, callers=1, connections=1, rate=10)
    load.run(1.0)
    assert (knock.tally.sent, load.unsent) == (1, 9)
    assert knock.tally.latency.count == 9
    assert knock.tally.latency.max_s == pytest.approx(0.9)
    assert knock.tally.unknown == 1


def test_starts_without_a_free_connection_count_for_the_kinds_whose_turn_it_was(world: World) -> None:
    """Three kinds of calls in the ratio 2 : 1 : 1, and one connection that gets no answer."""
    world.answer = lambda now_s: 100.0
    posts, lists, commands = Tally("posts"), Tally("lists"), Tally("commands")
    knocks = [Knock(tally, world) for tally in (posts, posts, lists, commands)]
    load = Load(world, ORIGIN, knocks, connections=1, rate=10)  # type: ignore[arg-type]
    load.open()
    load.run(0.95)
    assert (posts.sent, load.unsent) == (1, 9)
    assert [tally.latency.count for tally in (posts, lists, commands)] == [5, 2, 2]
    assert lists.latency.max_s == pytest.approx(0.75)


def test_starts_count_also_while_all_callers_have_to_pause(world: World) -> None:
    world.respond = lambda now_s: Response(
        429, b"HTTP/1.1 429\r\nretry-after: 60", b'{"type":"T","message":"M"}'
    )
    load, (knock,) = opened(world, callers=1, connections=1, rate=10)
    load.run(0.95)
    assert (knock.refusals, load.unsent, knock.tally.latency.count) == (1, 9, 9)


def test_the_last_answers_are_waited_for(world: World) -> None:
    world.answer = lambda now_s: 0.4
    load, (knock,) = opened(world, callers=1, connections=1)
    assert load.run(1.0) == pytest.approx(1.2)
    assert knock.tally.acknowledged == 3


def test_a_refused_work_waits_as_long_as_it_was_told(world: World) -> None:
    refusal = Response(
        429, b"HTTP/1.1 429\r\nretry-after: 2", b'{"type":"TooManyRequests","message":"Later."}'
    )
    world.respond = lambda now_s: refusal if now_s == 1 else Response(200, b"", b"")
    world.answer = lambda now_s: 1.0
    load, (knock,) = opened(world, callers=1, connections=1)
    load.run(5.5)
    assert knock.times == [0.0, 1.0, 4.0, 5.0]
    assert knock.refusals == 1
    assert knock.tally.refused == {"429 TooManyRequests": 1}
    assert knock.tally.first_refusal == "429 TooManyRequests: Later."


def test_an_answer_that_promises_nothing_is_unknown_and_no_refusal(world: World) -> None:
    world.respond = lambda now_s: Response(500, b"HTTP/1.1 500", b'{"type":"Internal","message":"Broken."}')
    load, (knock,) = opened(world, callers=1, connections=1)
    load.run(0.5)
    assert (knock.refusals, knock.tally.unknown) == (0, 1)
    assert knock.tally.failed == {"500 Internal": 1}


def test_a_broken_connection_is_made_again_and_its_call_is_unknown(world: World) -> None:
    world.respond = lambda now_s: None if now_s == 0 else Response(200, b"", b"")
    world.answer = lambda now_s: 0.3
    load, (knock,) = opened(world, callers=1, connections=1)
    load.run(1.0)
    assert knock.times == pytest.approx([0.0, 0.4, 0.7])
    assert (knock.tally.breaks, knock.tally.unknown, load.reconnects, world.opened) == (1, 1, 1, 2)


def test_a_call_without_an_answer_is_given_up_and_does_not_hold_the_load(world: World) -> None:
    world.answer = lambda now_s: 10_000.0 if now_s == 0 else 1.0
    load, (knock, other) = opened(world, callers=2, connections=1)
    load.run(40.0)
    assert knock.tally.breaks == 1
    assert other.times[0] == pytest.approx(30.6, abs=0.5)
    assert knock.tally.unknown == 1


def test_what_came_while_warming_up_is_forgotten(world: World) -> None:
    world.answer = lambda now_s: 0.5 if now_s < 1 else 0.1
    load, (knock,) = opened(world, callers=1, connections=1)
    load.run(1.0)
    load.reset()
    load.run(1.0)
    assert knock.tally.acknowledged == 10
    assert knock.tally.latency.max_s == pytest.approx(0.1, abs=1e-5)


def test_progress_is_told_while_the_load_runs_and_not_else(world: World) -> None:
    world.answer = lambda now_s: 0.2
    load, _ = opened(world, callers=1, connections=1)
    ticks: list[float] = []
    load.run(2.0, lambda: ticks.append(world.now_s))
    load.run(2.0)
    load.close()
    assert ticks == pytest.approx([0.5, 1.0, 1.5])


def test_many_connections_are_opened_a_few_at_a_time(world: World) -> None:
    load, _ = opened(world, callers=1, connections=1000)
    assert world.opened == 1000
    load.close()


def test_connections_that_do_not_come_up_are_a_sentence(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedConnection, "open", lambda self: None)
    with pytest.raises(ConnectFailed, match="Of 3 connections 0 could be opened"):
        opened(world, callers=1, connections=3)


@pytest.mark.parametrize(("connections", "rate"), [(0, None), (50_001, None), (1, 0), (1, -1)])
def test_impossible_loads_are_refused(world: World, connections: int, rate: float | None) -> None:
    with pytest.raises(BenchError):
        opened(world, callers=1, connections=connections, rate=rate)
