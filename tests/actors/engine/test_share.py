"""The turn of runs: who is cancelled while others have it leaves it as it was entered, once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trunkline.actors.engine.share import Share


async def outside(share: Share) -> None:
    async with share.outside():
        await trio.sleep_forever()


@pytest.mark.parametrize("leave_for_others", [Share.pause, outside])
async def test_a_cancelled_task_leaves_its_turn_once(
    leave_for_others: Callable[[Share], Awaitable[None]],
) -> None:
    share = Share()
    others = 0
    most = 0

    async def cancelled() -> None:
        await share.enter()
        try:
            await leave_for_others(share)
        finally:
            share.leave()

    async def other() -> None:
        nonlocal others, most
        await share.enter()
        others += 1
        most = max(most, others)
        await trio.lowlevel.checkpoint()
        others -= 1
        share.leave()

    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()
        with scope:
            scope.cancel()
            await cancelled()
        assert scope.cancelled_caught
        for _ in range(4):
            nursery.start_soon(other)
        await wait_all_tasks_blocked()
    assert most == 1
