"""The kind of a record: its name on disk, its indexes, its home, and the other keys that its records own.

Each kind is named in the `feature.py` of its package. `actors/catalogue.py` has all of them, from which the sweep, the
counts and the verification of a store derive theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from trunkline.store.object_store import Stored

Doc = dict[str, Any]

Home = Literal["root", "application", "owner"]
"""Where the records of a kind are placed: with the server as a whole (users), with their application, or with their
parent (the API tokens of users and of applications). Telemetry is placed with its device; see `placement.py`."""

OTHER_OWNER: Final = "It belongs to a user or an organization."
GIVES_ACCESS: Final = "It gives access, or is a secret."
HISTORY: Final = "It tells what has happened in this application."
NAME_OF_SERVER: Final = "Its name is unique in the server, so a second application could not have it."
RELEASE: Final = "It says what runs on devices of this application."

Prefixes = tuple[tuple[str, bytes], ...]
"""Pairs of a database and a prefix of keys in it."""


NamedContents = tuple[tuple[bytes, Stored], ...]
"""The ids of contents, each with its size and hash."""


def _nothing(_parent: bytes, _id: bytes) -> Prefixes:
    return ()


def value_at(doc: Mapping[str, Any], field: str) -> Any:
    """The value of a field, which may be a field of an object (`certificateInfo.commonName`); None if there is none."""
    if "." not in field:
        return doc.get(field)
    outer, inner = field.split(".", 1)
    return value_at(doc.get(outer) or {}, inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What all records of one kind have in common.

    `name` is the kind on disk and in `_type`, `noun` its name in messages. `home` is the placement of its records.
    `counted_as` is the field of an application's summary that counts these records, `audited_as` what entries of audit
    logs call one. Each kind says both: None where they are not counted, and where no call changes one by its id.
    `not_portable` says why no bundle has these records; None if one has them, or its manifest.
    `indexes` are the document fields by which lists are sorted without a scan (`id` needs none).
    `sort_key` returns the sort value of a document for a field; the default is the field itself.
    `title` is the field with what people call a record: the search of an application finds it by that, if it is one of
    the indexes. None: it does not find records of this kind.
    `unique` are fields whose texts no two records under one parent may have in common; if `unique_in` is the server, no
    two records of the kind.
    `facet` is a field by which lists are narrowed (the state of events, the owner of applications): the records of
    each of its values have their own index for each of `facet_indexes`. If the values are few, they also have their
    own count; `facet_counted=False` is for a facet with many (the workflow of a version): its index is counted instead.
    `ends_access` names the fields whose change revokes access that depends on the record, as its deletion does.
    `owned_keys` returns the prefixes of other keys that belong to a record and are deleted with it.
    `contents` returns the contents that a document names, of an application's files (`actors/core/contents/`): only
    those that are complete and were kept. The parent of such records is the application.
    """

    name: str
    noun: str
    counted_as: str | None
    audited_as: str | None
    not_portable: str | None = None
    home: Home = "application"
    indexes: tuple[str, ...] = ("name", "creationDate", "lastUpdated")
    sort_key: Callable[[Doc, str], Any] = value_at
    title: str | None = "name"
    unique: tuple[str, ...] = ()
    unique_in: Literal["parent", "server"] = "parent"
    facet: str | None = None
    facet_indexes: tuple[str, ...] = ()
    facet_counted: bool = True
    ends_access: frozenset[str] = frozenset()
    owned_keys: Callable[[bytes, bytes], Prefixes] = _nothing
    contents: Callable[[Doc], NamedContents] | None = None

    def __post_init__(self) -> None:
        if self.title not in self.indexes:
            object.__setattr__(self, "title", None)

    @property
    def nouns(self) -> str:
        """The plural of `noun`."""
        is_ending = self.noun.endswith("y") and self.noun[-2] not in "aeiou"
        return f"{self.noun[:-1]}ies" if is_ending else f"{self.noun}s"


def facet_count(value: str) -> str:
    """The name of the count of the records whose facet has this value."""
    return f"@{value}"


def facet_index(field: str, value: str) -> str:
    """The name of the index by `field` of the records whose facet has this value."""
    return f"{field}@{value}"
