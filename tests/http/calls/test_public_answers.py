"""Answers for readers without a token: each is made once, kept for its time, and bounded in number and size."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from trunkline.actors.core.values.errors import Overloaded, TooManyRequests
from trunkline.http.calls.public_answers import Answer, PublicAnswers
from trunkline.limits.table import Limits

PUMPS, VALVES = b"pumps", b"valves"


class House:
    """Answers with a clock that the test controls; `made` are the keys whose answers were made."""

    def __init__(self, **limits: Any) -> None:
        rate = {"public_dashboard_data": {"calls": 100, "window_s": 60}}
        self.answers = PublicAnswers(Limits().override(rate | limits))
        self.now = 1000.0
        self.made: list[bytes] = []

    async def get(self, id: bytes, key: bytes, *, keep_s: float = 10, size: int = 1) -> int:
        """The number of answers that had been made when this one was."""

        async def make() -> Answer:
            self.made.append(key)
            await trio.sleep(1)
            return Answer(0, len(self.made), size)

        return int((await self.answers.get(id, key, keep_s, lambda: self.now, make)).value)


async def test_an_answer_is_made_once_and_kept_for_its_time(autojump_clock: trio.testing.MockClock) -> None:
    house, found = House(), []

    async def ask() -> None:
        found.append(await house.get(PUMPS, b"a"))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    assert (found, house.made) == ([1] * 5, [b"a"])
    house.now += 9.9
    assert await house.get(PUMPS, b"a") == 1
    house.now += 0.1
    assert await house.get(PUMPS, b"a") == 2
    assert await house.get(PUMPS, b"b") == 3
    assert await house.get(VALVES, b"a") == 4
    assert await house.get(PUMPS, b"a") == 2


async def test_so_many_are_made_in_a_window_for_each_dashboard(
    autojump_clock: trio.testing.MockClock,
) -> None:
    house = House(public_dashboard_data={"calls": 2, "window_s": 60})
    await house.get(PUMPS, b"a")
    await house.get(PUMPS, b"b")
    with pytest.raises(TooManyRequests) as refusal:
        await house.get(PUMPS, b"c")
    assert (refusal.value.bucket, refusal.value.retry_after_s) == ("public_dashboard_data", 60)
    assert await house.get(PUMPS, b"a") == 1  # it is kept
    await house.get(VALVES, b"a")
    house.now += 60
    assert await house.get(PUMPS, b"c") == 4


async def test_one_who_leaves_does_not_stop_those_who_wait(
    autojump_clock: trio.testing.MockClock,
) -> None:
    house, found = House(), []
    leaving = trio.CancelScope()

    async def leave() -> None:
        with leaving:
            await house.get(PUMPS, b"a")

    async def wait() -> None:
        found.append(await house.get(PUMPS, b"a"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        leaving.cancel()
    assert (found, house.made) == ([2], [b"a", b"a"])


async def test_so_many_wait_for_a_dashboard(autojump_clock: trio.testing.MockClock) -> None:
    house = House(public_dashboard_waiting_calls_max=2)
    async with trio.open_nursery() as nursery:
        for key in (b"a", b"b"):
            nursery.start_soon(house.get, PUMPS, key)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Overloaded):
            await house.get(PUMPS, b"c")
        await house.get(VALVES, b"a")
    assert await house.get(PUMPS, b"c") == 4


async def test_answers_and_dashboards_are_forgotten_at_a_bound(
    autojump_clock: trio.testing.MockClock,
) -> None:
    house = House(public_answers_bytes_max=100, public_dashboards_length_max=2)
    for key in (b"a", b"b"):
        await house.get(PUMPS, key, size=40)
    await house.get(VALVES, b"a", size=40)  # the answers for pumps, which were asked for before, make room
    assert house.made == [b"a", b"b", b"a"]
    await house.get(VALVES, b"a", size=40)
    await house.get(PUMPS, b"a", size=40)
    assert house.made == [b"a", b"b", b"a", b"a"]
    await house.get(b"third", b"a", size=40)
    await house.get(VALVES, b"a", size=40)
    assert house.made[4:] == [b"a", b"a"]


def test_only_the_right_password_is_remembered() -> None:
    answers = House(public_dashboards_length_max=1).answers
    assert not answers.knows_password(PUMPS, "hash", "right")
    answers.note_password(PUMPS, "hash", "right")
    assert answers.knows_password(PUMPS, "hash", "right")
    assert not answers.knows_password(PUMPS, "hash", "wrong")
    assert not answers.knows_password(PUMPS, "another hash", "right")
    assert not answers.knows_password(VALVES, "hash", "right")
    assert not answers.knows_password(PUMPS, "hash", "right")  # forgotten with its dashboard
