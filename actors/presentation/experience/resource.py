"""The records of an experience as resources: plain ones, whose reads also see other records.

What is shown of a record may come from others (the names of groups, the layout of a page), and a list may be narrowed
by more than a filter and a query. Owns the two reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.listing import Listing, read_page
from trunkline.actors.core.records.page import Match, all_of, envelope, glob_match
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.resource import Resource, missing
from trunkline.actors.core.values.structs import Message
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
    from trunkline.actors.core.records.kind import Kind
    from trunkline.actors.core.records.revision import Found


class GetExperienceRecord(Message, frozen=True):
    """Read one record of an experience."""

    resource: str
    ids: dict[str, Any]
    query: Any


class ShowExperienceRecord(Message, frozen=True):
    """Read a record after it was created or changed."""

    resource: str
    ids: dict[str, Any]


class ListExperienceRecords(Message, frozen=True):
    """Read a page of records of an experience."""

    resource: str
    ids: dict[str, Any]
    query: Any
    now_ms: int


class Scene:
    """What a read sees: the application, and other records of its experience, each of them read once."""

    def __init__(
        self, reading: Reading, application: bytes, version: str = DEVELOP_NAME, now_ms: int = 0
    ) -> None:
        self.now_ms = now_ms
        self.version: bytes | None = None
        """The version whose endpoints and views are read; None for `develop`."""
        if version != DEVELOP_NAME:
            found = find_version(reading.snapshot, application, version)
            self.version = None if found.id == application else found.id
        self.reading = reading
        self.snapshot = reading.snapshot
        self.application = application
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
        version = self.version if kind.name in COPIES else None
        return find_in(self.snapshot, kind, self.application, version, id)

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
                self._requests = counts_of_endpoints(self.snapshot, self.application, start_ms, self.now_ms)
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExperienceResource(Resource):
    """A resource of an experience. `join` returns shown fields that come from other records.

    `narrow` returns further conditions of a list. `derived` are the fields that an advanced query may name and that
    are not stored, each with the function that computes it. `sort` returns the value by which a list is sorted where
    that is not stored, and None otherwise. `around` returns the fields of a list beside its page.
    """

    join: Callable[[Scene, bytes, Doc, Any], Doc] | None = None
    narrow: Callable[[Scene, Any], list[Match]] | None = None
    derived: Mapping[str, Callable[[Scene, Mapping[str, Any]], Any]] = field(default_factory=dict)
    sort: Callable[[Scene, Any], Callable[[Found], Any] | None] | None = None
    around: Callable[[Scene, Any], Doc] | None = None

    def shown(self, scene: Scene, found: Found, query: Any) -> Doc:
        """A record as a caller sees it."""
        shown = self.show({"application": scene.application}, found, query)
        if self.join is not None:
            shown |= self.join(scene, found.id, found.doc, query)
        return shown


def _query_match(resource: ExperienceResource, scene: Scene, asked: object) -> list[Match]:
    """The advanced query of a list as a predicate."""
    assert resource.fields is not None
    compiled = compile_query(asked, resource.fields, at="query")
    needed = [(name, make) for name, make in resource.derived.items() if name in compiled.fields]
    if not needed:
        return [compiled.matches]
    return [lambda doc: compiled.matches({**doc, **{name: make(scene, doc) for name, make in needed}})]


def _of(resources: Mapping[str, Resource], name: str) -> ExperienceResource:
    resource = resources[name]
    assert isinstance(resource, ExperienceResource)
    return resource


def get_record(resources: Mapping[str, Resource], reading: Reading, message: GetExperienceRecord) -> Doc:
    """One record."""
    resource, ids = _of(resources, message.resource), message.ids
    scene = Scene(reading, ids["application"], getattr(message.query, "version", DEVELOP_NAME))
    id = ids[resource.kind.name]
    found = scene.find(resource.kind, id)
    if found is None:
        raise missing(resource.kind, id)
    return resource.shown(scene, found, message.query)


def show_record(resources: Mapping[str, Resource], reading: Reading, message: ShowExperienceRecord) -> Doc:
    """One record, as it is shown if nothing more is asked for."""
    resource = _of(resources, message.resource)
    query = None if resource.choice is None else resource.choice()
    return get_record(
        resources, reading, GetExperienceRecord(resource=message.resource, ids=message.ids, query=query)
    )


def _read_page(scene: Scene, kind: Kind, query: Any, matches: list[Match]) -> tuple[list[Found], int]:
    """The records of a page, and the number of all that match."""
    version, application = scene.version, scene.application
    if version is None or kind.name not in COPIES:
        return read_page(scene.reading, Listing.of(query, kind, application, match=all_of(matches)))
    start = f"{version.hex()}/"
    match = all_of([lambda doc: doc["of"].startswith(start), *matches])
    path = (copies_range(kind, application, version),)
    listing = Listing.of(query, COPIES[kind.name], application, match=match, access_paths=(path,))
    found, total = read_page(scene.reading, listing)
    return [as_original(each) for each in found], total


def _read_sorted(
    scene: Scene, kind: Kind, query: Any, matches: list[Match], value: Callable[[Found], Any]
) -> tuple[list[Found], int]:
    """The same, sorted by a value that is not stored. All records are read."""
    scene.reading.check_time(is_long=True)
    match = all_of(matches)
    found = [
        each
        for each in all_in(scene.snapshot, kind, scene.application, scene.version)
        if match is None or match({**each.doc, "id": each.id.hex()})
    ]
    found.sort(key=lambda each: (value(each), each.id), reverse=query.sort_direction == "desc")
    skip = query.page * query.per_page
    return found[skip : skip + query.per_page], len(found)


def list_records(resources: Mapping[str, Resource], reading: Reading, message: ListExperienceRecords) -> Doc:
    """A page of records."""
    resource, query = _of(resources, message.resource), message.query
    application = message.ids["application"]
    scene = Scene(reading, application, getattr(query, "version", DEVELOP_NAME), message.now_ms)
    asked = getattr(query, "query", None)
    if asked is None:
        matches = glob_match(query, getattr(query, "filter_field", None))
    else:  # it takes the place of the filter
        matches = _query_match(resource, scene, asked)
    if resource.narrow is not None:
        matches += resource.narrow(scene, query)
    value = None if resource.sort is None else resource.sort(scene, query)
    if value is None:
        found, total = _read_page(scene, resource.kind, query, matches)
    else:
        found, total = _read_sorted(scene, resource.kind, query, matches, value)
    items = [resource.shown(scene, each, query) for each in found]
    shown = envelope(resource.plural, items, total, query)
    if resource.around is not None:
        shown |= resource.around(scene, query)
    shown["applicationId"] = application.hex()
    return shown
