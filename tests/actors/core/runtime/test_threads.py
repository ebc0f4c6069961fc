"""Threads by use: an owner gets half of the places, and a thread that is left keeps its place until it has ended."""

from __future__ import annotations

import os
import threading

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.patience import PATIENCE_S
from trunkline.actors.core.runtime.threads import (
    LOOKUPS,
    NEW_KEYS,
    Use,
    at_low_priority,
    charge,
    in_thread,
    places_of,
)

USE = Use("things", 2)


class Work:
    """Work in threads that goes on until it is let, by the names of the owners that ask for it."""

    def __init__(self, use: Use) -> None:
        self.use = use
        self.payer = ""
        self.done: list[str] = []
        self.go_on = threading.Event()
        charge(lambda: self.payer)

    async def ask(self, owner: str, *, abandons: bool = False) -> None:
        self.payer = owner
        await in_thread(self.use, self._work, owner, abandons=abandons)

    def _work(self, owner: str) -> None:
        assert self.go_on.wait(PATIENCE_S)
        self.done.append(owner)


async def test_owners_take_turns_at_the_one_thread_for_new_keys() -> None:
    work = Work(NEW_KEYS)
    async with trio.open_nursery() as nursery:
        for owner in ("many", "many", "many", "many", "few"):
            nursery.start_soon(work.ask, owner)
            await wait_all_tasks_blocked()
        work.go_on.set()
    assert work.done == ["many", "few", "many", "many", "many"]


async def test_an_owner_leaves_a_thread_for_the_next() -> None:
    work = Work(USE)
    async with trio.open_nursery() as nursery:
        for owner in ("many", "many", "few"):
            nursery.start_soon(work.ask, owner)
            await wait_all_tasks_blocked()
        assert [places_of(USE).running_of(owner) for owner in ("many", "few")] == [1, 1]
        work.go_on.set()


async def test_a_thread_that_nobody_waits_for_keeps_its_place_until_it_has_ended() -> None:
    work = Work(USE)
    with trio.move_on_after(0.01) as timeout:
        await work.ask("many", abandons=True)
    assert timeout.cancelled_caught
    assert places_of(USE).running_of("many") == 1
    work.go_on.set()
    with trio.fail_after(PATIENCE_S):
        while places_of(USE).running:
            await trio.lowlevel.checkpoint()
    assert work.done == ["many"]


async def test_who_is_cancelled_while_it_waits_leaves_nothing_taken() -> None:
    work = Work(USE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work.ask, "many")
        await wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as waiting:
                waiting.start_soon(work.ask, "many")
                await wait_all_tasks_blocked()
                assert places_of(USE).waiting == 1
                scope.cancel()
        assert (places_of(USE).waiting, places_of(USE).running) == (0, 1)
        work.go_on.set()
    assert places_of(USE).running == 0


async def test_names_of_hosts_are_looked_up_at_places() -> None:
    charge(lambda: "owner")
    places, taken = places_of(LOOKUPS), 0
    take = places.take

    async def counted(owner: object, places: int = 1) -> None:
        nonlocal taken
        taken += owner == "owner"
        await take(owner, places)

    places.take = counted  # type: ignore[method-assign]
    assert await trio.socket.getaddrinfo("localhost", 80, type=trio.socket.SOCK_STREAM)
    assert await trio.socket.getaddrinfo("127.0.0.1", 80)
    assert taken == 1


def _nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


async def test_work_of_low_priority_leaves_the_priority_of_other_threads() -> None:
    """A thread of Trio that has waited for it does other work afterwards."""
    before = _nice()

    def both() -> tuple[int, int]:
        return at_low_priority(_nice), _nice()

    low, of_trio = await in_thread(USE, both)
    assert low == min(before + 10, 19)
    assert of_trio == _nice() == before
    with pytest.raises(ZeroDivisionError):
        await in_thread(USE, at_low_priority, lambda: 1 // 0)
