"""What a process that has ended left half written, and a start removes.

Owns which of it is removed. Where one process has the data directory, nothing is being written at its start, so all of
it goes. The owners of several partitions write into the same folders, and one of them may start again while the others
go on: then only what nobody has written to for a day goes.
"""

from __future__ import annotations

import contextlib
import glob
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from trunkline.store.directory import SECRET
from trunkline.store.errors import translate
from trunkline.store.partitions import COUNT, FOLDER, PARTITIONS_MAX, SWITCH, partition_directory

NEW_STORE: Final = "store.new"
"""The folder of the new store in the directory of a partition, until a division takes it (`partition_switch.py`)."""
SHARED_LEFT_S: Final = 86_400.0
"""An upload that does not go on ends much sooner."""


def remove_left(paths: Iterable[Path], left_s: float) -> None:
    """Remove the files that were not written to for `left_s` seconds; all of them if it is 0. Raises OSError."""
    now_s = time.time()
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # another process has just finished it
            if not left_s or now_s - path.stat().st_mtime > left_s:
                path.unlink()


def remove_drafts(directory: Path, keys_file: Path) -> None:
    """Remove drafts of private files, which a killed process has left beside them: they may hold old keys.

    Whoever has locked the directory calls it. What may not be removed stays.
    """
    folder = directory / FOLDER
    for path in (directory / SECRET, keys_file, folder / SWITCH, folder / COUNT):
        for draft in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}"):
            with contextlib.suppress(OSError):
                draft.unlink()


def remove_begun_division(directory: Path) -> None:
    """Remove what a division of a data directory has left that ended before its switch.

    Whoever has locked the directory calls it, when no switch is incomplete. Raises StoreError.
    """
    try:
        for number in range(PARTITIONS_MAX):
            place = partition_directory(directory, number) / NEW_STORE
            if place.exists():
                shutil.rmtree(place)
        for draft in (directory / "backups").glob(".partitions-*"):
            shutil.rmtree(draft)
    except OSError as error:
        raise translate(error, f"removal of what a division of {directory} has left") from error
