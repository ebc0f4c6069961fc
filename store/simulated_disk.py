"""A disk that completes only some writes a second, simulated on the real one for load tests.

Owns the delay of each commit. Does not own the latency of a single sync: a disk in a cloud has a rate of its own
beside it.

The disk works through the writes of a commit at a fixed rate, while the server may already prepare the next commit,
which is synced only when the disk has done all writes before it. Unused time is not kept for later.

The writes are those of this process, whatever other programs do: a call that writes to a file is one write of the
disk, because LMDB writes each run of adjacent pages, of up to 256 KiB, with one call. The file system adds
`WRITES_OF_A_SYNC`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

WRITES_OF_A_SYNC = 2
"""Writes that a commit causes beside its own: it flushes twice (the pages, then the one that makes them valid), and the
kernel counts a request that only flushes as a write. On ext4, 2.0 to 2.4 writes more than calls were counted for the
commits of a loaded server: a growing file adds the rest."""


def write_calls() -> Callable[[], int]:
    """Reads the number of calls by which this process has written to files so far."""
    file = open("/proc/self/io", "rb", buffering=0)  # noqa: PTH123, SIM115 - open as long as the server runs

    def read() -> int:
        _, found, rest = os.pread(file.fileno(), 1024, 0).partition(b"\nsyscw: ")
        assert found
        return int(rest.partition(b"\n")[0])

    return read


class SimulatedDisk:
    """The delays of commits on a disk of `writes_per_s`, each of them `sync_delay_s` longer.

    `calls` returns the number of write calls so far; it is read before each sync, so what is new is the last commit.
    """

    def __init__(
        self,
        sync_delay_s: float,
        writes_per_s: int,
        calls: Callable[[], int],
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sync_delay_s = sync_delay_s
        self._write_s = 1 / writes_per_s
        self._calls = calls
        self._monotonic_s = monotonic_s
        self._counted: int | None = None
        self._begun_s = 0.0

    def delay_s(self) -> float:
        """The seconds by which the commit that is about to be synced has to wait."""
        calls, now_s = self._calls(), self._monotonic_s()
        free_s = now_s
        if self._counted is not None:
            free_s = self._begun_s + (calls - self._counted + WRITES_OF_A_SYNC) * self._write_s
        self._counted = calls
        delay_s = max(0.0, free_s - now_s) + self._sync_delay_s
        self._begun_s = now_s + delay_s
        return delay_s
