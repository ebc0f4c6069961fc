"""The kinds of file records: public and private files, each with the directories of its tree.

A directory is a record like a file. A record names its directory by the id, so a directory is moved with all that is in
it by changing one record. Its path is found by following the directories above it (`tree.py`).
"""

from __future__ import annotations

from typing import Final, Literal

from trunkline.actors.core.records.kind import Doc, Kind, NamedContents
from trunkline.store.object_store import Stored

TreeName = Literal["file", "privateFile"]
"""The two trees of an application, by the names of their kinds."""

PARENT: Final = "parent"
"""The field with the id of the directory of a record in hexadecimal; empty for the root of the tree."""

NO_TYPE: Final = "application/octet-stream"
"""The media type of a content that nobody gave one."""

PLACE: Final = "place"
"""The field that no two records of a tree have in common: the directory and the name."""

_SORTED_BY: Final = ("name", "type", "creationDate", "lastUpdated")


def place(parent: str, name: str) -> str:
    """The value of `PLACE`."""
    return f"{parent}/{name}"


def _contents(doc: Doc) -> NamedContents:
    if "content" not in doc:
        return ()
    return ((bytes.fromhex(doc["content"]), Stored(doc["fileSize"], doc["sha256"])),)


def _kind(name: TreeName, noun: str, counted_as: str, audited_as: str) -> Kind:
    return Kind(
        name=name,
        noun=noun,
        indexes=(*_SORTED_BY, "status"),
        unique=(PLACE,),
        facet=PARENT,
        facet_indexes=_SORTED_BY,
        facet_counted=False,
        counted_as=counted_as,
        audited_as=audited_as,
        contents=_contents,
    )


FILE: Final = _kind("file", "file", "fileCount", "File")
PRIVATE_FILE: Final = _kind("privateFile", "private file", "privateFileCount", "PrivateFile")

TREES: Final[dict[str, Kind]] = {kind.name: kind for kind in (FILE, PRIVATE_FILE)}
