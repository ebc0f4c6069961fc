"""A new store that is written from the first key to the last, beside the store that it will replace.

Owns the batches in which it is written, and what each store says of itself: its format and its encryption key. Entries
of most databases come in the order of their keys, so pages are filled one after the other; a key that comes twice, or
too late, is an error. Does not own which keys a store gets.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import lmdb

from trunkline.store import keys, migrations
from trunkline.store.checksums import sealed
from trunkline.store.directory import sync_directory
from trunkline.store.errors import StoreDamaged, translate
from trunkline.store.keyring import Keyring
from trunkline.store.memory_map import MemoryMap
from trunkline.store.snapshot import Snapshot

_UNORDERED: Final = frozenset({keys.ARRIVALS, keys.META, keys.COUNTS, keys.TRIGGERS})
"""ARRIVALS has the names of the databases behind its keys, and to the others something is added at the end."""
_ENTRY_BYTES: Final = 160
"""What an entry takes in memory beside its bytes."""


class StoreDraft:
    """A new store in the folder `folder`, which is emptied first. What waits for a write takes `batch_bytes`."""

    def __init__(self, folder: Path, *, size_bytes: int, batch_bytes: int) -> None:
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise translate(error, f"making of {folder}") from error
        self.folder = folder
        self.memory_map = MemoryMap(folder, size_bytes=size_bytes, size_max_bytes=None, read_only=False)
        self._batch_bytes = batch_bytes
        self._waiting: dict[str, list[tuple[bytes, bytes]]] = {}
        self._waiting_bytes = 0

    def snapshot(self) -> Snapshot:
        """What was written."""
        return Snapshot(self.memory_map)

    def put(self, db: str, key: bytes, value: bytes) -> None:
        """Add an entry. Raises StoreError, StoreDamaged for a key that the store has already."""
        self._waiting.setdefault(db, []).append((key, sealed(key, value)))
        self._waiting_bytes += len(key) + len(value) + _ENTRY_BYTES
        if self._waiting_bytes >= self._batch_bytes:
            self._write()

    def finish(self, keyring: Keyring, *, divided: bool) -> None:
        """Write what waits, and the format, of one of several partitions or not. On the disk when this returns."""
        self._write()
        migrations.stamp(self.memory_map, keyring, divided=divided)
        try:
            self.memory_map.env.sync(True)
            sync_directory(self.folder)
            sync_directory(self.folder.parent)
        except (lmdb.Error, OSError) as error:
            raise self.memory_map.commit_error(error, 0, f"writing of {self.folder}") from error

    def close(self) -> None:
        """Close the file. Idempotent."""
        self.memory_map.close(0)

    def _write(self) -> None:
        while True:
            try:
                with self.memory_map.env.begin(write=True) as transaction:
                    for db, items in self._waiting.items():
                        self._add(transaction, db, items)
                break
            except lmdb.MapFullError:
                self.memory_map.resize(self.memory_map.larger_size())
            except lmdb.Error as error:
                written_bytes = self._waiting_bytes
                raise self.memory_map.commit_error(
                    error, written_bytes, f"writing of {self.folder}"
                ) from error
        self._waiting, self._waiting_bytes = {}, 0

    def _add(self, transaction: lmdb.Transaction[bytes], db: str, items: list[tuple[bytes, bytes]]) -> None:
        with transaction.cursor(self.memory_map.handles[db]) as cursor:
            _, added = cursor.putmulti(items, overwrite=False, append=db not in _UNORDERED)
        if added != len(items):
            raise StoreDamaged(
                f"Two partitions have the same key in {db}, between {items[0][0].hex()} and {items[-1][0].hex()}."
            )
