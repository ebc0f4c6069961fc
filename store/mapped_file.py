"""Files that several processes map, and write through the map: all of their blocks are on the disk before that.

A block that is missing is allocated when it is written first. If the disk is full then, the kernel ends the process
(SIGBUS), and nobody is told why.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from trunkline.store.directory import LOCK_FILE
from trunkline.store.errors import StoreFull, translate

_OWNER_ONLY = 0o600
_READER_BYTES = 64
"""What LMDB needs in the file of its locks for each reader; its head takes as much as three."""


def open_allocated(path: Path, size_bytes: int) -> int:
    """Open or create a file of at least `size_bytes`, and return its descriptor. What is new in it is zeros.

    Raises OSError, also if the disk is full.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
    try:
        before_bytes = os.fstat(descriptor).st_size
        if before_bytes < size_bytes:
            _allocate(descriptor, before_bytes, size_bytes)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _allocate(descriptor: int, before_bytes: int, size_bytes: int) -> None:
    try:
        os.posix_fallocate(descriptor, before_bytes, size_bytes - before_bytes)
    except OSError as error:
        if isinstance(translate(error, "allocation"), StoreFull):
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, before_bytes)  # some file systems leave what they could allocate
            raise
        os.ftruncate(descriptor, size_bytes)  # a file system that cannot allocate


def make_lock_file(folder: Path, readers_max: int) -> None:
    """Make the file of LMDB's locks in the folder of a store, if there is none: LMDB would make it without blocks.

    Never called while this process has the store open, whose locks on the file would be lost. Raises OSError if the
    disk is full.
    """
    file = folder / LOCK_FILE
    with contextlib.suppress(OSError):
        if file.stat().st_size > 0:
            return
    try:
        # Of a larger file LMDB would take that more readers are allowed.
        descriptor = open_allocated(file, (readers_max + 2) * _READER_BYTES)
    except OSError as error:
        if isinstance(translate(error, "allocation"), StoreFull):
            raise
        return  # on a disk that is read only LMDB does without it, and it says what else is wrong
    try:
        # What root makes, such as by `trunkline check`, must not keep the user of the server out.
        with contextlib.suppress(OSError):
            owner = folder.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
    finally:
        os.close(descriptor)
