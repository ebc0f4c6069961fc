"""Reading a tree of files: finding a path, the path of a record, and all that is below a directory.

Everything reads through `Get`, so that the actor sees writes that are not committed yet. The functions that go down a
tree need a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind, facet_index
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.unreadable import UNREADABLE
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.files.kind import FILE, PARENT, PLACE, PRIVATE_FILE, place
from trunkline.actors.data.files.paths import path_of, split_path
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

Get = Callable[[str, bytes], bytes | None]
"""Reads the value of a key of a database."""

ROOT_DIRECTORY: Final = ""
"""What records in the root of a tree have as their directory."""

_REMEMBERED_MAX: Final = 10_000


class Place(NamedTuple):
    """Where a record is: the names of the directories above it, and whether one of them is being deleted."""

    names: tuple[str, ...]
    deleting: bool

    @property
    def path(self) -> str:
        """The path of the directory."""
        return path_of(self.names)


class Tree:
    """One tree of an application, for reading. It remembers the places of directories: use it for one read only."""

    __slots__ = ("_application", "_get", "_places", "kind")

    def __init__(self, get: Get, application: bytes, kind: Kind) -> None:
        self.kind = kind
        self._get = get
        self._application = application
        self._places: dict[str, Place] = {ROOT_DIRECTORY: Place((), deleting=False)}

    def record(self, id: bytes) -> Found | None:
        """A record of the tree by its id."""
        raw = records.raw_of(self._get, self.kind, self._application, id)
        return None if raw is None else Found(id, decode(raw), raw)

    def child(self, parent: str, name: str) -> Found | None:
        """What has this name in a directory."""
        key = keys.unique_key(self.kind.name, self._application, PLACE, place(parent, name))
        id = self._get(keys.UNIQUE, key)
        return None if id is None else self.record(id)

    def place_of(self, doc: Doc) -> Place:
        """Where a record is."""
        places, above = self._places, list[tuple[str, Doc]]()
        at: str = doc[PARENT]
        while at not in places:
            found = self.record(bytes.fromhex(at))
            if found is None:  # cannot happen: a directory is removed after all that is in it
                places[at] = Place((), deleting=True)
                break
            above.append((at, found.doc))
            at = found.doc[PARENT]
        for id, directory in reversed(above):
            outer = places[directory[PARENT]]
            deleting = outer.deleting or directory["status"] == "deleting"
            places[id] = Place((*outer.names, directory["name"]), deleting)
        where = places[doc[PARENT]]
        if len(places) > _REMEMBERED_MAX:
            self._places = {ROOT_DIRECTORY: places[ROOT_DIRECTORY]}
        return where

    def status(self, doc: Doc) -> str:
        """The status of a record as it is shown: what is in a directory that is being deleted is deleted as well."""
        return "deleting" if self.place_of(doc).deleting else str(doc["status"])

    def find(self, names: tuple[str, ...]) -> Found | None:
        """What is at a path, if it exists and is not being deleted. The root has no record."""
        found, parent = None, ROOT_DIRECTORY
        for number, name in enumerate(names, start=1):
            found = self.child(parent, name)
            if found is None or found.doc["status"] == "deleting":
                return None
            if number < len(names) and found.doc["type"] != "directory":
                return None
            parent = found.id.hex()
        return found

    def find_directory(self, names: tuple[str, ...]) -> str | None:
        """The id of the directory at a path in hexadecimal, empty for the root; None if there is none."""
        if not names:
            return ROOT_DIRECTORY
        found = self.find(names)
        return None if found is None or found.doc["type"] != "directory" else found.id.hex()


def find(snapshot: Snapshot, application: bytes, *, private: bool, path: str) -> Found | None:
    """The record at a path, if there is one and it is not being deleted."""
    try:
        names = split_path(path, "path")
    except Invalid:
        return None
    return Tree(snapshot.get, application, PRIVATE_FILE if private else FILE).find(names)


def below(snapshot: Snapshot, application: bytes, kind: Kind, directory: bytes) -> Iterator[bytes]:
    """Yield the ids of all that is below a directory, and then its own: what is in a directory stands before it."""
    open_directories = [(directory, _children(snapshot, application, kind, directory))]
    while open_directories:
        id, children = open_directories[-1]
        child = next(children, None)
        if child is None:
            open_directories.pop()
            yield id
        elif child.is_directory:
            open_directories.append((child.id, _children(snapshot, application, kind, child.id)))
        else:
            yield child.id


def directories(
    snapshot: Snapshot, application: bytes, kind: Kind, directory: bytes | None = None
) -> Iterator[tuple[Found, tuple[str, ...]]]:
    """Yield all directories below one, or all of the tree, each with the names above it, which begin below
    `directory`. A directory stands before those in it.
    """
    start = ROOT_DIRECTORY if directory is None else directory.hex()
    above: tuple[str, ...] = ()
    open_directories = [(above, _subdirectories(snapshot, application, kind, start))]
    while open_directories:
        above, children = open_directories[-1]
        id = next(children, None)
        found = None if id is None else records.find(snapshot, kind, application, id)
        if id is None:
            open_directories.pop()
        elif found is not None:
            yield found, above
            inner = _subdirectories(snapshot, application, kind, id.hex())
            open_directories.append(((*above, found.doc["name"]), inner))


def in_order(snapshot: Snapshot, application: bytes, kind: Kind) -> Iterator[tuple[Found, str]]:
    """Yield every complete record of a tree with the path of its directory: first all directories, each before those
    in it, then the files in the order of their ids. Nothing that is being deleted.
    """
    tree = Tree(snapshot.get, application, kind)
    for found, above in directories(snapshot, application, kind):
        if tree.status(found.doc) == "completed":
            yield found, path_of(above)
    prefix = keys.record_prefix(kind.name, application)
    for key, raw in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)):
        doc = decode(raw)
        if doc["type"] == "file" and tree.status(doc) == "completed":
            yield Found(bytes(key[-keys.ID_BYTES :]), doc, bytes(raw)), tree.place_of(doc).path


def tree_problems(snapshot: Snapshot) -> Iterator[str]:
    """Yield a sentence for each record whose directory does not exist; used by the verification of a store."""
    for kind in (FILE, PRIVATE_FILE):
        prefix = keys.kind_prefix(kind.name)
        for key, raw in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            application, id = bytes(key[-2 * keys.ID_BYTES : -keys.ID_BYTES]), bytes(key[-keys.ID_BYTES :])
            if not records.exists(snapshot, APPLICATION, ROOT, application):
                continue  # the sweep removes its records in no order
            try:
                parent: str = decode(raw)[PARENT]
                above = (
                    Tree(snapshot.get, application, kind).record(bytes.fromhex(parent)) if parent else None
                )
            except UNREADABLE:
                continue  # the check of the records reports it
            if parent and (above is None or above.doc["type"] != "directory"):
                yield f"records: the directory {parent} of the {kind.noun} {id.hex()} does not exist"


class _Child(NamedTuple):
    id: bytes
    is_directory: bool


def _children(snapshot: Snapshot, application: bytes, kind: Kind, directory: bytes) -> Iterator[_Child]:
    """All that is in a directory, the directories first."""
    for id in _subdirectories(snapshot, application, kind, directory.hex()):
        yield _Child(id, is_directory=True)
    index = facet_index("type", directory.hex())
    _, low, high = index_range(kind, application, index, keys.sortable("file"))
    for key in snapshot.keys(keys.INDEXES, low, high):
        yield _Child(bytes(key[-keys.ID_BYTES :]), is_directory=False)


def _subdirectories(snapshot: Snapshot, application: bytes, kind: Kind, directory: str) -> Iterator[bytes]:
    _, low, high = index_range(kind, application, facet_index("type", directory), keys.sortable("directory"))
    for key in snapshot.keys(keys.INDEXES, low, high):
        yield bytes(key[-keys.ID_BYTES :])


def extent(snapshot: Snapshot, *, application: bytes, kind: Kind, directory: bytes) -> tuple[int, int]:
    """The number of directories in each other below one, and the length of the longest path below it."""
    depth = chars = 0
    for found, above in directories(snapshot, application, kind, directory):
        depth = max(depth, len(above) + 1)
        chars = max(chars, sum(len(name) + 1 for name in (*above, found.doc["name"])))
    return depth, chars
