"""A subscriber's end of a stream: a bounded buffer between an actor and one slow or fast reader.

The actor never waits for a reader: it offers bytes that were encoded once for all of them. A reader that
falls behind its bound is closed and counted (a slow consumer); it can come back and replay what it missed.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

import trio


class Ending(Enum):
    """Why a stream ends from our side."""

    SLOW = "slow"
    GONE = "gone"
    REVOKED = "revoked"
    DRAINING = "draining"


class Subscription:
    """One reader of one topic of one actor. Made by `Streams.open`; close it when the reader leaves.

    `readers` are all the readers of that actor, by topic.
    Bounds: `length_max` events and `bytes_max` bytes wait here at the most; one event alone may be larger,
    because a reader who has taken everything is not slow.
    """

    __slots__ = (
        "_buffer",
        "_bytes",
        "_bytes_max",
        "_length_max",
        "_wakeup",
        "ending",
        "nudged",
        "readers",
        "topic",
    )

    def __init__(self, readers: Readers, topic: str, *, length_max: int, bytes_max: int) -> None:
        self.readers = readers
        self.topic = topic
        self.ending: Ending | None = None
        self.nudged = False
        self._buffer: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._length_max = length_max
        self._bytes_max = bytes_max
        self._wakeup = trio.lowlevel.ParkingLot()

    def offer(self, position: int, event: bytes) -> bool:
        """Give the reader `event` at stream `position`. False where that would pass the bound: it is closed."""
        if self.ending is not None:
            return True
        full = len(self._buffer) >= self._length_max or self._bytes + len(event) > self._bytes_max
        if full and self._buffer:
            self.end(Ending.SLOW)
            return False
        self._buffer.append((position, event))
        self._bytes += len(event)
        self._wakeup.unpark()
        return True

    def end(self, why: Ending) -> None:
        """Close from our side; what is buffered is dropped where the reader was too slow."""
        if self.ending is None:
            self.ending = why
            if why is Ending.SLOW:
                self._buffer.clear()
                self._bytes = 0
            self._wakeup.unpark_all()

    def nudge(self) -> None:
        """Wake the reader without an event, so that it checks whether its token still holds."""
        self.nudged = True
        self._wakeup.unpark()

    async def receive(self) -> list[tuple[int, bytes]]:
        """Wait for events and take all that wait, oldest first.

        An empty list means that the reader was nudged or that the stream has ended (see `ending`).
        """
        if not self._buffer and self.ending is None and not self.nudged:
            await self._wakeup.park()
        self.nudged = False
        events = list(self._buffer)
        self._buffer.clear()
        self._bytes = 0
        return events


Readers = dict[str, dict[Subscription, None]]
"""The readers of one actor by topic, in the order of subscribing."""
