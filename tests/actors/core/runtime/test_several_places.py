"""Calls that need several places: they pass side by side while they fit, and a large one is not passed for ever."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.values.errors import Overloaded


class Callers:
    """Shares, and callers that take places, stay until told, and leave. The owner of one is the part after a point."""

    def __init__(self, nursery: trio.Nursery, items_max: int = 10, waiting_max: int = 3) -> None:
        self.shares = OwnerShares("bulk calls", items_max, waiting_max)
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
            async with self.shares.place(name.partition(".")[2], items):
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
        assert callers.shares.waiting == 0


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
        with pytest.raises(Overloaded, match="3 bulk calls of this owner wait already"):
            async with callers.shares.place("", 1):
                raise AssertionError
        await callers.leave("on")
        assert callers.on == ["1"]
        nursery.cancel_scope.cancel()


async def test_owners_take_turns_and_a_large_call_is_not_passed_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        callers = Callers(nursery, waiting_max=20)
        for name in ("1.many", "2.many", "3.many", "4.many"):
            await callers.come(name, 10)
        await callers.come("1.few", 10)
        await trio.sleep(1)
        await callers.leave("1.many")
        assert callers.on == ["1.few"]
        await callers.come("1.small", 3)
        await trio.sleep(1)
        await callers.leave("1.few")
        assert callers.on == ["1.small"], "it has used less; what does not fit beside it waits"
        for number in range(2, 5):
            await callers.come(f"{number}.small", 1)
        assert callers.on == ["1.small"], "it does not pass others with what it has already"
        await trio.sleep(4)
        await callers.leave("1.small")
        assert callers.on == ["2.many"], "3 places for 4 seconds are more than 10 for one"
        nursery.cancel_scope.cancel()


async def test_who_fills_the_room_is_refused_and_nobody_else() -> None:
    refused: list[str] = []

    async def call(callers: Callers, name: str) -> None:
        try:
            async with callers.shares.place(name.partition(".")[2], 10):
                await trio.sleep_forever()
        except Overloaded:
            refused.append(name)

    async with trio.open_nursery() as nursery:
        callers = Callers(nursery)
        for name in ("1.many", "2.many", "3.many", "4.many", "1.few", "5.many"):
            nursery.start_soon(call, callers, name)
            await wait_all_tasks_blocked()
        assert refused == ["4.many", "5.many"]
        nursery.cancel_scope.cancel()
