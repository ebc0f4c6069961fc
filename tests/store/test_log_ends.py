"""The two ends of a log: what is removed from it, and how an owner leaves it to the next one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from tests.store.replicated_node import Node
from tests.store.simulated_log import SimulatedLog
from tests.store.test_replicated import put, shown
from trunkline.store.errors import CopyNeeded, Fenced, LogUnreachable
from trunkline.store.follower import Follower, followed
from trunkline.store.log import Placed, decoded
from trunkline.store.log_groups import KEPT_S
from trunkline.store.replicated_journal import GIVE_UP_S, PROOF_S


@pytest.fixture
async def log(nursery: trio.Nursery) -> SimulatedLog:
    return SimulatedLog(Random(1), nursery)


@pytest.fixture
def nodes(tmp_path: Path) -> tuple[Node, Node]:
    return Node(tmp_path, "one"), Node(tmp_path, "two")


async def test_a_log_that_was_trimmed_is_told_of(nodes: tuple[Node, Node], log: SimulatedLog) -> None:
    one, two = nodes
    async with one.owning(log) as store:
        for number in range(3):
            await store.journal.submit(put(b"a", b"%d" % number)).wait()
    await log.trim(log.last)
    with shown(CopyNeeded):
        await two.followed_to(log, log.last)


async def test_without_groups_owner_and_follower_note_where_they_are(
    nodes: tuple[Node, Node], log: SimulatedLog, autojump_clock: trio.testing.MockClock
) -> None:
    """So the entries that come while nothing is written can be removed from the log."""
    one, two = nodes
    async with one.owning(log) as store:
        await store.journal.submit(put(b"a", b"1")).wait()
        with followed(two.directory) as memory_map:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(Follower(log, memory_map, 0).run)
                await trio.sleep(10 * KEPT_S)
                nursery.cancel_scope.cancel()
        await log.trim(log.entries[-1].place - round(3 * KEPT_S / PROOF_S))
    for node in nodes:
        await node.followed_to(log, log.last)


class Standing(SimulatedLog):
    """A log whose next reader gets nothing, as from a server that lacks what the others have."""

    stands = False

    async def _followed(self, after: int) -> AsyncGenerator[Placed, None]:
        after, self.stands = self.last if self.stands else after, False
        async for placed in super()._followed(after):
            yield placed


async def test_a_log_from_which_nothing_comes_is_read_anew(
    nodes: tuple[Node, Node], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    one, two = nodes
    log = Standing(Random(1), nursery)
    async with one.owning(log) as store:
        await store.journal.submit(put(b"a", b"1")).wait()
    log.stands = True
    await two.followed_to(log, log.last)
    assert not log.stands


async def test_an_owner_that_has_ended_says_so_behind_all_that_it_has_sent(
    nodes: tuple[Node, Node], log: SimulatedLog
) -> None:
    one, two = nodes
    async with one.owning(log) as store:
        journal: Any = store.journal
        await journal.submit(put(b"a", b"1")).wait()
    await journal.release()
    last = decoded(log.entries[-1].data)
    assert (last.kind, last.owner) == ("release", "one")
    async with two.owning(log) as store:
        await store.journal.submit(put(b"b", b"2")).wait()
    with pytest.raises(Fenced):
        await journal.release()


async def test_an_owner_of_long_ago_is_fenced_by_a_log_that_was_trimmed(
    nodes: tuple[Node, Node], log: SimulatedLog
) -> None:
    one, two = nodes
    first = await one.claimed(log)
    second = await two.claimed(log)
    for number in range(3):
        await second.append(b"%d" % number, "mark")
    await log.trim(log.last)
    with pytest.raises(Fenced):
        await first.append(b"", "mark")


async def test_an_owner_that_does_not_reach_the_log_gives_up_and_may_own_it_again(
    nodes: tuple[Node, Node], log: SimulatedLog, autojump_clock: trio.testing.MockClock
) -> None:
    """An election is waited for. Behind `GIVE_UP_S` its clients have to find another machine."""
    one, _ = nodes
    with shown(LogUnreachable):
        async with one.owning(log) as store:
            await store.journal.begun()
            with log.silent():
                group = store.journal.submit(put(b"a", b"1"))
                await trio.sleep(GIVE_UP_S - PROOF_S)
                assert not group.done
            await group.wait()
            silent = log.silent()
            silent.__enter__()
            with pytest.raises(LogUnreachable, match="nobody can say whether it has what was sent"):
                await store.journal.submit(put(b"a", b"2")).wait()
            await trio.sleep_forever()
    silent.__exit__(None, None, None)
    async with one.owning(log) as store:
        await store.journal.submit(put(b"a", b"3")).wait()
