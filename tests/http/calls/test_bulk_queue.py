"""The queue of bulk calls bounds the items in progress, keeps the order, and releases what a cancelled call held."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trunkline.actors.values.errors import Overloaded
from trunkline.http.calls.bulk_queue import BulkQueue


class Callers:
    """A queue, and callers that enter it, stay until told, and leave."""

    def __init__(self, nursery: trio.Nursery, items_max: int = 10, waiting_max: int = 3) -> None:
        self.queue = BulkQueue(items_max, waiting_max)
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
            async with self.queue.slot(items):
                self.on.append(name)
                try:
                    await self._leave[name].wait()
                finally:
                    self.on.remove(name)


async def test_small_calls_pass_side_by_side_and_a_large_one_alone() -> None:
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery)
        await callers.come("a", 4)
        await callers.come("b", 6)
        await callers.come("large", 500)
        await callers.come("c", 1)
        assert callers.on == ["a", "b"]
        await callers.leave("a")
        assert callers.on == ["b"], "who came later does not pass the large one"
        await callers.leave("b")
        assert callers.on == ["large"]
        await callers.leave("large")
        assert callers.on == ["c"]
        await callers.leave("c")
        assert callers.queue.waiting == 0


async def test_nothing_and_an_empty_array_pass() -> None:
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery)
        await callers.come("all", 10)
        await callers.come("empty", 0)
        assert callers.on == ["all", "empty"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("who", ["first", "waits", "let in"])
async def test_a_cancelled_call_gives_back_what_it_held(who: str) -> None:
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery)
        await callers.come("first", 10)
        await callers.come("waits", 10)
        await callers.come("last", 10)
        if who == "let in":  # its slot is granted, and it is cancelled before it runs
            callers._leave["first"].set()
            callers._scopes["waits"].cancel()
            await wait_all_tasks_blocked()
        else:
            await callers.cancel(who)
            await callers.leave("waits" if who == "first" else "first")
        assert callers.on == ["last"]
        await callers.leave("last")
        await callers.come("next", 10)
        assert callers.on == ["next"]
        await callers.leave("next")


async def test_so_many_wait_and_no_more() -> None:
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery)
        for name in ("on", "1", "2", "3"):
            await callers.come(name, 10)
        with pytest.raises(Overloaded, match="3 bulk calls wait already"):
            async with callers.queue.slot(1):
                raise AssertionError
        await callers.leave("on")
        assert callers.on == ["1"]
        nursery.cancel_scope.cancel()
