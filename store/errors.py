"""What can go wrong in the store, each with a sentence for the operator.

Owns the exceptions and the translation of what LMDB and the operating system say. Callers outside this room
see only these types: `lmdb.Error` and `OSError` do not leave it.
"""

from __future__ import annotations

import errno

import lmdb

_NO_ROOM = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})


class StoreError(Exception):
    """Base of all errors of the store. The message is a sentence."""


class StoreFull(StoreError):
    """The disk or the quota is full. Nothing of the group was stored; reads go on."""


class StoreBroken(StoreError):
    """The disk or the operating system failed. Nothing of the group was stored."""


class Overloaded(StoreError):
    """A bound of the store is reached. Nothing was done; come back when others have finished."""


class JournalFull(Overloaded):
    """So much waits for a commit that one more batch would pass the journal's bound."""


class ReadQueueFull(Overloaded):
    """So many long reads wait for a thread that one more would pass the bound."""


class DirectoryInUse(StoreError):
    """Another process serves this data directory."""


class SecretExposed(StoreError):
    """The secret of the data directory can not be trusted: others may read it, or it is damaged."""


class FormatUnsupported(StoreError):
    """The data was written by a version of the program that this one can not follow."""


class BackupRefused(StoreError):
    """The target of a backup, or its source, is not fit for one. Nothing was written."""


def translate(error: Exception, doing: str) -> StoreError:
    """Return the store's own error for `error`, which came up while `doing` ("commit", "read").

    A full disk, a file at its size limit and a used-up disk quota are `StoreFull`; all else is `StoreBroken`.
    """
    if isinstance(error, StoreError):
        return error
    said = str(error).rstrip(".")
    code = getattr(error, "errno", None) or getattr(error, "code", None)
    if code in _NO_ROOM or isinstance(error, lmdb.DiskError):
        return StoreFull(f"The disk is full, so the {doing} failed: {said}.")
    if isinstance(error, lmdb.MapFullError):
        return StoreFull(f"The store has no room left, so the {doing} failed: {said}.")
    return StoreBroken(f"The {doing} failed: {said}.")
