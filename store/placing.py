"""Where keys are, in which partition: what the store asks of the domain.

Owns the question, and the answer for a store of which the domain has not said anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from trunkline.store.snapshot import Snapshot

EVERYWHERE: Final = -1
"""The place of a key that any partition may have."""


class Placing(Protocol):
    """Which partition has what: its number, or `EVERYWHERE`."""

    def of_key(self, db: str, key: bytes) -> int:
        """The one with a key of a database."""
        ...

    def of_range(self, db: str, lo: bytes, hi: bytes | None) -> int:
        """The one with the keys from `lo` to `hi`."""
        ...

    def record_of(self, application: bytes) -> bytes:
        """The key in RECORDS of the record of an application."""
        ...

    def counted(self, key: bytes, application: bytes) -> Mapping[str, int]:
        """What the record of an application adds to the numbers at a key of COUNTS."""
        ...

    def holds(self, part: Snapshot, application: bytes, holder: bytes) -> bool:
        """Whether a value of UNIQUE is that of an application, or of one of its records in a partition."""
        ...


class OwnPlacing:
    """Everything is in the own partition, until the domain says better."""

    def __init__(self, own: int) -> None:
        self._own = own

    def of_key(self, _db: str, _key: bytes) -> int:
        return self._own

    def of_range(self, _db: str, _lo: bytes, _hi: bytes | None) -> int:
        return self._own

    def record_of(self, _application: bytes) -> bytes:
        return b"none"

    def counted(self, _key: bytes, _application: bytes) -> Mapping[str, int]:
        return {}

    def holds(self, _part: Snapshot, _application: bytes, _holder: bytes) -> bool:
        return False
