"""A scratch copy of the store: what it would contain after writes that are never made.

Owns the writes of a rehearsal (`actors/portability/bundles/rehearsal.py`) and reading them together with a snapshot.
They are in a temporary database of SQLite, whose file has no name and ends with the process, so memory does not grow
with them.

Only one thread at a time may use it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from trunkline.store.counters import apply_increments
from trunkline.store.errors import StoreBroken, StoreFull
from trunkline.store.keys import ARRIVALS
from trunkline.store.report_items import Ahead

if TYPE_CHECKING:
    from types import TracebackType

    from trunkline.store.batch import Batch
    from trunkline.store.snapshot import Snapshot

_CACHE_KIB: Final = 4096
_SETUP: Final = (
    f"PRAGMA cache_size=-{_CACHE_KIB}; PRAGMA temp_store=FILE; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; "
    "CREATE TABLE written (db TEXT, key BLOB, value BLOB, PRIMARY KEY (db, key)) WITHOUT ROWID"
)
_PAGE: Final = 256

_Entry = tuple[bytes, bytes | None]


class Scratch:
    """The store as `base` shows it, with batches applied to it. Use it as a context manager.

    `bytes_max` bounds the bytes of all values that are written. Raises StoreFull above it, or if the disk is full.
    """

    __slots__ = ("_base", "_bytes_left", "_database")

    def __init__(self, base: Snapshot, *, bytes_max: int) -> None:
        self._base = base
        self._bytes_left = bytes_max
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(_SETUP)
        self._database.execute("BEGIN")

    def apply(self, batch: Batch) -> None:
        """Apply a batch after those that were applied before."""
        self._bytes_left -= batch.size_bytes
        if self._bytes_left < 0:
            raise StoreFull("A rehearsal would write more than it may.")
        rows = [(db, key, value) for db, writes in batch.writes.items() for key, value in writes.items()]
        self._write(rows)
        counted = [
            (db, key, apply_increments(self.get(db, key), counts))
            for db, increments in batch.increments.items()
            for key, counts in increments.items()
        ]
        self._write(counted)
        reported = [
            (ARRIVALS, device, b"".join([self.get(ARRIVALS, device) or b"", *reports.items]))
            for device, reports in batch.reports.items()
        ]
        self._write(reported)

    def get(self, db: str, key: bytes) -> bytes | None:
        """The value at `key`, None if there is none."""
        found = self._database.execute("SELECT value FROM written WHERE db = ? AND key = ?", (db, key))
        row: tuple[bytes | None] | None = found.fetchone()
        return self._base.get(db, key) if row is None else row[0]

    def head(self, device: bytes) -> Ahead:
        """The head of a device and the reports after it."""
        items = self.get(ARRIVALS, device)
        return self._base.head(device, b"" if items is None else items)

    def range(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and value for lo <= key < hi in order, without the first `skip` entries, as a snapshot does."""
        for key, value in self._merged(db, lo, hi, reverse=reverse):
            if value is None:
                continue
            if skip:
                skip -= 1
                continue
            yield key, value

    def keys(
        self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool = False, skip: int = 0
    ) -> Iterator[bytes]:
        """Like `range`, but yield only the keys."""
        for key, _ in self.range(db, lo, hi, reverse=reverse, skip=skip):
            yield key

    def count(self, db: str, lo: bytes, hi: bytes | None) -> int:
        """The number of keys with lo <= key < hi."""
        return sum(1 for _ in self.keys(db, lo, hi))

    def close(self) -> None:
        """Forget all writes. Idempotent."""
        self._database.close()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, rows: Sequence[tuple[str, bytes, bytes | None]]) -> None:
        try:
            self._database.executemany("INSERT OR REPLACE INTO written VALUES (?, ?, ?)", rows)
        except sqlite3.OperationalError as error:
            full = "full" in str(error)
            raise (StoreFull if full else StoreBroken)(f"A rehearsal cannot be written: {error}.") from error

    def _merged(self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool) -> Iterator[_Entry]:
        """The entries of both, those that were written in the place of those of the base."""
        stored: Iterator[_Entry] = self._base.range(db, lo, hi, reverse=reverse)
        written = self._written(db, lo, hi, reverse=reverse)
        below, above = next(stored, None), next(written, None)
        while below is not None or above is not None:
            if above is None or (
                below is not None and (below[0] > above[0] if reverse else below[0] < above[0])
            ):
                assert below is not None
                yield below
                below = next(stored, None)
            else:
                if below is not None and below[0] == above[0]:
                    below = next(stored, None)
                yield above
                above = next(written, None)

    def _written(self, db: str, lo: bytes, hi: bytes | None, *, reverse: bool) -> Iterator[_Entry]:
        """What was written in this range, a page at a time, so that writes may come in between."""
        order, beyond = ("DESC", "key < ?") if reverse else ("ASC", "key > ?")
        bounds, values = ["db = ?", "key >= ?"], [db, lo]
        if hi is not None:
            bounds.append("key < ?")
            values.append(hi)
        last: list[bytes] = []
        while True:
            where = " AND ".join([*bounds, *([beyond] if last else [])])
            page: list[_Entry] = self._database.execute(
                f"SELECT key, value FROM written WHERE {where} ORDER BY key {order} LIMIT {_PAGE}",  # noqa: S608
                (*values, *last),
            ).fetchall()
            yield from page
            if len(page) < _PAGE:
                return
            last = [page[-1][0]]
