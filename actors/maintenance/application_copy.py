"""The copy of an application in another store: making it the same as the original, as often as wanted.

Owns what is compared, and the batches that make the copy the same. Both stores may be in use: a pass reads a moment of
each for every batch, so what it leaves behind is what has changed meanwhile, and after a pass during which nothing
changed the copy is exact. Does not own the record of the application, unique texts and triggers, which are written when
the copy takes the place of the original (`moves.py`).

Blocks of runs are compared by their keys alone: while a move goes on no block changes (`Flusher.no_compaction`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.maintenance.application_keys import owning, spans, spans_of_record
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.sorted_runs import SortedRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunkline.store.snapshot import Snapshot

BATCH_BYTES: Final = 1 << 20
BATCH_ENTRIES: Final = 20_000
"""Entries that are compared for a batch at most: a read of some ten milliseconds."""

_DEVICES: Final = frozenset({DEVICE.name, DELETED_DEVICE.name})

Entry = tuple[bytes, bytes | None]
"""A key behind the prefix of its run, or as a whole, and its value; None where values are not compared."""


class ApplicationCopy:
    """The copy of `application`. `source` and `target` return what each store holds at a moment.

    `runs` is the number of the run in the target by that in the source.
    """

    def __init__(
        self, application: bytes, source: Callable[[], Snapshot], target: Callable[[], Snapshot]
    ) -> None:
        self.application = application
        self.runs: dict[int, int] = {}
        self.copied_bytes = 0
        """Of all passes until now."""
        self._open = (source, target)
        self._stack = ExitStack()
        self._source: Snapshot
        self._target: Snapshot
        self._batch = Batch()
        self._left = BATCH_ENTRIES

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of a pass. One that is empty has only compared. No snapshot is open in between."""
        self._begin()
        try:
            yield from self._pass()
        finally:
            self._stack.close()
        yield self._batch

    def _pass(self) -> Iterator[Batch]:
        there = dict.fromkeys(owning(self._source, self.application))
        gone = [each for each in owning(self._target, self.application) if each not in there]
        # What a record owns goes before it and comes after it, and blocks of runs come after the head of their device:
        # so that a copy which is given up is found as a whole by its records.
        yield from self._records(gone)
        yield from self._blocks(id for kind, id in gone if kind in _DEVICES)
        for span in spans(self.application):
            yield from self._compared(*span.range)
        yield from self._records(there)
        yield from self._blocks(id for kind, id in there if kind in _DEVICES)

    def _records(self, owners: Iterable[tuple[str, bytes]]) -> Iterator[Batch]:
        for kind, id in owners:
            for span in spans_of_record(self.application, kind, id):
                yield from self._compared(*span.range)

    def _blocks(self, of: Iterable[bytes]) -> Iterator[Batch]:
        for device in of:
            for before, after in self.runs.items():
                yield from self._compared_blocks(device, before, after)

    # Batches.

    def _begin(self) -> None:
        self._stack = ExitStack()
        self._source, self._target = (self._stack.enter_context(each()) for each in self._open)
        self._batch, self._left = Batch(), BATCH_ENTRIES

    def _cut(self) -> Iterator[Batch]:
        """End a batch if it is large enough, or has taken long enough."""
        if self._left <= 0 or self._batch.size_bytes >= BATCH_BYTES:
            self._stack.close()
            yield self._batch
            self._begin()

    # Ranges.

    def _compared(self, db: str, low: bytes, high: bytes | None) -> Iterator[Batch]:
        after: bytes | None = low
        while after is not None:
            there = _entries(self._source.range(db, after, high))
            here = _entries(self._target.range(db, after, high))
            after = self._compare(db, there, here)
            yield from self._cut()

    def _compared_blocks(self, device: bytes, before: int, after: int) -> Iterator[Batch]:
        old, new = keys.run_prefix(before), keys.run_prefix(after)
        low: bytes | None = device
        while low is not None:
            there = self._source.keys(keys.RUNS, old + low, keys.prefix_end(old + device))
            here = self._target.keys(keys.RUNS, new + low, keys.prefix_end(new + device))
            low = self._compare(
                keys.RUNS,
                ((bytes(key[len(old) :]), None) for key in there),
                ((bytes(key[len(new) :]), None) for key in here),
                new,
                lambda key: self._source.get(keys.RUNS, old + key),
            )
            yield from self._cut()

    def _compare(
        self,
        db: str,
        there: Iterator[Entry],
        here: Iterator[Entry],
        prefix: bytes = b"",
        value_of: Callable[[bytes], bytes | None] = lambda _key: None,
    ) -> bytes | None:
        """Put what is there and not here, and delete what is only here. Return the key to go on from, None at the end.

        `value_of` reads the values of entries without one.
        """
        batch, size_bytes = self._batch, 0
        one, other = next(there, None), next(here, None)
        key: bytes | None = None
        while one is not None or other is not None:
            if key is not None and (self._left <= 0 or batch.size_bytes >= BATCH_BYTES):
                self.copied_bytes += size_bytes
                return key + b"\x00"
            self._left -= 1
            if other is None or (one is not None and one[0] <= other[0]):
                assert one is not None
                key = one[0]
                if other is None or other != one:
                    value = value_of(key) if one[1] is None else one[1]
                    if value is not None:
                        batch.put(db, prefix + key, bytes(value))
                        size_bytes += len(prefix) + len(key) + len(value)
                if other is not None and other[0] == key:
                    other = next(here, None)
                one = next(there, None)
            else:
                key = other[0]
                batch.delete(db, prefix + key)
                other = next(here, None)
        self.copied_bytes += size_bytes
        return None


def _entries(found: Iterator[tuple[bytes, bytes]]) -> Iterator[Entry]:
    return ((bytes(key), bytes(value)) for key, value in found)


def paired_runs(
    source: Sequence[SortedRun], target: Sequence[SortedRun], paired: Mapping[int, int]
) -> tuple[dict[int, int], list[SortedRun]]:
    """The number of the run in the target for each run of the source, and the list of runs of the target after that.

    The oldest run of one goes into the oldest of the other, and so on: no device is in both. Those that were `paired`
    before stay so, and what came later goes into new runs, as newer runs override older ones.
    """
    pairs = dict(paired)
    runs = {run.number: run for run in target}
    free = [] if paired else [run.number for run in target]
    newest = max(runs, default=0)
    for run in source:
        number = pairs.get(run.number)
        if number is None:
            if free:
                number = free.pop(0)
            else:
                newest += 1
                number = newest
            pairs[run.number] = number
        now = runs.get(number, SortedRun(number, 0, run.first_ms, run.last_ms))
        runs[number] = now._replace(
            first_ms=min(now.first_ms, run.first_ms), last_ms=max(now.last_ms, run.last_ms)
        )
    return pairs, list(runs.values())
