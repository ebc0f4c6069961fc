"""The store: one open data directory.

Owns the order in which its parts are opened (lock, map, format, journal) and closed, and the threads for long
reads. Does not own the work itself: `journal.py` writes, `snapshot.py` reads, `memory_map.py` wraps LMDB.

    DIRECTORY/lock       locked while the directory is in use (`directory.py`)
    DIRECTORY/secret     the key that signs tokens
    DIRECTORY/encryption-keys  the keys of stored secrets, unless they are kept elsewhere (`keyring.py`)
    DIRECTORY/crash      why the process before died, if it did (`crash_record.py`)
    DIRECTORY/store/     LMDB's data.mdb and lock.mdb
    DIRECTORY/results/   files that jobs produced, until they expire, unless there is a log (`file_stores.py`)
    DIRECTORY/contents/  the contents of files of applications (`blobs.py`), unless they are elsewhere
    DIRECTORY/contents-location  where they are (`contents_location.py`)
    DIRECTORY/archives/  archives of applications, unless they are elsewhere (`archive_folder.py`)
    DIRECTORY/outbox/    mail, where no mail server is configured
    DIRECTORY/backups/   a copy made before each migration to another format
    DIRECTORY/partitions/  the other partitions, if there are several (`partitions.py`)
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeVar

import structlog
import trio

from trunkline.store import migrations
from trunkline.store.arrival_loading import load_arrivals
from trunkline.store.arrivals import Arrivals
from trunkline.store.backup import copy_store
from trunkline.store.blobs import Blobs
from trunkline.store.contents_location import ContentsPlace
from trunkline.store.crash_record import CrashRecord
from trunkline.store.directory import (
    KEYS_FILE,
    STORE,
    DataDirectory,
    check_not_lost,
    has_data,
    remove_begun,
    unused_path,
)
from trunkline.store.errors import ReadQueueFull
from trunkline.store.file_stores import prepared_contents, prepared_results
from trunkline.store.journal import Journal
from trunkline.store.keyring import Keyring
from trunkline.store.leftovers import SHARED_LEFT_S, remove_begun_division, remove_drafts
from trunkline.store.log_groups import check_kept_format, forget_log
from trunkline.store.memory_map import MemoryMap
from trunkline.store.object_store import ObjectStore
from trunkline.store.outbox import Outbox
from trunkline.store.partitioned import MovedMeanwhile, PartitionedSnapshot, Partitions
from trunkline.store.partitioned_journal import PartitionedJournal
from trunkline.store.partitions import check_partition, partition_count, partition_directory
from trunkline.store.snapshot import Snapshot
from trunkline.store.start_check import check_before

T = TypeVar("T")

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB
OUTBOX: Final = "outbox"
CLOSE_WAIT_S: Final = 5.0
"""How long `close` waits for open reads to end."""

_log = structlog.get_logger("trunkline.store")


class Sizes(NamedTuple):
    """The size of the file and of its map, in bytes. `used` includes pages that were freed."""

    used: int
    map: int
    quota: int | None


class Store:
    """An open data directory. `open` it once, run `journal.run` in a nursery, `close` it after the nursery.

    `journal` writes; `snapshot` and `read` read; `directory` has the secret; `keyring` seals stored secrets;
    `results`, `contents` and `outbox` hold files; `memory_map` is only for modules of this package.
    """

    def __init__(
        self,
        directory: DataDirectory,
        memory_map: MemoryMap,
        journal: Journal,
        arrivals: Arrivals,
        *,
        keyring: Keyring,
        crash: CrashRecord,
        results: ObjectStore,
        own_results: Blobs | None,
        contents: ObjectStore,
        outbox: Outbox,
        read_threads: int,
        read_queue: int,
        partitions: Partitions | None = None,
    ) -> None:
        self.directory = directory
        self.journal = journal
        self.arrivals = arrivals
        self.memory_map = memory_map
        self.keyring = keyring
        self.results = results
        self.own_results = own_results
        """The results, if no other partition has its own there as well."""
        self.contents = contents
        self.outbox = outbox
        self.partitions = partitions
        """All partitions of the data directory; None if it has one."""
        self._limiter = trio.CapacityLimiter(read_threads)
        self._reads_max = read_threads + read_queue
        self._reads = 0
        self._crash = crash
        self._closed = False

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        partition: int = 0,
        encryption_keys: Path | None = None,
        lost_keys: bool = False,
        contents_place: ContentsPlace | None = None,
        part_bytes: int = 8 * MIB,
        file_threads_max: int = 8,
        map_size_bytes: int = 64 * GIB,
        store_size_max_bytes: int | None = None,
        journal_bytes_max: int = 64 * MIB,
        journal_batches_max: int = 65_536,
        arrival_window_bytes: int = 32 * MIB,
        arrivals_bytes_max: int = 256 * MIB,
        read_threads_max: int = 4,
        read_queue_length_max: int = 64,
        start_check_s: float = 5.0,
        outbox_length_max: int = 1000,
        journal: Callable[..., Journal] | None = None,
        keeps_log: bool = False,
        ends_log: bool = False,
        sync_delay_s: Callable[[], float] | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> Store:
        """Lock the directory, open or create its contents, and migrate them to the current format.

        `partition` is the number of the store to open of a directory with several (`partitions.py`); all of them must
        be there. `journal` makes the writer, if it is not the usual one; unless `keeps_log`, the store forgets its log.
        One that follows a log gets no other format, unless the caller `ends_log`.
        `encryption_keys` is the file of the keys, if it is not in the directory; with `lost_keys` it may lack the key
        that the store uses. `contents_place` is where the contents of files are, if not in the directory; to a bucket
        they are sent in parts of `part_bytes`, by `file_threads_max` threads. `map_size_bytes` is address space, not
        memory and not disk; the map grows by itself. With `store_size_max_bytes` the file never gets larger than that.
        `sync_delay_s` and `monotonic_s` are described at `Journal`. Before anything is read, the pages of the file are
        verified for at most `start_check_s`.
        Raises DirectoryInUse, SecretMissing, FormatUnsupported, BackupRefused, StoreDamaged, StoreFull or StoreBroken.
        """
        own = partition_directory(directory, partition)
        locked = DataDirectory.open(own, common=directory)
        try:
            count = partition_count(directory)
            check_partition(directory, count, partition)
            keys_file = encryption_keys or directory / KEYS_FILE
            if not partition:
                remove_begun_division(directory)
                remove_drafts(directory, keys_file)
            new = not has_data(own)
            crash = CrashRecord(own)
            if new:
                if not keeps_log:  # with a log the data come from another machine
                    check_not_lost(own)
                remove_begun(own)
            else:
                check_before(own, crash.earlier(), start_check_s)
            locked.require_secret(new=new)
            partitions = Partitions(directory, partition) if count > 1 else None
            memory_map = MemoryMap(
                own / STORE,
                size_bytes=map_size_bytes,
                size_max_bytes=store_size_max_bytes,
                read_only=False,
            )
            try:
                if keeps_log and not ends_log:
                    check_kept_format(memory_map, directory)
                keyring = _migrate(memory_map, directory, keys_file, count, lost_keys=lost_keys)
                if not keeps_log:
                    forget_log(memory_map)
                arrivals = _arrivals(memory_map, arrival_window_bytes)
                if new:
                    locked.sync()  # before there is what `check_not_lost` takes for a trace of it
                # Another process may be writing what looks like a leftover.
                left_s = SHARED_LEFT_S if count > 1 or keeps_log else 0.0
                contents = prepared_contents(
                    directory,
                    contents_place,
                    part_bytes=part_bytes,
                    connections=file_threads_max,
                    left_s=left_s,
                )
                are_common = keeps_log and contents_place is not None
                own_results, results = prepared_results(own, contents if are_common else None)
                outbox = Outbox.prepare(directory / OUTBOX, outbox_length_max, left_s=left_s)
                locked.sync()
                crash.begin()
            except BaseException:
                memory_map.close(CLOSE_WAIT_S)
                raise
        except BaseException:
            locked.discard()
            locked.close()
            raise
        if partitions is None:
            writer_of = journal or Journal
        else:
            writer_of = partial(journal or PartitionedJournal, partitions=partitions)
        writer = writer_of(
            memory_map,
            arrivals,
            arrivals_bytes_max=arrivals_bytes_max,
            bytes_max=journal_bytes_max,
            batches_max=journal_batches_max,
            sync_delay_s=sync_delay_s,
            monotonic_s=monotonic_s,
        )
        return cls(
            locked,
            memory_map,
            writer,
            arrivals,
            keyring=keyring,
            crash=crash,
            results=results,
            own_results=own_results,
            contents=contents,
            outbox=outbox,
            read_threads=read_threads_max,
            read_queue=read_queue_length_max,
            partitions=partitions,
        )

    def snapshot(
        self,
        *,
        wide: bool = False,
        own: bool = False,
        wait: bool = False,
        on_step: Callable[[], None] | None = None,
        on_large: Callable[[int], None] | None = None,
    ) -> Snapshot:
        """The committed state of this moment, for short reads. In the event loop, close it before any `await`.

        `wide`: lists of applications are those of all partitions (`PartitionedSnapshot`). `own`: all keys are those of
        this partition, also of what belongs to others. The rest is as in `Snapshot`.
        """
        if self.partitions is None or own:
            return Snapshot(self.memory_map, wait=wait, on_step=on_step, on_large=on_large)
        return PartitionedSnapshot(
            self.memory_map, self.partitions, wide=wide, wait=wait, on_step=on_step, on_large=on_large
        )

    def look(self, query: Callable[[Snapshot], T], **options: Any) -> T:
        """Return the result of `query` on a snapshot (`snapshot`), for short reads.

        It is called once more if an application was moved meanwhile.
        """
        while True:
            try:
                with self.snapshot(**options) as snapshot:
                    return query(snapshot)
            except MovedMeanwhile:
                continue

    async def read(
        self,
        query: Callable[[Snapshot], T],
        *,
        wide: bool = False,
        own: bool = False,
        on_step: Callable[[], None] | None = None,
    ) -> T:
        """Run `query` in a worker thread on a snapshot of its own (`snapshot`), and return its result.

        Raises ReadQueueFull at once if too many reads wait. If the caller is cancelled, the read ends after at
        most 256 more entries of a scan, and only then the caller returns. After as many `on_step` is called, in the
        thread; it may raise to end the read.
        """
        if self._reads >= self._reads_max:
            raise ReadQueueFull(f"{self._reads} long reads run or wait, which is the limit of this server.")
        self._reads += 1
        try:
            read = partial(self._read, query, on_step, wide=wide, own=own)
            return await trio.to_thread.run_sync(read, limiter=self._limiter)
        finally:
            self._reads -= 1

    def _read(
        self, query: Callable[[Snapshot], T], on_step: Callable[[], None] | None, *, wide: bool, own: bool
    ) -> T:
        def step() -> None:
            trio.from_thread.check_cancelled()
            if on_step is not None:
                on_step()

        trio.from_thread.check_cancelled()
        return self.look(query, wide=wide, own=own, wait=True, on_step=step)

    @property
    def reads(self) -> int:
        """Long reads that run or wait."""
        return self._reads

    def tidy(self, *, readers: bool) -> None:
        """Take back what other processes wait for: names that no turn waits for any more, and with `readers` the
        slots of those that were killed while they read, so that pages can be used again."""
        if self.partitions is not None and not self.journal.pending_batches:
            self.partitions.release_names()
        if readers:
            self.memory_map.env.reader_check()

    def sizes(self) -> Sizes:
        """The size of the file and of its map."""
        return Sizes(self.memory_map.used_bytes, self.memory_map.size_bytes, self.memory_map.size_max_bytes)

    def close(self) -> None:
        """Commit all waiting batches, close the file and unlock the directory. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self.journal.flush()
        if not self.memory_map.close(CLOSE_WAIT_S):
            _log.error("reads stayed open, so the store is closed only by the end of the process")
        if self.partitions is not None:
            self.partitions.close()
        self._crash.end()
        self.directory.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _migrate(
    memory_map: MemoryMap, directory: Path, keys_file: Path, partitions: int, *, lost_keys: bool
) -> Keyring:
    """Bring the store to the current format; return its encryption keys, which are made with a new store."""
    number = migrations.stored_format(memory_map)
    if number is not None:
        migrations.check_format(number, directory)
        migrations.check_division(memory_map, partitions, directory)
    keyring = Keyring.require(keys_file, new=lost_keys or number is None)
    if number is None:
        migrations.stamp(memory_map, keyring)
    elif number < migrations.FORMAT:
        copies = directory / "backups"
        for draft in copies.glob(".format-*"):  # of a start that was killed while it copied
            shutil.rmtree(draft, ignore_errors=True)
        target = unused_path(copies, f"format-{number}")
        copy_store(memory_map, directory, target)
        _log.info("copied the store before its migration", target=str(target))
        migrations.migrate(memory_map, number, keyring)
    if partitions > 1:
        migrations.mark_division(memory_map)
    if not lost_keys:
        migrations.check_keyring(memory_map, keyring, keys_file)
    return keyring


def _arrivals(memory_map: MemoryMap, window_bytes: int) -> Arrivals:
    """Load what devices reported and is not in the runs yet, for all snapshots from now on."""
    with memory_map.env.begin() as transaction:
        memory_map.arrivals = load_arrivals(memory_map, transaction, window_bytes)
    return memory_map.arrivals
