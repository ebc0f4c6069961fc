"""Whether an application that was copied into a partition belongs there.

A move completes the copy (`keys.arrived_key`), and after that the partition where the application was gives it away
(`keys.foreign_key`). Until then the copy is void: the application may be where it was, or have been taken back and
changed, deleted or moved elsewhere since. That it was given away is noted until the note of the arrival is gone.

Before it is complete, and when it goes, a copy is marked as foreign, as what is left of an application that was moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from trunkline.store import codec, keys
from trunkline.store.snapshot import Snapshot


def arrived(part: Snapshot) -> Iterator[tuple[bytes, int]]:
    """Yield the applications that a partition has a note of the arrival of, each with the number of the partition that
    it came from."""
    low = keys.ARRIVED_PREFIX
    for key, value in Snapshot.range(part, keys.META, low, keys.prefix_end(low)):
        yield bytes(key[len(low) :]), codec.decode(value)["from"]


def foreign(part: Snapshot) -> frozenset[bytes]:
    """The applications of which a partition has parts that do not count, and may lack others."""
    low = keys.FOREIGN_PREFIX
    return frozenset(bytes(key[len(low) :]) for key in part.keys(keys.META, low, keys.prefix_end(low)))


def is_given(source: Snapshot, application: bytes, to: int | None) -> bool:
    """Whether the partition that `source` reads has given an application away to partition `to`."""
    marker = Snapshot.get(source, keys.META, keys.foreign_key(application))
    return marker is not None and codec.decode(marker)["partition"] == to


def belongs(
    snapshot_of: Callable[[int], AbstractContextManager[Snapshot]],
    application: bytes,
    record: bytes,
    source: int,
    to: int,
) -> bool:
    """Whether an application belongs in partition `to`, which had a note of its arrival from `source` when it was read.

    `snapshot_of` opens a partition, `record` is the key of the record of the application. Raises StoreError.
    """
    with snapshot_of(source) as there:
        if is_given(there, application, to):
            return True
    with snapshot_of(to) as here:  # it may have been given away, and both notes are gone since
        is_noted = here.get(keys.META, keys.arrived_key(application)) is not None
        return not is_noted and here.get(keys.RECORDS, record) is not None
