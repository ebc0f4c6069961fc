"""The tasks of links: most links need none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio


class LinkTasks:
    """A component of the system; run `run` for as long as the server listens."""

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Run the tasks until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None  # commits that fail later find nobody

    def start_soon(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` in a task of its own, unless the server has ended. It must not raise."""
        if self._nursery is not None:
            self._nursery.start_soon(work)
