"""A plain resource: records that are only listed, created, read, changed and deleted.

A plain resource is defined by one `Resource`, as data except where it needs logic. The body structs define what is
accepted and documented, the view struct defines what is shown. What is stored, the two reads and the five operations
in `http/` follow from these.

How to add one:

1. Write its structs and a `Resource` in `resource.py` of its package, or in a file of its wing (`actors/`).
2. Name it in the `feature.py` of its package (`feature.py` beside this file says what stands there).
3. Say its path, its group and its examples in a file of the same wing of `http/resources/`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.messages import Creator, GetRecord, ListRecords
from trunkline.actors.core.records.page import Match, envelope, glob_match
from trunkline.actors.core.records.read_context import Ids, ReadContext
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.shape import Shape
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.structs import Body, Query, View
from trunkline.actors.core.values.timestamps import parse_iso
from trunkline.store.keyring import Keyring, is_sealed, without_sealed

if TYPE_CHECKING:
    from trunkline.actors.core.query.fields import Fields
    from trunkline.actors.core.records.page import Page
    from trunkline.actors.core.runtime.actor import Actor


@dataclass(slots=True)
class Change:
    """A record that is about to be created (`old` is None) or changed.

    `new` is the document that will be stored; a check may change it. `named` are the fields that the call contains.
    `by` makes the change. `shown_once` is sent to the caller in this answer and stored nowhere. `is_import`: the record
    comes from another application, so what it names may be missing here. `in_batch`: what it names may be made in the
    same batch by others.
    """

    owner: Actor
    id: bytes
    now_ms: int
    old: Doc | None
    new: Doc
    named: Doc
    by: Creator
    shown_once: dict[str, str] = field(default_factory=dict)
    is_import: bool = False
    in_batch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resource:
    """A plain resource. `name` is one record as in the names of operations, `parent` names the id of its parent.

    `within` is the kind of the parent, if that is itself a record of an application (the workflow of a version): reads
    first check that the application has it.

    Fields of the bodies are stored under their JSON names. A field that is null in a body is removed. Times (fields
    that the view shows as `IsoTime`) are given as ISO 8601 text and stored in milliseconds.

    `choice` is the query string that controls how a record is shown, after a creation and a change as well unless
    `only_get_chooses`; the hooks of reads get it, or the query of the page for a list. `hidden` names fields that are
    stored and never shown; `shows_once`: a new record has a secret. `sealed` names fields with secrets by their paths
    (`basicAuthPassword`, `mqttConfig.password`, `config.headers.value` for each item of a list): they are encrypted in
    the record and never shown. An object with such a field is changed field by field, so a secret that a change leaves
    out stays. `fields` are those that an advanced query (`query` of the page) may name; it applies beside the `filter`,
    or instead of it (`query_replaces_filter`). `path_parameter` is what stands for a record in paths, by default
    `<kind>Id`.

    `check` may refuse a change, or change what is stored. `before_delete` may refuse a deletion, or change what refers
    to the record; it gets the owner, the id and the record, also where another parent takes the record. `adopted` gets
    the same of the parent that has taken it. `prepare` runs before the owner is asked and may wait (to
    hash a password).

    What reads show: `derive` returns fields that are computed from the record, `join` those that come from elsewhere
    (other records, a connection), of the record with an id. `around` returns the fields of a list beside its page;
    their types are in `beside`. Which records: `narrow` returns further conditions of a list. `derived` are fields that
    an advanced query may name and that are not stored, each with the function that computes it. `sort` returns the
    value by which a list is sorted where that is not stored, and None otherwise. These hooks get the `context` of the
    read, which also finds the records.
    """

    name: str
    kind: Kind
    post: type[Body]
    patch: type[Body]
    page: type[Page]
    view: type[View]
    parent: str = "application"
    within: Kind | None = None
    fields: Fields | None = None
    choice: type[Query] | None = None
    only_get_chooses: bool = False
    query_replaces_filter: bool = False
    path_parameter: str = ""
    hidden: frozenset[str] = frozenset()
    sealed: frozenset[str] = frozenset()
    shows_once: bool = False
    check: Callable[[Change], None] | None = None
    before_delete: Callable[[Actor, bytes, Doc], None] | None = None
    adopted: Callable[[Actor, bytes, Doc], None] | None = None
    prepare: Callable[[Any], Awaitable[Any]] | None = None
    derive: Callable[[Ids, Doc, Any], Doc] | None = None
    context: type[ReadContext] = ReadContext
    join: Callable[[Any, bytes, Doc, Any], Doc] | None = None
    around: Callable[[Any, Any], Doc] | None = None
    beside: Mapping[str, Any] = field(default_factory=dict)
    narrow: Callable[[Any, Any], list[Match]] | None = None
    derived: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = field(default_factory=dict)
    sort: Callable[[Any, Any], Callable[[Found], Any] | None] | None = None
    shape: Shape = field(init=False)
    defaults: Mapping[str, Any] = field(init=False)
    """The fields of a new record that the body omits: the defaults of its struct."""

    def __post_init__(self) -> None:
        shape = Shape(self.view)
        shown = (self.hidden | self.sealed).intersection(shape.names)
        if shown:
            raise TypeError(f"{self.view.__name__} shows {', '.join(shown)}, which {self.name} hides")
        defaults = {
            each.encode_name: msgspec.to_builtins(each.default)
            for each in msgspec.structs.fields(self.post)
            if each.default not in (msgspec.UNSET, msgspec.NODEFAULT, None)
        }
        object.__setattr__(self, "path_parameter", self.path_parameter or f"{self.kind.name}Id")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "defaults", defaults)

    @property
    def plural(self) -> str:
        """The name of a list of these records, in `_type`."""
        return self.kind.name + "s"

    def stored(self, body: Body) -> Doc:
        """The fields that a body contains, as they are stored; None for those that it removes."""
        doc: Doc = msgspec.to_builtins(body)
        for name in self.shape.times.intersection(doc):
            if doc[name] is not None:
                doc[name] = parse_iso(doc[name], field=name)
        return doc

    def changed(self, old: Doc, named: Doc) -> Doc:
        """The document with the `named` fields changed; None removes a field, also within objects with secrets."""
        for name in {path.partition(".")[0] for path in self.sealed if "." in path}:
            if isinstance(named.get(name), dict) and isinstance(old.get(name), dict):
                named = {**named, name: records.apply_patch(old[name], named[name])}
        return records.apply_patch(old, named)

    def seal(self, keyring: Keyring, id: bytes, doc: Doc) -> None:
        """Encrypt the secrets of a document that are still in clear text."""
        for path in self.sealed:
            _seal(keyring, self.kind.name, id, doc, path.split("."), "")

    def show(self, ids: Ids, found: Found, query: Any) -> Doc:
        """A record as it is shown to a caller."""
        doc, id = found.doc, found.id.hex()
        shown: Doc = {"id": id, f"{self.kind.name}Id": id}
        if "application" in ids:
            shown["applicationId"] = ids["application"].hex()
        shown |= self.shape.of(doc)
        if self.derive is not None:
            shown |= self.derive(ids, doc, query)
        if self.sealed:
            shown = without_sealed(shown)
        shown["_etag"] = found.revision
        shown["_type"] = self.kind.name
        return shown

    def shown(self, context: ReadContext, found: Found, query: Any) -> Doc:
        """A record as it is shown to a caller, with what comes from elsewhere."""
        shown = self.show(context.ids, found, query)
        return shown if self.join is None else shown | self.join(context, found.id, found.doc, query)


class Resources(dict[str, Resource]):
    """The plain resources of the server by name."""


def get_record(resources: Mapping[str, Resource], reading: Reading, message: GetRecord) -> Doc:
    """One record."""
    resource = resources[message.resource]
    kind, id = resource.kind, message.ids[resource.kind.name]
    context = _context(resource, reading, message)
    found = context.find(kind, id)
    if found is None:
        raise missing(kind, id)
    return resource.shown(context, found, message.query)


def list_records(resources: Mapping[str, Resource], reading: Reading, message: ListRecords) -> Doc:
    """A page of records."""
    resource, query = resources[message.resource], message.query
    context = _context(resource, reading, message)
    matches = _matches(resource, context, query)
    value = None if resource.sort is None else resource.sort(context, query)
    if value is None:
        found, total = context.page(resource.kind, query, matches)
    else:
        found, total = context.sorted_page(resource.kind, query, matches, value)
    items = [resource.shown(context, each, query) for each in found]
    shown = envelope(resource.plural, items, total, query)
    if "application" in message.ids:
        shown["applicationId"] = message.ids["application"].hex()
    return shown if resource.around is None else shown | resource.around(context, query)


def _context(resource: Resource, reading: Reading, message: GetRecord | ListRecords) -> ReadContext:
    """The context of a read. Raises `NotFound` if the parent is not a record of the application."""
    within, parent = resource.within, message.ids[resource.parent]
    if within is not None and not records.exists(
        reading.snapshot, within, message.ids["application"], parent
    ):
        raise missing(within, parent)
    return resource.context(reading, message.ids, parent, message.query, message.now_ms)


def _matches(resource: Resource, context: ReadContext, query: Any) -> list[Match]:
    """The conditions of a list."""
    asked = getattr(query, "query", None)
    replaces = asked is not None and resource.query_replaces_filter
    matches = [] if replaces else glob_match(query, getattr(query, "filter_field", None))
    if asked is not None:
        matches.append(_query_match(resource, context, asked))
    return matches if resource.narrow is None else matches + resource.narrow(context, query)


def _query_match(resource: Resource, context: ReadContext, asked: object) -> Match:
    """The advanced query of a list as a predicate."""
    assert resource.fields is not None
    compiled = compile_query(asked, resource.fields, at="query")
    needed = [(name, make) for name, make in resource.derived.items() if name in compiled.fields]
    if not needed:
        return compiled.matches
    return lambda doc: compiled.matches({**doc, **{name: make(context, doc) for name, make in needed}})


def _seal(keyring: Keyring, kind: str, id: bytes, holder: Any, steps: list[str], path: str) -> None:
    """Encrypt what lies at the path `steps` in an object, or in each item of a list. `path` led to the holder."""
    if isinstance(holder, list):
        for position, item in enumerate(holder):
            _seal(keyring, kind, id, item, steps, f"{path}{position}.")
    elif isinstance(holder, dict) and holder.get(steps[0]) is not None:
        value, field = holder[steps[0]], path + steps[0]
        if len(steps) > 1:
            _seal(keyring, kind, id, value, steps[1:], f"{field}.")
        elif not is_sealed(value):
            holder[steps[0]] = keyring.seal(value, kind=kind, id=id, field=field)


def missing(kind: Kind, id: bytes) -> NotFound:
    """The error for a record that does not exist."""
    return NotFound(f"There is no {kind.noun} {id.hex()} here.")
