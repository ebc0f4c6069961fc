"""Records of all kinds: storing, indexing, counting, finding and scanning.

A record is a CBOR map under `kind | parent | id`. Each record has index entries (one for each field by which
lists are sorted) and is counted in the total of its kind under that parent. All of them change in the same batch
as the record, so lists, indexes and counts are always consistent.

Only the actor that owns a record writes it; anybody with a snapshot may read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from trunkline.actors.core.records.kind import Doc, Kind, facet_count, facet_index, value_at
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.source import Source, Values
from trunkline.actors.core.records.unreadable import UNREADABLE
from trunkline.actors.core.values.errors import Invalid, NamesBusy
from trunkline.actors.core.values.ids import ROOT
from trunkline.store import keys
from trunkline.store.arrived_copies import foreign
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.actor import Actor
    from trunkline.store.snapshot import Snapshot


_SHARED_MAX: Final = 1_024
"""Documents that are kept for `find_shared`: a few megabytes."""

_CREDENTIALS: Final = frozenset({"passwordHash", "tokenCutoff"})
"""Fields of `Kind.ends_access` that are changed to end what somebody has."""

# Writing: only for the actor that owns the record.


def write(actor: Actor, kind: Kind, parent: bytes, id: bytes, old: Doc | None, new: Doc) -> bytes:
    """Stage a new or changed record with its index entries and its count; return the stored bytes.

    If a field of `Kind.ends_access` changes, access that depends on the record is revoked after the commit. A change of
    credentials and the status `inactive` are made for that, so a full disk has room for them. Raises `Invalid` if
    another record under `parent` has the text of a field of `Kind.unique`.
    """
    _claim(actor, kind, parent, id, old, new)
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
        actor.add(keys.COUNTS, keys.total_key(kind.name, parent), counted_of(kind, new))
        return raw
    if kind.facet is not None and kind.facet_counted and old[kind.facet] != new[kind.facet]:
        moved = {facet_count(old[kind.facet]): -1, facet_count(new[kind.facet]): 1}
        actor.add(keys.COUNTS, keys.total_key(kind.name, parent), moved)
    changed = {field for field in kind.ends_access if old.get(field) != new.get(field)}
    if changed:
        actor.after_commit(partial(actor.system.revocations.revoke, id))
    if not changed.isdisjoint(_CREDENTIALS) or new.get("status") == "inactive" != old.get("status"):
        actor.writes().completes = "revocation"
    return raw


def erase(actor: Actor, kind: Kind, parent: bytes, id: bytes, old: Doc) -> None:
    """Stage the removal of a record, its index entries and its count.

    If the kind has `ends_access`, access that depends on the record is revoked after the commit.
    """
    actor.delete(keys.RECORDS, keys.record_key(kind.name, parent, id))
    for key in entries(kind, parent, id, old):
        actor.delete(keys.INDEXES, key)
    for key in unique_keys(kind, parent, old).values():
        actor.delete(keys.UNIQUE, key)
    counts = {name: -number for name, number in counted_of(kind, old).items()}
    actor.add(keys.COUNTS, keys.total_key(kind.name, parent), counts)
    if kind.ends_access:
        actor.after_commit(partial(actor.system.revocations.revoke, id))


def apply_patch(old: Doc, named: Doc) -> Doc:
    """The document with the `named` fields changed; None removes a field."""
    return {name: value for name, value in {**old, **named}.items() if value is not None or name not in named}


def next_update_ms(now_ms: int, old: Doc) -> int:
    """The `lastUpdated` of a changed record: now, but always later than before, even if the clock was set back."""
    return max(now_ms, int(old["lastUpdated"]) + 1)


def _claim(actor: Actor, kind: Kind, parent: bytes, id: bytes, old: Doc | None, new: Doc) -> None:
    """Stage the claim of the unique texts of a record. Raises `Invalid` if another record has one of them."""
    before = {} if old is None else unique_keys(kind, parent, old)
    after = unique_keys(kind, parent, new)
    for field, key in after.items():
        if key == before.get(field):
            continue
        if kind.unique_in == "server":
            hold_names(actor)
        taken = actor.system.journal.get(keys.UNIQUE, key)
        if taken is not None and kind.unique_in == "server":
            raise Invalid(f"{field}: {value_at(new, field)} is taken on this server; choose another one.")
        if taken is not None:
            raise Invalid(f"{field}: the {kind.noun} {taken.hex()} has it already; give each its own.")
        actor.put(keys.UNIQUE, key, holder(kind, parent, id))
    for field, key in before.items():
        if key != after.get(field):
            actor.delete(keys.UNIQUE, key)


def hold_names(actor: Actor) -> None:
    """Claim a name that is unique in the server, before it is looked whether it is free. Raises `NamesBusy`."""
    partitions = actor.system.store.partitions
    if partitions is not None and not partitions.hold_names(actor.system.journal.next_group):
        raise NamesBusy("Another process of the server claims a name just now. Try again in a second.")


def holder(kind: Kind, parent: bytes, id: bytes) -> bytes:
    """What is stored for a unique text: the id of its record, after that of its parent if the server has it once."""
    return parent + id if kind.unique_in == "server" else id


def unique_keys(kind: Kind, parent: bytes, doc: Doc) -> dict[str, bytes]:
    """By field of `Kind.unique`: the key at which the record with this text is stored (`holder`)."""
    scope = ROOT if kind.unique_in == "server" else parent
    texts = {field: value_at(doc, field) for field in kind.unique}
    return {
        field: keys.unique_key(kind.name, scope, field, text)
        for field, text in texts.items()
        if text is not None
    }


def unique_problems(kinds: Mapping[str, Kind], snapshot: Snapshot) -> Iterator[str]:
    """Yield a sentence for each record that does not hold its unique texts; used by the verification of a store.

    What is left of an application that was moved to another partition holds none.
    """
    moved = foreign(snapshot)
    for kind in (kind for kind in kinds.values() if kind.unique):
        prefix = keys.kind_prefix(kind.name)
        for key, raw in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            parent, id = bytes(key[-24:-12]), bytes(key[-12:])
            if parent in moved:
                continue
            try:
                held = unique_keys(kind, parent, decode(raw))
            except UNREADABLE:
                continue  # the check of the records reports it
            for field, unique in held.items():
                if snapshot.get(keys.UNIQUE, unique) != holder(kind, parent, id):
                    yield f"records: the {kind.noun} {id.hex()} does not hold its unique {field}"


def counted_of(kind: Kind, doc: Doc) -> dict[str, int]:
    """What a record adds to the counts of its kind: one to the total, and one to the count of its facet."""
    if kind.facet is None or not kind.facet_counted:
        return {"n": 1}
    return {"n": 1, facet_count(doc[kind.facet]): 1}


def entries(kind: Kind, parent: bytes, id: bytes, doc: Doc) -> list[bytes]:
    """The index keys of a record, one for each field by which lists of its kind are sorted."""
    indexes = [(field, field) for field in kind.indexes]
    if kind.facet is not None:
        indexes += [(facet_index(field, doc[kind.facet]), field) for field in kind.facet_indexes]
    return [
        keys.index_key(kind.name, parent, index, keys.sortable(kind.sort_key(doc, field)), id)
        for index, field in indexes
    ]


def index_keys(kinds: Mapping[str, Kind], key: bytes, doc: Any) -> list[bytes]:
    """The index keys that the record at `key` must have; used by the verification of a store."""
    name, _, rest = key.partition(b"\x00")
    kind = kinds.get(name.decode("ascii", "replace"))
    if kind is None or not isinstance(doc, dict) or len(rest) != 24:
        return []
    return entries(kind, rest[:12], rest[12:], doc)


# Reading: for anybody with a snapshot.


def find(source: Values, kind: Kind, parent: bytes, id: bytes) -> Found | None:
    """The record, or None."""
    raw = source.get(keys.RECORDS, keys.record_key(kind.name, parent, id))
    return None if raw is None else Found(id, decode(raw), raw)


def find_shared(source: Values, kind: Kind, parent: bytes, id: bytes) -> Found | None:
    """The record, or None, with one document for all who find the same bytes: it must not be changed.

    For records on which the access of many connections depends, which would each keep a document of its own.
    """
    raw = source.get(keys.RECORDS, keys.record_key(kind.name, parent, id))
    return None if raw is None else Found(id, _shared(raw), raw)


@lru_cache(maxsize=_SHARED_MAX)
def _shared(raw: bytes) -> Doc:
    return decode(raw)  # type: ignore[no-any-return]


def doc_of(source: Values, kind: Kind, parent: bytes, id: bytes) -> Doc | None:
    """The document of a record, or None."""
    raw = source.get(keys.RECORDS, keys.record_key(kind.name, parent, id))
    return None if raw is None else decode(raw)


def raw_of(get: Callable[[str, bytes], bytes | None], kind: Kind, parent: bytes, id: bytes) -> bytes | None:
    """What is stored of a record, or None; `get` reads a value of a snapshot, of the journal or of a turn."""
    return get(keys.RECORDS, keys.record_key(kind.name, parent, id))


def exists(source: Values, kind: Kind, parent: bytes, id: bytes) -> bool:
    """Whether there is this record; cheaper than `find`, which decodes it."""
    return source.get(keys.RECORDS, keys.record_key(kind.name, parent, id)) is not None


def stored_bytes(source: Values, kind: Kind, parent: bytes, id: bytes) -> int:
    """The length of what is stored of a record; 0 if there is none."""
    return len(source.get(keys.RECORDS, keys.record_key(kind.name, parent, id)) or b"")


def total(snapshot: Snapshot, kind: Kind, parent: bytes, facet: str | None = None) -> int:
    """The number of records of this kind (with this facet) under `parent`.

    One read, regardless of the number; a facet without a count costs one step for each of its records.
    """
    if facet is not None and not kind.facet_counted:
        index = keys.index_prefix(kind.name, parent, facet_index(kind.facet_indexes[0], facet))
        return sum(1 for _ in snapshot.keys(keys.INDEXES, index, keys.prefix_end(index)))
    raw = snapshot.get(keys.COUNTS, keys.total_key(kind.name, parent))
    name = "n" if facet is None else facet_count(facet)
    return 0 if raw is None else int(decode(raw).get(name, 0))


def counted(source: Values, kind: Kind, parent: bytes, name: str) -> int:
    """A number that the owner of the records counts beside their total."""
    raw = source.get(keys.COUNTS, keys.total_key(kind.name, parent))
    return 0 if raw is None else int(decode(raw).get(name, 0))


def all_of_kind(source: Source, kind: Kind, parent: bytes) -> Iterator[Found]:
    """All records of a kind with this parent, in the order of ids."""
    prefix = keys.record_prefix(kind.name, parent)
    end = keys.prefix_end(prefix)
    assert end is not None
    for key, raw in source.range(keys.RECORDS, prefix, end):
        yield Found(bytes(key[-keys.ID_BYTES :]), decode(raw), bytes(raw))


def scan(snapshot: Snapshot, kind: Kind, parent: bytes) -> Iterator[tuple[bytes, Doc]]:
    """Yield `(id, document)` of every record of the kind under `parent`, in the order of ids.

    The document contains its own id in hexadecimal, as the advanced query expects.
    """
    prefix = keys.record_prefix(kind.name, parent)
    for key, raw in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)):
        id = bytes(key[-12:])
        doc = decode(raw)
        doc["id"] = id.hex()
        yield id, doc
