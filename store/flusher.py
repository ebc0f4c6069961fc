"""The flusher: brings what devices reported from the arrivals into sorted runs, in the background.

Owns when chunks are packed into segments, when a window is written into a run, and how much is done at a time. Does not
own the compaction of runs (`compaction.py`), nor the form of either (`arrivals.py`, `sorted_runs.py`).

All of it is done by batches of the journal, like all other writes: a batch joins the next commit, and after a crash at
any place each point is in a run, in the arrivals, or in both, which reads the same. A step in the event loop takes a
few milliseconds at most, and between steps the loop belongs to others for several times as long, unless the arrivals
grow faster than they are flushed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog
import trio

from trunkline.store import keys
from trunkline.store.arrival_chunks import Chunk, packed
from trunkline.store.arrival_window import Window
from trunkline.store.batch import Batch
from trunkline.store.codec import encode
from trunkline.store.compaction import Compaction, due_group
from trunkline.store.errors import JournalFull, StoreError
from trunkline.store.report_items import Ahead, decoded, head_of, points_of
from trunkline.store.sorted_runs import SortedRun, encoded_blocks, encoded_runs, runs_of

if TYPE_CHECKING:
    from trunkline.store.arrivals import Arrivals
    from trunkline.store.journal import Journal
    from trunkline.store.snapshot import Snapshot

STEP_S: Final = 0.002
"""The processor time of a step in the event loop."""
STEP_BYTES: Final = 256 * 1024
REST_SHARE: Final = 3
"""After a step the event loop belongs to others for so many times as long."""
INLINE_BYTES: Final = 64 * 1024
"""Up to so many bytes are packed in the event loop."""
BACKLOG_WINDOWS: Final = 4
"""With so many windows there is no rest between steps, and they are longer."""
STEP_BEHIND_S: Final = 0.05
"""The longest of these."""
FULL_FLUSH_S: Final = 2.0
"""So soon everything is flushed when the disk has no room: runs take less than segments, and deleted reports none."""
REMOVALS_MAX: Final = 1000
"""With so many removals everything is flushed as well: until then each costs a reader of its device about 10 us."""
REMOVALS_FLUSH_S: Final = 60.0
"""For removals a window is flushed so long after it was begun at the earliest."""
RETRY_S: Final = 1.0
BUSY_S: Final = 0.02
WIPED_KEYS: Final = 1000
"""The keys that a step deletes where all data of a device is removed."""

AdvanceHead = Callable[[Ahead], bytes]
"""Returns the stored form of a head with what came after it."""

_log = structlog.get_logger("trunkline.store")


class FlushedStore(Protocol):
    """The parts of a store that are used here."""

    journal: Journal
    arrivals: Arrivals

    def snapshot(self) -> Snapshot:
        """The committed state of this moment."""
        ...


class Flusher:
    """Use one for a store, and `run` it in a nursery.

    `advance_head` knows the meaning of heads. A window that is not full after `flush_s` seconds is flushed as well.
    """

    def __init__(self, store: FlushedStore, advance_head: AdvanceHead, flush_s: float) -> None:
        self._store = store
        self._flush_s = flush_s
        self._arrivals = store.arrivals
        self._advance_head = advance_head
        self.now_s = time.perf_counter
        """The clock that bounds a step."""
        self._working = trio.Lock()
        self._waiting = trio.CancelScope()
        self._began_s, self._deadline_s = 0.0, 0.0
        """When the open window was begun, and when it is flushed at the latest."""
        self._removals = 0
        self._compaction: Compaction | None = None
        """The one that is going on."""
        self._holds = 0
        self._step_s = STEP_S
        self._failing = False
        self.flushed_rows = 0
        """The points that were written into sorted runs."""
        self.compacted_rows = 0
        """The points that were moved from one run to another."""

    async def run(self) -> None:
        """Pack, flush and compact until cancelled."""
        self._store.journal.on_full = self._flush_soon
        self._store.journal.on_removals = self._count_removals
        window = None
        while True:
            async with self._working:
                await self._flush_closed()
            if window is not self._arrivals.windows[-1]:
                window, self._removals = self._arrivals.windows[-1], 0
                self._began_s = trio.current_time()
                self._deadline_s = self._began_s + self._flush_s
            with trio.move_on_at(self._deadline_s) as self._waiting:
                await self._arrivals.wait_due()
            if self._waiting.cancelled_caught:
                await self.flush_all()
                window = None  # an empty one stays

    def _flush_soon(self) -> None:
        self._flush_by(trio.current_time() + FULL_FLUSH_S)

    def _count_removals(self, count: int) -> None:
        self._removals += count
        if self._removals >= REMOVALS_MAX:
            self._flush_by(max(trio.current_time() + FULL_FLUSH_S, self._began_s + REMOVALS_FLUSH_S))

    def _flush_by(self, deadline_s: float) -> None:
        self._deadline_s = min(self._deadline_s, deadline_s)
        self._waiting.deadline = self._deadline_s

    async def flush_all(self) -> None:
        """Bring all that has arrived into sorted runs. If nothing has, delete what is kept of flushed windows."""
        async with self._working:
            is_idle = not self._arrivals.windows[-1].buffers
            await self._pack(close=True)
            await self._flush_closed()
            if is_idle:
                batch = flushing_batch()
                self._delete_segments(batch, self._arrivals.flushed_seq)
                await self._commit(batch)

    @contextmanager
    def no_compaction(self) -> Iterator[None]:
        """While the body runs no blocks of a run are changed, and no run goes: only new runs come, and devices that are
        wiped go. One step may still be under way when the body begins; `flush_all` waits for it."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    async def change_runs(self, change: Callable[[Sequence[SortedRun]], Sequence[SortedRun]]) -> None:
        """Change the list of runs between two flushes. Raises StoreError, then nothing was changed."""
        async with self._working:
            with self.read() as snapshot:
                runs = change(runs_of(snapshot))
            batch = Batch()
            batch.put(keys.META, keys.RUNS_KEY, encoded_runs(runs))
            await self._store.journal.submit(batch).wait()

    async def _flush_closed(self) -> None:
        if self._arrivals.is_due:
            await self._pack()
        while await self._work():
            pass

    async def _work(self) -> bool:
        """Flush a closed window; if there is none, make a step of a compaction. False if nothing is to be done.

        A compaction may take minutes, so windows that are closed meanwhile come first.
        """
        if len(self._arrivals.windows) > 1:
            await self._flush(self._arrivals.windows[0])
            return True
        return await self._compaction_step()

    # Steps.

    def read(self) -> Snapshot:
        """A snapshot for a step, which must be closed before the step ends."""
        return self._store.snapshot()

    async def finish_step(self, batch: Batch, began_s: float) -> None:
        """Commit a step, and leave the event loop to others."""
        took_s = self.now_s() - began_s
        await self._commit(batch)
        await self._rest(took_s)

    async def _rest(self, took_s: float) -> None:
        """Leave the event loop to others after a step; then pack what has arrived meanwhile, if it is due.

        With a backlog the next step takes as long as the others took: a turn of the loop with large calls is longer
        than a step, so the flusher would fall behind until states are refused.
        """
        is_behind = len(self._arrivals.windows) >= BACKLOG_WINDOWS
        began_s = self.now_s()
        await trio.sleep(0 if is_behind else took_s * REST_SHARE)
        self._step_s = min(max(STEP_S, self.now_s() - began_s), STEP_BEHIND_S) if is_behind else STEP_S
        if self._arrivals.is_due:
            await self._pack()

    def _is_over(self, batch: Batch, began_s: float) -> bool:
        """Whether a step has taken long enough."""
        return batch.size_bytes > STEP_BYTES or self.now_s() - began_s > self._step_s

    async def _commit(self, batch: Batch) -> None:
        """Commit a batch, however often that fails."""
        while batch:
            await trio.lowlevel.checkpoint_if_cancelled()
            try:
                group = self._store.journal.submit(batch)
                with trio.CancelScope(shield=True):  # the memory must not fall behind what is committed
                    await group.wait()
            except JournalFull:
                await trio.sleep(BUSY_S)
            except StoreError as error:
                self._tell_failure(str(error))
                await trio.sleep(RETRY_S)
            else:
                self._failing = False
                return

    # Packing.

    async def _pack(self, *, close: bool = False) -> None:
        """Write all chunks as one segment. If the open window is full, or `close`, the next one begins."""
        arrivals = self._arrivals
        if arrivals.is_full or (close and arrivals.windows[-1].buffers):
            arrivals.close_window()
        chunks = arrivals.unpacked[:]
        if chunks:
            batch = flushing_batch()
            batch.moves_counts = True
            segment = await self._segment(chunks, is_long=arrivals.unpacked_bytes > INLINE_BYTES)
            batch.put(keys.SEGMENTS, keys.arrival_key(chunks[-1].seq), segment)
            for chunk in chunks:
                batch.delete(keys.ARRIVALS, keys.arrival_key(chunk.seq))
            await self._commit(batch)
            arrivals.packed(len(chunks))

    async def _segment(self, chunks: Sequence[Chunk], *, is_long: bool) -> bytes:
        """The chunks as one segment, however often the memory for it is missing.

        What takes long is packed in a thread, unless none can be started.
        """
        while True:
            try:
                if is_long:
                    with suppress(RuntimeError):
                        return await trio.to_thread.run_sync(packed, chunks)
                return packed(chunks)
            except MemoryError:
                self._tell_failure("no memory is left to pack them")
                await trio.sleep(RETRY_S)

    def _tell_failure(self, why: str) -> None:
        if not self._failing:
            self._failing = True
            _log.error("arrivals cannot be flushed", error=why)

    # Flushing.

    async def _flush(self, window: Window) -> None:
        """Write the oldest window into a new run, and delete the segments of the window before it."""
        with self.read() as snapshot:
            before = runs_of(snapshot)
        number = max((run.number for run in before), default=0) + 1
        rows, first_ms, last_ms = 0, keys.TIME_MS_MAX, 0
        batch, began_s = flushing_batch(), self.now_s()
        # Until all of it is written, the run may have points of any time.
        batch.put(
            keys.META, keys.RUNS_KEY, encoded_runs([*before, SortedRun(number, 0, 0, keys.TIME_MS_MAX)])
        )
        for device in sorted(window.buffers):
            found = decoded(bytes(window.buffers[device].data))
            points, is_wiped = points_of(found)
            if is_wiped:
                await self.finish_step(batch, began_s)
                await self._wipe(device, [run.number for run in before])
                batch, began_s = flushing_batch(), self.now_s()
            head = self._head_after(device, found)
            if head is not None:
                batch.put(keys.TIMELINE, keys.head_key(device), head)
            if points is not None and not before:
                points = points.visible()  # nothing is older, so nothing has to be removed
            if points is not None and len(points):
                rows += len(points)
                first_ms, last_ms = min(first_ms, points.first_ms), max(last_ms, points.last_ms)
                for block_ms, block in encoded_blocks(points):
                    batch.put(keys.RUNS, keys.block_key(number, device, block_ms), block)
            # What a window becomes is read by nobody else, so steps are committed together: with many devices a step
            # has few bytes, and a commit changes about ten pages more than it fills.
            if batch.size_bytes > STEP_BYTES:
                await self.finish_step(batch, began_s)
                batch, began_s = flushing_batch(), self.now_s()
            elif self.now_s() - began_s > self._step_s:
                await self._rest(self.now_s() - began_s)
                began_s = self.now_s()
        written = [SortedRun(number, rows, first_ms, last_ms)] if rows else []
        batch.put(keys.META, keys.RUNS_KEY, encoded_runs([*before, *written]))
        batch.put(keys.META, keys.FLUSHED_KEY, encode(window.last))
        self._delete_segments(batch, self._arrivals.flushed_seq)
        await self._commit(batch)
        self._arrivals.flushed(window)
        self.flushed_rows += rows

    def _delete_segments(self, batch: Batch, last_seq: int) -> None:
        """Delete the segments of the commits up to `last_seq`."""
        with self.read() as snapshot:
            for key in snapshot.keys(keys.SEGMENTS, b"", keys.arrival_key(last_seq + 1)):
                batch.delete(keys.SEGMENTS, bytes(key))

    def _head_after(self, device: bytes, found: list[Any]) -> bytes | None:
        """The head of a device after what it reported in a window; None if it has none."""
        head, later, is_found = head_of([list(zip(found[::2], found[1::2], strict=True))])
        if not is_found:
            head = self._store.journal.get(keys.TIMELINE, keys.head_key(device))
        ahead = Ahead.of(head, later)
        return self._advance_head(ahead) if ahead.reports or ahead.link else head

    async def _wipe(self, device: bytes, runs: Sequence[int]) -> None:
        """Delete all data of a device but what has arrived."""
        places = [(keys.RUNS, keys.run_prefix(run) + device) for run in runs]
        for db, prefix in [*places, (keys.TIMELINE, device)]:
            while True:
                batch, began_s = flushing_batch(), self.now_s()
                with self.read() as snapshot:
                    for key in islice(snapshot.keys(db, prefix, keys.prefix_end(prefix)), WIPED_KEYS):
                        batch.delete(db, bytes(key))
                if not batch:
                    break
                await self.finish_step(batch, began_s)

    # Compaction.

    async def _compaction_step(self) -> bool:
        """Bring some points of adjacent runs into the oldest one of them; False if runs are few enough of each size."""
        if self._holds:
            return False
        with self.read() as snapshot:
            runs = runs_of(snapshot)
        batch, began_s = flushing_batch(), self.now_s()
        compaction = self._compaction
        if compaction is None:
            group = due_group(runs)
            if group is None:
                return False
            target, *sources = group
            compaction = self._compaction = Compaction(
                target.number, [run.number for run in sources], is_oldest=target == runs[0]
            )
            whole = SortedRun(
                target.number,
                sum(run.rows for run in group),
                min(run.first_ms for run in group),
                max(run.last_ms for run in group),
            )
            runs = tuple(whole if run == target else run for run in runs)
            batch.put(keys.META, keys.RUNS_KEY, encoded_runs(runs))
        with self.read() as snapshot:
            more = compaction.step(snapshot, batch, partial(self._is_over, batch, began_s))
        if more:
            await self.finish_step(batch, began_s)
            return True
        left = [run for run in runs if run.number not in compaction.sources]
        batch.put(keys.META, keys.RUNS_KEY, encoded_runs(left))
        await self._commit(batch)
        self.compacted_rows += compaction.rows
        self._compaction = None
        return True


def flushing_batch() -> Batch:
    """A batch that flushes what is stored, for which the reserve of a full disk has room."""
    batch = Batch()
    batch.completes = "stored"
    return batch
