"""What the processes of a server with several partitions tell each other at once: that records have changed, whose
access has ended, and that an application was moved.

A file that all of them have in memory, with a block for each partition, which only its owner writes: how often
records have changed, how many subjects were revoked, how many applications were moved, and the latest of those
subjects. A process looks before it relies on what it remembers, which costs the comparison of a few numbers. Whoever
is told of a change by an answer sees it here, because the owner writes before it answers.

The numbers go on when a process starts again, and its own rise then (`begin`). They mean nothing after a restart of the
machine, and nothing relies on them then.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunkline.store.errors import translate
from trunkline.store.mapped_file import open_allocated

if TYPE_CHECKING:
    from trunkline.store.freshness import Freshness

SUBJECT_BYTES: Final = 12
RING_LENGTH: Final = 4096
"""So many subjects are kept. A process that has missed more takes all access for ended, and looks again."""
_HEAD_NUMBERS: Final = 3
_BLOCK_BYTES: Final = 8 * _HEAD_NUMBERS + RING_LENGTH * SUBJECT_BYTES
assert _BLOCK_BYTES % 8 == 0


class SharedNumbers:
    """The shared numbers, as the owner of partition `own` sees them (None: one that owns none)."""

    def __init__(self, path: Path, own: int | None, count: int) -> None:
        """Open or create the file for `count` partitions. Raises StoreError."""
        try:
            size_bytes = count * _BLOCK_BYTES
            descriptor = open_allocated(path, size_bytes)
            try:
                self._map = mmap.mmap(descriptor, size_bytes)
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            raise translate(error, f"opening of {path}") from error
        numbers = memoryview(self._map).cast("Q")
        starts = [partition * _BLOCK_BYTES // 8 for partition in range(count)]
        self._heads = [numbers[start : start + _HEAD_NUMBERS] for start in starts]
        self._own = own
        self._others = [head for partition, head in enumerate(self._heads) if partition != own]
        self._seen = [head[1] for head in self._others]
        self._freshness: Freshness | None = None
        self._outdated: set[int] = set()
        """The partitions whose stores were not fresh when that was looked at last."""
        self._losses = 0
        """How often one was not fresh any more."""
        self._is_lost = False
        """One is not fresh any more since `revoked` was called."""

    def use_freshness(self, freshness: Freshness) -> None:
        """From now on, what was read from a store that is not fresh any more counts as changed."""
        self._freshness = freshness

    def _look(self) -> None:
        if self._freshness is None:
            return
        for number in range(len(self._heads)):
            if number == self._own:
                continue
            if self._freshness.is_fresh(number):
                self._outdated.discard(number)
            elif number not in self._outdated:
                self._outdated.add(number)
                self._losses += 1
                self._is_lost = True

    def begin(self) -> None:
        """The owner starts. It may have died after a commit and before it told of it: all look again."""
        assert self._own is not None
        head = self._heads[self._own]
        head[0] += 1
        head[1] += RING_LENGTH + 1
        head[2] += 1

    def changes(self) -> int:
        """A number that is another one whenever records of other partitions have changed. It never falls."""
        self._look()
        return sum([head[0] for head in self._others]) + self._losses

    def note_change(self) -> None:
        """Records of this partition have changed, and the change is on disk."""
        assert self._own is not None
        self._heads[self._own][0] += 1

    def moves(self) -> int:
        """A number that is another one whenever an application was moved. It never falls."""
        return sum([head[2] for head in self._heads])

    def note_move(self) -> None:
        """An application was moved from this partition, or to it."""
        assert self._own is not None
        self._heads[self._own][2] += 1

    def revoke(self, subject: bytes) -> None:
        """Tell all processes that access which depends on this subject has ended."""
        assert self._own is not None
        head = self._heads[self._own]
        start = self._own * _BLOCK_BYTES + 8 * _HEAD_NUMBERS + head[1] % RING_LENGTH * SUBJECT_BYTES
        self._map[start : start + SUBJECT_BYTES] = subject[:SUBJECT_BYTES].ljust(SUBJECT_BYTES, b"\x00")
        head[1] += 1

    @property
    def has_revoked(self) -> bool:
        """Whether other processes have revoked subjects since `revoked` was called."""
        self._look()
        return self._is_lost or [head[1] for head in self._others] != self._seen

    def revoked(self) -> Iterator[bytes | None]:
        """Yield the subjects that other processes have revoked since the last call; None where too many are gone, or
        may be unknown."""
        if self._is_lost:
            self._is_lost = False
            yield None
        others = [partition for partition in range(len(self._heads)) if partition != self._own]
        for place, partition in enumerate(others):
            head = self._heads[partition]
            now, seen = head[1], self._seen[place]
            self._seen[place] = now
            ring = partition * _BLOCK_BYTES + 8 * _HEAD_NUMBERS
            subjects = []
            for number in range(max(seen, now - RING_LENGTH), now):
                start = ring + number % RING_LENGTH * SUBJECT_BYTES
                subjects.append(self._map[start : start + SUBJECT_BYTES])
            if head[1] - seen > RING_LENGTH:  # some may have been overwritten while they were read
                yield None
            else:
                yield from subjects
