"""The journal: the only way to write to the store, with group commit.

Owns the batches that wait for a commit (the overlay), the committer, and the promise that an acknowledged batch
is on disk. Does not own the LMDB environment (`memory_map.py`) nor the meaning of a batch.

The batches of all actors are merged in one overlay: for each database a dict of key to value. Once per turn of
the event loop the committer writes the overlay in one transaction, sorted, and syncs once. While it syncs, requests
collect in the sockets and form the next group, so a slow disk makes groups larger, not the loss greater.

The puts and the commit run inline in the event loop, as in Redis with `appendfsync always`. LMDB releases the
GIL at every put; in a writer thread beside a busy loop each put would wait for the GIL again, which was
measured to be three to ten times slower. And `sync=False` may corrupt the file at a power cut.

A failed commit fails every batch that was submitted so far, because later ones may depend on earlier ones. The
overlay is dropped and `epoch` is increased: an actor that finds a new epoch reloads its state. Where nobody can say
whether a commit has failed, or no other one is possible, the server ends (`StoreLost`), and says so to who waits.

LMDB needs new pages even to delete. So there is a reserve (`reserve.py`): where the disk or the quota has little
room left, a batch that does not delete is only accepted if it leaves the reserve untouched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import lmdb
import structlog
import trio

from trunkline.store.arrival_chunks import Chunk
from trunkline.store.arrivals import Arrivals
from trunkline.store.batch import Batch
from trunkline.store.columns import Points
from trunkline.store.commit_group import Group
from trunkline.store.errors import JournalFull, StoreBroken, StoreError, StoreFull, StoreLost, translate
from trunkline.store.journal_statistics import Statistics
from trunkline.store.keys import RECORDS
from trunkline.store.memory_map import MemoryMap
from trunkline.store.overlay import Overlay, Written
from trunkline.store.report_items import Ahead
from trunkline.store.reserve import Reserve
from trunkline.store.snapshot import Snapshot

FLUSH_WAIT_S: Final = 5.0
"""How long a flush, or a failed commit, waits for long reads to end, if the map must grow or be opened again."""

_log = structlog.get_logger("trunkline.store")


class Journal:
    """The only writer. All methods must be called in the thread of the event loop.

    `sync_delay_s` is for tests and load tests. It is called right before each sync: it returns the seconds by
    which the commit is made longer, or raises the error with which it fails.
    """

    def __init__(
        self,
        memory_map: MemoryMap,
        arrivals: Arrivals,
        *,
        bytes_max: int,
        batches_max: int,
        arrivals_bytes_max: int,
        sync_delay_s: Callable[[], float] | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.statistics = Statistics()
        self.epoch = 0
        self.record_changes = 0  # rises whenever a record may have changed
        self._map = memory_map
        self._arrivals = arrivals
        self._arrivals_bytes_max = arrivals_bytes_max
        self._bytes_max = bytes_max
        self._batches_max = batches_max
        self._sync_delay_s = sync_delay_s
        self._reserve = Reserve(memory_map, arrivals, monotonic_s)
        self.follower: Callable[[Chunk], None] = lambda _chunk: None
        """Called with the reports of each commit, after the callbacks of `Group.then` and before all watchers."""
        self.on_full: Callable[[], None] = lambda: None
        """Called when the disk or the quota has no room for a batch."""
        self.on_removals: Callable[[int], None] = lambda _count: None
        """Called with the number of reports that a batch removes or replaces, when it is submitted."""
        self._failing = False
        self._lost: StoreError | None = None
        self._reads_ended = trio.lowlevel.ParkingLot()
        self._earlier: tuple[Overlay, ...] = ()
        """What waits for its commit before the overlay, where groups are written one after the other."""
        self._overlay = Overlay()
        self._group = Group()
        self._not_empty = trio.Event()

    # Submitting and reading.

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be stored here any more: this process ends."""
        return self._lost is not None

    def submit(self, batch: Batch) -> Group:
        """Add `batch` to the next commit. No I/O, no waiting.

        Batches take effect in the order of submission. Raises JournalFull if too much waits already; the batch
        is then dropped. `batch` is not changed, and the caller may change it afterwards.
        """
        if self._reserve.tight and not self._reserve.admits(batch):
            return self._refused_group()
        overlay = self._overlay
        if overlay.size_bytes + batch.size_bytes > self._bytes_max or overlay.batches >= self._batches_max:
            if self._lost is not None:
                return _failed_group(self._lost)
            raise self._full(batch)
        if batch.reports and self._arrivals.size_bytes > self._arrivals_bytes_max:
            self.statistics.refused += 1
            raise JournalFull(
                f"{self._arrivals.size_bytes} bytes of what devices reported wait to be written into runs already."
            )
        self.record_changes += RECORDS in batch.writes
        overlay.merge(batch)
        if batch.removals:
            self.on_removals(batch.removals)
        if overlay.batches == 1:
            self._not_empty.set()
        return self._group

    def get(self, db: str, key: bytes) -> bytes | None:
        """Return the value at `key` as it will be after the next commit.

        For actors that must read their own writes. The commit of a waiting value may still fail; `epoch` then
        changes.
        """
        try:
            with self._map.env.begin() as transaction:
                return self._overlay.get(db, key, transaction, self._map, self._earlier)
        except lmdb.Error as error:
            raise translate(error, "read") from error

    own = get  # of this partition alone (`partitioned.py`)

    def range(self, db: str, lo: bytes, hi: bytes) -> list[tuple[bytes, bytes]]:
        """Return keys and values for lo <= key < hi as they will be after the next commit, in order: for a few entries
        of one actor, as it scans every key that waits."""
        try:
            with self._map.env.begin() as transaction:
                return self._overlay.range(db, lo, hi, transaction, self._map, self._earlier)
        except lmdb.Error as error:
            raise translate(error, "read") from error

    def head(self, device: bytes) -> Ahead:
        """Return the head of a device and the reports after it, as they will be after the next commit."""
        with Snapshot(self._map) as snapshot:
            return snapshot.head(device, self._waiting(device))

    def points(self, device: bytes, low_ms: int, high_ms: int) -> Iterator[Points]:
        """Yield the points of a device in a range, as they will be after the next commit (`Snapshot.points`)."""
        with Snapshot(self._map) as snapshot:
            yield from snapshot.points(device, low_ms, high_ms, waiting=self._waiting(device))

    def _waiting(self, device: bytes) -> bytes:
        found = [each.reports[device] for each in (*self._earlier, self._overlay) if device in each.reports]
        return b"".join(item for reports in found for item in reports.items)

    async def begun(self) -> None:
        """Return when what is stored here may be read, while it runs. The usual journal has begun when it is made."""

    def is_current(self) -> bool:
        """Whether what is stored here is all that was acknowledged to anybody."""
        return True

    @property
    def next_group(self) -> Group:
        """The group that a batch joins which is submitted now."""
        return self._group

    @property
    def pending_bytes(self) -> int:
        """The memory, in bytes, of the batches that wait for the next commit."""
        return self._overlay.size_bytes

    @property
    def pending_batches(self) -> int:
        """The number of batches that wait for the next commit."""
        return self._overlay.batches

    def check_size(self, size_bytes: int) -> None:
        """Raise JournalFull if a batch of so many bytes would be refused however little waits."""
        if size_bytes > self._bytes_max:
            self.statistics.refused += 1
            raise JournalFull(
                f"A batch of {size_bytes} bytes is larger than the journal ({self._bytes_max})."
            )

    def _full(self, batch: Batch) -> JournalFull:
        self.check_size(batch.size_bytes)
        self.statistics.refused += 1
        return JournalFull(
            f"{self.pending_batches} batches of {self.pending_bytes} bytes wait to be stored already."
        )

    # Committing.

    @trio.lowlevel.enable_ki_protection
    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit submitted batches, group after group, until cancelled; then commit those that still wait.

        Raises StoreLost.
        """
        task_status.started()
        try:
            while True:
                await self._not_empty.wait()
                # One more turn of the loop, so that every task that is ready now can join the group.
                await trio.lowlevel.checkpoint()
                while self._overlay.batches and not self._commit():
                    await self._without_reads(lambda: not self._overlay.batches or self._resize())
        finally:
            self.flush()

    def flush(self) -> None:
        """Commit all waiting batches now. Errors are reported by the groups and not raised here."""
        try:
            while self._overlay.batches and not self._commit():
                self._grow_blocking()
        except StoreLost as lost:
            _log.error("the last commits have failed", error=str(lost))

    def _commit(self) -> bool:
        """Write, sync and complete one group. False if the map must grow first; the group then still waits.

        Raises StoreLost.
        """
        started_s = time.perf_counter()
        try:
            written = self._write(self._overlay, self._group)
        except lmdb.MapFullError:
            try:
                self._map.larger_size()
            except StoreFull as full:
                self._fail(full)
                return True
            return False
        except StoreLost as lost:
            self._lose(lost)
            raise
        except (lmdb.Error, OSError) as error:
            self._fail(self._map.commit_error(error, self._overlay.size_bytes))
            return True
        except Exception as bug:  # noqa: BLE001 - the committer must survive an invalid batch
            _log.exception("a batch could not be written")
            self._fail(StoreBroken(f"A batch could not be written: {bug!r}."))
            return True
        if self._failing:
            self._failing = False
            _log.info("commits work again", failures=self.statistics.failures)
        self.statistics.committed(self._overlay.batches, written, time.perf_counter() - started_s)
        self._reserve.committed(written.size_bytes, written.deletes)
        self._finish(None)
        return True

    def _write(self, overlay: Overlay, group: Group, mark: bytes | None = None) -> Written:
        """Write a group in one transaction and sync it. The state of the journal stays the same.

        `mark` says up to where in a log all is written.
        """
        reports = overlay.reports
        # In the windows before the commit, so that a snapshot of it finds them.
        chunk = self._arrivals.stage(reports) if reports else None
        number = None
        try:
            with self._map.env.begin(write=True) as transaction:
                number = transaction.id()
                written = overlay.write(transaction, self._map.handles, chunk, mark)
                if self._sync_delay_s is not None:
                    time.sleep(self._sync_delay_s())
        except BaseException:
            self._arrivals.undo()
            self._map.recover(number, FLUSH_WAIT_S)
            raise
        try:
            if chunk is not None:
                self._arrivals.committed(chunk)
                group.then(partial(self.follower, chunk))
        except MemoryError as error:
            raise StoreLost(
                "A commit is on the disk, and no memory is left to go on after it. Whoever waited has no answer."
            ) from error
        return written

    def _finish(self, error: StoreError | None) -> None:
        """Begin the next group, and complete the current one."""
        overlay, group = self._overlay, self._group
        self._overlay = Overlay()
        self._group = Group()
        self._not_empty = trio.Event()
        self._complete(overlay, group, error)

    def _complete(self, _overlay: Overlay, group: Group, error: StoreError | None) -> None:
        """Complete a group, whose batches are in the overlay."""
        group.finish(error)

    def _lose(self, lost: StoreError) -> None:
        """Fail the batches that wait, and all that are submitted later: whoever waits must not wait for ever."""
        self._lost = lost
        self._bytes_max = -1
        self._fail(lost)

    # Growing the map, and the quota.

    async def _without_reads(self, resize: Callable[[], bool]) -> None:
        """Call `resize` when no read is open, until it returns true."""
        token = trio.lowlevel.current_trio_token()
        try:
            while True:
                # Repeated in each round, because a flush in between releases the reads.
                self._map.hold_reads(lambda: token.run_sync_soon(self._reads_ended.unpark_all))
                if resize():
                    return
                await self._reads_ended.park()
        finally:
            self._map.release_reads()

    def _grow_blocking(self) -> None:
        """Make the map larger when no read is open, blocking, for a flush."""
        self._map.hold_reads()
        try:
            if not self._map.wait_idle(FLUSH_WAIT_S) or not self._resize():
                self._fail(StoreBroken("The map could not grow: reads stayed open."))
        finally:
            self._map.release_reads()
            self._reads_ended.unpark_all()

    def _resize(self) -> bool:
        """True if the map has grown or the group has failed; False if reads are open. Raises StoreLost."""
        try:
            grown = self._map.resize(self._map.larger_size())
        except StoreLost as lost:
            self._lose(lost)
            raise
        except StoreError as error:
            self._fail(error)
            return True
        self.statistics.growths += grown
        return grown

    def _refused_group(self) -> Group:
        """Return a failed group for a refused batch. The epoch is increased, so that its actor reloads."""
        self.statistics.refused += 1
        self.epoch += 1
        self.on_full()
        return _failed_group(
            StoreFull("The disk or the quota of the store is full. Only what deletes is stored.")
        )

    def _fail(self, error: StoreError) -> None:
        """Drop all waiting batches and complete their group with `error`."""
        if not self._failing:  # logged only once: with a full disk a thousand groups fail per second
            self._failing = True
            _log.error("commits fail", error=str(error), batches=self.pending_batches)
        self.statistics.failures += 1
        self.epoch += 1
        self.record_changes += 1
        if isinstance(error, StoreFull):
            self._reserve.look()
        self._finish(error)


def _failed_group(error: StoreError) -> Group:
    group = Group()
    group.finish(error)
    return group
