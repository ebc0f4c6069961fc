"""What a bundle holds of each kind of resource: its records in a snapshot, as lines.

All lines are read from one snapshot, one after the other, so memory does not grow with the size of an application.
Their order is that of ids, which is about that of creation, but a resource stands behind those that it refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from trunkline.actors.access.certificates import AUTHORITIES
from trunkline.actors.connections.integrations.resource import INTEGRATIONS
from trunkline.actors.connections.webhooks.resource import WEBHOOKS
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.files.kind import FILE, PRIVATE_FILE
from trunkline.actors.data.files.messages import FilePost
from trunkline.actors.data.files.tree import in_order
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.data.tables.messages import TablePost
from trunkline.actors.data.tables.pages import open_rows
from trunkline.actors.fleet.devices.record.attributes import shown_attribute
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.messages import DevicePost
from trunkline.actors.fleet.recipes.resource import RECIPES
from trunkline.actors.portability.bundles.portable import REMOVED, ResourceName, VersionPart
from trunkline.actors.presentation.dashboards.resource import DASHBOARDS
from trunkline.actors.presentation.experience import kind as experience
from trunkline.actors.presentation.experience.content import all_in
from trunkline.actors.presentation.experience.endpoints import ENDPOINTS
from trunkline.actors.presentation.experience.groups import GROUPS
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS
from trunkline.actors.presentation.experience.versions import VersionPatch, VersionPost
from trunkline.actors.presentation.experience.views import VIEWS
from trunkline.actors.presentation.notebooks.resource import NOTEBOOKS
from trunkline.actors.presentation.notebooks.resource_jobs import RESOURCE_JOBS
from trunkline.actors.workflows.flows.bodies import FlowPost, FlowVersionPost
from trunkline.actors.workflows.flows.kind import FLOW, FLOW_VERSION
from trunkline.actors.workflows.flows.presenter import read_definition
from trunkline.store.keyring import is_sealed
from trunkline.store.object_store import Stored

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

Lines = Iterator[Doc]
Reader = Callable[["Snapshot", bytes], Lines]
"""Yields the lines of one kind of resource of an application."""
Rank = Callable[[Doc], int]
"""Records of a lower rank come first. Those of rank 0 are found in the first scan."""

_ANCESTORS_MAX: Final = 1000
"""Levels above a record that are followed; a stored hierarchy may be deeper than one that is created."""
_DEPTHS_MAX: Final = 10_000
"""Depths that are remembered: a megabyte."""


class NamedContent(NamedTuple):
    """The content of a file or a notebook: the id of the resource, the content, its size and hash."""

    id: bytes
    content: bytes
    stored: Stored


def line(id: bytes, body: Doc, more: Doc | None = None) -> Doc:
    """A line of a resource."""
    return {"id": id.hex(), "body": body, **({"more": more} if more else {})}


def _content_of(kind: Kind, id: bytes, doc: Doc) -> NamedContent | None:
    """The content that a record names, if it has one."""
    for content, stored in () if kind.contents is None else kind.contents(doc):
        return NamedContent(id, content, stored)
    return None


def _of_content(found: NamedContent | None) -> Doc:
    """What a line says of a content."""
    return {} if found is None else {"size": found.stored.size_bytes, "sha256": found.stored.sha256}


# Bodies.


@lru_cache
def _names(body: type[Body]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(body))


def _body(body: type[Body], doc: Doc) -> Doc:
    """The fields of a body that a document has."""
    return {name: doc[name] for name in _names(body) if doc.get(name) is not None}


def _without_secrets(value: Any, path: str, removed: list[str]) -> Any:
    """A value with `REMOVED` in the place of each secret; their paths are added to `removed`."""
    if is_sealed(value):
        removed.append(path)
        return REMOVED
    if isinstance(value, dict):
        return {
            name: _without_secrets(each, f"{path}.{name}" if path else name, removed)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_without_secrets(each, f"{path}.{number}", removed) for number, each in enumerate(value)]
    return value


@dataclass(frozen=True, slots=True)
class _Plain:
    """The reader of a plain resource.

    `without` are fields that other resources say, `secrets` are fields that are secrets although the API shows them.
    `rank` orders the records, if they refer to each other.
    """

    resource: Resource
    without: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    rank: Callable[[Snapshot, bytes], Rank] | None = None

    def __call__(self, snapshot: Snapshot, application: bytes) -> Lines:
        kind = self.resource.kind
        if self.rank is None:
            found = records.scan(snapshot, kind, application)
        else:
            found = _ranked(snapshot, kind, application, self.rank(snapshot, application))
        return (self.line(id, doc) for id, doc in found)

    def line(self, id: bytes, doc: Doc) -> Doc:
        """The line of one record."""
        resource = self.resource
        removed: list[str] = []
        body = {name: each for name, each in _body(resource.post, doc).items() if name not in self.without}
        for name in resource.shape.times.intersection(body):
            body[name] = iso(body[name])
        if resource.sealed:
            body = _without_secrets(body, "", removed)
        for name in self.secrets.intersection(body):
            body[name] = REMOVED
            removed.append(name)
        if "passwordHash" in doc:
            body["password"] = REMOVED
            removed.append("password")
        more: Doc = {"removed": sorted(removed)} if removed else {}
        if "jupyterFileName" in doc:
            more["fileName"] = doc["jupyterFileName"]
        return line(id, body, more | _of_content(_content_of(resource.kind, id, doc)))


# Order.


def _ranked(snapshot: Snapshot, kind: Kind, application: bytes, rank: Rank) -> Iterator[tuple[bytes, Doc]]:
    """Yield all records by rank, with one scan for each rank that occurs."""
    later: set[int] = set()
    for id, doc in records.scan(snapshot, kind, application):
        found = rank(doc)
        if found:
            later.add(found)
        else:
            yield id, doc
    for wanted in sorted(later):
        for id, doc in records.scan(snapshot, kind, application):
            if rank(doc) == wanted:
                yield id, doc


def _by_parent(kind: Kind) -> Callable[[Snapshot, bytes], Rank]:
    """The rank of a record is the number of records above it."""

    def of(snapshot: Snapshot, application: bytes) -> Rank:
        depths: dict[str, int] = {}

        def rank(doc: Doc) -> int:
            above, parent = 0, doc.get("parentId")
            first = parent
            while parent is not None and above < _ANCESTORS_MAX:
                if parent in depths:
                    above += depths[parent]
                    break
                found = records.find(snapshot, kind, application, bytes.fromhex(parent))
                if found is None:
                    break
                above, parent = above + 1, found.doc.get("parentId")
            if first is not None:
                if len(depths) >= _DEPTHS_MAX:
                    depths.clear()
                depths[first] = above
            return above

        return rank

    return of


def _device_rank(snapshot: Snapshot, application: bytes) -> Rank:
    """System devices from above to below, then those that are below one, then peripherals, which name a gateway."""
    depth = _by_parent(DEVICE)(snapshot, application)

    def rank(doc: Doc) -> int:
        if doc["deviceClass"] == "peripheral":
            return _ANCESTORS_MAX + 2
        if doc.get("parentId") is None:
            return 0
        return depth(doc) if doc["deviceClass"] == "system" else _ANCESTORS_MAX + 1

    return rank


def _view_rank(_snapshot: Snapshot, _application: bytes) -> Rank:
    """Pages with a layout after all others."""
    return lambda doc: int(doc.get("layoutId") is not None)


# Kinds with readers of their own.


def _globals(snapshot: Snapshot, application: bytes) -> Lines:
    found = records.find(snapshot, APPLICATION, ROOT, application)
    for each in () if found is None else found.doc.get("globals", ()):
        yield {"body": each}


def _tables(snapshot: Snapshot, application: bytes) -> Lines:
    for id, doc in records.scan(snapshot, DATA_TABLE, application):
        columns = [
            {name: each for name, each in column.items() if name != "number"} for column in doc["columns"]
        ]
        yield line(id, _body(TablePost, {**doc, "columns": columns}))


def row_lines(snapshot: Snapshot, application: bytes, table: bytes) -> Lines:
    """The lines of the rows of a table, in order of creation. Every column is named, also where a row is null."""
    rows = open_rows(snapshot, application, table)
    columns = rows.table.columns.shown
    for id, values in rows.created():
        yield line(id, {name: values.get(number) for name, number in columns})


def _files(kind: Kind) -> Reader:
    def read(snapshot: Snapshot, application: bytes) -> Lines:
        for found, directory in in_order(snapshot, application, kind):
            doc = {**found.doc, "parentDirectory": directory}
            yield line(found.id, _body(FilePost, doc), _of_content(_content_of(kind, found.id, doc)))

    return read


def _devices(snapshot: Snapshot, application: bytes) -> Lines:
    for id, doc in _ranked(snapshot, DEVICE, application, _device_rank(snapshot, application)):
        attributes = [shown_attribute(each) for each in doc["attributes"]]
        yield line(id, _body(DevicePost, {**doc, "attributes": attributes}))


def _develop(snapshot: Snapshot, application: bytes) -> Lines:
    found = records.find(snapshot, experience.DEVELOP, application, application)
    if found is not None:
        yield {"body": _body(VersionPatch, found.doc)}


def _versions(snapshot: Snapshot, application: bytes) -> Lines:
    for id, doc in records.scan(snapshot, experience.VERSION, application):
        # A new version takes the replies of `develop` where its body has none; null says that there is none.
        yield line(id, {"notFoundReply": None, "unauthorizedReply": None} | _body(VersionPost, doc))


def version_lines(snapshot: Snapshot, application: bytes, version: bytes, name: VersionPart) -> Lines:
    """The lines of the endpoints or the views of a named version, by their names.

    Not by ids: an import into the same application keeps those of some and gives new ones to others.
    """
    reader = VERSION_CONTENT[name]
    rank = None if reader.rank is None else reader.rank(snapshot, application)

    def place(each: Found) -> tuple[int, list[str]]:
        named = [str(each.doc.get(field)) for field in ("route", "method", "viewType", "name")]
        return 0 if rank is None else rank(each.doc), named

    # The size of a version is bounded.
    found = sorted(all_in(snapshot, reader.resource.kind, application, version), key=place)
    return (reader.line(each.id, each.doc) for each in found)


def _flows(snapshot: Snapshot, application: bytes) -> Lines:
    for id, doc in records.scan(snapshot, FLOW, application):
        definition = read_definition(snapshot, application, id, ROOT)
        default = doc.get("defaultVersionId")
        more = None if default is None else {"defaultVersionId": default}
        yield line(id, _body(FlowPost, {**doc, **definition}), more)


def _flow_versions(*, of_experience: bool) -> Reader:
    def read(snapshot: Snapshot, application: bytes) -> Lines:
        flow, is_wanted = b"", False
        for id, doc in records.scan(snapshot, FLOW_VERSION, application):
            if bytes.fromhex(doc["flowId"]) != flow:
                flow = bytes.fromhex(doc["flowId"])
                found = records.find(snapshot, FLOW, application, flow)
                # The versions of a deleted workflow stay until they are swept.
                is_wanted = found is not None and (found.doc["flowClass"] == "experience") == of_experience
            if is_wanted:
                definition = read_definition(snapshot, application, flow, id)
                yield line(id, _body(FlowVersionPost, {**doc, **definition}), {"flowId": doc["flowId"]})

    return read


_VIEWS: Final = _Plain(VIEWS, rank=_view_rank)
_ENDPOINTS: Final = _Plain(ENDPOINTS)
VERSION_CONTENT: Final[Mapping[VersionPart, _Plain]] = {
    "ExperienceView": _VIEWS,
    "ExperienceEndpoint": _ENDPOINTS,
}

READERS: Final[Mapping[ResourceName, Reader]] = {
    "Global": _globals,
    "ApplicationCertificateAuthority": _Plain(AUTHORITIES),
    "DataTable": _tables,
    "Device": _devices,
    "DeviceRecipe": _Plain(RECIPES),
    # The code that verifies calls may be the token of an account, such as that of Twilio.
    "Webhook": _Plain(WEBHOOKS, secrets=frozenset({"verificationCode"})),
    "Integration": _Plain(INTEGRATIONS),
    "ExperienceGroup": _Plain(
        GROUPS,
        without=frozenset({"experienceUserIds", "experienceEndpointIds"}),
        rank=_by_parent(experience.GROUP),
    ),
    "ExperienceUser": _Plain(EXPERIENCE_USERS),
    "ExperienceView": _VIEWS,
    "ExperienceEndpoint": _ENDPOINTS,
    "ExperienceDevelopConfig": _develop,
    "ExperienceVersion": _versions,
    "Flow": _flows,
    "FlowVersion": _flow_versions(of_experience=False),
    "ExperienceFlowVersion": _flow_versions(of_experience=True),
    "Dashboard": _Plain(DASHBOARDS),
    "File": _files(FILE),
    "PrivateFile": _files(PRIVATE_FILE),
    "Notebook": _Plain(NOTEBOOKS),
    "ResourceJob": _Plain(RESOURCE_JOBS),
}
"""By name: the reader of each resource of `PORTABLE` whose lines are in one entry (all but rows)."""


def contents(snapshot: Snapshot, application: bytes, kind: Kind) -> Iterator[NamedContent]:
    """The contents of the records of a kind whose lines are in a bundle."""
    found: Iterator[tuple[bytes, Doc]]
    if kind in (FILE, PRIVATE_FILE):
        found = ((each.id, each.doc) for each, _ in in_order(snapshot, application, kind))
    else:
        found = records.scan(snapshot, kind, application)
    for id, doc in found:
        content = _content_of(kind, id, doc)
        if content is not None:
            yield content
