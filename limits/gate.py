"""Gates: at most n calls at a time for one key.

Owns: counting who holds a key now. Does not own rates over time (`window.py`), nor waiting: a gate says no at
once, because the API answers a second concurrent export with 429 and a queue in front of it would be one more
thing to bound.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from trunkline.limits.errors import GateClosed


class Gate:
    """At most `holders_max` holders for each key. Memory is for the keys held now, not for all seen."""

    __slots__ = ("_held", "holders_max")

    def __init__(self, holders_max: int) -> None:
        if holders_max < 1:
            raise ValueError(f"a gate lets at least one holder in, not {holders_max}")
        self.holders_max = holders_max
        self._held: dict[Hashable, int] = {}

    def enter(self, key: Hashable) -> bool:
        """Take a place for `key`; False, and nothing changes, if all are taken."""
        held = self._held.get(key, 0)
        if held >= self.holders_max:
            return False
        self._held[key] = held + 1
        return True

    def leave(self, key: Hashable) -> None:
        """Give a place back. Leaving what nobody entered is a bug of the caller: RuntimeError."""
        held = self._held.get(key, 0)
        if held == 0:
            raise RuntimeError(f"nobody holds {key!r}")
        if held == 1:
            del self._held[key]
        else:
            self._held[key] = held - 1

    def held(self, key: Hashable) -> int:
        """How many hold `key` now."""
        return self._held.get(key, 0)

    @contextmanager
    def hold(self, key: Hashable) -> Iterator[None]:
        """Hold a place for the length of a `with` block, also one that is cancelled. Raises GateClosed."""
        if not self.enter(key):
            raise GateClosed(key, self.holders_max)
        try:
            yield
        finally:
            self.leave(key)
