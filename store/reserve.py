"""The reserve: room in the file of the store that only commits that delete, or that end access, may use.

LMDB never changes a page in place, so it needs new pages even to delete. If a disk or a quota were filled to the last
byte by ordinary commits, nothing could ever be deleted. So the file is kept longer than its used part, with blocks
that the file system has allocated; and if the disk or the quota leaves no more room, ordinary commits are admitted
only as far as they leave the reserve untouched, and beside it as much as the arrivals have: those are written into runs
before their segments are deleted, also on a full disk. Room is what was never used, and the pages that are free.

Owns that decision. Does not own the file itself (`memory_map.py`) nor which commits delete (`batch.py`). On a file
system that writes in other blocks what is overwritten (btrfs, ZFS), allocated blocks are no promise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from trunkline.store import pages
from trunkline.store.arrivals import Arrivals
from trunkline.store.batch import Batch
from trunkline.store.directory import DATA_FILE
from trunkline.store.errors import StoreError, StoreFull, translate
from trunkline.store.memory_map import PAGE_BYTES, MemoryMap

RESERVE_BYTES_MAX: Final = 4 * 1024 * 1024
RESERVE_BYTES_MIN: Final = 512 * 1024
RETRY_S: Final = 1.0
"""How long after a look that found no room the next one is made, if nothing was deleted meanwhile."""

_DELETED_BYTES: Final = 1024
"""What a deleted entry is taken to leave in a page that is still used, so that something can be stored there."""

_ZEROS_BYTES: Final = 256 * 1024
_COMMIT_BYTES: Final = 16 * PAGE_BYTES


class Reserve:
    """The room of one store. Used in the thread of the event loop only.

    `tight`: the disk or the quota leaves little more than the reserve, so every batch that writes must be admitted.

    What is deleted here and there leaves no free page, but room within pages. So it makes the reserve smaller, at
    most by a quarter, until there are free pages: what fits into the pages then costs nothing of it.
    """

    __slots__ = (
        "_allocated_bytes",
        "_arrivals",
        "_deleted_bytes",
        "_file",
        "_lengthened_s",
        "_looked_s",
        "_map",
        "_monotonic_s",
        "_reserve_bytes",
        "_room_bytes",
        "_spent_bytes",
        "_written_bytes",
        "tight",
    )

    def __init__(self, memory_map: MemoryMap, arrivals: Arrivals, monotonic_s: Callable[[], float]) -> None:
        self._map = memory_map
        self._arrivals = arrivals
        self._file = memory_map.path / DATA_FILE
        self._monotonic_s = monotonic_s
        self._allocated_bytes = 0
        self._deleted_bytes = 0
        self._reserve_bytes = 0
        self._room_bytes = 0
        self._spent_bytes = 0
        self._written_bytes = 0
        self._lengthened_s = 0.0
        self._looked_s = 0.0
        self.tight = False
        self.look()

    def committed(self, size_bytes: int, deletes: int) -> None:
        """Count a commit that put so many bytes and deleted so many entries; look if the room may have changed."""
        if self.tight:
            self._deleted_bytes = min(
                self._deleted_bytes + _DELETED_BYTES * deletes, self._reserve_bytes // 4
            )
            self.look()
        else:
            self._spent_bytes += 4 * size_bytes + _COMMIT_BYTES
            if self._spent_bytes > self._reserve_bytes // 4:
                self.look()

    def admits(self, batch: Batch) -> bool:
        """Whether a batch leaves enough of the reserve, beside all admitted before it.

        What mostly deletes may use all of it. Three quarters of it are for the deletion of a single thing, which may
        write more than it deletes: a device is kept as a deleted one, and an emptied table is swept later. Half of it,
        and the room that the arrivals need, is for what completes something that is stored: what flushes the arrivals,
        and the entry of a call in an audit log. A quarter of it, and of the room for the arrivals what it takes, is for
        what ends access: it writes little, once for each key and token, and always the same for a user. Everything else
        leaves both. Reports are counted twice: they are written again when they are flushed.
        """
        if batch.mostly_deletes():
            return True
        kept_bytes = self._reserve_bytes - self._deleted_bytes
        size_bytes = batch.size_bytes
        if batch.deletes_data():
            kept_bytes //= 4
        elif batch.completes == "stored":
            kept_bytes //= 2
        elif batch.completes == "revocation":
            kept_bytes = 3 * kept_bytes // 4
        else:
            kept_bytes += self._arrivals.size_bytes
            size_bytes *= 2 if batch.reports else 1
        if not self._fits(size_bytes, kept_bytes) and self._monotonic_s() >= self._looked_s + RETRY_S:
            self.look()
        if not self._fits(size_bytes, kept_bytes):
            return False
        self._spent_bytes += size_bytes
        return True

    def _fits(self, size_bytes: int, kept_bytes: int) -> bool:
        return not self.tight or self._room_bytes - self._spent_bytes - size_bytes >= kept_bytes

    def look(self) -> None:
        """Find out how much room there is, and lengthen the file if the disk has room. Never raises.

        Who looks after a commit must not fail: it is on the disk. Without memory for it, what was known before stands.
        """
        with suppress(MemoryError):
            self._look()

    def _look(self) -> None:
        used_bytes = self._map.used_bytes
        quota_bytes = self._map.size_max_bytes
        # A small store needs less: no commit that deletes changes more pages than there are.
        reserve_bytes = max(RESERVE_BYTES_MIN, min(used_bytes, RESERVE_BYTES_MAX))
        if quota_bytes is not None:
            reserve_bytes = min(reserve_bytes, quota_bytes // 4)
        unflushed_bytes = self._arrivals.size_bytes
        enough_bytes = used_bytes + unflushed_bytes + reserve_bytes + reserve_bytes // 2
        now_s = self._monotonic_s()
        if self._allocated_bytes < enough_bytes and (not self.tight or now_s >= self._lengthened_s + RETRY_S):
            self._lengthened_s = now_s  # a file system that is full may take long to say so
            wanted_bytes = used_bytes + unflushed_bytes + 2 * reserve_bytes
            if quota_bytes is not None:
                wanted_bytes = min(wanted_bytes, quota_bytes)
            self._allocated_bytes = self._lengthen(used_bytes, wanted_bytes)
        self.tight = self._allocated_bytes < enough_bytes
        self._reserve_bytes = reserve_bytes
        self._room_bytes = self._allocated_bytes - used_bytes + (self._free_bytes() if self.tight else 0)
        if self._room_bytes >= enough_bytes - used_bytes:
            self._deleted_bytes = 0
        self._spent_bytes = 0
        self._looked_s = now_s

    def _lengthen(self, used_bytes: int, wanted_bytes: int) -> int:
        """Allocate the blocks of the file up to `wanted_bytes`. Returns how far there are any.

        They are written once, with zeros. The first write to a block that was only allocated changes the metadata of
        the file system as well, so the sync of a commit would write twice as many blocks.
        """
        if wanted_bytes <= used_bytes:
            return wanted_bytes
        try:
            file = os.open(self._file, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.posix_fallocate(file, used_bytes, wanted_bytes - used_bytes)
                for start in range(max(used_bytes, self._written_bytes), wanted_bytes, _ZEROS_BYTES):
                    os.pwrite(file, bytes(min(_ZEROS_BYTES, wanted_bytes - start)), start)
                self._written_bytes = wanted_bytes
            except OSError as error:
                if isinstance(translate(error, "allocation"), StoreFull):
                    return min(os.fstat(file).st_size, wanted_bytes)
            finally:
                os.close(file)
        except OSError:
            pass  # a file system that cannot allocate: the disk itself will say when it is full
        return wanted_bytes

    def _free_bytes(self) -> int:
        """The bytes of free pages that no open read still needs."""
        try:
            return pages.free_bytes(self._file, self._map.oldest_read())
        except StoreError:
            return 0
