"""The nodes of a log: who is there, who owns the partition, and how far each has followed.

Each node says so a few times a second to all others, by messages that nobody keeps. They only tell when to claim: who
owns the partition is in the log alone (`log_owner.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import trio

from trunkline.store import codec
from trunkline.store.errors import LogUnreachable
from trunkline.store.nats_connection import NatsConnection

BEAT_S: Final = 0.25
SILENCE_S: Final = 1.5
"""An owner that was not heard for so long is taken for dead."""
NODES_MAX: Final = 32
AGAIN_S: Final = 0.2


class Word(NamedTuple):
    """What a node says of itself: its name, the epoch and the place up to which it has the log, whether it owns the
    partition, and where clients reach it."""

    name: str
    epoch: int
    place: int
    is_owner: bool
    url: str


class Nodes:
    """The nodes of one log, as the node `name` hears them. `run` it in a nursery. `say` is what this one says."""

    def __init__(self, connection: NatsConnection, subject: str, name: str, say: Callable[[], Word]) -> None:
        self.others: dict[str, tuple[Word, float]] = {}
        """What each other one has said last, and when it was heard, on Trio's clock."""
        self._connection = connection
        self._subject = subject
        self._name = name
        self._say = say
        self._since_s = float("inf")
        """Since when this node listens, without a break."""

    async def run(self) -> None:
        """Speak and listen until cancelled."""
        while True:
            try:
                async with self._connection.messages(self._subject) as words, trio.open_nursery() as nursery:
                    self._since_s = trio.current_time()
                    nursery.start_soon(self._speak)
                    while True:
                        self._hear((await words.next(float("inf"))).payload)
            except* LogUnreachable:
                self._since_s = float("inf")
            await trio.sleep(AGAIN_S)

    def owner(self) -> Word | None:
        """The owner that was heard last; None if none is heard now."""
        owners = [heard for heard in self.others.values() if heard[0].is_owner]
        if not owners:
            return None
        word, heard_s = max(owners, key=lambda heard: heard[0].epoch)
        return word if trio.current_time() - heard_s < SILENCE_S else None

    def owner_is_silent(self) -> bool:
        """Whether this node would hear an owner, and hears none."""
        return self.owner() is None and trio.current_time() - self._since_s >= SILENCE_S

    def _hear(self, payload: bytes) -> None:
        try:
            word = Word(*codec.decode(payload))
        except (ValueError, TypeError):
            return  # somebody else speaks here
        if word.name != self._name and (word.name in self.others or len(self.others) < NODES_MAX):
            self.others[word.name] = (word, trio.current_time())

    async def _speak(self) -> None:
        while True:
            await self._connection.send(self._subject, codec.encode(list(self._say())))
            await trio.sleep(BEAT_S)
