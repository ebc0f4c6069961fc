"""The exceptions of the store, each with a sentence for the operator.

Owns the exceptions and the translation of errors of LMDB and of the operating system into them. Callers
outside this package see only these types, never `lmdb.Error` or `OSError`.
"""

from __future__ import annotations

import errno
from typing import Any

import lmdb

_DISK_FULL_CODES = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
_NO_DESCRIPTOR_CODES = frozenset({errno.EMFILE, errno.ENFILE})


class StoreError(Exception):
    """Base class of all errors of the store. The message is a sentence."""


class StoreFull(StoreError):
    """The disk or the quota is full. Nothing of the group was stored; reads still work."""


class StoreBroken(StoreError):
    """The disk or the operating system failed. Nothing of the group was stored."""


class NoDescriptors(StoreBroken):
    """The process or the machine has no descriptor left to open a file with. Nothing was done; try again later."""


class StoreDamaged(StoreBroken):
    """The file of the store is not what was written: the disk, the memory or somebody else has changed it."""


class StoreLost(StoreBroken):
    """This process cannot use the store any more: only another start can. It must end."""


class Overloaded(StoreError):
    """A bound of the store is reached. Nothing was done; try again later."""


class JournalFull(Overloaded):
    """The batches that wait for a commit have reached the journal's bound."""


class ReadQueueFull(Overloaded):
    """The long reads that wait for a thread have reached their bound."""


class StoreUnreachable(Overloaded):
    """The service that keeps the contents of files cannot be reached, or refuses a request."""


class LogUnreachable(Overloaded):
    """The log cannot be reached, or does not answer. Nobody can say whether what was sent to it is stored."""


class CopyOutdated(Overloaded):
    """The copy of a partition that another machine owns may lack what that one has acknowledged. Try again later."""


class Fenced(StoreError):
    """Another node owns the partition. Nothing of the group was stored, and this process cannot store anything more."""


class LogBroken(StoreBroken):
    """The log is not what was written to it: an entry is missing, or another one is in its place."""


class CopyNeeded(LogBroken):
    """What this store lacks is not in the log of its partition: it needs a copy of the store of another node."""


class DirectoryInUse(StoreError):
    """Another process holds this data directory."""


class SecretExposed(StoreError):
    """A file of secrets cannot be trusted: others may read it, or it is damaged."""


class SecretMissing(StoreError):
    """The data directory has data, but not the secret that signs tokens, or the encryption keys."""


class CannotOpen(StoreError):
    """A sealed value cannot be opened: its key is missing, it was changed, or it belongs to another place."""


class FormatUnsupported(StoreError):
    """The data is in a format that this version of the program cannot read."""


class BackupRefused(StoreError):
    """The source or the target of a backup cannot be used. Nothing was written."""


def translate(error: Exception, operation: str) -> StoreError:
    """Return the `StoreError` for `error`, which was raised by `operation` ("commit", "read").

    A full disk, a file at its size limit and an exhausted disk quota are `StoreFull`, descriptors that are used up
    `NoDescriptors`; everything else is `StoreBroken`.
    """
    if isinstance(error, StoreError):
        return error
    reason = str(error).rstrip(".")
    code = getattr(error, "errno", None) or getattr(error, "code", None)
    if code in _DISK_FULL_CODES or isinstance(error, lmdb.DiskError):
        return StoreFull(f"The disk is full, so the {operation} failed: {reason}.")
    if isinstance(error, lmdb.MapFullError):
        return StoreFull(f"The store has no room left, so the {operation} failed: {reason}.")
    failure = NoDescriptors if code in _NO_DESCRIPTOR_CODES else StoreBroken
    return failure(f"The {operation} failed: {reason}.")


def first_of(problems: BaseExceptionGroup[Any]) -> BaseException:
    """The first exception in a group, and in groups within it."""
    found: BaseException = problems
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
