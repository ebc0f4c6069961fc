"""Tasks of a system that begin when they are first needed. What is rarely used costs an idle server nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio


class Background:
    """Begins tasks that end with the system. A component of the system."""

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._waiting: list[Callable[[], Awaitable[None]]] = []

    def begin(self, run: Callable[[], Awaitable[None]]) -> None:
        """Begin a task now, or when the system begins to run."""
        if self._nursery is None:
            self._waiting.append(run)
        else:
            self._nursery.start_soon(run)

    def open(self, nursery: trio.Nursery) -> None:
        """The system runs: tasks begin in this nursery."""
        self._nursery = nursery
        while self._waiting:
            nursery.start_soon(self._waiting.pop(0))
