"""What takes part in a comparison: how it is started, what is sent to it, and what its answer promises.

Owns the shape. A module of this folder holds one peer each.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from trunkline.bench.exchange import Framing, HttpFraming
from trunkline.bench.framing import Response
from trunkline.bench.ledger import DAY_MS, body_of
from trunkline.bench.load import Tally, Work
from trunkline.bench.peers.programs import Place
from trunkline.bench.progress import Bar
from trunkline.bench.transport import Origin

Build = Callable[[str, bytes, int], bytes]
"""The bytes of a call from the device's id, the JSON body and the number of states in it."""


MESSAGE = "a call as one message, unread: an array of states is as one"
"""What a broker keeps."""


class Kept(NamedTuple):
    """How much was acknowledged in all, and how much of it the peer holds; None where it cannot tell."""

    acknowledged: int
    stored: int | None
    unit: str = "states"

    @property
    def lost(self) -> bool:
        """Whether something acknowledged is not there."""
        return self.stored is not None and self.stored < self.acknowledged

    def __str__(self) -> str:
        if self.stored is None:
            return f"{self.acknowledged:,} {self.unit} acknowledged; it cannot be asked what it holds"
        return f"{self.acknowledged:,} {self.unit} acknowledged, {self.stored:,} stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A peer that runs: what it is, what its answer promises and what it keeps.

    ``durable``: whether what it acknowledged is on disk, so that a power cut loses none of it.
    ``works`` gives a post for each device; ``kept`` asks it afterwards how much it holds.
    """

    version: str
    durable: bool
    durability: str
    keeps: str
    origin: Origin
    works: Callable[[Tally, int], Sequence[Work]]
    kept: Callable[[], Awaitable[Kept]]
    framing: Callable[[], Framing] = HttpFraming


class Peer(ABC):
    """One that a user could pick."""

    name: ClassVar[str]
    speaks_http: ClassVar[bool] = True

    @abstractmethod
    def run(self, work: Path, place: Place, devices: int, bar: Bar) -> AbstractAsyncContextManager[Started]:
        """Start it in ``place`` for the length of a block; raises Absent where it cannot be."""


class Posts:
    """The posts of states of so many devices to one peer, the same JSON as Trunkline gets."""

    def __init__(self, devices: int, build: Build) -> None:
        self.device_ids = [f"{number:024x}" for number in range(1, devices + 1)]
        self._build = build
        self._first_ms = time.time_ns() // 1_000_000 - DAY_MS
        self._next = dict.fromkeys(self.device_ids, 0)
        self.acknowledged_calls = self.acknowledged_states = 0

    def works(self, tally: Tally, per_call: int) -> list[Work]:
        """A work for each device; states go on where those of an earlier load ended."""
        return [PeerPost(tally, self, one, per_call) for one in self.device_ids]

    def next(self, device_id: str, count: int) -> bytes:
        """The next call of a device."""
        number = self._next[device_id]
        self._next[device_id] = number + count
        return self._build(device_id, body_of(number, count, self._first_ms), count)

    def kept(self, states: int | None) -> Kept:
        """How many of all acknowledged states are stored."""
        return Kept(self.acknowledged_states, states)

    def kept_calls(self, messages: int | None) -> Kept:
        """The same for a peer that keeps each call as one message."""
        return Kept(self.acknowledged_calls, messages, "messages")


class PeerPost(Work):
    """Posts the next states of one device."""

    __slots__ = ("_count", "_device_id", "_posts")

    def __init__(self, tally: Tally, posts: Posts, device_id: str, count: int) -> None:
        super().__init__(tally)
        self._posts = posts
        self._device_id = device_id
        self._count = count

    def request(self) -> bytes:
        return self._posts.next(self._device_id, self._count)

    def acknowledged(self, response: Response) -> int:
        self._posts.acknowledged_calls += 1
        self._posts.acknowledged_states += self._count
        return self._count
