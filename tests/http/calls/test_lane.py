"""A lane lets so many items through at a time, in order, and gives back what a cancelled call held."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trunkline.actors.values.errors import Overloaded
from trunkline.http.calls.lane import Lane


class Road:
    """A lane, who is on it, and how each is told to leave."""

    def __init__(self, nursery: trio.Nursery, items_max: int = 10, waiting_max: int = 3) -> None:
        self.lane = Lane(items_max, waiting_max)
        self.on: list[str] = []
        self._nursery = nursery
        self._leave: dict[str, trio.Event] = {}
        self._scopes: dict[str, trio.CancelScope] = {}

    async def come(self, name: str, items: int) -> None:
        self._leave[name], self._scopes[name] = trio.Event(), trio.CancelScope()
        self._nursery.start_soon(self._drive, name, items)
        await wait_all_tasks_blocked()

    async def leave(self, name: str) -> None:
        self._leave[name].set()
        await wait_all_tasks_blocked()

    async def cancel(self, name: str) -> None:
        self._scopes[name].cancel()
        await wait_all_tasks_blocked()

    async def _drive(self, name: str, items: int) -> None:
        with self._scopes[name]:
            async with self.lane.taken(items):
                self.on.append(name)
                try:
                    await self._leave[name].wait()
                finally:
                    self.on.remove(name)


async def test_small_calls_pass_side_by_side_and_a_large_one_alone() -> None:
    async with trio.open_nursery() as nursery:
        road = Road(nursery)
        await road.come("a", 4)
        await road.come("b", 6)
        await road.come("large", 500)
        await road.come("c", 1)
        assert road.on == ["a", "b"]
        await road.leave("a")
        assert road.on == ["b"], "who came later does not pass the large one"
        await road.leave("b")
        assert road.on == ["large"]
        await road.leave("large")
        assert road.on == ["c"]
        await road.leave("c")
        assert road.lane.waiting == 0


async def test_nothing_and_an_empty_array_pass() -> None:
    async with trio.open_nursery() as nursery:
        road = Road(nursery)
        await road.come("all", 10)
        await road.come("empty", 0)
        assert road.on == ["all", "empty"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("who", ["first", "waits", "let in"])
async def test_a_cancelled_call_gives_back_what_it_held(who: str) -> None:
    async with trio.open_nursery() as nursery:
        road = Road(nursery)
        await road.come("first", 10)
        await road.come("waits", 10)
        await road.come("last", 10)
        if who == "let in":  # its place is given to it, and it is cancelled before it runs
            road._leave["first"].set()
            road._scopes["waits"].cancel()
            await wait_all_tasks_blocked()
        else:
            await road.cancel(who)
            await road.leave("waits" if who == "first" else "first")
        assert road.on == ["last"]
        await road.leave("last")
        await road.come("next", 10)
        assert road.on == ["next"]
        await road.leave("next")


async def test_so_many_wait_and_no_more() -> None:
    async with trio.open_nursery() as nursery:
        road = Road(nursery)
        for name in ("on", "1", "2", "3"):
            await road.come(name, 10)
        with pytest.raises(Overloaded, match="3 bulk calls wait already"):
            async with road.lane.taken(1):
                raise AssertionError
        await road.leave("on")
        assert road.on == ["1"]
        nursery.cancel_scope.cancel()
