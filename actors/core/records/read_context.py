"""What a read of plain resources sees: the store, the ids of its path, and the time.

Owns the find of one record, the page of a list, and a list that is sorted by a value that is not stored. Does not own
what is shown of a record (`resource.py`). A package whose records are kept in another way (the versions of an
experience) names a subclass in its resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.listing import Listing, read_page
from trunkline.actors.core.records.page import Match, all_of
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.revision import Found

Ids = Mapping[str, bytes]
"""The ids of a path by name: of the parent (`application`, `user`), and of the record under the name of its kind."""


class ReadContext:
    """The context of one read of records of a parent. `query` is that of the call, `now_ms` its time."""

    def __init__(self, reading: Reading, ids: Ids, parent: bytes, query: Any = None, now_ms: int = 0) -> None:
        self.reading = reading
        self.snapshot = reading.snapshot
        self.ids = ids
        self.parent = parent
        self.query = query
        self.now_ms = now_ms

    def find(self, kind: Kind, id: bytes) -> Found | None:
        """A record of the parent, None if there is none."""
        return records.find(self.snapshot, kind, self.parent, id)

    def all(self, kind: Kind) -> Iterator[Found]:
        """All records of the parent, in the order of ids."""
        return records.all_of_kind(self.snapshot, kind, self.parent)

    def page(self, kind: Kind, query: Any, matches: list[Match]) -> tuple[list[Found], int]:
        """The records of a page, and the number of all that match."""
        return read_page(self.reading, Listing.of(query, kind, self.parent, match=all_of(matches)))

    def sorted_page(
        self, kind: Kind, query: Any, matches: list[Match], value: Callable[[Found], Any]
    ) -> tuple[list[Found], int]:
        """The same, sorted by a value that is not stored. All records are read."""
        self.reading.check_time(is_long=True)
        match = all_of(matches)
        found = [each for each in self.all(kind) if match is None or match({**each.doc, "id": each.id.hex()})]
        found.sort(key=lambda each: (value(each), each.id), reverse=query.sort_direction == "desc")
        skip = query.page * query.per_page
        return found[skip : skip + query.per_page], len(found)
