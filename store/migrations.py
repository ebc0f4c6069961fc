"""The format of the data, and the migrations from older formats.

Owns the format number in META and the steps between formats, and the mark of a store that is one of several
partitions. A step and its new format number are one transaction, so a crash leaves either the old format or the new
one. `env.py` makes a copy of the store before the first step.

The format is a number and is not guessed from the data, because a store of a newer program must be refused
before anything in it is read wrongly or, worse, written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

import lmdb
import structlog

from trunkline.store import codec
from trunkline.store.checksums import opened, sealed
from trunkline.store.errors import (
    FormatUnsupported,
    SecretMissing,
    StoreBroken,
    StoreDamaged,
    StoreError,
)
from trunkline.store.keyring import Keyring
from trunkline.store.keys import META, RECORDS
from trunkline.store.memory_map import MemoryMap

FORMAT = 9
"""The format that this program reads and writes."""

DIVIDED: Final = 1000
"""What is added to the number in a store that is one of several partitions.

A program that knows no partitions would serve the first of them as if it were all. To it this is the number of a newer
format, so it serves, checks and copies nothing. The numbers of formats do not depend on it.
"""

FORMAT_KEY: Final = b"format"
KEY_KEY: Final = b"encryptionKey"
"""Here META names the current encryption key, so that a wrong file of keys is found at the start."""
_POINTS_LEFT: Final = b"pointsLeft"
"""Here META of older formats says that points are still to be moved into runs."""

Migration = Callable[["lmdb.Transaction[bytes]", MemoryMap, Keyring], None]
"""One step: it changes the data, given a write transaction, the store and the encryption keys."""


def _begin_frames(_transaction: lmdb.Transaction[bytes], _map: MemoryMap, _keyring: Keyring) -> None:
    """Format 9: heads of devices name the last frame of the link, and states are stored as columns.

    A program that does not know them can read neither.
    """


MIGRATIONS: dict[int, Migration] = {8: _begin_frames}
"""The step to the next format, by older format."""

_log = structlog.get_logger("trunkline.store")


def stored_format(memory_map: MemoryMap) -> int | None:
    """The format of the stored data, without the mark of partitions; None if the store is new.

    Raises FormatUnsupported if the format is missing or invalid, StoreBroken if it cannot be read.
    """
    number = _stored_number(memory_map)
    return number if number is None or number < DIVIDED else number - DIVIDED


def is_divided(memory_map: MemoryMap) -> bool:
    """Whether the store says that it is one of several partitions. Raises as `stored_format`."""
    number = _stored_number(memory_map)
    return number is not None and number >= DIVIDED


def check_division(memory_map: MemoryMap, count: int, path: object) -> None:
    """Raise StoreBroken if the store at `path` is one of several partitions, and nothing says how many there are."""
    if count == 1 and is_divided(memory_map):
        raise StoreBroken(_alone(path))


def _alone(path: object) -> str:
    return (
        f"{path} is one of several partitions, and the file partitions/count, which says how many, is missing. Copy "
        "the folder partitions from where the data came from, or restore a backup as a whole."
    )


def mark_division(memory_map: MemoryMap) -> None:
    """Make the store say that it is one of several partitions. On disk when this returns. Raises StoreError."""
    number = _stored_number(memory_map)
    if number is None or number >= DIVIDED:
        return
    try:
        with memory_map.env.begin(write=True) as transaction:
            value = sealed(FORMAT_KEY, codec.encode(number + DIVIDED))
            transaction.put(FORMAT_KEY, value, db=memory_map.handles[META])
    except lmdb.Error as error:
        raise memory_map.commit_error(error, 0, f"marking of {memory_map.path} as a partition") from error


def _stored_number(memory_map: MemoryMap) -> int | None:
    try:
        with memory_map.env.begin() as transaction:
            raw = transaction.get(FORMAT_KEY, db=memory_map.handles[META])
            is_empty = transaction.stat(memory_map.handles[RECORDS])["entries"] == 0
            moves = transaction.get(_POINTS_LEFT, db=memory_map.handles[META]) is not None
    except (lmdb.Error, KeyError) as error:
        raise StoreBroken(f"{memory_map.path} holds no store of this program: {error}.") from error
    if raw is None and is_empty:
        return None
    if moves:
        raise FormatUnsupported(
            f"{memory_map.path} has points that an older program began to move. Start that program on it once."
        )
    value = None if raw is None else opened(FORMAT_KEY, raw)
    number = None
    if value is not None:
        with contextlib.suppress(ValueError):
            number = codec.decode(value)
    if type(number) is not int:
        raise FormatUnsupported(f"{memory_map.path} does not say in which format it is, so it is left alone.")
    return number


def check_format(number: int, path: object) -> None:
    """Raise FormatUnsupported if this format cannot be migrated to the current one."""
    if number > FORMAT:
        raise FormatUnsupported(other_format(number, path))
    missing = [step for step in range(number, FORMAT) if step not in MIGRATIONS]
    if missing:
        raise FormatUnsupported(
            f"{path} is in format {number}, and this program no longer knows the step from format "
            f"{missing[0]}. Start an older program on it once."
        )


def refuse_to_copy(memory_map: MemoryMap, count: int, path: object) -> None:
    """Raise FormatUnsupported for a store of a newer program, and as `check_division`.

    One that does not say its format is not refused.
    """
    try:
        number = stored_format(memory_map)
    except StoreError:
        return
    if number is not None and number > FORMAT:
        raise FormatUnsupported(other_format(number, path))
    check_division(memory_map, count, path)


def other_format(number: int | None, path: object) -> str:
    """The sentence about a data directory at `path` that is not in our format."""
    if number is None or number < FORMAT:
        return (
            f"The store is in format {number}, this program checks format {FORMAT}. A start of the "
            "server on it migrates an older format."
        )
    return (
        f"{path} is in format {number}, this program knows formats up to {FORMAT}. Use a newer program, or go "
        f"back to what it was before the upgrade: a backup, or its copy backups/format-{FORMAT}."
    )


def check_keyring(memory_map: MemoryMap, keyring: Keyring, path: object) -> None:
    """Raise SecretMissing if the key that the store names is not in `keyring`, which was read from `path`."""
    with memory_map.env.begin() as transaction:
        raw = transaction.get(KEY_KEY, db=memory_map.handles[META])
    if raw is None:
        return
    value = opened(KEY_KEY, raw)
    if value is None:
        raise StoreDamaged(f"{memory_map.path}: the name of its encryption key is damaged.")
    current: bytes = codec.decode(value)
    if current not in keyring.ids:
        raise SecretMissing(
            f"{path} does not hold the encryption key {current.hex()}, with which the stored secrets are sealed. "
            "Copy the file from where the data came from."
        )


def stamp(memory_map: MemoryMap, keyring: Keyring, *, divided: bool = False) -> None:
    """Write the current format number into a new store, which is one of several partitions or not."""
    _apply(memory_map, lambda *_: None, FORMAT + DIVIDED if divided else FORMAT, keyring)


def migrate(memory_map: MemoryMap, number: int, keyring: Keyring) -> None:
    """Migrate the store step by step from format `number` to the current one. No read may be open."""
    for step in range(number, FORMAT):
        _log.info("migrating the store", from_format=step, to_format=step + 1)
        _apply(memory_map, MIGRATIONS[step], step + 1, keyring)


def _apply(memory_map: MemoryMap, change: Migration, number: int, keyring: Keyring) -> None:
    while True:
        try:
            with memory_map.env.begin(write=True) as transaction:
                change(transaction, memory_map, keyring)
                for key, value in ((FORMAT_KEY, number), (KEY_KEY, keyring.current)):
                    transaction.put(key, sealed(key, codec.encode(value)), db=memory_map.handles[META])
        except lmdb.MapFullError:
            if not memory_map.resize(memory_map.larger_size()):
                raise StoreBroken("A read is open, so the migration cannot get more room.") from None
        except lmdb.Error as error:
            raise memory_map.commit_error(error, 0, f"migration to format {number}") from error
        else:
            return
