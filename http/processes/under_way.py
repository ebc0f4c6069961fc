"""What a door has passed on and is under way: whole requests, calls in parts, and questions.

Owns what has come for each of them and was not taken yet. Does not own their numbers, nor what is sent (`door.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import trio

from trunkline.http.processes.batches import Message
from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.fast_path import Respond


class Pending(NamedTuple):
    """A whole request that waits for its answer."""

    exchange: Exchange
    respond: Respond
    again: Callable[[], None]


class Call:
    """A request that a task has passed on: what has come for it and was not taken yet."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.wanted = False
        self.ended = False
        """No more will come for it: the owner has ended, or the client has left."""
        self.left = False
        """The client has left."""
        self._changed = trio.Event()

    def wake(self) -> None:
        """Have those look again who wait for a change."""
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def changed(self) -> None:
        """Return after the next `wake`."""
        await self._changed.wait()

    async def next(self) -> Message | None:
        """The next part of the answer; None where no more will come."""
        while not self.messages:
            if self.ended:
                return None
            await self._changed.wait()
        return self.messages.pop(0)


class Question:
    """A question to the other process, until its answer has come, or none will come."""

    def __init__(self) -> None:
        self.answer: bytes | None = None
        self.settled = trio.Event()
