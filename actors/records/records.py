"""Records of every kind: one way to store, index, count, find and list them.

A record is a CBOR map under `kind | parent | id`. With each record go its index entries (one for each
field by which lists are sorted) and the counter of its kind under that parent; all of them change in the
batch that changes the record, so a list, an index and a count never disagree.

Writing is for the actor that owns the record; reading is for anybody with a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from trunkline.actors.records.kind import Doc, Kind, part_index, part_name
from trunkline.actors.records.revision import Found
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.actors.runtime.actor import Actor
    from trunkline.store.snapshot import Snapshot


# Writing, by the owner of the record.


def write(actor: Actor, kind: Kind, parent: bytes, id: bytes, old: Doc | None, new: Doc) -> bytes:
    """Stage a new or changed record with its indexes and its counter; return the bytes that are stored.

    Where a field changes that gave access (`Kind.ends_access`), that access ends with the commit.
    """
    raw = encode(new)
    actor.put(keys.RECORDS, keys.record_key(kind.name, parent, id), raw)
    before = [] if old is None else entries(kind, parent, id, old)
    after = entries(kind, parent, id, new)
    for key in before:
        if key not in after:
            actor.delete(keys.INDEXES, key)
    for key in after:
        if key not in before:
            actor.put(keys.INDEXES, key, b"")
    if old is None:
        actor.add(keys.COUNTS, keys.total_key(kind.name, parent), _counted(kind, new))
        return raw
    if kind.part is not None and old[kind.part] != new[kind.part]:
        moved = {part_name(old[kind.part]): -1, part_name(new[kind.part]): 1}
        actor.add(keys.COUNTS, keys.total_key(kind.name, parent), moved)
    if any(old.get(field) != new.get(field) for field in kind.ends_access):
        actor.after_commit(partial(actor.system.revocations.revoke, id))
    return raw


def erase(actor: Actor, kind: Kind, parent: bytes, id: bytes, old: Doc) -> None:
    """Stage the removal of a record, its index entries and its share of the counter; access through it ends."""
    actor.delete(keys.RECORDS, keys.record_key(kind.name, parent, id))
    for key in entries(kind, parent, id, old):
        actor.delete(keys.INDEXES, key)
    counts = {name: -number for name, number in _counted(kind, old).items()}
    actor.add(keys.COUNTS, keys.total_key(kind.name, parent), counts)
    if kind.ends_access:
        actor.after_commit(partial(actor.system.revocations.revoke, id))


def merged(old: Doc, named: Doc) -> Doc:
    """A document with the fields that a call names: a null takes the field away."""
    return {name: value for name, value in {**old, **named}.items() if value is not None or name not in named}


def later(now_ms: int, old: Doc) -> int:
    """The `lastUpdated` of a changed record: now, and always later than before, also where the clock went back."""
    return max(now_ms, int(old["lastUpdated"]) + 1)


def _counted(kind: Kind, doc: Doc) -> dict[str, int]:
    """What a record adds to the counter of its kind: one of all, and one of its part."""
    return {"n": 1} if kind.part is None else {"n": 1, part_name(doc[kind.part]): 1}


def entries(kind: Kind, parent: bytes, id: bytes, doc: Doc) -> list[bytes]:
    """The index keys of a record, one for each field by which lists of its kind are sorted."""
    indexes = [(field, field) for field in kind.indexes]
    if kind.part is not None:
        indexes += [(part_index(field, doc[kind.part]), field) for field in kind.part_indexes]
    return [
        keys.index_key(kind.name, parent, index, keys.sortable(kind.sort_key(doc, field)), id)
        for index, field in indexes
    ]


def index_keys(kinds: Mapping[str, Kind], key: bytes, doc: Any) -> list[bytes]:
    """The index keys that the record at `key` must have; used to verify a store."""
    name, _, rest = key.partition(b"\x00")
    kind = kinds.get(name.decode("ascii", "replace"))
    if kind is None or not isinstance(doc, dict) or len(rest) != 24:
        return []
    return entries(kind, rest[:12], rest[12:], doc)


# Reading, by anybody.


def find(snapshot: Snapshot, kind: Kind, parent: bytes, id: bytes) -> Found | None:
    """The record, or None."""
    raw = snapshot.get(keys.RECORDS, keys.record_key(kind.name, parent, id))
    return None if raw is None else Found(id, decode(raw), raw)


def total(snapshot: Snapshot, kind: Kind, parent: bytes, part: str | None = None) -> int:
    """How many records of this kind (or of one part of it) lie under `parent`. One read, whatever the number."""
    raw = snapshot.get(keys.COUNTS, keys.total_key(kind.name, parent))
    name = "n" if part is None else part_name(part)
    return 0 if raw is None else int(decode(raw).get(name, 0))


def scan(snapshot: Snapshot, kind: Kind, parent: bytes) -> Iterator[tuple[bytes, Doc]]:
    """Yield `(id, document)` of every record of the kind under `parent`, in the order of ids.

    The document carries its own id in hexadecimal, as the advanced query expects.
    """
    prefix = keys.record_prefix(kind.name, parent)
    for key, raw in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)):
        id = bytes(key[-12:])
        doc = decode(raw)
        doc["id"] = id.hex()
        yield id, doc
