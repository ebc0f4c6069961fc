"""The nodes of a log: who is there, who owns the partition, and how far each has followed.

Each node says so a few times a second to all others, by messages that nobody keeps. They only tell when to claim: who
owns the partition is in the log alone (`log_owner.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import trio

from trunkline.store import codec
from trunkline.store.errors import LogUnreachable
from trunkline.store.nats_connection import NatsConnection

BEAT_S: Final = 0.25
LISTEN_S: Final = 2 * BEAT_S
COPIES: Final = -1
NODES_MAX: Final = 32
FORGOTTEN_S: Final = 86_400.0
"""A node that was not heard for so long is told of no more."""
AGAIN_S: Final = 0.2
NAMESAKE_S: Final = 1.0
"""Words of another process with the name of this node, over so long and without such a pause, are those of a node that
is there. What an earlier process of this node has said may come late, as from a server that stood still, but all at
once."""


class Word(NamedTuple):
    """What a node says of itself: its name, a number of its process, the epoch and the place up to which it has the
    log (`COPIES` while it gets a copy), whether it owns the partition, and the address at which others reach it.

    Of several partitions: when it says so, if it wants a lease, and the leases that it has granted (`leases.py`).
    """

    name: str
    process: int
    epoch: int
    place: int
    is_owner: bool
    address: str
    said_s: float = 0.0
    leases: Mapping[int, float] = MappingProxyType({})

    def encoded(self) -> bytes:
        """The word. Programs that know one partition only read six values."""
        return codec.encode(
            [*self[:6], self.said_s, dict(self.leases)] if self.said_s or self.leases else self[:6]
        )


async def heard(connection: NatsConnection, subject: str, listen_s: float) -> dict[str, Word]:
    """The nodes that speak in the next `listen_s` seconds, by name, with what each says. Raises LogUnreachable."""
    found: dict[str, Word] = {}
    async with connection.messages(subject) as words:
        with trio.move_on_after(listen_s):
            while True:
                word = _word((await words.next(float("inf"))).payload)
                if word is not None:
                    found[word.name] = word
    return found


def _word(payload: bytes) -> Word | None:
    """What a node says; None if somebody else speaks."""
    try:
        return Word(*codec.decode(payload))
    except (ValueError, TypeError):
        return None


class Nodes:
    """The nodes of one log, as one hears them. `run` it in a nursery."""

    def __init__(
        self,
        connection: NatsConnection,
        subject: str,
        say: Callable[[], Word] | None,
        silence_s: float,
        hear: Callable[[Word], None] | None = None,
    ) -> None:
        """`say` is what this node says; without it, it only listens. `hear` is called with what others say. An owner
        that was not heard for `silence_s` is taken for dead."""
        self.others: dict[str, tuple[Word, float]] = {}
        """What each other one has said last, and when it was heard, on Trio's clock."""
        self._connection = connection
        self._subject = subject
        self._say = say
        self._listen = hear
        self.silence_max_s = silence_s
        self._speaks = False
        self._hurries = trio.Event()
        """Set to speak at once."""
        self._namesake = (0, -math.inf, -math.inf)
        """The process of another node that has the name of this one, and when it was heard first and last."""
        self._since_s = float("inf")
        """Since when this node listens, without a break."""

    async def run(self) -> None:
        """Speak and listen until cancelled."""
        while True:
            try:
                async with self._connection.messages(self._subject) as words, trio.open_nursery() as nursery:
                    self._since_s = trio.current_time()
                    if self._say is not None:
                        nursery.start_soon(self._speak, self._say)
                    while True:
                        self._hear((await words.next(float("inf"))).payload)
            except* LogUnreachable:
                self._since_s = float("inf")
            await trio.sleep(AGAIN_S)

    def silence_s(self, name: str) -> float:
        """For how long another node was not heard."""
        return trio.current_time() - self.others[name][1]

    def follows(self, name: str) -> bool:
        """Whether another node is heard, and follows the log."""
        word, heard_s = self.others.get(name, (None, -math.inf))
        return (
            word is not None and word.place != COPIES and trio.current_time() - heard_s < self.silence_max_s
        )

    def owner(self) -> Word | None:
        """The owner that was heard last; None if none is heard now."""
        owners = [heard for heard in self.others.values() if heard[0].is_owner]
        if not owners:
            return None
        word, heard_s = max(owners, key=lambda heard: heard[0].epoch)
        return word if trio.current_time() - heard_s < self.silence_max_s else None

    def owner_is_silent(self) -> bool:
        """Whether this node would hear an owner, and hears none."""
        return self.owner() is None and trio.current_time() - self._since_s >= self.silence_max_s

    @property
    def has_namesake(self) -> bool:
        """Whether another node that is there has the name of this one."""
        _, first_s, last_s = self._namesake
        return last_s - first_s >= NAMESAKE_S

    @property
    def may_have_namesake(self) -> bool:
        """Whether it takes some more time to say."""
        return not self.has_namesake and trio.current_time() - self._namesake[2] < NAMESAKE_S

    def _hear(self, payload: bytes) -> None:
        word = _word(payload)
        if word is None:
            return
        own, now_s = None if self._say is None else self._say(), trio.current_time()
        self.others = {name: each for name, each in self.others.items() if now_s - each[1] < FORGOTTEN_S}
        if own is not None and word.name == own.name:
            if word.process != own.process:
                process, first_s, last_s = self._namesake
                goes_on = process == word.process and now_s - last_s < NAMESAKE_S
                self._namesake = word.process, first_s if goes_on else now_s, now_s
        elif word.name in self.others or len(self.others) < NODES_MAX:
            self.others[word.name] = (word, now_s)
            if self._listen is not None:
                self._listen(word)

    def hurry(self) -> None:
        """Speak at once."""
        self._hurries.set()

    async def _speak(self, say: Callable[[], Word]) -> None:
        """Say who this node is. At first it listens only: whoever has its name must not be taken for this one."""
        if not self._speaks:
            await trio.sleep(LISTEN_S)
            while self.may_have_namesake or self.has_namesake:  # noqa: ASYNC110 - silence is no event
                await trio.sleep(BEAT_S)
            self._speaks = True
        while True:
            self._hurries = trio.Event()
            await self._connection.send(self._subject, say().encoded())
            with trio.move_on_after(BEAT_S):
                await self._hurries.wait()
