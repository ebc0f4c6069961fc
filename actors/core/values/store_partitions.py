"""The partitions of a data directory, for `http`, which does not import the store."""

from __future__ import annotations

from trunkline.store.partitions import partition_count, partition_directory

__all__ = ["partition_count", "partition_directory"]
