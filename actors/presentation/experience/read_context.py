"""What a read of records of an experience sees: one version of its endpoints and views, and its groups.

What is shown of a record comes from others, too (the names of groups, the layout of a page): each of them is read once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.listing import Listing, read_page
from trunkline.actors.core.records.page import Match, all_of
from trunkline.actors.core.records.read_context import Ids, ReadContext
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.presentation.experience.content import (
    COPIES,
    DEVELOP_NAME,
    all_in,
    as_original,
    copies_range,
    find_in,
    find_version,
)
from trunkline.actors.presentation.experience.kind import GROUP
from trunkline.actors.presentation.experience.stats import counts_of_endpoints

if TYPE_CHECKING:
    from trunkline.actors.core.records.revision import Found


class ExperienceContext(ReadContext):
    """The context of a read. The `version` of the query says which endpoints and views are read."""

    def __init__(self, reading: Reading, ids: Ids, parent: bytes, query: Any = None, now_ms: int = 0) -> None:
        super().__init__(reading, ids, parent, query, now_ms)
        self.version: bytes | None = None
        """The version whose endpoints and views are read; None for `develop`."""
        version = getattr(query, "version", DEVELOP_NAME)
        if version != DEVELOP_NAME:
            found = find_version(reading.snapshot, parent, version)
            self.version = None if found.id == parent else found.id
        self._found: dict[tuple[str, str], Doc | None] = {}
        self._requests: Counter[str] | None = None

    def record(self, kind: Kind, id: str) -> Doc | None:
        """A record of the application, None if there is none."""
        key = kind.name, id
        if key not in self._found:
            found = self.find(kind, bytes.fromhex(id))
            self._found[key] = None if found is None else found.doc
        return self._found[key]

    def find(self, kind: Kind, id: bytes) -> Found | None:
        """A record of the application; for an endpoint or a view that of the version."""
        return find_in(self.snapshot, kind, self.parent, self._version_of(kind), id)

    def all(self, kind: Kind) -> Iterator[Found]:
        """All records of the application; for endpoints and views those of the version."""
        return all_in(self.snapshot, kind, self.parent, self._version_of(kind))

    def page(self, kind: Kind, query: Any, matches: list[Match]) -> tuple[list[Found], int]:
        """The same of a page, and the number of all that match."""
        version = self._version_of(kind)
        if version is None:
            return super().page(kind, query, matches)
        start = f"{version.hex()}/"
        match = all_of([lambda doc: doc["of"].startswith(start), *matches])
        path = (copies_range(kind, self.parent, version),)
        listing = Listing.of(query, COPIES[kind.name], self.parent, match=match, access_paths=(path,))
        found, total = read_page(self.reading, listing)
        return [as_original(each) for each in found], total

    def _version_of(self, kind: Kind) -> bytes | None:
        """The version whose records are read; None for those of `develop`, and for records of all versions."""
        return self.version if kind.name in COPIES else None

    def groups(self, ids: list[str]) -> Iterator[tuple[str, Doc]]:
        """Those of the groups that exist, with their ids."""
        for id in ids:
            doc = self.record(GROUP, id)
            if doc is not None:
                yield id, doc

    def requests(self, duration_ms: int | None) -> Counter[str]:
        """The requests to each endpoint in a time until now, by the id of the endpoint; of none without a time."""
        if self._requests is None:
            start_ms = self.now_ms - (duration_ms or 0)
            self._requests = Counter()
            if duration_ms is not None:
                self._requests = counts_of_endpoints(self.snapshot, self.parent, start_ms, self.now_ms)
        return self._requests

    def ancestors(self, group: Doc) -> list[str]:
        """The ids of the groups above a group, the nearest first."""
        above: list[str] = []
        parent = group.get("parentId")
        while parent is not None and parent not in above:
            doc = self.record(GROUP, parent)
            if doc is None:
                break
            above.append(parent)
            parent = doc.get("parentId")
        return above
