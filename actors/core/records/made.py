"""What is made of records that are asked for again and again, as long as the stored bytes are the same.

A look-up costs no more than that of a dictionary while no record of the server changes, and a read of the store
otherwise. So what is made follows every change, also one whose commit fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, NamedTuple, TypeVar

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.host import Host
from trunkline.store import keys
from trunkline.store.codec import decode

_CACHED_MAX: Final = 10_000
"""Records of a kind whose outcome is kept."""

T = TypeVar("T")


class _Known(NamedTuple, Generic[T]):
    """The stored bytes of a record in a home, and what was made of them."""

    home: bytes
    raw: bytes
    made: T


class Made(Generic[T]):
    """What was made of the records of a kind, by id: `make` gets the id and the record.

    What was made of an application, or of a record in it, is forgotten with the application.
    """

    def __init__(self, system: Host, kind: str, make: Callable[[bytes, Doc], T]) -> None:
        self._journal = system.journal
        self._kind = kind
        self._make = make
        self._changes = -1
        self._sure: dict[bytes, T] = {}
        """What holds, as no record has changed since."""
        self._known: dict[bytes, _Known[T]] = {}
        """The same, and what holds if the record has not changed."""
        system.forgotten.append(self._forget)

    def get(self, home: bytes, id: bytes) -> T | None:
        """What was made of a record; None if it is deleted."""
        if self._changes != self._journal.record_changes:
            self._changes = self._journal.record_changes
            self._sure.clear()
        made = self._sure.get(id)
        return self._looked_up(home, id) if made is None else made

    def before(self, id: bytes) -> T | None:
        """What was made of a record when it was read last; None if it never was."""
        known = self._known.get(id)
        return None if known is None else known.made

    def _looked_up(self, home: bytes, id: bytes) -> T | None:
        raw = self._journal.get(keys.RECORDS, keys.record_key(self._kind, home, id))
        if raw is None:
            return None
        known = self._known.get(id)
        if known is None or known.raw != raw:
            if len(self._known) >= _CACHED_MAX:
                self._known.clear()
                self._sure.clear()
            known = self._known[id] = _Known(home, raw, self._make(id, decode(raw)))
        self._sure[id] = known.made
        return known.made

    def _forget(self, application: bytes) -> None:
        gone = [id for id, known in self._known.items() if application in (id, known.home)]
        for id in gone:
            del self._known[id]
            self._sure.pop(id, None)
