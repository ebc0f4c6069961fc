"""The contents of files in a backup: those that the records in the copies of the stores name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from trunkline.store.blobs import Blobs
from trunkline.store.directory import CONTENTS
from trunkline.store.errors import StoreBroken
from trunkline.store.object_store import Stored
from trunkline.store.snapshot import Snapshot
from trunkline.store.store_files import snapshot_of_partition

_PIECE_BYTES: Final = 1 << 20

NamedContents = Callable[[Snapshot, Path, int], Iterable[tuple[str, Stored]]]
"""Returns the name, size and hash of each content that the records of a store name.

It is given what the store holds, and of which copy of a data directory it is which partition.
"""


def no_contents(_snapshot: Snapshot, _copy: Path, _partition: int) -> Iterable[tuple[str, Stored]]:
    """For a store whose contents are at another place."""
    return ()


def copy_contents(blobs: Blobs, copy: Path, number: int, contents: NamedContents) -> None:
    """Copy the contents that a store of `copy` names into `copy`: that of the partition with a number.

    Raises StoreBroken for a missing or damaged one.
    """
    copied: Blobs | None = None
    with snapshot_of_partition(copy, number) as snapshot:
        for name, stored in contents(snapshot, copy, number):
            copied = copied or Blobs.prepare(copy / CONTENTS)
            content = blobs.open(name, stored)
            if content is None:
                raise StoreBroken(
                    f"The content {name} is missing; `trunkline check` lists all that are missing or damaged."
                )
            with content, copied.write(name) as draft:
                while piece := content.read(_PIECE_BYTES):
                    draft.write(piece)
                draft.finish()
