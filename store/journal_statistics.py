"""The statistics of the journal: counts and times of its commits."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import ClassVar, Final

from trunkline.store.overlay import Written

_COMMIT_TIMES_S: Final = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
)
_GROUP_SIZES: Final = 20


@dataclass(slots=True)
class Statistics:
    """Statistics of the journal since it was opened. Times in seconds, sizes in bytes."""

    commits: int = 0
    batches: int = 0
    puts: int = 0
    deletes: int = 0
    bytes: int = 0
    """Bytes of the keys and values that were put."""
    failures: int = 0
    growths: int = 0
    refused: int = 0
    """Batches that were refused: the journal was full, or only the reserve of the disk or the quota was left."""
    longest_commit_s: float = 0.0
    total_commit_s: float = 0.0
    commit_times: list[int] = field(default_factory=lambda: [0] * (len(_COMMIT_TIMES_S) + 1))
    """Commits by their time, in classes with the upper bounds `time_bounds_s`; one more class has the longer ones."""
    time_bounds_s: ClassVar[tuple[float, ...]] = _COMMIT_TIMES_S
    group_sizes: list[int] = field(default_factory=lambda: [0] * _GROUP_SIZES)
    """Commits by the size of the group: index n counts groups of 2**n to 2**(n+1) - 1 batches."""

    def committed(self, batches: int, written: Written, took_s: float) -> None:
        """Count one commit."""
        self.commits += 1
        self.batches += batches
        self.puts += written.puts
        self.deletes += written.deletes
        self.bytes += written.size_bytes
        self.commit_times[bisect_left(_COMMIT_TIMES_S, took_s)] += 1
        self.total_commit_s += took_s
        self.longest_commit_s = max(self.longest_commit_s, took_s)
        self.group_sizes[min(batches.bit_length(), _GROUP_SIZES) - 1] += 1
