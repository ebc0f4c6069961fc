"""A store that no server has open, for a command that reads all of it.

Owns opening it, and bringing what devices reported into its runs, so that all of a device stands under its own keys.
Whoever opens it has locked its directory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from trunkline.store import codec, keys, pages
from trunkline.store.arrival_loading import load_arrivals
from trunkline.store.checksums import opened
from trunkline.store.directory import STORE, data_file
from trunkline.store.env import MIB
from trunkline.store.errors import FormatUnsupported, StoreDamaged, StoreError
from trunkline.store.flusher import AdvanceHead, Flusher
from trunkline.store.journal import Journal
from trunkline.store.keyring import Keyring
from trunkline.store.memory_map import MemoryMap
from trunkline.store.migrations import FORMAT, check_keyring, stored_format
from trunkline.store.snapshot import Snapshot
from trunkline.store.sorted_runs import SortedRun, runs_of

_WINDOW_BYTES: Final = 32 * MIB
_JOURNAL_BYTES: Final = 64 * MIB
_BATCHES_MAX: Final = 65_536
_CLOSE_WAIT_S: Final = 5.0


class OfflineStore:
    """The store in the directory `place`, which this process has locked.

    Raises StoreDamaged, FormatUnsupported if it is not in the current format, SecretMissing if the key of its secrets
    is not in `keyring`, which was read from `keys_file`.
    """

    def __init__(self, place: Path, *, map_size_bytes: int, keyring: Keyring, keys_file: Path) -> None:
        problems = pages.inspect(data_file(place)).problems
        if problems:
            raise StoreDamaged(
                f"{data_file(place)} is damaged: {problems[0]}. Nothing was changed; restore a backup."
            )
        self.place = place
        self.memory_map = MemoryMap(
            place / STORE, size_bytes=map_size_bytes, size_max_bytes=None, read_only=False
        )
        try:
            number = stored_format(self.memory_map)
            if number != FORMAT:
                raise FormatUnsupported(
                    f"{place} is in format {number}, not in {FORMAT}. Start a server on it once, which migrates it."
                )
            check_keyring(self.memory_map, keyring, keys_file)
            with self.memory_map.env.begin() as transaction:
                self.arrivals = load_arrivals(self.memory_map, transaction, _WINDOW_BYTES)
            self.memory_map.arrivals = self.arrivals
            self.journal = Journal(
                self.memory_map,
                self.arrivals,
                arrivals_bytes_max=0,
                bytes_max=_JOURNAL_BYTES,
                batches_max=_BATCHES_MAX,
            )
        except BaseException:
            self.close()
            raise

    def snapshot(self) -> Snapshot:
        """What is stored at this moment."""
        return Snapshot(self.memory_map)

    async def flush(self, advance_head: AdvanceHead) -> None:
        """Bring all that devices reported into runs. Raises StoreError.

        After it there are no segments and no chunks, which have reports of many devices.
        """
        flusher = _Flusher(self, advance_head, 0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.journal.run)
            await flusher.flush_all()
            await flusher.flush_all()  # the second one removes the segments of the first
            nursery.cancel_scope.cancel()

    @property
    def flushed_seq(self) -> int:
        """The number of the last commit whose reports are in the runs."""
        return self.arrivals.seq

    def runs(self) -> tuple[SortedRun, ...]:
        """Its runs, the oldest first."""
        with self.snapshot() as snapshot:
            return runs_of(snapshot)

    def close(self) -> None:
        """Close the file."""
        self.memory_map.close(_CLOSE_WAIT_S)


class _Flusher(Flusher):
    """Nobody else waits for the event loop, and an error ends it."""

    async def _rest(self, _took_s: float) -> None:
        await trio.lowlevel.checkpoint()

    def _tell_failure(self, why: str) -> None:
        raise StoreError(f"What devices reported cannot be flushed: {why}")


def verified_entries(snapshot: Snapshot, db: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield every entry of a database. Raises StoreDamaged for one that is not what was written, or that is missing."""
    entries = 0
    for key, stored in snapshot.stored(db, b"", None):
        value = opened(key, stored)
        if value is None:
            raise StoreDamaged(
                f"{db} {key.hex()} is not what was written. `trunkline check` lists all that is damaged."
            )
        entries += 1
        yield bytes(key), value
    if entries != snapshot.count(db, b"", None):
        raise StoreDamaged(
            f"{db}: {entries} entries can be read, {snapshot.count(db, b'', None)} are recorded."
        )


def flushed_value(seq: int) -> bytes:
    """The value of FLUSHED_KEY: all reports up to this commit are in the runs."""
    return codec.encode(seq)


SPECIAL: Final = frozenset(
    {keys.RUNS_KEY, keys.FLUSHED_KEY, keys.SKIPPED_KEY, keys.LOG_KEY, b"format", b"encryptionKey"}
)
"""The keys in META that say something of the store itself, not of what is in it."""
