"""The switch from the old stores of a data directory to new ones, when the number of its partitions changes.

Owns the order of the changes of the directory, and completing them after a crash. The new stores are complete, and
on the disk, before it begins (`store_draft.py`): each lies in the directory of its partition, as `store.new/`. The file
`partitions/switch` is written first and removed last. In between each step may be made again, and none of them loses
what a later one needs; so after a stop at any moment all steps are made from the first one on.

0. The old store of the root says that it is one of several partitions, if there will be several: an older program must
   not serve it from now on.
1. Each partition takes its new store: a rename, which removes the old store.
2. Results of jobs are moved to the partition that has their job now.
3. Partitions that are left over are removed.
4. The number of partitions is written.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trunkline.store.blobs import Blobs
from trunkline.store.directory import DATA_FILE, LOCK_FILE, LOST_AND_FOUND, STORE, data_file, sync_directory
from trunkline.store.env import MIB
from trunkline.store.errors import translate
from trunkline.store.file_stores import RESULTS
from trunkline.store.leftovers import NEW_STORE
from trunkline.store.memory_map import MemoryMap
from trunkline.store.migrations import mark_division
from trunkline.store.partitions import (
    COUNT,
    FOLDER,
    FRESH,
    SHARED,
    SWITCH,
    Switch,
    partition_directory,
    write_partition_count,
)

_PIECE_BYTES: Final = 1 << 20


def complete(directory: Path, switch: Switch) -> None:
    """Make all steps that are left. On disk when this returns. Raises StoreError; then it can be called again."""
    try:
        for _ in steps(directory, switch):
            pass
    except OSError as error:
        raise translate(error, f"division of {directory} into {switch.after} partitions") from error


def steps(directory: Path, switch: Switch) -> Iterator[None]:
    """Change the directory, and yield after each change. Raises OSError or StoreError."""
    places = [partition_directory(directory, number) for number in range(switch.after)]
    if switch.after > 1:
        _mark(directory)
        yield
    for place in places:
        yield from _take_store(place)
    for name, before, after in switch.results:
        _move_result(partition_directory(directory, before), partition_directory(directory, after), name)
        yield
    for place in places:
        if (place / RESULTS).is_dir():
            sync_directory(place / RESULTS)
    for number in range(switch.after, switch.before):
        yield from _remove(partition_directory(directory, number))
    folder = directory / FOLDER
    for name in (SHARED, FRESH):
        (folder / name).unlink(missing_ok=True)
    if switch.after > 1:
        write_partition_count(directory, switch.after)
    else:
        (folder / COUNT).unlink(missing_ok=True)
    sync_directory(folder)
    yield
    (folder / SWITCH).unlink()
    sync_directory(folder)
    yield
    if switch.after == 1:
        with contextlib.suppress(OSError):  # an operator may have put something there
            folder.rmdir()


def _mark(directory: Path) -> None:
    size_bytes = data_file(directory).stat().st_size + MIB
    memory_map = MemoryMap(directory / STORE, size_bytes=size_bytes, size_max_bytes=None, read_only=False)
    try:
        mark_division(memory_map)
    finally:
        memory_map.close(0)


def _take_store(place: Path) -> Iterator[None]:
    """Replace the store of a partition by its new one, if that was not done before."""
    new, old = place / NEW_STORE / DATA_FILE, data_file(place)
    if new.exists():
        old.parent.mkdir(mode=0o700, exist_ok=True)
        # Whoever still reads the old store keeps both of its files; what it says of its reads is not about the new one.
        (place / STORE / LOCK_FILE).unlink(missing_ok=True)
        yield
        new.replace(old)
        sync_directory(place / STORE)
        sync_directory(place)
        yield
    if (place / NEW_STORE).exists():
        shutil.rmtree(place / NEW_STORE)
        yield


def _move_result(before: Path, after: Path, name: str) -> None:
    """Move a result. Nothing if that was done before, or if it is gone."""
    source = before / RESULTS / name
    if not source.exists():
        return
    results = Blobs.prepare(after / RESULTS)
    try:
        source.replace(after / RESULTS / name)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        results.take([source])
        source.unlink()


def _remove(place: Path) -> Iterator[None]:
    """Remove the directory of a partition that is left over.

    What belongs to a disk that is mounted there stays: only root may even read it.
    """
    if not place.exists():
        return
    for child in sorted(place.iterdir()):
        if child.name == LOST_AND_FOUND:
            continue
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        else:
            child.unlink()
        yield
    if place.is_symlink():
        place.unlink()
        return
    with contextlib.suppress(OSError):  # it may be where another disk is mounted
        place.rmdir()
