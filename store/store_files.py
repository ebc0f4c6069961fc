"""The file of a store: opened only to read it, and copied as one snapshot."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

import lmdb

from trunkline.store.directory import DATA_FILE, STORE, DataDirectory, data_file, sync_directory
from trunkline.store.errors import BackupRefused, translate
from trunkline.store.manifest import write_manifest
from trunkline.store.memory_map import MemoryMap, opened_here
from trunkline.store.partitions import partition_directory, write_partition_count
from trunkline.store.snapshot import Snapshot

_GROWTH_BYTES: Final = 1 << 30  # room in a reader's map for what a running server adds while we open


def open_read_only(directory: Path) -> MemoryMap:
    """The store in `directory`, which another process may be using. Raises BackupRefused if there is none."""
    file = data_file(directory)
    try:
        size_bytes = file.stat().st_size + _GROWTH_BYTES
    except FileNotFoundError as error:
        raise BackupRefused(f"{directory} holds no store: {error}.") from error
    except OSError as error:
        raise translate(error, f"opening of {file}") from error
    return MemoryMap(directory / STORE, size_bytes=size_bytes, size_max_bytes=None, read_only=True)


@contextmanager
def opened_read_only(directory: Path) -> Iterator[MemoryMap]:
    """The same for a `with` block."""
    memory_map = open_read_only(directory)
    try:
        yield memory_map
    finally:
        memory_map.close(0)


@contextmanager
def held_state(directory: Path) -> Iterator[None]:
    """Keep the pages of the newest commit from being used again by a server that runs."""
    if not DataDirectory.is_held(directory):
        yield
        return
    with lmdb.open(str(directory / STORE), readonly=True, create=False, max_spare_txns=0) as env, env.begin():
        yield


@contextmanager
def snapshot_of_partition(directory: Path, number: int) -> Iterator[Snapshot]:
    """What a partition of a data directory or a backup holds at this moment. This process may have it open already."""
    place = partition_directory(directory, number)
    opened = opened_here((place / STORE).resolve())
    held = opened_read_only(place) if opened is None else nullcontext(opened)
    with held as memory_map, Snapshot(memory_map) as snapshot:
        yield snapshot


def copy_file(memory_map: MemoryMap, directory: Path) -> None:
    """Copy the file of an open store into the new directory `directory`. On disk when this returns.

    This process must not write to it meanwhile. Raises lmdb.Error or OSError.
    """
    (directory / STORE).mkdir(mode=0o700)
    memory_map.env.copy(str(directory / STORE))
    _sync_file(data_file(directory))
    sync_directory(directory / STORE)


def copy_partitions(others: Sequence[MemoryMap], copy: Path) -> None:
    """Copy the stores of further partitions, from the second on, into `copy`, each with a manifest of its own."""
    for number, memory_map in enumerate(others, 1):
        place = partition_directory(copy, number)
        place.mkdir(mode=0o700, parents=True)
        copy_file(memory_map, place)
        write_manifest(place, [f"{STORE}/{DATA_FILE}"])
        sync_directory(place)
    if others:
        write_partition_count(copy, len(others) + 1)
        sync_directory(copy)


def _sync_file(path: Path) -> None:
    path.chmod(0o600)
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
