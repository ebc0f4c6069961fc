"""A subscription: a bounded buffer between an actor and one reader of its stream.

The actor never waits for a reader: it offers bytes that were encoded once for all readers. The stream of a reader
whose buffer is full is closed and counted (a slow consumer); the reader can reconnect and replay what it missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import trio

Events = Sequence[tuple[int, bytes]]
"""Events of a stream: position and JSON of each."""


class Missed(NamedTuple):
    """Events that a stream has missed, and whether more follow.

    `position` is how far the store was searched, where that is not the last event. With `is_reset` some of what was
    missed is not kept any more, and `position` is where the stream goes on.
    """

    events: Events
    more: bool
    position: int = -1
    is_reset: bool = False


class Ending(Enum):
    """Why the server ends a stream."""

    SLOW = "slow"
    GONE = "gone"
    DRAINING = "draining"


class Subscription:
    """One reader of one topic of one actor. Created by `Streams.open`; call `Streams.close` when the reader leaves.

    `readers` are all readers of that actor, by topic. The buffer holds at most `length_max` events and `bytes_max`
    bytes; the events of one `offer` may be more if the buffer is empty, because then the reader is not slow.
    """

    __slots__ = (
        "_buffer",
        "_bytes",
        "_bytes_max",
        "_length_max",
        "_wakeup",
        "ending",
        "paused",
        "readers",
        "topic",
        "woken",
    )

    def __init__(self, readers: Readers, topic: str, *, length_max: int, bytes_max: int) -> None:
        self.readers = readers
        self.topic = topic
        self.ending: Ending | None = None
        self.woken = False
        self.paused = False
        """What is offered is dropped: the reader still reads older events, and will find these in the store as well."""
        self._buffer: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._length_max = length_max
        self._bytes_max = bytes_max
        self._wakeup = trio.lowlevel.ParkingLot()

    def offer(self, events: Events, size_bytes: int) -> bool:
        """Buffer events, which have so many bytes together. If the buffer is full, end the stream and return False."""
        if self.ending is not None or self.paused:
            return True
        full = (
            len(self._buffer) + len(events) > self._length_max or self._bytes + size_bytes > self._bytes_max
        )
        if full and self._buffer:
            self.end(Ending.SLOW)
            return False
        self._buffer.extend(events)
        self._bytes += size_bytes
        self._wakeup.unpark()
        return True

    @property
    def is_empty(self) -> bool:
        """Whether the reader has received everything that was offered."""
        return not self._buffer

    def end(self, why: Ending) -> None:
        """End the stream. The buffered events are dropped if the reader was too slow, else still delivered."""
        if self.ending is None:
            self.ending = why
            if why is Ending.SLOW:
                self._buffer.clear()
                self._bytes = 0
            self._wakeup.unpark_all()

    def wake(self) -> None:
        """Wake the reader without an event, so that it checks whether its token is still valid."""
        self.woken = True
        self._wakeup.unpark()

    async def receive(self) -> list[tuple[int, bytes]]:
        """Wait for events and return all that are buffered, oldest first.

        An empty list means that `wake` was called or that the stream has ended (see `ending`).
        """
        if not self._buffer and self.ending is None and not self.woken:
            await self._wakeup.park()
        self.woken = False
        events = list(self._buffer)
        self._buffer.clear()
        self._bytes = 0
        return events


Readers = dict[str, dict[Subscription, None]]
"""The readers of one actor by topic, in the order of subscribing."""
