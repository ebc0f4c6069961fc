"""How often a task lets others work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio


class Steps(trio.abc.Instrument):
    """Counts the steps of all tasks; between two of them, other tasks can work."""

    def __init__(self) -> None:
        self.count = 0

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


@contextmanager
def counted_steps() -> Iterator[Steps]:
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    try:
        yield steps
    finally:
        trio.lowlevel.remove_instrument(steps)
