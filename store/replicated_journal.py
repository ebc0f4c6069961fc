"""The journal of a partition that has a log: a group is on a majority of machines before it is written here.

Owns the order of a commit: the group goes to the log; when the log has acknowledged it, it is written here, with the
mark of its entry in the same transaction; then come the events and the answers. So nobody reads what the log may not
have. One group is under way at a time, and what comes meanwhile is the next one. Of several partitions, a group that
other machines read from their copies is in these before it is written here (`leases.py`).

An actor that reads its own writes finds those of the group that is under way as well. If another node owns the
partition, all that waits fails, and `run` raises: this process must not go on. So it does where what the log has cannot
be written here, as on a disk that is full: another node can. And so it does where the log has not answered for
`GIVE_UP_S`: the node may be cut off, and its clients have to find another one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import lmdb
import structlog
import trio

from trunkline.store.arrival_chunks import Chunk
from trunkline.store.arrivals import chunk_value
from trunkline.store.batch import Batch
from trunkline.store.commit_group import Group
from trunkline.store.errors import Fenced, LogUnreachable, StoreBroken, StoreError, StoreLost
from trunkline.store.journal import Journal
from trunkline.store.leases import is_read_elsewhere
from trunkline.store.log import Kind
from trunkline.store.log_groups import KEPT_S, Mark, encoded_group
from trunkline.store.log_owner import LogOwner
from trunkline.store.overlay import Overlay
from trunkline.store.partition_copy import PartitionCopy
from trunkline.store.partitioned import Partitions
from trunkline.store.partitioned_journal import PartitionedJournal
from trunkline.store.release import Release

END_S: Final = 9.0
"""How long a server that ends waits for the log: an election may take so long, and open calls get 10 s (`drain_s`)."""
GIVE_UP_S: Final = 30.0
"""How long the log is waited for otherwise: longer than two elections."""
PROOF_S: Final = 0.4
"""After so long without a group a mark is appended, as the proof that this is still the owner."""
LEASE_S: Final = 1.0
"""What is read here is told to nobody if the last proof is older. Another node claims the partition only when it has
read no entry for longer (`standby.py`)."""

_log = structlog.get_logger("trunkline.store")


def _boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ReplicatedJournal(Journal):
    """The only writer of a store whose groups `owner` appends to a log."""

    def __init__(
        self, *arguments: Any, owner: LogOwner, boot_s: Callable[[], float] = _boot_s, **options: Any
    ) -> None:
        """`boot_s` is a clock that goes on while the machine is suspended."""
        super().__init__(*arguments, **options)
        self._owner = owner
        self._sent: Group | None = None
        """The group that is under way; its overlay is the earlier one."""
        self._body = b""
        self._is_in_log = False
        self._is_running = False
        self._drains = False
        self._patience = trio.CancelScope()
        """The wait of an append for the log."""
        self._proves = False
        self._begun = trio.Event()
        self._proved_s = -math.inf
        self._marked_s = -math.inf
        self._boot_s = boot_s

    def submit(self, batch: Batch) -> Group:
        """Add `batch` to the next group, as `Journal.submit`: what is under way counts for the bounds."""
        if self._earlier and self._lost is None:
            size_bytes = self.pending_bytes + batch.size_bytes
            if size_bytes > self._bytes_max or self.pending_batches >= self._batches_max:
                raise self._full(batch)
        return super().submit(batch)

    @property
    def pending_bytes(self) -> int:
        """The memory of the batches that wait, those under way to the log among them."""
        return self._overlay.size_bytes + sum(each.size_bytes for each in self._earlier)

    @property
    def pending_batches(self) -> int:
        """The number of these batches."""
        return self._overlay.batches + sum(each.batches for each in self._earlier)

    async def begun(self) -> None:
        """Return when the first entry is appended: this is still the owner."""
        await self._begun.wait()

    def is_current(self) -> bool:
        """Whether no other node can have acknowledged anything yet: an entry was appended a moment ago."""
        return self._boot_s() - self._proved_s < LEASE_S

    # Committing.

    @trio.lowlevel.enable_ki_protection
    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit group after group until cancelled; then, for a while, those that still wait.

        A log that does not answer fails all that waits, and nothing is stored any more. Raises Fenced, LogBroken and
        StoreLost, and LogUnreachable for such a log unless the server drains.
        """
        task_status.started()
        self._is_running = True
        try:
            await self._append(b"", "mark")
            await self._written(Overlay(), Group())  # so that a backup made from now on is a copy
            while True:
                with trio.move_on_after(PROOF_S):
                    await self._not_empty.wait()
                # One more turn of the loop, so that every task that is ready now can join the group.
                await trio.lowlevel.checkpoint()
                if not self._overlay.batches:
                    await self._append(b"", "mark")
                    if trio.current_time() - self._marked_s > KEPT_S:
                        await self._written(Overlay(), Group())
                while self._overlay.batches:
                    await self._commit_next()
        except LogUnreachable as problem:
            if not self._drains:
                raise
            _log.error("the server ends without its log", reason=str(problem))
        finally:
            try:
                with suppress(LogUnreachable), trio.CancelScope(shield=True, deadline=self._end_s()):
                    while self.pending_batches:
                        await self._commit_next()
            finally:
                self._is_running = False
                self.flush()

    async def release(self, heir: str = "") -> None:
        """Let another node own the partition at once, `heir` before all others. `run` has ended, and nobody reads here
        any more.

        Raises as `run`, and LogUnreachable, where the log cannot have all that was sent.
        """
        if self._lost is not None:
            raise self._lost
        await self._append(Release(heir, self._ended_leases()).encoded(), "release")

    def _ended_leases(self) -> float:
        """Grant no leases any more. For how long those may be held that were granted."""
        return 0.0

    def flush(self) -> None:
        """The server drains: while `run` commits, from now on the log is waited for `END_S` at most. After it, fail all
        that waits."""
        if self._is_running:
            if not self._drains:
                self._drains = True
                self._patience.deadline = min(self._patience.deadline, self._end_s())
        elif self.pending_batches:
            self._lose(_unknown())

    def _end_s(self) -> float:
        return trio.current_time() + END_S

    async def _commit_next(self) -> None:
        """Append the next group to the log, or once more the one of which nobody knows, and write it here.

        Raises StoreError, then all that waits has failed.
        """
        if self._sent is None and not self._begin():
            return
        (overlay,), group = self._earlier, self._sent
        assert group is not None
        if not self._is_in_log:
            await self._append(self._body)
            assert self._sent is group, "what is under way fails only if nothing can be appended any more"
            self._is_in_log = True
        await self._confirmed(overlay)
        await self._written(overlay, group)
        self._earlier, self._sent, self._body, self._is_in_log = (), None, b"", False
        self._complete(overlay, group, None)

    async def _confirmed(self, overlay: Overlay) -> None:
        """Wait until a group that the log has is in the copies that other machines read. Raises StoreError."""

    async def _written(self, overlay: Overlay, group: Group) -> None:
        """Write a group that the log has. Raises StoreLost."""
        mark, self._marked_s = Mark.of(self._owner.chain).encoded(), trio.current_time()
        while True:
            started_s = time.perf_counter()
            try:
                written = self._write(overlay, group, mark)
                break
            except lmdb.MapFullError:
                await self._without_reads(self._enlarged)
            except StoreLost as error:
                self._lose(error)
                raise
            except Exception as error:
                raise self._lost_for(error) from error
        self.statistics.committed(overlay.batches, written, time.perf_counter() - started_s)
        self._reserve.committed(written.size_bytes, written.deletes)

    async def _append(self, body: bytes, kind: Kind = "group") -> None:
        """Append an entry; before it, a mark that was given up, of which nobody knows. Raises StoreError."""
        try:
            end_s = self._end_s() if self._drains else trio.current_time() + GIVE_UP_S
            with trio.CancelScope(deadline=end_s) as self._patience:
                if self._proves and kind != "mark":
                    await self._owner.append(b"", "mark")
                self._proves = kind == "mark"
                began_s = self._boot_s()
                await self._owner.append(body, kind)
            if self._patience.cancelled_caught and self._drains:
                raise _unknown()
            if self._patience.cancelled_caught:
                raise LogUnreachable(
                    f"The log has taken nothing for {GIVE_UP_S:.0f} s; nobody can say whether it has what was sent. "
                    "This process ends, so that its clients find a machine that reaches the log."
                )
        except StoreError as error:
            self._lose(error)
            raise
        self._proves = False
        self._prove(began_s)
        self._begun.set()

    def _prove(self, began_s: float) -> None:
        """This was the owner when an append began."""
        self._proved_s = began_s

    def _begin(self) -> bool:
        """Let what waits be the group that is under way. False if it cannot be encoded; then it has failed."""
        overlay = self._overlay
        try:
            chunk = None
            if overlay.reports:
                chunk = Chunk(self._arrivals.seq + 1, chunk_value(overlay.reports))
            self._body = encoded_group(overlay, chunk)
        except Exception as bug:  # noqa: BLE001 - the committer must survive an invalid batch
            _log.exception("a batch could not be encoded")
            self._fail(StoreBroken(f"A batch could not be encoded: {bug!r}."))
            return False
        self._earlier, self._sent = (overlay,), self._group
        self._overlay, self._group, self._not_empty = Overlay(), Group(), trio.Event()
        return True

    def _enlarged(self) -> bool:
        """Whether the map has been made larger; false if reads are open. Raises StoreLost."""
        try:
            grown = self._map.resize(self._map.larger_size())
        except StoreError as error:
            raise self._lost_for(error) from error
        self.statistics.growths += grown
        return grown

    def _lost_for(self, reason: Exception) -> StoreLost:
        """Fail all that waits: this process cannot go on, as the log has what is not here."""
        lost = StoreLost(f"The log has a group that cannot be written here: {str(reason).rstrip('.')}.")
        self._lose(lost)
        return lost

    def _fail(self, error: StoreError) -> None:
        """Drop all that waits, and what is under way, and complete their groups with `error`, the older one first."""
        sent, earlier, self._sent, self._earlier = self._sent, self._earlier, None, ()
        is_in_log, self._body, self._is_in_log = self._is_in_log, b"", False
        if sent is not None:
            self.epoch += 1
            self.record_changes += 1
            # What the log has was not refused, although another node owns the partition by now.
            self._complete(earlier[0], sent, _unknown() if is_in_log and isinstance(error, Fenced) else error)
        super()._fail(error)


class ReplicatedPartitionedJournal(PartitionedJournal, ReplicatedJournal):
    """The journal of a partition of several that have a log. `copy` is its store, as other processes read it."""

    def __init__(self, *arguments: Any, copy: PartitionCopy, partitions: Partitions, **options: Any) -> None:
        self._copy = copy
        self._is_released = False
        partitions.use_freshness(copy.freshness)
        super().__init__(*arguments, partitions=partitions, **options)

    def _prove(self, began_s: float) -> None:
        super()._prove(began_s)
        if not self._is_released:
            self._copy.proved(began_s)

    async def _confirmed(self, overlay: Overlay) -> None:
        assert self._copy.leases is not None
        if is_read_elsewhere(overlay):
            place = self._owner.chain.place
            while not await self._copy.leases.confirmed(place, PROOF_S):
                await self._append(b"", "mark")

    def _ended_leases(self) -> float:
        assert self._copy.leases is not None
        self._is_released = (
            True  # also while the release is appended: the next owner may have claimed by then
        )
        self._copy.freshness.end(self._copy.number)
        return self._copy.leases.end()


def _unknown() -> LogUnreachable:
    return LogUnreachable("The server has ended; nobody can say whether the log has what was sent.")
