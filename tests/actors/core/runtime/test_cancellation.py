"""A caller who leaves, at any point where it waits, loses the answer and nothing else."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing

from tests.actors.probes import Add, AddSlowly, Peek, Tally, workshop
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.clock import SystemClock
from trunkline.limits.table import Limits
from trunkline.store.env import Store


async def test_who_leaves_before_the_commit_loses_only_the_answer(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        call = shop.start(ref, Add(by=5))
        shop.disk.watchers.append(call.scope.cancel)
        await call.ended.wait()
        assert call.outcome is None
        assert shop.stored(ref) == (5, [5])
        assert await shop.ask(ref, Peek()) == 5


async def test_who_leaves_the_queue_loses_only_the_answer(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        gate = trio.Event()
        slow = shop.start(ref, AddSlowly(by=1, gate=gate))
        await trio.testing.wait_all_tasks_blocked()
        queued = shop.start(ref, Add(by=10))
        await trio.testing.wait_all_tasks_blocked()
        for call in (slow, queued):
            call.scope.cancel()
            await call.ended.wait()
        gate.set()
        assert await shop.ask(ref, Peek()) == 11
        assert shop.stored(ref) == (11, [1, 10])


async def test_the_mailbox_is_empty_after_everybody_left(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        for message in (Add(by=1), AddSlowly(by=1), Peek()):
            with trio.CancelScope() as scope:
                scope.cancel()
                await shop.ask(ref, message)
        await trio.testing.wait_all_tasks_blocked()
        statistics = shop.system.statistics(ref)
        assert statistics is not None
        assert (statistics.mailbox_depth, statistics.handled) == (0, 4)


async def test_who_leaves_an_ask_of_many_before_its_commit_loses_only_the_answer(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(1, 2)
        with trio.CancelScope() as scope:
            shop.disk.watchers.append(scope.cancel)
            await shop.system.ask_all(refs, Add(by=5))
        assert scope.cancelled_caught
        assert [await shop.ask(ref, Peek()) for ref in refs] == [5, 5]
        assert [shop.stored(ref) for ref in refs] == [(5, [5])] * 2
        assert [box.depth for box in shop.system.mailboxes()] == [0, 0]


async def test_a_system_that_is_cancelled_as_it_starts_ends(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store, trio.CancelScope() as scope:
        scope.cancel()
        await System(store, Limits(), SystemClock(), (Tally,)).run()
    assert scope.cancelled_caught
