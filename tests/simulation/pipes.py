"""One direction of a connection in memory: bytes go through a pipe in pieces, each after a seeded while, in order.

Owns the bytes under way. Does not own the connection at whose ends they are put and taken (`wires.py`,
`inner_wires.py`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any, Final, Protocol

import trio

HOLDS_BYTES: Final = (600, 4_000, 1 << 16, 1 << 20)
"""What a pipe may hold."""
_DELAYS_S: Final = (0.0, 0.0, 0.0, 0.0005, 0.004, 0.05)
_STALLS: Final = 0.004
"""The share of pieces that stall."""
_END: Final = b""


class Below(Protocol):
    """What a wire asks of the network that it belongs to."""

    reached: Counter[str]
    may_stall: bool
    stalled_s: float
    """Until when a connection has stalled."""
    dead: set[int | None]
    ending: set[int | None]

    def later(self, at_s: float, arrive: Callable[[], None]) -> None:
        """Let a piece arrive at a time."""

    def changed(self, number: int, events: int) -> None:
        """Something has become of a socket."""

    def wire(self) -> Any:
        """A new wire."""

    def forget(self, wire: Any) -> None:
        """The server has closed its end."""


class Between(Protocol):
    """What a pipe asks of the connection that it belongs to."""

    network: Below
    has_stalled: bool

    @property
    def stalls_s(self) -> tuple[float, ...]:
        """How long a piece may stall."""

    def has_arrived(self, pipe: Pipe) -> None:
        """Something has come through a pipe."""

    def has_room(self, pipe: Pipe) -> None:
        """Something was taken from a pipe."""

    def cut(self, how: str) -> None:
        """Cut it now."""


class Pipe:
    """One direction of a wire. `arrived` is what the receiver may take."""

    def __init__(self, wire: Between, chance: Random) -> None:
        self._wire = wire
        self._chance = chance
        self.holds_bytes = chance.choice(HOLDS_BYTES)
        self.arrived = bytearray()
        self.ended = False
        self.is_dead = False
        """Nothing arrives any more."""
        self._under_way: deque[bytes] = deque()
        self._under_way_bytes = 0
        self._last_s = 0.0
        self._passes: int | None = None
        """So many bytes pass before the wire is cut."""
        self._cut = ""

    @property
    def room(self) -> int:
        return 1 << 30 if self.is_dead else self.holds_bytes - len(self.arrived) - self._under_way_bytes

    @property
    def is_moving(self) -> bool:
        """Whether something may still arrive or be taken."""
        return bool(self._under_way or self.arrived)

    def cut_after(self, count: int, how: str) -> None:
        """Cut the wire when so many bytes more have arrived."""
        self._passes, self._cut = count, how

    def put(self, data: bytes | memoryview) -> int:
        """Send as much as there is room for, and say how much that is."""
        taken = bytes(data[: max(0, self.room)])
        if not self.is_dead:
            at = 0
            while at < len(taken):
                size = len(taken) if self._chance.random() < 0.7 else self._chance.randint(1, 300)
                self._send(taken[at : at + size])
                at += size
        return len(taken)

    def end(self) -> None:
        """Nothing comes behind what was sent."""
        if not self.is_dead:
            self._send(_END)

    def _send(self, piece: bytes) -> None:
        network = self._wire.network
        delay_s = self._chance.choice(_DELAYS_S)
        if self._chance.random() < _STALLS and network.may_stall:
            delay_s = self._chance.choice(self._wire.stalls_s)
            self._wire.has_stalled = True
            network.stalled_s = max(network.stalled_s, trio.current_time() + delay_s)
            network.reached["a connection stalled"] += 1
        now_s = trio.current_time()
        self._last_s = max(self._last_s, now_s + delay_s)
        self._under_way.append(piece)
        self._under_way_bytes += len(piece)
        if self._last_s <= now_s and len(self._under_way) == 1:
            self._arrive()
        else:
            network.later(self._last_s, self._arrive)

    def _arrive(self) -> None:
        if self.is_dead:
            return
        piece = self._under_way.popleft()
        self._under_way_bytes -= len(piece)
        cuts = False
        if self._passes is not None:
            cuts = len(piece) >= self._passes
            piece = piece[: self._passes]
            self._passes -= len(piece)
        self.arrived += piece
        self.ended |= not piece and not cuts
        self._wire.has_arrived(self)
        if cuts:
            self._wire.cut(self._cut)

    def take(self, count: int) -> bytes:
        data = bytes(self.arrived[:count])
        del self.arrived[:count]
        if data:
            self._wire.has_room(self)
        return data

    def die(self) -> None:
        """Drop what is under way. What has arrived may be taken."""
        self.is_dead = True
        self._under_way.clear()
        self._under_way_bytes = 0
