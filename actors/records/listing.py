"""Lists of records: cut out of an index where one fits, else by a scan."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from trunkline.actors.query.bounds import Bounds, id_ranges
from trunkline.actors.records.kind import Doc, Kind, part_index
from trunkline.actors.records.page import Match, Page
from trunkline.actors.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.records.records import find, scan, total
from trunkline.actors.records.revision import Found
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

INDEX_SHARE = 3
"""A way along an index is worth it for less than one in so many records: one that is got by its id costs two to
three times one that is next in a scan."""


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
    match: Match | None = None
    part: str | None = None
    near: tuple[Way, ...] = ()

    @classmethod
    def of(
        cls,
        query: Page,
        kind: Kind,
        parent: bytes,
        *,
        match: Match | None = None,
        part: str | None = None,
        near: tuple[Way, ...] = (),
    ) -> Listing:
        """The page that a query string asks for."""
        descending = query.sort_direction == "desc"
        return cls(kind, parent, query.sort_field, descending, query.page, query.per_page, match, part, near)

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


def read_page(reading: Reading, listing: Listing) -> tuple[list[Found], int]:
    """The records of the page, in order, and the count of all that match. Ties are broken by id."""
    snapshot = reading.snapshot
    reading.check_time(is_long=is_long(snapshot, listing))
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


def ids_of_part(snapshot: Snapshot, kind: Kind, parent: bytes, part: str) -> Iterator[bytes]:
    """The ids of all records of one part, by its first index."""
    _, low, high = index_range(kind, parent, part_index(kind.part_indexes[0], part))
    return (bytes(key[-12:]) for key in snapshot.keys(keys.INDEXES, low, high))


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
