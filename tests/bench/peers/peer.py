"""A peer, that is, a server in a comparison: how it is started, what is sent to it, and what its answer guarantees.

Owns the interface. Each peer has a module in this folder.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import trio

from tests.bench.peers.series import SeriesSource
from trunkline.bench.framing import Response
from trunkline.bench.ledger import DAY_MS, body_of
from trunkline.bench.load import Caller, Tally
from trunkline.bench.programs import Workspace
from trunkline.bench.progress import ProgressBar
from trunkline.bench.transport import Origin
from trunkline.bench.wire_protocol import HttpProtocol, WireProtocol

Build = Callable[[str, bytes, int], bytes]
"""Returns the bytes of a call, from the device's id, the JSON body and the number of states in it."""


MESSAGE = "a call as one message, unread: an array of states is as one"
"""What a broker stores."""


class Kept(NamedTuple):
    """How much was acknowledged in total, and how much of it the peer has stored; None if it cannot be asked."""

    acknowledged: int
    stored: int | None
    unit: str = "states"

    @property
    def lost(self) -> bool:
        """Whether something acknowledged is not stored."""
        return self.stored is not None and self.stored < self.acknowledged

    def __str__(self) -> str:
        if self.stored is None:
            return f"{self.acknowledged:,} {self.unit} acknowledged; it cannot be asked what it holds"
        return f"{self.acknowledged:,} {self.unit} acknowledged, {self.stored:,} stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A running peer: its version, what its answer guarantees and what it stores.

    ``durable``: whether acknowledged data is on disk, so that a power cut loses none of it.
    ``callers`` creates a caller for each device; ``kept`` asks the peer afterwards how much it has stored.
    ``finish`` waits until the peer has written all that it puts off (a checkpoint). ``series``: None if the peer
    cannot aggregate.
    """

    version: str
    durable: bool
    durability: str
    keeps: str
    origin: Origin
    callers: Callable[[Tally, int], Sequence[Caller]]
    kept: Callable[[], Awaitable[Kept]]
    protocol: Callable[[], WireProtocol] = HttpProtocol
    finish: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
    series: SeriesSource | None = None


class Peer(ABC):
    """One server of a comparison."""

    name: ClassVar[str]
    speaks_http: ClassVar[bool] = True

    @abstractmethod
    def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AbstractAsyncContextManager[Started]:
        """Start it in ``workspace`` for the length of a block; raises ProgramUnavailable if that is not possible."""


class Posts:
    """The state posts of many devices to one peer, with the same JSON as for Trunkline."""

    def __init__(self, devices: int, build: Build) -> None:
        self.device_ids = [f"{number:024x}" for number in range(1, devices + 1)]
        self._build = build
        self._first_ms = time.time_ns() // 1_000_000 - DAY_MS
        self._next = dict.fromkeys(self.device_ids, 0)
        self.acknowledged_calls = self.acknowledged_states = 0

    def callers(self, tally: Tally, per_call: int) -> list[Caller]:
        """A caller for each device; its states continue after those of an earlier load."""
        return [PeerPost(tally, self, one, per_call) for one in self.device_ids]

    def next(self, device_id: str, count: int) -> bytes:
        """The next call of a device."""
        number = self._next[device_id]
        self._next[device_id] = number + count
        return self._build(device_id, body_of(number, count, self._first_ms), count)

    def kept(self, states: int | None) -> Kept:
        """The acknowledged and the stored states."""
        return Kept(self.acknowledged_states, states)

    def kept_calls(self, messages: int | None) -> Kept:
        """The same for a peer that stores each call as one message."""
        return Kept(self.acknowledged_calls, messages, "messages")


class PeerPost(Caller):
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
