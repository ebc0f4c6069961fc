"""Whose turn it is: applications take turns by the time that they use."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trunkline.actors.scripts.turns import Turns
from trunkline.actors.values.errors import Overloaded


class Desk:
    """Calls that wait for a turn. `served` names the applications in the order in which they got one."""

    def __init__(self, nursery: trio.Nursery, places: int, length_max: int = 100) -> None:
        self.turns = Turns(places, length_max)
        self.served: list[str] = []
        self._nursery = nursery

    async def call(self, application: str, count: int = 1) -> None:
        for _ in range(count):
            self._nursery.start_soon(self._take, application)
            await wait_all_tasks_blocked()

    async def leave(self, application: str, used_s: float) -> None:
        self.turns.leave(application.encode(), used_s)
        await wait_all_tasks_blocked()

    async def _take(self, application: str) -> None:
        await self.turns.take(application.encode())
        self.served.append(application)


async def test_applications_alternate_whatever_the_number_of_their_calls() -> None:
    async with trio.open_nursery() as nursery:
        desk = Desk(nursery, places=1)
        await desk.call("a", 4)
        await desk.call("b", 2)
        for _ in range(5):
            await desk.leave(desk.served[-1], 1.0)
        assert "".join(desk.served) == "ababaa"


async def test_an_application_with_long_calls_gets_as_much_time_and_fewer_turns() -> None:
    async with trio.open_nursery() as nursery:
        desk = Desk(nursery, places=1)
        await desk.call("long", 3)
        await desk.call("short", 20)
        for _ in range(14):
            await desk.leave(desk.served[-1], 5.0 if desk.served[-1] == "long" else 0.5)
        assert desk.served == ["long", *["short"] * 10, "long", *["short"] * 3]
        nursery.cancel_scope.cancel()


async def test_a_free_place_goes_to_who_has_none() -> None:
    async with trio.open_nursery() as nursery:
        desk = Desk(nursery, places=2)
        await desk.call("long", 4)
        await desk.call("short", 3)
        await desk.leave("long", 5.0)
        assert desk.served == ["long", "long", "short"]
        for _ in range(2):
            await desk.leave("short", 0.1)
        assert desk.served[3:] == ["short", "short"]
        await desk.leave("short", 0.1)
        assert desk.served[5:] == ["long"]
        nursery.cancel_scope.cancel()


async def test_a_newcomer_is_not_ahead_for_what_others_used_before() -> None:
    async with trio.open_nursery() as nursery:
        desk = Desk(nursery, places=1)
        await desk.call("old", 5)
        for _ in range(2):
            await desk.leave("old", 100.0)
        await desk.call("new", 5)
        for _ in range(4):
            await desk.leave(desk.served[-1], 1.0)
        assert desk.served[3:] == ["new", "old", "new", "old"]
        nursery.cancel_scope.cancel()


async def test_the_queue_is_bounded_and_one_application_has_half_of_it() -> None:
    async with trio.open_nursery() as nursery:
        desk = Desk(nursery, places=1, length_max=4)
        await desk.call("a", 3)
        with pytest.raises(Overloaded, match="2 scripts of this application wait"):
            await desk.turns.take(b"a")
        await desk.call("b", 2)
        assert desk.turns.waiting == 4
        with pytest.raises(Overloaded, match="4 scripts wait"):
            await desk.turns.take(b"c")
        await desk.leave("a", 1.0)
        await desk.call("c")
        assert (desk.served, desk.turns.waiting) == (["a", "b"], 4)
        nursery.cancel_scope.cancel()


async def test_who_is_cancelled_has_no_place() -> None:
    """While it waits, and also when its turn came in the same instant."""
    turns = Turns(1, 10)
    await turns.take(b"a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.take, b"a")
        nursery.start_soon(turns.take, b"b")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert turns.waiting == 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.take, b"b")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        turns.leave(b"a", 1)
    with trio.fail_after(5):
        await turns.take(b"c")


async def test_nothing_is_kept_of_applications_without_calls() -> None:
    turns = Turns(2, 10)
    for number in range(100):
        await turns.take(b"%d" % number)
        turns.leave(b"%d" % number, 1)
    assert turns._accounts == {}
