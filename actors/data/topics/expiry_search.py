"""The search for expired messages where there is no room for another one: among the retained messages of an
application, and among those that wait for a session.

Owns how far was searched, and from when on another search may find something: in memory, and only for what was full
once. Does not own what is stored, nor its removal. A turn looks at so many messages that it takes a few milliseconds;
the next one that finds no room goes on behind them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System

_LOOKS_MAX: Final = 2_048
"""Messages that a turn looks at: about 4 ms."""
_LOOK_BYTES: Final = 1_024
"""A message with so many bytes more counts as one more."""
_FOUND_MAX: Final = 64
"""Messages that are removed at a time, more only where they leave too little room."""
_ROUNDS_MAX: Final = 4_096
"""Queues of which it is kept how far was searched; above that all are searched from their beginning."""

Messages = Callable[[bytes], Iterable[tuple[bytes, int, int | None]]]
"""The stored messages from a key on, in the order of their keys: key, bytes, and the time at which it expires."""


class Looks:
    """How many messages a turn may still look at."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _LOOKS_MAX


class _Round:
    """A search from the first message to the last. It goes on at the key `at`, which is empty when it has ended.

    No message that was looked at, or stored since, expires before `soonest_ms`.
    """

    __slots__ = ("at", "soonest_ms")

    def __init__(self, at: bytes) -> None:
        self.at = at
        self.soonest_ms = math.inf


class ExpirySearch:
    """A component of the system. Messages with a common prefix of their keys are searched together."""

    def __init__(self, system: System) -> None:
        self._rounds: dict[bytes, _Round] = {}
        system.forgotten.append(self._forget)

    def note(self, prefix: bytes, expires_ms: int | None) -> None:
        """A message is stored."""
        if expires_ms is not None and (found := self._rounds.get(prefix)) is not None:
            found.soonest_ms = min(found.soonest_ms, expires_ms)

    def may_find(self, prefix: bytes, now_ms: int) -> bool:
        """Whether a search may find anything now."""
        round = self._rounds.get(prefix)
        return round is None or bool(round.at) or now_ms >= round.soonest_ms

    def find(self, prefix: bytes, messages: Messages, now_ms: int, looks: Looks) -> tuple[list[bytes], bool]:
        """The keys of some expired messages, and whether there may be more now.

        They are found again until their removal is on disk: a turn may fail.
        """
        if not self.may_find(prefix, now_ms):
            return [], False
        round = self._rounds.get(prefix)
        if round is None:
            if len(self._rounds) >= _ROUNDS_MAX:
                self._rounds.clear()
            round = self._rounds[prefix] = _Round(prefix)
        elif not round.at:
            round.at, round.soonest_ms = prefix, math.inf
        is_whole, found = round.at == prefix, list[bytes]()
        for key, size_bytes, expires_ms in messages(round.at):
            if looks.left <= 0 or len(found) == _FOUND_MAX:
                round.at = key
                return found, looks.left > 0
            looks.left -= 1 + size_bytes // _LOOK_BYTES
            if expires_ms is not None:
                round.soonest_ms = min(round.soonest_ms, expires_ms)
                if expires_ms <= now_ms:
                    found.append(key)
        round.at = b""
        return found, not is_whole

    def _forget(self, application: bytes) -> None:
        """An application is deleted, or has left."""
        self._rounds = {
            prefix: each for prefix, each in self._rounds.items() if not prefix.startswith(application)
        }
