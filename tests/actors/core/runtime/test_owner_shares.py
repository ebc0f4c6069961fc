"""Shares by owner: whose turn it is, who is refused, and what stays free for others."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.values.errors import Overloaded


class Desk:
    """Calls that wait for a turn. `served` names the owners in the order in which they got one."""

    def __init__(
        self, nursery: trio.Nursery, places: int, waiting_max: int = 100, *, leaves: int = 0
    ) -> None:
        self.shares = OwnerShares("calls", places, waiting_max, leaves=leaves)
        self.served: list[str] = []
        self.refused: list[str] = []
        self._nursery = nursery

    async def call(self, owner: str, count: int = 1) -> None:
        for _ in range(count):
            self._nursery.start_soon(self._take, owner)
            await wait_all_tasks_blocked()

    async def leave(self, owner: str, used_s: float = 1.0) -> None:
        self.shares.leave(owner, used_s)
        await wait_all_tasks_blocked()

    async def _take(self, owner: str) -> None:
        try:
            await self.shares.take(owner)
        except Overloaded:
            self.refused.append(owner)
        else:
            self.served.append(owner)


async def test_owners_alternate_whatever_the_number_of_their_calls() -> None:
    async with trio.open_nursery() as nursery:
        desk = Desk(nursery, places=1)
        await desk.call("a", 4)
        await desk.call("b", 2)
        for _ in range(5):
            await desk.leave(desk.served[-1], 1.0)
        assert "".join(desk.served) == "ababaa"


async def test_an_owner_with_long_calls_gets_as_much_time_and_fewer_turns() -> None:
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


async def test_who_has_filled_the_queue_is_refused_and_never_another() -> None:
    async with trio.open_nursery() as nursery:
        desk = Desk(nursery, places=1, waiting_max=4)
        await desk.call("a", 6)
        assert (desk.served, desk.refused, desk.shares.waiting) == (["a"], ["a"], 4)
        await desk.call(
            "b", 3
        )  # two of them take the room of the newest of "a"; the third would have more than "a"
        await desk.call("c")
        assert desk.refused == ["a", "a", "a", "b", "a"]
        with pytest.raises(Overloaded, match="1 calls of this owner wait already"):
            await desk.shares.take("a")
        for owner in ("a", "b", "c", "a"):
            await desk.leave(owner)
        assert desk.served == ["a", "b", "c", "a", "b"]
        nursery.cancel_scope.cancel()


async def test_a_room_of_as_many_owners_as_places_takes_no_more() -> None:
    async with trio.open_nursery() as nursery:
        desk = Desk(nursery, places=1, waiting_max=2)
        for owner in "abcd":
            await desk.call(owner)
        assert (desk.served, desk.refused) == (["a"], ["d"])
        nursery.cancel_scope.cancel()


async def test_an_owner_leaves_as_many_places_as_it_has() -> None:
    """So a new owner has one at once, although nobody gives one back."""
    async with trio.open_nursery() as nursery:
        desk = Desk(nursery, places=8, leaves=1)
        for owner in "abcde":
            await desk.call(owner, 8)
        assert "".join(desk.served) == "aaaabbcd"
        await desk.leave("a")
        assert "".join(desk.served[8:]) == "e"
        nursery.cancel_scope.cancel()


async def test_a_single_place_is_for_everybody_in_turn() -> None:
    async with trio.open_nursery() as nursery:
        desk = Desk(nursery, places=1, leaves=3)
        await desk.call("a", 2)
        await desk.call("b")
        await desk.leave("a")
        await desk.leave("b")
        assert desk.served == ["a", "b", "a"]
        nursery.cancel_scope.cancel()


async def test_an_owner_that_was_idle_does_not_save_its_time() -> None:
    async with trio.open_nursery() as nursery:
        desk = Desk(nursery, places=1)
        await desk.call("often")
        await desk.call("rare")
        await desk.leave("often")
        await desk.call("often", 9)
        await desk.leave("rare", 2.0)
        for _ in range(3):
            await desk.leave("often", 100.0)
        await desk.call("rare", 5)
        for _ in range(4):
            await desk.leave(desk.served[-1], 1.0)
        assert desk.served[-4:] == ["rare", "often", "rare", "often"]
        nursery.cancel_scope.cancel()


def test_what_is_taken_at_once_is_never_waited_for() -> None:
    slots = OwnerShares("downloads", 8, leaves=3)
    for _ in range(2):
        slots.take_at_once("a")
    with pytest.raises(Overloaded, match="2 downloads of this owner are under way"):
        slots.take_at_once("a")
    with slots.place_at_once("b"):
        assert (slots.running, slots.running_of("b")) == (3, 1)
    assert (slots.running, slots.running_of("b"), slots.refused) == (2, 0, 1)


async def test_what_is_done_in_a_thread_has_a_place() -> None:
    shares = OwnerShares("reads", 2)
    with pytest.raises(ZeroDivisionError):
        await shares.in_thread("a", lambda: 1 // 0)
    assert await shares.in_thread("a", lambda: shares.running_of("a")) == 1
    assert shares.running == 0


async def test_who_is_cancelled_has_no_place() -> None:
    """While it waits, and also when its turn came in the same instant."""
    turns = OwnerShares("calls", 1, 10)
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


async def test_nothing_is_kept_of_owners_without_calls() -> None:
    turns = OwnerShares("calls", 2, 10)
    for number in range(100):
        await turns.take(b"%d" % number)
        turns.leave(b"%d" % number, 1)
    assert turns._accounts == {}
