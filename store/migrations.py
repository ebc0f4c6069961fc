"""The format of the data, and the migrations from older formats.

Owns the format number in META and the steps between formats. A step and its new format number are one
transaction, so a crash leaves either the old format or the new one. `env.py` makes a copy of the store before
the first step.

The format is a number and is not guessed from the data, because a store of a newer program must be refused
before anything in it is read wrongly or, worse, written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

import lmdb
import structlog

from trunkline.store import codec, keys
from trunkline.store.checksums import opened, sealed
from trunkline.store.errors import FormatUnsupported, SecretMissing, StoreBroken, StoreDamaged, translate
from trunkline.store.keyring import Keyring
from trunkline.store.keys import META, RECORDS
from trunkline.store.memory_map import MemoryMap
from trunkline.store.point_migration import mark_points

FORMAT = 9
"""The format that this program reads and writes."""

FORMAT_KEY: Final = b"format"
KEY_KEY: Final = b"encryptionKey"
"""Here META names the current encryption key, so that a wrong file of keys is found at the start."""

_CHECKSUMS_SINCE: Final = 3
_KEYRING_SINCE: Final = 4

Migration = Callable[["lmdb.Transaction[bytes]", MemoryMap, Keyring], None]
"""One step: it changes the data, given a write transaction, the store and the encryption keys."""


def _index_lists(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap, _keyring: Keyring) -> None:
    """Format 2: the applications of an owner, access keys and API tokens are listed by indexes.

    Applications of an owner are counted as well. The kinds and fields stand here as they were named in format 2.
    """
    fields = ("name", "creationDate", "lastUpdated")
    root = bytes(keys.ID_BYTES)
    owned: dict[str, int] = {}
    for kind in ("application", "applicationKey", "apiToken"):
        prefix = keys.kind_prefix(kind)
        cursor = transaction.cursor(db=memory_map.handles[keys.RECORDS])
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
                transaction.put(key, b"", db=memory_map.handles[keys.INDEXES])
            found = cursor.next()
    if owned:
        key = keys.total_key("application", root)
        counted = codec.decode(transaction.get(key, db=memory_map.handles[keys.COUNTS]) or codec.encode({}))
        transaction.put(key, codec.encode({**counted, **owned}), db=memory_map.handles[keys.COUNTS])


def _add_checksums(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap, _keyring: Keyring) -> None:
    """Format 3: every value ends with a checksum of its key and itself."""
    for db, handle in memory_map.handles.items():
        if db == keys.ARRIVALS:  # there were none
            continue
        cursor = transaction.cursor(db=handle)
        found = cursor.first()
        while found:
            key, value = cursor.item()
            cursor.put(key, sealed(key, value))
            found = cursor.next()


def _seal_passwords(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap, keyring: Keyring) -> None:
    """Format 4: passwords of webhooks are sealed."""
    kind, field = "webhook", "basicAuthPassword"
    cursor = transaction.cursor(db=memory_map.handles[keys.RECORDS])
    found = cursor.set_range(keys.kind_prefix(kind))
    while found and cursor.key().startswith(keys.kind_prefix(kind)):
        key, stored = cursor.item()
        value = opened(key, stored)
        if value is None:
            raise StoreDamaged(f"records {key.hex()}: it is not what was written, its checksum is wrong.")
        doc = codec.decode(value)
        if field in doc:
            doc[field] = keyring.seal(doc[field], kind=kind, id=key[-keys.ID_BYTES :], field=field)
            cursor.put(key, sealed(key, codec.encode(doc)))
        found = cursor.next()


def _join_arrivals(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap, _keyring: Keyring) -> None:
    """Format 6: what has arrived is in LMDB's unnamed database; before it was in one with a name."""
    try:
        before = memory_map.env.open_db(b"arrivals", txn=transaction, create=False)
    except lmdb.NotFoundError:
        return
    with transaction.cursor(before) as cursor:
        for key, stored in cursor:
            value = opened(key, stored)
            if value is None:
                raise StoreDamaged(
                    f"arrivals {key.hex()}: it is not what was written, its checksum is wrong."
                )
            joined = keys.LATEST_COUNTS + key[1:] if key.startswith(b"\xff") else key
            transaction.put(joined, sealed(joined, value), db=memory_map.handles[keys.ARRIVALS])
    transaction.drop(before)


def _begin_triggers(transaction: lmdb.Transaction[bytes], memory_map: MemoryMap, _keyring: Keyring) -> None:
    """Format 7: there are triggers of workflows. A program that does not know them must not drop them.

    Each workflow gets an empty list of timers: at the start it looks whether it has some.
    """
    none = codec.encode([])
    with transaction.cursor(memory_map.handles[RECORDS]) as cursor:
        found = cursor.set_range(keys.kind_prefix("flow"))
        while found and cursor.key().startswith(keys.kind_prefix("flow")):
            ids = cursor.key()[-2 * keys.ID_BYTES :]
            key = keys.flow_timers_key(ids[: keys.ID_BYTES], ids[keys.ID_BYTES :])
            transaction.put(key, sealed(key, none), db=memory_map.handles[META])
            found = cursor.next()


def _begin_answers(_transaction: lmdb.Transaction[bytes], _map: MemoryMap, _keyring: Keyring) -> None:
    """Format 8: there are answers of calls with an Idempotency-Key. A program that does not know them repeats calls."""


def _begin_frames(_transaction: lmdb.Transaction[bytes], _map: MemoryMap, _keyring: Keyring) -> None:
    """Format 9: heads of devices name the last frame of the link, and states are stored as columns.

    A program that does not know them can read neither.
    """


MIGRATIONS: dict[int, Migration] = {
    1: _index_lists,
    2: _add_checksums,
    3: _seal_passwords,
    4: mark_points,
    5: _join_arrivals,
    6: _begin_triggers,
    7: _begin_answers,
    8: _begin_frames,
}
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


def needs_keyring(number: int | None) -> bool:
    """Whether a store of this format may hold sealed values."""
    return number is not None and number >= _KEYRING_SINCE


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


def stamp(memory_map: MemoryMap, keyring: Keyring) -> None:
    """Write the current format number into a new store."""
    _apply(memory_map, lambda *_: None, FORMAT, keyring)


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
                written = {FORMAT_KEY: codec.encode(number)}
                if number >= _KEYRING_SINCE:
                    written[KEY_KEY] = codec.encode(keyring.current)
                for key, value in written.items():
                    stored = sealed(key, value) if number >= _CHECKSUMS_SINCE else value
                    transaction.put(key, stored, db=memory_map.handles[META])
        except lmdb.MapFullError:
            if not memory_map.resize(memory_map.larger_size()):
                raise StoreBroken("A read is open, so the migration cannot get more room.") from None
        except lmdb.Error as error:
            raise translate(error, f"migration to format {number}") from error
        else:
            return
