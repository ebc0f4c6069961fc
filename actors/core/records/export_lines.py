"""The lines of an export: the records of a snapshot as bodies with which the API creates them.

All lines are read from one snapshot, one after the other, so memory does not grow with the size of an application.
Their order is that of ids, which is about that of creation, but a resource stands behind those that it refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.timestamps import iso
from trunkline.store.keyring import is_sealed

if TYPE_CHECKING:
    from trunkline.store.object_store import Stored
    from trunkline.store.snapshot import Snapshot

Lines = Iterator[Doc]
Rank = Callable[[Doc], int]
"""Records of a lower rank come first. Those of rank 0 are found in the first scan."""

REMOVED: Final = "Removed-by-the-export-1"
"""Stands in the place of a secret. It has the form of a password, so that the body is one that the API accepts."""

ANCESTORS_MAX: Final = 1000
"""Levels above a record that are followed; a stored hierarchy may be deeper than one that is created."""
_DEPTHS_MAX: Final = 10_000
"""Depths that are remembered: a megabyte."""


def line(id: bytes, body: Doc, more: Doc | None = None) -> Doc:
    """A line of a resource."""
    return {"id": id.hex(), "body": body, **({"more": more} if more else {})}


def content_of(kind: Kind, doc: Doc) -> tuple[bytes, Stored] | None:
    """The content that a record names, with its size and hash, if it has one."""
    return None if kind.contents is None else next(iter(kind.contents(doc)), None)


def more_of_content(kind: Kind, doc: Doc) -> Doc:
    """What the line of a record says of its content."""
    found = content_of(kind, doc)
    return {} if found is None else {"size": found[1].size_bytes, "sha256": found[1].sha256}


# Bodies.


@lru_cache
def _names(body: type[Body]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(body))


def body_of(body: type[Body], doc: Doc) -> Doc:
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
class PlainLines:
    """Reads the lines of a plain resource.

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
            found = ranked(snapshot, kind, application, self.rank(snapshot, application))
        return (self.line(id, doc) for id, doc in found)

    def line(self, id: bytes, doc: Doc) -> Doc:
        """The line of one record."""
        resource = self.resource
        removed: list[str] = []
        body = {name: each for name, each in body_of(resource.post, doc).items() if name not in self.without}
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
        return line(id, body, more | more_of_content(resource.kind, doc))


# Order.


def ranked(snapshot: Snapshot, kind: Kind, application: bytes, rank: Rank) -> Iterator[tuple[bytes, Doc]]:
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


def by_parent(kind: Kind) -> Callable[[Snapshot, bytes], Rank]:
    """The rank of a record is the number of records above it."""

    def of(snapshot: Snapshot, application: bytes) -> Rank:
        depths: dict[str, int] = {}

        def rank(doc: Doc) -> int:
            above, parent = 0, doc.get("parentId")
            first = parent
            while parent is not None and above < ANCESTORS_MAX:
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
