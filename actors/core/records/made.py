"""What is made of records that are asked for again and again, as long as the stored bytes are the same.

A look-up costs no more than that of a dictionary while no record of the server changes, and a read of the store
otherwise. So what is made follows every change, also one whose commit fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from trunkline.actors.core.records.kind import Doc
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.journal import Journal

_CACHED_MAX: Final = 10_000
"""Records of a kind whose outcome is kept."""

T = TypeVar("T")


class Made(Generic[T]):
    """What was made of the records of a kind, by id: `make` gets the id and the record."""

    def __init__(self, journal: Journal, kind: str, make: Callable[[bytes, Doc], T]) -> None:
        self._journal = journal
        self._kind = kind
        self._make = make
        self._changes = -1
        self._sure: dict[bytes, T] = {}
        """What holds, as no record has changed since."""
        self._made: dict[bytes, tuple[bytes, T]] = {}
        """The same, and what holds if the record has not changed."""

    def get(self, home: bytes, id: bytes) -> T | None:
        """What was made of a record; None if it is deleted."""
        if self._changes != self._journal.record_changes:
            self._changes = self._journal.record_changes
            self._sure.clear()
        made = self._sure.get(id)
        return self._looked_up(home, id) if made is None else made

    def _looked_up(self, home: bytes, id: bytes) -> T | None:
        raw = self._journal.get(keys.RECORDS, keys.record_key(self._kind, home, id))
        if raw is None:
            return None
        known = self._made.get(id)
        if known is None or known[0] != raw:
            if len(self._made) >= _CACHED_MAX:
                self._made.clear()
                self._sure.clear()
            known = self._made[id] = (raw, self._make(id, decode(raw)))
        self._sure[id] = known[1]
        return known[1]
