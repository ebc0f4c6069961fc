"""The rotation of the encryption keys, and the verification of sealed values.

Owns the order of the steps. All stores of the data directory must be open in this process alone, so no server runs on
it: with several partitions, all of them use the same keys.

1. A new key is written before the others into the file of the keys. From now on the server would seal with it.
2. In each store all sealed values are sealed anew with it, a bounded number of records in each commit.
3. The store names the new key as its current one.
4. When that is done in all stores, the other keys are removed from the file: nothing uses them any more.

After a stop at any moment each sealed value can be opened, because the file has the keys of both sides until the end.
The next rotation then finds more than one key, and goes on with step 2 instead of making one more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from trunkline.store import codec, keys
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.errors import CannotOpen, StoreError
from trunkline.store.keyring import MARK, Keyring, key_of, record_place, sealed_values
from trunkline.store.migrations import KEY_KEY
from trunkline.store.snapshot import Snapshot


class Rotation(NamedTuple):
    """What a rotation did: the id of the current key, the values that were sealed anew, and those discarded."""

    key: str
    resealed: int
    discarded: int


def rotate_keys(
    stores: Sequence[Store], path: Path, *, records_per_commit: int, discard: bool = False
) -> Rotation:
    """Rotate the keys of all stores of a data directory, which nothing else uses; `path` is the file of the keys.

    With `discard`, values that no key can open are removed from their records. Raises CannotOpen without it; then all
    keys are kept, and nothing is lost.
    """
    keyring = stores[0].keyring
    if len(keyring.ids) == 1:
        keyring = keyring.with_new_key()
        keyring.write(path)
    resealed = discarded = 0
    for store in stores:
        done = _rotate_in(store, keyring, records_per_commit, discard=discard)
        resealed, discarded = resealed + done[0], discarded + done[1]
    keyring.without_old_keys().write(path)
    return Rotation(keyring.current.hex(), resealed, discarded)


def _rotate_in(store: Store, keyring: Keyring, records_per_commit: int, *, discard: bool) -> tuple[int, int]:
    """Seal the values of one store with the current key, which it names then. Returns as `_reseal`."""
    resealed, discarded, after = 0, 0, b""
    while True:
        with store.snapshot() as snapshot:
            page = list(islice(_records_with_sealed_values(snapshot, after), records_per_commit))
        if not page:
            break
        batch = Batch()
        for key, raw in page:
            document = codec.decode(raw)
            opened, lost = _reseal(keyring, key, document, discard=discard)
            if opened or lost:
                batch.put(keys.RECORDS, key, codec.encode(document))
            resealed, discarded, after = resealed + opened, discarded + lost, key + b"\x00"
        if batch:
            _commit(store, batch)
    batch = Batch()
    batch.put(keys.META, KEY_KEY, codec.encode(keyring.current))
    _commit(store, batch)
    return resealed, discarded


def seal_problems(snapshot: Snapshot, keyring: Keyring) -> Iterator[str]:
    """A sentence for each sealed value that cannot be opened."""
    for key, raw in _records_with_sealed_values(snapshot):
        kind, id = record_place(key)
        for value in sealed_values(codec.decode(raw)):
            try:
                keyring.unseal(value.value, kind=kind, id=id, field=value.field)
            except CannotOpen as reason:
                yield f"{keys.RECORDS} {key.hex()}: the sealed {value.field} cannot be opened: {reason}."


def _records_with_sealed_values(snapshot: Snapshot, lo: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys, from `lo` on, and the bytes of records with the mark of sealed values, without decoding them."""
    for key, raw in snapshot.range(keys.RECORDS, lo, None):
        if MARK in raw and keys.is_record_key(key):
            yield bytes(key), bytes(raw)


def _reseal(keyring: Keyring, key: bytes, document: dict[str, Any], *, discard: bool) -> tuple[int, int]:
    """Seal the values of a document with the current key. Returns how many were sealed, and how many discarded."""
    kind, id = record_place(key)
    resealed = discarded = 0
    for value in list(sealed_values(document)):
        if key_of(value.value) == keyring.current:
            continue
        try:
            opened = keyring.unseal(value.value, kind=kind, id=id, field=value.field)
        except CannotOpen as reason:
            if not discard:
                raise CannotOpen(
                    f"{value.field} of the {kind} {id.hex()} cannot be opened: {reason}. All keys are kept. With "
                    "--discard such values are removed; they must then be set again."
                ) from None
            if isinstance(value.holder, list):
                value.holder[value.key] = None  # the positions of the others belong to their places
            else:
                del value.holder[value.key]
            discarded += 1
        else:
            value.holder[value.key] = keyring.seal(opened, kind=kind, id=id, field=value.field)
            resealed += 1
    return resealed, discarded


def _commit(store: Store, batch: Batch) -> None:
    """Commit a batch; on disk when this returns. Raises StoreError."""
    group = store.journal.submit(batch)
    store.journal.flush()
    if group.error is not None:
        raise group.error
    if not group.done:
        raise StoreError("The store did not commit the sealed values.")
