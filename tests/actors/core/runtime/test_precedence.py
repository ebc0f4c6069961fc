"""Threads that compute pause while the event loop has something to do, and go on however long that lasts."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import trio

from tests.actors.core.runtime.test_loop_watch import watch
from tests.patience import PATIENCE_S
from trunkline.actors.core.runtime import computing, precedence
from trunkline.actors.core.runtime.loop_watch import LoopWatch
from trunkline.actors.core.runtime.precedence import LOOP, compute_in_turn, give_way

__all__ = ["watch"]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the threads that paused, once for each look."""
    seen: list[str] = []
    sleep = time.sleep

    def counted(seconds: float) -> None:
        if seconds == precedence.PAUSE_S:
            seen.append(threading.current_thread().name)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", counted)
    yield seen
    LOOP.busy = False


def in_a_thread(work: object) -> None:
    """Do some work in a thread called worker while the event loop stays where it is."""
    thread = threading.Thread(target=work, name="worker")  # type: ignore[arg-type]
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


async def test_a_thread_pauses_while_the_loop_is_busy_and_then_goes_on(
    watch: LoopWatch, pauses: list[str]
) -> None:
    await trio.lowlevel.checkpoint()
    assert LOOP.busy, "this step of a task keeps it so"
    in_a_thread(give_way)
    assert "worker" in pauses


async def test_a_thread_does_not_pause_while_the_loop_waits(watch: LoopWatch, pauses: list[str]) -> None:
    def waits() -> None:
        deadline = time.monotonic() + PATIENCE_S
        while LOOP.busy:
            assert time.monotonic() < deadline
        pauses.clear()
        give_way()

    await trio.to_thread.run_sync(waits)
    assert pauses == []


async def test_computations_of_workflows_pause(watch: LoopWatch, pauses: list[str]) -> None:
    def compute() -> None:
        while not pauses:
            computing.give_up_if_cancelled()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(computing.in_thread, compute)
        with trio.fail_after(PATIENCE_S):
            while not pauses:  # each turn keeps the loop busy
                await trio.lowlevel.checkpoint()


async def test_work_of_an_owner_with_credit_does_not_pause(
    watch: LoopWatch, pauses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precedence, "_full_at_ns", {})
    monkeypatch.setattr(precedence, "CREDIT_NS", round(PATIENCE_S * 1e9))  # however slow this machine is
    await trio.lowlevel.checkpoint()
    assert LOOP.busy
    in_a_thread(lambda: compute_in_turn("quiet", give_way))
    assert pauses == []
    in_a_thread(give_way)
    assert pauses, "work of nobody has none"
    assert "quiet" in precedence._full_at_ns, "the time was charged"


async def test_work_of_an_owner_who_has_used_the_credit_pauses(
    watch: LoopWatch, pauses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precedence, "_full_at_ns", {})
    await trio.lowlevel.checkpoint()

    def longer_than_the_credit() -> None:
        until_ns = time.perf_counter_ns() + precedence.CREDIT_NS
        while time.perf_counter_ns() < until_ns:
            pass
        give_way()

    in_a_thread(lambda: compute_in_turn("greedy", longer_than_the_credit))
    assert pauses
    left_ns = precedence._full_at_ns["greedy"] - time.perf_counter_ns()
    assert left_ns <= precedence.CREDIT_NS / precedence.CREDIT_SHARE, (
        "it is full again after this time, not later"
    )
    precedence._full_at_ns["greedy"] += round(PATIENCE_S * 1e9)
    pauses.clear()
    in_a_thread(lambda: compute_in_turn("greedy", give_way))
    assert pauses


async def test_owners_whose_credit_is_full_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedence, "_full_at_ns", dict.fromkeys(range(1_024), 0))
    compute_in_turn("another", lambda: None)
    assert list(precedence._full_at_ns) == ["another"]


async def test_threads_that_compute_take_turns_and_who_has_credit_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(precedence, "_full_at_ns", {"greedy": time.perf_counter_ns() + 10**15})
    monkeypatch.setattr(precedence, "TURN_WAIT_S", PATIENCE_S)
    order: list[str] = []
    begun, others_wait = threading.Event(), threading.Event()

    def long() -> None:
        begun.set()
        assert others_wait.wait(PATIENCE_S)
        order.append("long")
        give_way()
        order.append("long again")

    threads = [threading.Thread(target=compute_in_turn, args=("greedy", long))]
    threads[0].start()
    assert begun.wait(PATIENCE_S)
    for owner in ("greedy", "quiet"):
        waiting = len(precedence._turns._waiting)
        threads.append(
            threading.Thread(target=compute_in_turn, args=(owner, lambda owner=owner: order.append(owner)))
        )
        threads[-1].start()
        while len(precedence._turns._waiting) == waiting:
            await trio.lowlevel.checkpoint()
    assert order == [], "one at a time"
    others_wait.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert order == ["long", "quiet", "greedy", "long again"]
    assert not precedence._turns._taken


async def test_a_thread_leaves_the_interpreter_at_times_while_the_loop_seems_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It cannot say that it is busy before it has the interpreter."""
    assert not LOOP.busy
    doors: list[float] = []
    monkeypatch.setattr(time, "sleep", doors.append)
    monkeypatch.setattr(precedence, "CREDIT_NS", 0)

    def long() -> None:
        until_ns = time.perf_counter_ns() + 3 * precedence.WORK_NS
        while time.perf_counter_ns() < until_ns:
            give_way()

    in_a_thread(lambda: compute_in_turn("anybody", long))
    assert set(doors) == {precedence.DOOR_S}


async def test_work_that_keeps_its_turn_holds_nobody_up() -> None:
    """Such as work that waits for a disk."""
    goes_on = threading.Event()
    waits = threading.Thread(target=compute_in_turn, args=("slow disk", lambda: goes_on.wait(PATIENCE_S)))
    waits.start()
    in_a_thread(lambda: compute_in_turn("another", give_way))
    in_a_thread(lambda: compute_in_turn("another", give_way))
    assert waits.is_alive()
    goes_on.set()
    waits.join(PATIENCE_S)
    assert not precedence._turns._taken
    assert not precedence._turns._waiting


async def test_a_turn_ends_also_where_the_work_fails() -> None:
    def fails() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        compute_in_turn("anybody", fails)
    assert not precedence._turns._taken
