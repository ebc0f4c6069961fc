"""Until when the stores of this machine show all that was acknowledged: a file in memory that its processes share.

Where the partitions belong to several machines, a machine has copies of those that others own, and its processes read
them like their own. For each partition the process that owns or follows it says here until when its store is fresh
(`leases.py`), on the clock of the machine that goes on while it is suspended. Whoever reads a store looks before it
opens a snapshot. What was said before the machine was started does not count.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from trunkline.store.errors import translate
from trunkline.store.mapped_file import open_allocated

_NUMBERS: Final = 4
"""By partition: when this machine was started, until when the store is fresh, whether this machine owns it, and up to
which place it has the log of another machine."""
_BYTES: Final = 8
_NS: Final = 1_000_000_000


def boot_s() -> float:
    """The clock of the machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_number() -> int:
    """What tells this start of the machine from others."""
    text = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big")


class Freshness:
    """The file `path` for `count` partitions. Raises StoreError if it cannot be opened."""

    def __init__(
        self, path: Path, count: int, clock_s: Callable[[], float] = boot_s, boot: int | None = None
    ) -> None:
        size_bytes = count * _NUMBERS * _BYTES
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            descriptor = open_allocated(path, size_bytes)
            try:
                self._numbers = memoryview(mmap.mmap(descriptor, size_bytes)).cast("q")
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            raise translate(error, f"opening of {path}") from error
        self.clock_s = clock_s
        self.count = count
        self._boot = boot_number() if boot is None else boot

    def say(self, number: int, until_s: float, *, is_own: bool) -> None:
        """The store of a partition is fresh until then. Only the process that owns or follows it says so."""
        at = number * _NUMBERS
        self._numbers[at + 1] = int(until_s * _NS)
        self._numbers[at + 2] = is_own
        self._numbers[at] = self._boot

    def say_place(self, number: int, place: int) -> None:
        """The store of a partition has the log of another machine up to a place."""
        self._numbers[number * _NUMBERS + 3] = place

    def place(self, number: int) -> int:
        """Up to where the store of a partition has the log, since a process follows it."""
        return self._numbers[number * _NUMBERS + 3]

    def end(self, number: int) -> None:
        """The store of a partition is not fresh from now on."""
        self._numbers[number * _NUMBERS] = 0

    def is_fresh(self, number: int) -> bool:
        """Whether a snapshot of a partition that is opened from now on has all that was acknowledged before now."""
        boot, until_ns = self._numbers[number * _NUMBERS : number * _NUMBERS + 2]
        return boot == self._boot and self.clock_s() * _NS < until_ns

    def are_fresh_but(self, own: int | None) -> bool:
        """Whether the stores of all partitions are fresh; the one `own` does not matter."""
        return all(self.is_fresh(number) for number in range(self.count) if number != own)

    def is_own(self, number: int) -> bool:
        """Whether this machine owns a partition."""
        return self.is_fresh(number) and bool(self._numbers[number * _NUMBERS + 2])

    def serves(self) -> bool:
        """Whether this machine owns any partition, so that its processes read the stores of all."""
        return any(self.is_own(number) for number in range(self.count))
