"""What a kind of records is: its name on disk, its indexes, where it belongs, and what its records hold beside them.

Every kind of the server stands in `actors/catalogue.py`; the sweep, the counts and the verification of a store
follow from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Doc = dict[str, Any]

Home = Literal["root", "application", "owner"]
"""Where the records of a kind live: with the server as a whole (users), with their application, or with whatever
they lie under (the API tokens of users and of applications). Telemetry lives with its device; see `placement.py`."""

Prefixes = tuple[tuple[str, bytes], ...]
"""Databases, and for each the beginning of all keys that belong together."""


def _nothing(_parent: bytes, _id: bytes) -> Prefixes:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is common to all records of one noun.

    `name` is the kind on disk and in `_type`, `noun` its name in sentences. `home` says where its records live.
    `indexes` are the document fields by which lists are sorted without a scan (`id` needs none).
    `sort_key` turns a document and a field into what is sorted by; the default is the field itself.
    `part` is a field by which lists are narrowed (the state of events, the owner of applications): the records of
    each of its values have a count and, for each of `part_indexes`, an index of their own.
    `counted_as` is the field of an application's summary that counts these records.
    `ends_access` names the fields whose change ends access that was given because of the record, as does its deletion.
    `holds` gives the keys beside the record that belong to it and go with it.
    """

    name: str
    noun: str
    home: Home = "application"
    indexes: tuple[str, ...] = ("name", "creationDate", "lastUpdated")
    sort_key: Callable[[Doc, str], Any] = lambda doc, field: doc.get(field)
    part: str | None = None
    part_indexes: tuple[str, ...] = ()
    counted_as: str | None = None
    ends_access: frozenset[str] = frozenset()
    holds: Callable[[bytes, bytes], Prefixes] = _nothing


def part_name(value: str) -> str:
    """The name of a part's count."""
    return f"@{value}"


def part_index(field: str, value: str) -> str:
    """The name of the index by `field` of those records whose part has this value."""
    return f"{field}@{value}"
