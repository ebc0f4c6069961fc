"""Where records are read: in a snapshot, in the journal, or in the journal with what a turn has staged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from trunkline.store.counters import apply_increments

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.actor import Actor


class Values(Protocol):
    """What has values at keys."""

    def get(self, db: str, key: bytes, /) -> bytes | None:
        """The value at a key."""
        ...


class Source(Values, Protocol):
    """A snapshot, the journal, or what a turn reads."""

    def range(self, db: str, lo: bytes, hi: bytes, /) -> Iterable[tuple[bytes, bytes]]:
        """Keys and values from `lo` to `hi` (excluded)."""
        ...


class Staged:
    """What the store will have after the turn of an actor: the journal, changed by what the turn has staged so far.

    So one turn may change the same records several times.
    """

    __slots__ = ("_actor",)

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def get(self, db: str, key: bytes) -> bytes | None:
        batch = self._actor.batch
        writes = {} if batch is None else batch.writes.get(db, {})
        raw = writes[key] if key in writes else self._actor.system.journal.get(db, key)
        counts = None if batch is None else batch.increments.get(db, {}).get(key)
        return raw if counts is None else apply_increments(raw, counts)

    def of_application(self, _application: bytes) -> Staged:
        """As that of a snapshot: a turn changes only what is in its own partition."""
        return self

    def range(self, db: str, lo: bytes, hi: bytes) -> list[tuple[bytes, bytes]]:
        found: dict[bytes, bytes | None] = dict(self._actor.system.journal.range(db, lo, hi))
        if self._actor.batch is not None:
            writes = self._actor.batch.writes.get(db, {})
            found |= {key: value for key, value in writes.items() if lo <= key < hi}
        return [(key, value) for key, value in sorted(found.items()) if value is not None]
