"""Compaction of runs: adjacent runs of about the same size become one, so that a series is read from few of them.

Owns which runs become one, and the work itself, in steps. Does not own when a step is made (`flusher.py`).

The oldest run of a group stays and takes over the points of the others, device by device. Of its blocks only those are
written again that the points overlap in time, and the last one before them if it is small. A step ends at any place:
what it moved is in the oldest run and no longer in the others, which is one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from trunkline.store import keys
from trunkline.store.columns import Points, concatenated
from trunkline.store.sorted_runs import (
    BLOCK_ROWS,
    Layer,
    SortedRun,
    blocks_back,
    blocks_of,
    encoded_blocks,
    joined,
)

if TYPE_CHECKING:
    from trunkline.store.batch import Batch
    from trunkline.store.snapshot import Snapshot

GROUP_RUNS: Final = 8
"""So many adjacent runs of the same size become one."""
SMALLEST_ROWS: Final = 4096
"""Runs with fewer points have the same size."""


def due_group(runs: Sequence[SortedRun]) -> list[SortedRun] | None:
    """The runs that become one next, the oldest first; None if there are few enough.

    A run counts as at least as large as all newer ones: otherwise a small one between larger ones would stay for ever.
    """
    sizes: list[int] = []
    for run in reversed(runs):
        size, rows = 0, run.rows // SMALLEST_ROWS
        while rows:
            size, rows = size + 1, rows // GROUP_RUNS
        sizes.append(max([size, *sizes[-1:]]))
    sizes.reverse()
    for size in sorted(set(sizes)):
        group = [run for run, of in zip(runs, sizes, strict=True) if of == size]
        if len(group) >= GROUP_RUNS:
            return group
    return None


class Compaction:
    """One compaction: the runs `sources` go into an older one. `rows` counts the points that were moved."""

    def __init__(self, target: int, sources: Sequence[int], *, is_oldest: bool) -> None:
        self._target = target
        self.sources = sources
        self._is_oldest = is_oldest
        self.rows = 0

    def step(self, snapshot: Snapshot, batch: Batch, is_over: Callable[[], bool]) -> bool:
        """Move points until `is_over`; False if none is left."""
        device = b""
        while True:
            found = self._next_device(snapshot, device)
            if found is None:
                return False
            device = found
            if not self._move(snapshot, batch, device, is_over) or is_over():
                return True

    def _next_device(self, snapshot: Snapshot, after: bytes) -> bytes | None:
        """The first device after the one given that has points in one of the sources."""
        found: list[bytes] = []
        for run in self.sources:
            prefix = keys.run_prefix(run)
            low = keys.prefix_end(prefix + after) if after else prefix
            end = keys.prefix_end(prefix)
            if low is not None:
                found += [
                    keys.block_device(bytes(key)) for key in islice(snapshot.keys(keys.RUNS, low, end), 1)
                ]
        return min(found, default=None)

    def _move(self, snapshot: Snapshot, batch: Batch, device: bytes, is_over: Callable[[], bool]) -> bool:
        """Move the points of a device into the oldest run; False if the step ended before all were moved."""
        ever = (0, keys.TIME_MS_MAX)
        sources = [(run, Layer(blocks_of(snapshot, run, device, *ever), edge_ms=0)) for run in self.sources]
        for _, layer in sources:
            layer.advance()
        start_ms = min(layer.edge_ms for _, layer in sources if layer.edge_ms is not None)
        target = Layer(
            blocks_of(
                snapshot, self._target, device, self._first_written(snapshot, device, start_ms), ever[1]
            ),
            edge_ms=0,
        )
        layers = [(self._target, target), *sources]
        waiting: list[Points] = []
        blocks: dict[bytes, bytes] = {}
        is_whole = True
        for rows in joined([layer for _, layer in layers]):
            waiting.append(rows)
            self.rows += len(rows)
            if sum(map(len, waiting)) < BLOCK_ROWS:
                continue
            blocks |= self._blocks(device, waiting)
            waiting = []
            if is_over():
                is_whole = False
                break
        blocks |= self._blocks(device, waiting)
        for run, layer in layers:
            if layer.current is not None:  # the rest of a block of which a part was moved
                blocks |= {
                    keys.block_key(run, device, first_ms): raw
                    for first_ms, raw in encoded_blocks(layer.current)
                }
            for key in layer.loaded:
                batch.delete(keys.RUNS, key)
        for key, raw in blocks.items():
            batch.put(keys.RUNS, key, raw)
        return is_whole

    def _first_written(self, snapshot: Snapshot, device: bytes, start_ms: int) -> int:
        """The time from which blocks of the oldest run are written again."""
        for block in blocks_back(snapshot, self._target, device, 0, start_ms):
            if block.last_ms >= start_ms or block.rows < BLOCK_ROWS // 2:
                return block.first_ms
            break
        return start_ms

    def _blocks(self, device: bytes, parts: Sequence[Points]) -> dict[bytes, bytes]:
        """The blocks of the oldest run that these points become, by their keys."""
        if not parts:
            return {}
        points = concatenated(parts)
        if self._is_oldest:
            points = points.visible()
        return {
            keys.block_key(self._target, device, first_ms): raw for first_ms, raw in encoded_blocks(points)
        }
