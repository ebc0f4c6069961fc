"""Work in threads: its results and errors arrive, and a cancelled run ends it."""

from __future__ import annotations

import pytest
import trio

from tests.patience import PATIENCE_S
from trunkline.actors.runtime.computing import THREADS_MAX, give_up_if_cancelled, in_thread


def failing() -> None:
    raise ValueError("no")


async def test_results_and_errors_arrive() -> None:
    assert await in_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ValueError, match="no"):
        await in_thread(failing)


async def test_work_that_looks_ends_with_its_run_and_leaves_its_thread_to_others() -> None:
    def endless(scope: trio.CancelScope) -> None:
        trio.from_thread.run_sync(scope.cancel)
        while True:
            give_up_if_cancelled()

    for _ in range(THREADS_MAX + 1):
        with trio.fail_after(PATIENCE_S), trio.CancelScope() as scope:
            await in_thread(endless, scope)
        assert scope.cancelled_caught


def test_looking_outside_of_a_thread_does_nothing() -> None:
    give_up_if_cancelled()
