"""The counters of the block device under a directory: how much has been written to it since the system started.

Owns finding the device and reading its counters. They belong to the whole device, so they include what all other
programs wrote. A file system without a block device of its own (tmpfs, overlay, network) has no counters.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from trunkline.bench.errors import BenchError

SECTOR_BYTES = 512
"""Bytes: the unit of the kernel's counters, whatever the sectors of the device."""

_WRITES, _SECTORS_WRITTEN, _FLUSHES = 4, 6, 15


class Written(NamedTuple):
    """Completed write requests, bytes, and completed flushes of the cache of the device."""

    writes: int
    bytes: int
    flushes: int

    def since(self, before: Written) -> Written:
        """What was added since ``before``."""
        return Written(*(now - then for now, then in zip(self, before, strict=True)))


class BlockDevice:
    """A block device, by the directory of its counters in sysfs."""

    def __init__(self, directory: Path) -> None:
        self.name = directory.name
        self._stat = directory / "stat"
        # The kernel counts the flushes of a partition with those of the whole disk.
        whole = directory.parent if (directory / "partition").exists() else directory
        self._whole_stat = whole / "stat"

    @classmethod
    def under(cls, path: Path) -> BlockDevice:
        """The device that holds ``path``; raises BenchError, with the reason, if there are no counters for it."""
        number = os.stat(path).st_dev  # noqa: PTH116 - the number of the device, not the file
        directory = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        if not (directory / "stat").exists():
            raise BenchError("the file system of the data has no block device of its own")
        return cls(directory.resolve())

    def read(self) -> Written:
        """The counters now."""
        own, whole = self._stat.read_text().split(), self._whole_stat.read_text().split()
        # Kernels before 5.5 do not count flushes.
        flushes = int(whole[_FLUSHES]) if len(whole) > _FLUSHES else 0
        return Written(int(own[_WRITES]), int(own[_SECTORS_WRITTEN]) * SECTOR_BYTES, flushes)
