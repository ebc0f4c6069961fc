"""Records of every kind: one way to store, index, count, find and list them.

A record is a CBOR map under `kind | parent | id`. With each record go its index entries (one for each
field by which lists are sorted) and the counter of its kind under that parent; all of them change in the
batch that changes the record, so a list, an index and a count never disagree.

Writing is for the actor that owns the record; reading is for anybody with a snapshot.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from trunkline.actors.query.bounds import Bounds, id_ranges
from trunkline.actors.values.errors import PreconditionFailed
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.actors.runtime.actor import Actor
    from trunkline.store.snapshot import Snapshot

Doc = dict[str, Any]

SCAN_INLINE_MAX = 256
"""Records that a list may scan inside the event loop: about a millisecond. More go to a worker thread."""

INDEX_SHARE = 3
"""A way along an index is worth it for less than one in so many records: one that is got by its id costs two to
three times one that is next in a scan."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is common to all records of one noun.

    `indexes` are the document fields by which lists are sorted without a scan (`id` needs none).
    `sort_key` turns a document and a field into what is sorted by; the default is the field itself.
    `part` is a field of few values by which lists are narrowed (such as a state): the records of each of its
    values have a count and, for each of `part_indexes`, an index of their own.
    """

    name: str
    noun: str
    indexes: tuple[str, ...] = ("name", "creationDate", "lastUpdated")
    sort_key: Callable[[Doc, str], Any] = lambda doc, field: doc.get(field)
    part: str | None = None
    part_indexes: tuple[str, ...] = ()


class Found(NamedTuple):
    """A record as it was read: `raw` are the stored bytes, of which the entity tag is made."""

    id: bytes
    doc: Doc
    raw: bytes

    @property
    def etag(self) -> str:
        """The entity tag of this revision."""
        return etag_of(self.raw)


class Tagged(NamedTuple):
    """An answer whose entity tag has no place in it: the fields of a row are all its owner's."""

    value: Any
    etag: str


def etag_of(raw: bytes) -> str:
    """A strong entity tag: equal tags mean equal stored bytes."""
    return hashlib.blake2b(raw, digest_size=8).hexdigest()


def check_match(if_match: str | None, raw: bytes) -> None:
    """Raise `PreconditionFailed` where the caller's `If-Match` names another revision than the stored one."""
    if if_match is not None:
        check_tag(if_match, etag_of(raw))


def check_tag(if_match: str, etag: str) -> None:
    """The same for a revision of which the entity tag is known."""
    if if_match.strip() == "*":
        return
    wanted = {tag.strip().removeprefix("W/").strip('"') for tag in if_match.split(",")}
    if etag not in wanted:
        raise PreconditionFailed(
            f"If-Match: the record has changed; its _etag is {etag}. Read it again before you change it."
        )


# Writing, by the owner of the record.


def write(actor: Actor, kind: Kind, parent: bytes, id: bytes, old: Doc | None, new: Doc) -> bytes:
    """Stage a new or changed record with its indexes and its counter; return the bytes that are stored."""
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
    elif kind.part is not None and old[kind.part] != new[kind.part]:
        moved = {part_name(old[kind.part]): -1, part_name(new[kind.part]): 1}
        actor.add(keys.COUNTS, keys.total_key(kind.name, parent), moved)
    return raw


def erase(actor: Actor, kind: Kind, parent: bytes, id: bytes, old: Doc) -> None:
    """Stage the removal of a record, its index entries and its share of the counter."""
    actor.delete(keys.RECORDS, keys.record_key(kind.name, parent, id))
    for key in entries(kind, parent, id, old):
        actor.delete(keys.INDEXES, key)
    counts = {name: -number for name, number in _counted(kind, old).items()}
    actor.add(keys.COUNTS, keys.total_key(kind.name, parent), counts)


def _counted(kind: Kind, doc: Doc) -> dict[str, int]:
    """What a record adds to the counter of its kind: one of all, and one of its part."""
    return {"n": 1} if kind.part is None else {"n": 1, part_name(doc[kind.part]): 1}


def part_name(value: str) -> str:
    """The name of a part's count."""
    return f"@{value}"


def part_index(field: str, value: str) -> str:
    """The name of the index by `field` of those records whose part has this value."""
    return f"{field}@{value}"


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
    """The index keys that the record at `key` must have, for who verifies a store."""
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


class KeyRange(NamedTuple):
    """Keys from `low` to before `high` (None: the end of the database), each of which ends with an id."""

    db: str
    low: bytes
    high: bytes | None


Way = tuple[KeyRange, ...]
"""Ranges of keys that lead to records."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A page that is asked for. `match` sees the stored document with its hexadecimal `id`; None takes all.

    `part` takes only the records of that part. `near` names ways to all that match, none of which leads to any
    of them twice: where one of them is short, only what lies along it is looked at.
    """

    kind: Kind
    parent: bytes
    sort_field: str
    descending: bool
    page: int
    per_page: int
    match: Callable[[Mapping[str, Any]], bool] | None = None
    part: str | None = None
    near: tuple[Way, ...] = ()

    @property
    def by_index(self) -> bool:
        """True where the page can be cut out of an index without looking at any other record."""
        if self.match is not None:
            return False
        if self.part is not None:
            return self.sort_field in self.kind.part_indexes
        return self.sort_field == "id" or self.sort_field in self.kind.indexes


def is_long(snapshot: Snapshot, listing: Listing) -> bool:
    """True where answering would hold the event loop for more than a moment."""
    count = total(snapshot, listing.kind, listing.parent, listing.part)
    if listing.by_index:
        # Only what is on the page is decoded; an entry that is skipped costs a twentieth of that.
        skipped = min(listing.page * listing.per_page, count)
        return min(listing.per_page, count) > SCAN_INLINE_MAX or skipped > 20 * SCAN_INLINE_MAX
    return count > SCAN_INLINE_MAX and _shortest(snapshot, listing, SCAN_INLINE_MAX + 1) is None


def page(snapshot: Snapshot, listing: Listing) -> tuple[list[Found], int]:
    """The records of the page, in order, and the count of all that match. Ties are broken by id."""
    skip = listing.page * listing.per_page
    if listing.by_index:
        count = total(snapshot, listing.kind, listing.parent, listing.part)
        return _by_index(snapshot, listing, skip), count
    return _by_scan(snapshot, listing, skip)


def _by_index(snapshot: Snapshot, listing: Listing, skip: int) -> list[Found]:
    kind, parent = listing.kind, listing.parent
    if listing.sort_field == "id":
        prefix = keys.record_prefix(kind.name, parent)
        db = keys.RECORDS
    else:
        index = listing.sort_field if listing.part is None else part_index(listing.sort_field, listing.part)
        prefix = keys.index_prefix(kind.name, parent, index)
        db = keys.INDEXES
    found: list[Found] = []
    for key in snapshot.keys(db, prefix, keys.prefix_end(prefix), reverse=listing.descending, skip=skip):
        record = find(snapshot, kind, parent, bytes(key[-12:]))
        if record is not None:
            found.append(record)
        if len(found) >= listing.per_page:
            break
    return found


def _by_scan(snapshot: Snapshot, listing: Listing, skip: int) -> tuple[list[Found], int]:
    kind, parent = listing.kind, listing.parent
    ranked = [
        (
            id.hex() if listing.sort_field == "id" else keys.sortable(kind.sort_key(doc, listing.sort_field)),
            id,
        )
        for id, doc in candidates(snapshot, listing)
    ]
    pick = heapq.nlargest if listing.descending else heapq.nsmallest
    chosen = pick(skip + listing.per_page, ranked)[skip:]
    found = [find(snapshot, kind, parent, id) for _, id in chosen]
    return [record for record in found if record is not None], len(ranked)


def candidates(snapshot: Snapshot, listing: Listing) -> Iterator[tuple[bytes, Doc]]:
    """Yield `(id, document)` of every record that the listing takes, in no promised order."""
    kind, parent, part, match = listing.kind, listing.parent, listing.part, listing.match
    way = _shortest(snapshot, listing, total(snapshot, kind, parent) // INDEX_SHARE)
    for id, doc in scan(snapshot, kind, parent) if way is None else _along(snapshot, kind, parent, way):
        if part is not None and kind.part is not None and doc[kind.part] != part:
            continue
        if match is None or match(doc):
            yield id, doc


def _shortest(snapshot: Snapshot, listing: Listing, most: int) -> Way | None:
    """The way with the fewest keys; None where each has `most` or more. Reads that many keys of each at most."""
    kind, parent, part = listing.kind, listing.parent, listing.part
    ways = listing.near
    if part is not None:
        ways = (*ways, (index_range(kind, parent, part_index(kind.part_indexes[0], part)),))
    shortest: Way | None = None
    for way in ways:
        keys_along = (key for db, low, high in way for key in snapshot.keys(db, low, high))
        count = sum(1 for _ in islice(keys_along, most))
        if count < most:
            shortest, most = way, count
    return shortest


def _along(snapshot: Snapshot, kind: Kind, parent: bytes, way: Way) -> Iterator[tuple[bytes, Doc]]:
    """`scan` of the records to which the keys of a way lead, in their order."""
    for db, low, high in way:
        for key in snapshot.keys(db, low, high):
            found = find(snapshot, kind, parent, bytes(key[-12:]))
            if found is not None:
                found.doc["id"] = found.id.hex()
                yield found.id, found.doc


def ways(kind: Kind, parent: bytes, bounds: Mapping[str, Bounds]) -> Iterator[Way]:
    """Yield the ways to all records whose fields lie within bounds, one for each field that has an index.

    The bounds must be those of the values by which lists are sorted (`Kind.sort_key`).
    """
    for name, each in bounds.items():
        if name == "id":
            prefix = keys.record_prefix(kind.name, parent)
            ends = [
                (prefix + low, keys.prefix_end(prefix) if end is None else prefix + end)
                for low, end in id_ranges(each)
            ]
            yield tuple(KeyRange(keys.RECORDS, low, end) for low, end in ends)
        elif name in kind.indexes:
            yield tuple(index_range(kind, parent, name, low, high) for low, high in each.spans)


def index_range(
    kind: Kind, parent: bytes, index: str, low: bytes = b"", high: bytes | None = None
) -> KeyRange:
    """The keys of an index from the sortable value `low` to before `high` (None: all that begin with `low`)."""
    prefix = keys.index_prefix(kind.name, parent, index)
    return KeyRange(
        keys.INDEXES, prefix + low, keys.prefix_end(prefix + low) if high is None else prefix + high
    )


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
