"""Tasks of links end with the server, and none begins later."""

from __future__ import annotations

import trio
import trio.testing

from trunkline.http.link.tasks import LinkTasks


async def test_a_task_after_the_end_is_left_out() -> None:
    tasks, begun = LinkTasks(), trio.Event()

    async def work() -> None:
        begun.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tasks.run)
        await trio.testing.wait_all_tasks_blocked()
        tasks.start_soon(work)
        await begun.wait()
        nursery.cancel_scope.cancel()
    begun = trio.Event()
    tasks.start_soon(work)
    await trio.testing.wait_all_tasks_blocked()
    assert not begun.is_set()
