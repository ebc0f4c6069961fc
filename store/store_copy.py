"""A copy of the store of another node: how it leaves that node, and how it comes to be the store of this one.

Owns that a copy takes the place of a store only when it is whole, sound and on disk. Does not own how its bytes come.

A process never copies a store that it writes itself (`backup.py`), so a copy is made by a program of its own, which
writes it to its standard output: `python -m trunkline.store.store_copy DIRECTORY`. It is one snapshot, while whose
reading lasts pages that are replaced stay in the file.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

import lmdb

from trunkline.store import pages
from trunkline.store.directory import DATA_FILE, LOCK_FILE, STORE, DataDirectory, data_file, sync_directory
from trunkline.store.errors import FormatUnsupported, StoreDamaged, StoreError, translate
from trunkline.store.migrations import FORMAT, other_format, stored_format
from trunkline.store.store_files import opened_read_only

INCOMING: Final = "incoming"
"""The folder in the data directory of a copy that is not whole yet."""


def copy_command(directory: Path) -> list[str]:
    """The program that writes the store of a data directory to its standard output, also while a server runs."""
    return [sys.executable, "-m", __name__, str(directory)]


def new_file(directory: Path) -> Path:
    """An empty file for a copy of a store; what an earlier copy has left is removed. Raises StoreError."""
    folder = directory / INCOMING
    try:
        shutil.rmtree(folder, ignore_errors=True)
        (folder / STORE).mkdir(mode=0o700, parents=True)
        file = data_file(folder)
        file.touch(mode=0o600)
    except OSError as error:
        raise translate(error, f"writing of {folder}") from error
    return file


def take_copy(directory: Path, common: Path | None = None) -> None:
    """Let the copy in `new_file` be the store of a data directory, or of one partition, that no process writes.

    `common` is the directory of all partitions, if there are several.

    On disk when this returns. Raises StoreDamaged and FormatUnsupported for a copy that is not usable, and StoreError.
    """
    folder = directory / INCOMING
    with DataDirectory.open(directory, common=common):
        problems = pages.inspect(data_file(folder), seconds_max=None).problems
        if problems:
            raise StoreDamaged(f"The copy {data_file(folder)} is damaged: {problems[0]}.")
        with opened_read_only(folder) as memory_map:
            number = stored_format(memory_map)
        if number != FORMAT:
            raise FormatUnsupported(other_format(number, folder))
        try:
            data_file(folder).replace(data_file(directory))
            (directory / STORE / LOCK_FILE).unlink(missing_ok=True)
            sync_directory(directory / STORE)
            shutil.rmtree(folder)
            sync_directory(directory)
        except OSError as error:
            raise translate(error, f"writing of {directory}") from error


def _write_out(directory: Path) -> None:
    os.nice(10)
    try:
        with opened_read_only(directory) as memory_map:
            memory_map.env.copyfd(sys.stdout.fileno())
    except StoreError as error:
        sys.exit(f"trunkline: {error}")
    except (lmdb.Error, OSError) as error:
        sys.exit(f"trunkline: {translate(error, f'copying of {directory / STORE / DATA_FILE}')}")


if __name__ == "__main__":
    _write_out(Path(sys.argv[1]))
