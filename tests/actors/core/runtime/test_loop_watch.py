"""The watchdog of the loop: what is measured of a turn, whose it was, and what becomes of the long ones."""

from __future__ import annotations

import select
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import trio
import trio.lowlevel
from structlog.testing import capture_logs

from trunkline.actors.core.runtime import work
from trunkline.actors.core.runtime.loop_watch import (
    TURN_TIMES_S,
    WORST_KEPT_MS,
    WORST_MAX,
    LongTurn,
    LoopWatch,
)
from trunkline.actors.core.runtime.work import Work, noted
from trunkline.limits.table import Limits

APPLICATION = bytes(12)
LIMIT_MS = 5
HELD_MS = 8
WAITING = "waiting for the disk, another thread or another program"


def compute(ms: float = HELD_MS) -> None:
    """Use the processor for so long."""
    until_ns = time.thread_time_ns() + round(ms * 1e6)
    while time.thread_time_ns() < until_ns:
        pass


def block(ms: float = HELD_MS) -> None:
    """Hold the loop without using the processor, as a slow disk does."""
    until_ns = time.perf_counter_ns() + round(ms * 1e6)
    while (left_ns := until_ns - time.perf_counter_ns()) > 0:
        select.select([], [], [], left_ns / 1e9)


class Now:
    ms = 1_000_000


@pytest.fixture
async def watch() -> AsyncIterator[LoopWatch]:
    limits = replace(Limits(), loop_turn_ms_max=LIMIT_MS, logged_turns_per_minute_max=2)
    watch = LoopWatch(limits, lambda: Now.ms, lambda application: f"owner of {application.hex()}")
    trio.lowlevel.add_instrument(watch)
    await trio.lowlevel.checkpoint()
    yield watch
    trio.lowlevel.remove_instrument(watch)


async def test_a_long_turn_is_told_with_its_work_and_the_owner(watch: LoopWatch) -> None:
    work.begin(Work("call", "flow.post", APPLICATION, "user 12", lambda: "StringNode"))
    compute()
    await trio.lowlevel.checkpoint()
    (turn,) = [each for each in watch.worst() if each.kind == "call"]
    assert turn.ms >= HELD_MS
    assert turn.cpu_ms >= HELD_MS - 1, "the clock of the processor is read once a millisecond"
    told = (turn.name, turn.detail, turn.application_id, turn.bearer)
    assert told == ("flow.post", "StringNode", APPLICATION.hex(), "user 12")
    assert turn.owner_id == f"owner of {APPLICATION.hex()}"
    assert watch.long_turns["call"] == 1
    assert watch.longest_ns >= HELD_MS * 1e6


async def test_what_the_loop_did_not_compute_itself_is_told_apart(watch: LoopWatch) -> None:
    work.begin(Work("call", "blocked"))
    block(4 * HELD_MS)
    await trio.lowlevel.checkpoint()
    (turn,) = [each for each in watch.worst() if each.name == "blocked"]
    assert turn.ms >= 4 * HELD_MS
    assert turn.cpu_ms < turn.ms / 2
    assert turn.cause == WAITING


async def test_a_collection_in_another_thread_is_told_as_the_cause(watch: LoopWatch) -> None:
    collected_s = 0.0
    watch.collected_s = lambda: collected_s
    await trio.lowlevel.checkpoint()
    work.begin(Work("call", "kept out"))
    block(4 * HELD_MS)
    collected_s = 60.0
    await trio.lowlevel.checkpoint()
    (turn,) = [each for each in watch.worst() if each.name == "kept out"]
    assert turn.cause == "the garbage collector"
    assert turn.gc_ms <= turn.cpu_ms


async def test_a_pause_is_counted_and_listed_but_logged_only_if_it_is_very_long() -> None:
    watch = LoopWatch(replace(Limits(), loop_turn_ms_max=LIMIT_MS), lambda: Now.ms)
    with capture_logs() as lines:
        for ms in (LIMIT_MS + 1, 10 * LIMIT_MS - 1, 10 * LIMIT_MS):
            watch._note(
                LongTurn(Now.ms, ms, LIMIT_MS / 2 - 0.1, 0, "call", "x", "", None, None, None, WAITING)
            )
    assert [(line["ms"], line["cause"]) for line in lines] == [(10 * LIMIT_MS, WAITING)]
    assert len(watch.worst()) == 3, "the list has them all"
    with capture_logs() as lines:
        watch._note(LongTurn(Now.ms, 6, LIMIT_MS / 2, 0, "call", "x", "", None, None, None, "computing"))
    assert [(line["ms"], line["cause"]) for line in lines] == [(6, "computing")]


async def test_a_pause_of_some_milliseconds_is_counted_and_not_logged(watch: LoopWatch) -> None:
    with capture_logs() as lines:
        work.begin(Work("call", "paused"))
        block(1.5 * LIMIT_MS)
        await trio.lowlevel.checkpoint()
    paused = [each for each in watch.worst() if each.name == "paused"]
    assert watch.long_turns["call"] == len(paused) == 1
    told = [line for line in lines if line.get("name") == "paused"]
    assert bool(told) == (paused[0].cpu_ms >= LIMIT_MS / 2 or paused[0].ms >= 10 * LIMIT_MS)


async def test_a_pause_of_the_garbage_collector_is_told(watch: LoopWatch) -> None:
    collected_s = 0.0
    watch.collected_s = lambda: collected_s
    await trio.lowlevel.checkpoint()
    work.begin(Work("call", "collected"))
    compute()
    collected_s = 0.003
    await trio.lowlevel.checkpoint()
    (turn,) = [each for each in watch.worst() if each.name == "collected"]
    assert turn.gc_ms == 3


async def test_each_turn_counts_once_and_short_ones_are_not_listed(watch: LoopWatch) -> None:
    before = watch.turns
    for _ in range(100):
        await trio.lowlevel.checkpoint()
    assert watch.turns - before >= 100
    assert len(watch.counts) == len(TURN_TIMES_S) + 1
    assert sum(watch.counts) == watch.turns
    assert sum(watch.long_turns.values()) == len(watch.worst())


async def test_callbacks_of_one_step_are_turns_of_their_own(watch: LoopWatch) -> None:
    """A task that serves many sockets holds the loop for each of them, not for all together."""
    work.begin(Work("other", "the poll"))
    for number in range(10):
        noted.work = Work("link", f"callback {number}")
        compute(LIMIT_MS * 0.2 if number != 1 else HELD_MS)
        watch.lap()
    compute(LIMIT_MS * 0.1)
    await trio.lowlevel.checkpoint()
    named = {each.name for each in watch.worst() if each.cpu_ms >= LIMIT_MS}
    assert named == {"callback 1"}
    assert noted.work is None, "the next turn is not told to be for this device"


async def test_work_that_ended_in_a_turn_counts_for_it_unless_other_work_began(watch: LoopWatch) -> None:
    work.begin(Work("run", "first"))
    compute()
    work.end()
    await trio.lowlevel.checkpoint()
    assert [each.name for each in watch.worst() if each.kind == "run"] == ["first"]
    compute()
    await trio.lowlevel.checkpoint()
    assert watch.long_turns["other"] >= 1, "nothing is told of work that is over"
    work.begin(Work("run", "short"))
    work.end()
    work.begin(Work("run", "second"))
    compute()
    await trio.lowlevel.checkpoint()
    assert {each.name for each in watch.worst() if each.kind == "run"} == {"first", "second"}


@contextmanager
def a_turn_of(watch: LoopWatch, ms: float) -> Iterator[None]:
    """A turn that began so long ago."""
    watch._began_ns = time.perf_counter_ns() - round(ms * 1e6)
    yield
    watch.lap()


def test_the_worst_turns_are_bounded_and_forgotten_after_a_day() -> None:
    watch = LoopWatch(Limits(), lambda: Now.ms)
    for number in range(2 * WORST_MAX):
        with a_turn_of(watch, 100 + number):
            noted.work = Work("job", str(number))
    worst = watch.worst()
    assert [each.name for each in worst] == [str(number) for number in reversed(range(32, 64))]
    assert watch.long_turns["job"] == 2 * WORST_MAX
    Now.ms += WORST_KEPT_MS + 1
    assert watch.worst() == []


def test_the_log_has_so_many_lines_a_minute_and_counts_the_others() -> None:
    limits = replace(Limits(), logged_turns_per_minute_max=2)
    watch = LoopWatch(limits, lambda: Now.ms)
    with capture_logs() as lines:
        for _ in range(5):
            with a_turn_of(watch, 50):
                noted.work = Work("call", "device.get", None, "user 12")
    assert [line["event"] for line in lines] == ["a turn of the event loop was long"] * 2
    assert lines[0]["name"] == "device.get"
    assert lines[0]["bearer"] == "user 12"
    assert "application_id" not in lines[0], "what is not known is not told"
    watch._lines._window._calls = 9  # a minute later
    with capture_logs() as lines, a_turn_of(watch, 50):
        pass
    assert lines[0]["left_out"] == 3


async def test_each_application_has_about_the_time_that_its_turns_took(watch: LoopWatch) -> None:
    """Also turns that are much shorter than the time between two samples, and those that are longer than several."""
    turns = {bytes(11) + b"a": (0.02, 900), bytes(11) + b"b": (0.06, 300), bytes(11) + b"c": (12, 3)}
    took_s = dict.fromkeys(turns, 0.0)
    watch.begin()
    for application, (ms, times) in turns.items():
        began_ns = time.perf_counter_ns()
        for _ in range(times):
            noted.work = Work("call", "device.sendState", application)
            compute(ms)
            watch.lap()
        took_s[application] = (time.perf_counter_ns() - began_ns) / 1e9
    await trio.sleep(0.05)  # no sample is due of the time that the loop waits
    told = watch.hour.told(time.perf_counter_ns())
    assert told.busy_s == pytest.approx(sum(took_s.values()), rel=0.15, abs=0.004)
    for application, expected_s in took_s.items():
        assert told.applications[application] == pytest.approx(expected_s, rel=0.2, abs=0.006)
