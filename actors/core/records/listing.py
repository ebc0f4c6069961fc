"""Pages of records: read from an index if one has the right order, else by a scan."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from trunkline.actors.core.query.bounds import Bounds, id_ranges
from trunkline.actors.core.query.compile import compile_glob, glob_bounds
from trunkline.actors.core.records.kind import Doc, Kind, facet_index
from trunkline.actors.core.records.page import Match, Page
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.records import find, scan, total
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.answer_size import AnswerSize
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

INDEX_SHARE = 3
"""An access path is used if it leads to less than one in this many records: reading a record by its id costs two
to three times as much as reading the next one of a scan."""


class KeyRange(NamedTuple):
    """Keys from `low` (included) to `high` (excluded; None: the end of the database). Each key ends with an id."""

    db: str
    low: bytes
    high: bytes | None


AccessPath = tuple[KeyRange, ...]
"""Ranges of index keys whose ids are those of the records to read."""


class TextFilter(NamedTuple):
    """A filter of a text that has an index: `matches` tests its case-folded form, which the keys in `path` hold.

    `is_all` if the listing is narrowed by nothing else.
    """

    field: str
    path: AccessPath
    matches: Callable[[str], bool]
    is_all: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """A requested page. `match` tests the stored document with its hexadecimal `id`; None accepts all.

    `facet` is a value of `Kind.facet`: only records with it are listed. Each of `access_paths` leads to all records
    that match, and to none twice; if one of them is short, only its records are tested. `text` is a part of `match`
    that is tested on the keys of an index, which takes a fifth of the time of decoding the records.
    """

    kind: Kind
    parent: bytes
    sort_field: str
    descending: bool
    page: int
    per_page: int
    match: Match | None = None
    facet: str | None = None
    access_paths: tuple[AccessPath, ...] = ()
    text: TextFilter | None = None

    @classmethod
    def of(
        cls,
        query: Page,
        kind: Kind,
        parent: bytes,
        *,
        match: Match | None = None,
        facet: str | None = None,
        access_paths: tuple[AccessPath, ...] = (),
        text: TextFilter | None = None,
    ) -> Listing:
        """The page that a query string requests."""
        return cls(
            kind,
            parent,
            query.sort_field,
            query.sort_direction == "desc",
            query.page,
            query.per_page,
            match,
            facet,
            access_paths,
            text,
        )

    @property
    def by_index(self) -> bool:
        """True if the page can be read from an index without reading any other record."""
        if self.match is not None:
            return False
        if self.facet is not None:
            return self.sort_field in self.kind.facet_indexes
        return self.sort_field == "id" or self.sort_field in self.kind.indexes


def is_long(snapshot: Snapshot, listing: Listing) -> bool:
    """True if the page takes too long for the event loop."""
    if listing.facet is not None and not listing.kind.facet_counted:
        # The records of such a facet are counted one by one.
        _, low, high = index_range(
            listing.kind, listing.parent, facet_index(listing.kind.facet_indexes[0], listing.facet)
        )
        most = 20 * SCAN_INLINE_MAX
        if sum(1 for _ in islice(snapshot.keys(keys.INDEXES, low, high), most)) == most:
            return True
    count = total(snapshot, listing.kind, listing.parent, listing.facet)
    if listing.by_index:
        # Only the records of the page are decoded; skipping an index entry costs a twentieth of that.
        skipped = min(listing.page * listing.per_page, count)
        return min(listing.per_page, count) > SCAN_INLINE_MAX or skipped > 20 * SCAN_INLINE_MAX
    return count > SCAN_INLINE_MAX and _shortest_path(snapshot, listing, SCAN_INLINE_MAX + 1) is None


def read_page(reading: Reading, listing: Listing) -> tuple[list[Found], int]:
    """The records of the page, in order, and the number of all that match. Ties are broken by id.

    Raises `PayloadTooLarge` if the records are larger than one answer may be.
    """
    snapshot = reading.snapshot
    reading.check_time(is_long=is_long(snapshot, listing))
    skip = listing.page * listing.per_page
    size = reading.answer_size()
    if listing.by_index:
        count = total(snapshot, listing.kind, listing.parent, listing.facet)
        return _by_index(snapshot, listing, skip, size), count
    if listing.text is not None and listing.text.is_all and listing.sort_field == listing.text.field:
        return _by_text(snapshot, listing, listing.text, skip, size)
    return _by_scan(snapshot, listing, skip, size)


class Union(NamedTuple):
    """The records of several facets, without those in `hidden`, and with those in `added`, which have other facets.

    The records in `hidden` and `added` must exist.
    """

    facets: tuple[str, ...]
    hidden: frozenset[bytes] = frozenset()
    added: frozenset[bytes] = frozenset()


def read_union(reading: Reading, listing: Listing, union: Union) -> tuple[list[Found], int]:
    """As `read_page`, for records of several facets. The facet of the listing must be None.

    A page that is sorted by a facet index is merged from the indexes of the facets.
    """
    snapshot, kind, parent = reading.snapshot, listing.kind, listing.parent
    count = sum(total(snapshot, kind, parent, facet) for facet in union.facets)
    count += len(union.added) - len(union.hidden)
    skip = listing.page * listing.per_page
    by_index = listing.match is None and listing.sort_field in kind.facet_indexes
    inline = min(skip + listing.per_page, count) if by_index else count
    reading.check_time(is_long=inline > SCAN_INLINE_MAX)
    size, field, descending = reading.answer_size(), listing.sort_field, listing.descending
    chosen: Iterator[bytes]
    if by_index:
        added = [
            (keys.sortable(kind.sort_key(doc, field)), id)
            for id, doc in _docs(snapshot, listing, union.added)
        ]
        merged = heapq.merge(
            *(_entries_of_facet(snapshot, listing, facet) for facet in union.facets),
            sorted((value + id for value, id in added), reverse=descending),
            reverse=descending,
        )
        ids = (entry[-12:] for entry in merged)
        chosen = islice((id for id in ids if id not in union.hidden), skip, skip + listing.per_page)
    else:
        members = chain(union.added, *(ids_of_facet(snapshot, kind, parent, facet) for facet in union.facets))
        ranked = [
            (b"" if field == "id" else keys.sortable(kind.sort_key(doc, field)), id)
            for id, doc in _docs(snapshot, listing, (id for id in members if id not in union.hidden))
            if listing.match is None or listing.match(doc)
        ]
        count = len(ranked)
        pick = heapq.nlargest if descending else heapq.nsmallest
        chosen = (id for _, id in pick(skip + listing.per_page, ranked)[skip:])
    found: list[Found] = []
    for id in chosen:
        record = find(snapshot, kind, parent, id)
        if record is not None:
            size.add(len(record.raw))
            found.append(record)
    return found, count


def _entries_of_facet(snapshot: Snapshot, listing: Listing, facet: str) -> Iterator[bytes]:
    """The sortable values, each followed by the id of its record, of the index by the sort field of one facet."""
    index = facet_index(listing.sort_field, facet)
    prefix = keys.index_prefix(listing.kind.name, listing.parent, index)
    found = snapshot.keys(keys.INDEXES, prefix, keys.prefix_end(prefix), reverse=listing.descending)
    return (bytes(key[len(prefix) :]) for key in found)


def _docs(snapshot: Snapshot, listing: Listing, ids: Iterable[bytes]) -> Iterator[tuple[bytes, Doc]]:
    """The documents of records that exist, each with its id."""
    for id in ids:
        found = find(snapshot, listing.kind, listing.parent, id)
        if found is not None:
            yield id, found.doc | {"id": id.hex()}


def _by_index(snapshot: Snapshot, listing: Listing, skip: int, size: AnswerSize) -> list[Found]:
    kind, parent = listing.kind, listing.parent
    if listing.sort_field == "id":
        prefix = keys.record_prefix(kind.name, parent)
        db = keys.RECORDS
    else:
        index = (
            listing.sort_field if listing.facet is None else facet_index(listing.sort_field, listing.facet)
        )
        prefix = keys.index_prefix(kind.name, parent, index)
        db = keys.INDEXES
    found: list[Found] = []
    for key in snapshot.keys(db, prefix, keys.prefix_end(prefix), reverse=listing.descending, skip=skip):
        record = find(snapshot, kind, parent, bytes(key[-12:]))
        if record is not None:
            size.add(len(record.raw))
            found.append(record)
        if len(found) >= listing.per_page:
            break
    return found


def _by_scan(snapshot: Snapshot, listing: Listing, skip: int, size: AnswerSize) -> tuple[list[Found], int]:
    kind = listing.kind
    ranked = [
        (
            id.hex() if listing.sort_field == "id" else keys.sortable(kind.sort_key(doc, listing.sort_field)),
            id,
        )
        for id, doc in candidates(snapshot, listing)
    ]
    pick = heapq.nlargest if listing.descending else heapq.nsmallest
    chosen = pick(skip + listing.per_page, ranked)[skip:]
    return _records_of(snapshot, listing, (id for _, id in chosen), size), len(ranked)


def _by_text(
    snapshot: Snapshot, listing: Listing, text: TextFilter, skip: int, size: AnswerSize
) -> tuple[list[Found], int]:
    """The page of a listing that is narrowed and sorted by one indexed text: only its own records are read."""
    ids = [*_ids_by_text(snapshot, listing, text)]
    if listing.descending:
        ids.reverse()
    return _records_of(snapshot, listing, ids[skip : skip + listing.per_page], size), len(ids)


def _ids_by_text(snapshot: Snapshot, listing: Listing, text: TextFilter) -> Iterator[bytes]:
    """The ids of the records whose text matches, in the order of its index."""
    value_at = len(keys.index_prefix(listing.kind.name, listing.parent, text.field))
    matches = text.matches
    for db, low, high in text.path:
        for key in snapshot.keys(db, low, high):
            folded = keys.folded_text(bytes(key[value_at : -keys.ID_BYTES]))
            id = bytes(key[-keys.ID_BYTES :])
            if folded is None:  # the key has only the beginning of a long text
                record = find(snapshot, listing.kind, listing.parent, id)
                folded = "" if record is None else str(listing.kind.sort_key(record.doc, text.field) or "")
            if matches(folded):
                yield id


def _records_of(snapshot: Snapshot, listing: Listing, ids: Iterable[bytes], size: AnswerSize) -> list[Found]:
    found: list[Found] = []
    for id in ids:
        record = find(snapshot, listing.kind, listing.parent, id)
        if record is not None:
            size.add(len(record.raw))
            found.append(record)
    return found


def candidates(snapshot: Snapshot, listing: Listing) -> Iterator[tuple[bytes, Doc]]:
    """Yield `(id, document)` of every record that matches the listing, in no particular order."""
    kind, parent, facet, match = listing.kind, listing.parent, listing.facet, listing.match
    most = total(snapshot, kind, parent) // INDEX_SHARE
    path = _shortest_path(snapshot, listing, most)
    some: list[bytes] = []
    if path is None and listing.text is not None:
        some = [*islice(_ids_by_text(snapshot, listing, listing.text), most + 1)]
    if path is not None:
        found = _records_on(snapshot, kind, parent, path)
    elif listing.text is not None and len(some) <= most:
        found = _docs(snapshot, listing, some)
    else:
        found = scan(snapshot, kind, parent)
    for id, doc in found:
        if facet is not None and kind.facet is not None and doc[kind.facet] != facet:
            continue
        if match is None or match(doc):
            yield id, doc


def _shortest_path(snapshot: Snapshot, listing: Listing, most: int) -> AccessPath | None:
    """The access path with the fewest keys; None if all have `most` or more. Reads at most `most` keys of each."""
    kind, parent, facet = listing.kind, listing.parent, listing.facet
    paths = listing.access_paths
    if facet is not None:
        paths = (*paths, (index_range(kind, parent, facet_index(kind.facet_indexes[0], facet)),))
    shortest: AccessPath | None = None
    for path in paths:
        path_keys = (key for db, low, high in path for key in snapshot.keys(db, low, high))
        count = sum(1 for _ in islice(path_keys, most))
        if count < most:
            shortest, most = path, count
    return shortest


def _records_on(
    snapshot: Snapshot, kind: Kind, parent: bytes, path: AccessPath
) -> Iterator[tuple[bytes, Doc]]:
    """`scan` of the records of an access path, in the order of its keys."""
    for db, low, high in path:
        for key in snapshot.keys(db, low, high):
            found = find(snapshot, kind, parent, bytes(key[-12:]))
            if found is not None:
                found.doc["id"] = found.id.hex()
                yield found.id, found.doc


def ids_of_facet(snapshot: Snapshot, kind: Kind, parent: bytes, facet: str) -> Iterator[bytes]:
    """The ids of all records whose facet has this value, in the order of its first index."""
    _, low, high = index_range(kind, parent, facet_index(kind.facet_indexes[0], facet))
    return (bytes(key[-12:]) for key in snapshot.keys(keys.INDEXES, low, high))


def find_access_paths(kind: Kind, parent: bytes, bounds: Mapping[str, Bounds]) -> Iterator[AccessPath]:
    """Yield access paths to all records whose fields are within bounds, one for each field that has an index.

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


def text_filter(
    kind: Kind, parent: bytes, query: Page, field: str | None, *, is_all: bool
) -> TextFilter | None:
    """The `filter` of a list by a text that has an index; None if it has none."""
    if field is None or not query.filter or field not in kind.indexes:
        return None
    bounds = glob_bounds(query.filter)
    paths = [*find_access_paths(kind, parent, {} if bounds is None else {field: bounds})]
    path = paths[0] if paths else (index_range(kind, parent, field),)
    return TextFilter(field, path, compile_glob(query.filter), is_all)


def index_range(
    kind: Kind, parent: bytes, index: str, low: bytes = b"", high: bytes | None = None
) -> KeyRange:
    """The keys of an index from the sortable value `low` to `high` (excluded; None: all that begin with `low`)."""
    prefix = keys.index_prefix(kind.name, parent, index)
    return KeyRange(
        keys.INDEXES, prefix + low, keys.prefix_end(prefix + low) if high is None else prefix + high
    )
