"""Time-outs of what a client sends, where the loop is held up and where it is not."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trunkline.http.wire.timeouts import HOLD_UPS_MAX, LATE_S, until


class Waiting:
    """A wait for an event until the tenth second."""

    def __init__(self) -> None:
        self.came = trio.Event()
        self.ends: list[str] = []

    async def run(self) -> None:
        try:
            await until(10, self.came.wait)
            self.ends.append("came")
        except trio.TooSlowError:
            self.ends.append("too slow")


async def passes(clock: MockClock, seconds: float) -> None:
    clock.jump(seconds)
    await wait_all_tasks_blocked()


async def test_what_comes_in_time_is_returned(mock_clock: MockClock) -> None:
    waiting = Waiting()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting.run)
        await passes(mock_clock, 9.9)
        waiting.came.set()
    assert waiting.ends == ["came"]


async def test_a_wait_ends_at_its_deadline(mock_clock: MockClock) -> None:
    waiting = Waiting()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting.run)
        await passes(mock_clock, 0)
        await passes(mock_clock, 10)
        assert waiting.ends == ["too slow"]


@pytest.mark.parametrize("times", [1, 2, HOLD_UPS_MAX - 1])
async def test_what_came_while_the_loop_was_held_up_is_returned(mock_clock: MockClock, times: int) -> None:
    waiting = Waiting()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting.run)
        await passes(mock_clock, 0)
        for _ in range(times):
            await passes(mock_clock, 30)
        waiting.came.set()
    assert waiting.ends == ["came"]


async def test_a_deadline_that_has_passed_long_ago_is_that_of_a_loop_that_was_held_up(
    mock_clock: MockClock,
) -> None:
    waiting = Waiting()
    mock_clock.jump(30)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting.run)
        await passes(mock_clock, LATE_S / 2)
        waiting.came.set()
    assert waiting.ends == ["came"]


async def test_a_loop_that_is_always_held_up_ends_a_wait_nevertheless(mock_clock: MockClock) -> None:
    waiting = Waiting()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting.run)
        await passes(mock_clock, 0)
        for _ in range(HOLD_UPS_MAX):
            assert not waiting.ends
            await passes(mock_clock, 30)
        assert waiting.ends == ["too slow"]


async def test_after_a_hold_up_the_wait_goes_on_for_a_little_only(mock_clock: MockClock) -> None:
    waiting = Waiting()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting.run)
        await passes(mock_clock, 30)
        assert not waiting.ends
        await passes(mock_clock, LATE_S)
        assert waiting.ends == ["too slow"]
