"""The format of the data, and the migrations from older formats.

Owns the format number in META and the steps between formats. A step and its new format number are one
transaction, so a crash leaves either the old format or the new one. `env.py` makes a copy of the store before
the first step.

The format is a number and is not guessed from the data, because a store of a newer program must be refused
before anything in it is read wrongly or, worse, written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import lmdb
import structlog

from trunkline.store import codec, keys
from trunkline.store.checksums import opened, sealed
from trunkline.store.errors import FormatUnsupported, StoreBroken, translate
from trunkline.store.keys import META, RECORDS
from trunkline.store.memory_map import MemoryMap

if TYPE_CHECKING:
    from lmdb import _Database as Handle

FORMAT = 3
"""The format that this program reads and writes."""

FORMAT_KEY: Final = b"format"
_CHECKSUMS_SINCE: Final = 3

Migration = Callable[["lmdb.Transaction[bytes]", Mapping[str, "Handle"]], None]
"""One step: it changes the data, given a write transaction and the handles of the databases."""


def _index_lists(transaction: lmdb.Transaction[bytes], handles: Mapping[str, Handle]) -> None:
    """Format 2: the applications of an owner, access keys and API tokens are listed by indexes.

    Applications of an owner are counted as well. The kinds and fields stand here as they were named in format 2.
    """
    fields = ("name", "creationDate", "lastUpdated")
    root = bytes(keys.ID_BYTES)
    owned: dict[str, int] = {}
    for kind in ("application", "applicationKey", "apiToken"):
        prefix = keys.kind_prefix(kind)
        cursor = transaction.cursor(db=handles[keys.RECORDS])
        found = cursor.set_range(prefix)
        while found and cursor.key().startswith(prefix):
            parent, id = cursor.key()[-2 * keys.ID_BYTES : -keys.ID_BYTES], cursor.key()[-keys.ID_BYTES :]
            doc = codec.decode(cursor.value())
            part = ""
            if kind == "application":
                part = f"@{doc['ownerId']}"
                owned[part] = owned.get(part, 0) + 1
            for field in fields:
                key = keys.index_key(kind, parent, field + part, keys.sortable(doc.get(field)), id)
                transaction.put(key, b"", db=handles[keys.INDEXES])
            found = cursor.next()
    if owned:
        key = keys.total_key("application", root)
        counted = codec.decode(transaction.get(key, db=handles[keys.COUNTS]) or codec.encode({}))
        transaction.put(key, codec.encode({**counted, **owned}), db=handles[keys.COUNTS])


def _add_checksums(transaction: lmdb.Transaction[bytes], handles: Mapping[str, Handle]) -> None:
    """Format 3: every value ends with a checksum of its key and itself."""
    for handle in handles.values():
        cursor = transaction.cursor(db=handle)
        found = cursor.first()
        while found:
            key, value = cursor.item()
            cursor.put(key, sealed(key, value))
            found = cursor.next()


MIGRATIONS: dict[int, Migration] = {1: _index_lists, 2: _add_checksums}
"""The step to the next format, by older format."""

_log = structlog.get_logger("trunkline.store")


def stored_format(memory_map: MemoryMap) -> int | None:
    """The format of the stored data; None if the store is new.

    Raises FormatUnsupported if the format is missing or invalid, StoreBroken if it cannot be read.
    """
    try:
        with memory_map.env.begin() as transaction:
            raw = transaction.get(FORMAT_KEY, db=memory_map.handles[META])
            empty = transaction.stat(memory_map.handles[RECORDS])["entries"] == 0
    except (lmdb.Error, KeyError) as error:
        raise StoreBroken(f"{memory_map.path} holds no store of this program: {error}.") from error
    if raw is None and empty:
        return None
    number = None
    if raw is not None:
        value = opened(FORMAT_KEY, raw)
        with contextlib.suppress(ValueError):
            number = codec.decode(raw if value is None else value)  # before format 3 there were no checksums
    if type(number) is not int:
        raise FormatUnsupported(f"{memory_map.path} does not say in which format it is, so it is left alone.")
    return number


def check_format(number: int, path: object) -> None:
    """Raise FormatUnsupported if this format cannot be migrated to the current one."""
    if number > FORMAT:
        raise FormatUnsupported(
            f"{path} is in format {number}, this program knows formats up to {FORMAT}. Use a newer program."
        )
    missing = [step for step in range(number, FORMAT) if step not in MIGRATIONS]
    if missing:
        raise FormatUnsupported(
            f"{path} is in format {number}, and this program no longer knows the step from format "
            f"{missing[0]}. Start an older program on it once."
        )


def stamp(memory_map: MemoryMap) -> None:
    """Write the current format number into a new store."""
    _apply(memory_map, lambda *_: None, FORMAT)


def migrate(memory_map: MemoryMap, number: int) -> None:
    """Migrate the store step by step from format `number` to the current one. No read may be open."""
    for step in range(number, FORMAT):
        _log.info("migrating the store", from_format=step, to_format=step + 1)
        _apply(memory_map, MIGRATIONS[step], step + 1)


def _apply(memory_map: MemoryMap, change: Migration, number: int) -> None:
    while True:
        try:
            with memory_map.env.begin(write=True) as transaction:
                change(transaction, memory_map.handles)
                value = codec.encode(number)
                if number >= _CHECKSUMS_SINCE:
                    value = sealed(FORMAT_KEY, value)
                transaction.put(FORMAT_KEY, value, db=memory_map.handles[META])
        except lmdb.MapFullError:
            if not memory_map.resize(memory_map.larger_size()):
                raise StoreBroken("A read is open, so the migration cannot get more room.") from None
        except lmdb.Error as error:
            raise translate(error, f"migration to format {number}") from error
        else:
            return
