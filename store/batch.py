"""A batch: what one actor's turn writes, all of it or nothing.

Owns the form of a write and nothing else; the journal applies it. A batch is plain data (`to_plain`), so that
the very same batch could travel to another machine and be applied there.

Operations take effect in the order in which they were called, key by key: a later `put` or `delete` replaces
what came before, an `add` counts on from it. Only the outcome for each key is kept, because the journal needs
no more and a dict can be merged into another without a loop in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from trunkline.store.keys import DATABASES
from trunkline.store.sums import merge_sums

KEY_BYTES_MAX = 511
"""LMDB's own bound for a key."""

# What an entry costs in memory beside its bytes: two objects and a place in a dict.
_ENTRY_BYTES = 160

_KNOWN = frozenset(DATABASES)


class Batch:
    """Puts, deletes and counter additions that are committed together.

    `writes` holds for each database the value of each key (None: delete it), `sums` the additions.
    """

    __slots__ = ("deletes", "size_bytes", "sums", "writes")

    def __init__(self) -> None:
        self.writes: dict[str, dict[bytes, bytes | None]] = {}
        self.sums: dict[str, dict[bytes, dict[str, int]]] = {}
        self.deletes = False
        self.size_bytes = 0
        """What the batch costs while it waits: never less than the bytes of its keys and values."""

    def put(self, db: str, key: bytes, value: bytes) -> None:
        """Store `value` under `key`. Raises ValueError for an unknown database or an impossible key.

        Checked here and not at the commit, where one bad write would fail everybody's.
        """
        if type(value) is not bytes:
            raise TypeError("a value is bytes")
        self.size_bytes += _key_bytes(key) + len(value) + _ENTRY_BYTES
        writes = self.writes.get(db)
        if writes is None or self.sums:
            self._set(db, key, value)
        else:
            writes[key] = value

    def put_all(self, db: str, writes: dict[bytes, bytes]) -> None:
        """Store every value of `writes` under its key: as many `put`, for a tenth of their time."""
        if not writes:
            return
        if {*map(type, writes), *map(type, writes.values())} != {bytes}:
            raise TypeError("a key is bytes, and so is a value")
        sizes = list(map(len, writes))
        if not 0 < min(sizes) <= max(sizes) <= KEY_BYTES_MAX:
            raise ValueError(f"a key has 1 to {KEY_BYTES_MAX} bytes")
        self.size_bytes += sum(sizes) + sum(map(len, writes.values())) + _ENTRY_BYTES * len(writes)
        present = self.writes.get(db)
        if present is None or self.sums:
            for key, value in writes.items():
                self._set(db, key, value)
        else:
            present.update(writes)

    def delete(self, db: str, key: bytes) -> None:
        """Remove `key`; no error where it is not there."""
        self.size_bytes += _key_bytes(key) + _ENTRY_BYTES
        self._set(db, key, None)
        self.deletes = True

    def add(self, db: str, key: bytes, counts: Mapping[str, int]) -> None:
        """Add `counts` to the sums stored at `key` (a CBOR map of name to integer; absent ones are 0)."""
        if db not in _KNOWN:
            raise ValueError(f"{db!r} is no database")
        if not _are_counts(counts):
            raise TypeError("counts are integers by name")
        self.size_bytes += _key_bytes(key) + _ENTRY_BYTES * (1 + len(counts))
        merge_sums(self.sums.setdefault(db, {}), key, counts)

    def extend(self, other: Batch) -> None:
        """Do everything `other` does after what this batch does."""
        for db, writes in other.writes.items():
            for key, value in writes.items():
                if value is None:
                    self.delete(db, key)
                else:
                    self.put(db, key, value)
        for db, sums in other.sums.items():
            for key, counts in sums.items():
                self.add(db, key, counts)

    def frees(self) -> bool:
        """Whether the batch deletes at least as many keys as it puts."""
        if not self.deletes:
            return False
        values = [value for writes in self.writes.values() for value in writes.values()]
        return 2 * values.count(None) >= len(values)

    def __bool__(self) -> bool:
        return bool(self.writes or self.sums)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return self.writes == other.writes and self.sums == other.sums

    __hash__ = None  # type: ignore[assignment]  # it changes until it is submitted

    def __repr__(self) -> str:
        keys = sum(map(len, self.writes.values())) + sum(map(len, self.sums.values()))
        return f"<Batch of {keys} keys, {self.size_bytes} bytes>"

    def to_plain(self) -> list[Any]:
        """Return the batch as lists of text, bytes and integers: [[db, key, value or None or counts]...]."""
        plain: list[Any] = [
            [db, key, value] for db, writes in self.writes.items() for key, value in writes.items()
        ]
        plain += [[db, key, dict(counts)] for db, sums in self.sums.items() for key, counts in sums.items()]
        return plain

    @classmethod
    def from_plain(cls, plain: list[Any]) -> Batch:
        """Return the batch that `to_plain` described. Raises ValueError for anything else."""
        batch = cls()
        for entry in plain:
            match entry:
                case [str(db), bytes(key), bytes(value)]:
                    batch.put(db, key, value)
                case [str(db), bytes(key), None]:
                    batch.delete(db, key)
                case [str(db), bytes(key), {**counts}] if _are_counts(counts):
                    batch.add(db, key, counts)
                case _:
                    raise ValueError(f"{entry!r} is no entry of a batch")
        return batch

    def _set(self, db: str, key: bytes, value: bytes | None) -> None:
        writes = self.writes.get(db)
        if writes is None:
            if db not in _KNOWN:
                raise ValueError(f"{db!r} is no database")
            self.writes[db] = {key: value}
        else:
            writes[key] = value
        if self.sums:
            sums = self.sums.get(db)
            if sums is not None and sums.pop(key, None) is not None and not sums:
                del self.sums[db]


def _are_counts(counts: Mapping[Any, Any]) -> TypeGuard[Mapping[str, int]]:
    for name, count in counts.items():  # noqa: SIM110 - on the path of each report, and twice as fast
        if type(name) is not str or type(count) is not int:
            return False
    return True


def _key_bytes(key: bytes) -> int:
    """The length of a key, if LMDB can store it."""
    if type(key) is not bytes:
        raise TypeError("a key is bytes")
    size = len(key)
    if not 0 < size <= KEY_BYTES_MAX:
        raise ValueError(f"a key has 1 to {KEY_BYTES_MAX} bytes, not {size}")
    return size
