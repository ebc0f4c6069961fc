"""The search of an application: its records of every kind, by what people call them.

A kind takes part if its `title` names the field with that text. The texts are read from the index by this field, so a
search decodes only the records that it found. A token finds records of the kinds that it may list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from msgspec import Meta

from trunkline.actors.core.query.compile import compile_glob
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.structs import Message, Query, View
from trunkline.actors.core.values.terms import DeviceClass, Id
from trunkline.actors.people.accounts.scopes import may_read
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_TYPES: Final = {"apiToken": "applicationApiToken"}
"""The names of kinds in results, where they differ from those in `_type` of the record."""

_LISTS: Final = {"apiToken": "applicationApiTokens.get", "dashboard": "applicationDashboards.get"}
"""The operations that list kinds, where they are not named after the kind."""

_SHOWN: Final = ("deviceClass", "flowClass", "viewType", "version")


class SearchChoice(Query, frozen=True):
    """`filter` is a part of the name. With `*` in it, it is compared with the whole name, as in a list."""

    filter: Annotated[str, Meta(min_length=1, max_length=1024)]


class Search(Message, frozen=True):
    """Search the records of an application. `scopes` are those of the caller's token."""

    application: bytes
    query: SearchChoice
    scopes: frozenset[str]


class SearchResult(View, frozen=True, kw_only=True):
    """A record that was found. `_type` is its kind."""

    id: Id
    name: str
    type: str = msgspec.field(name="_type")
    device_class: DeviceClass | None = None
    flow_class: Literal["edge", "embedded", "cloud", "customNode", "experience"] | None = None
    view_type: Literal["layout", "page", "component"] | None = None
    version: str | None = None


def search(kinds: Mapping[str, Kind], reading: Reading, message: Search) -> list[Doc]:
    """The records whose name matches or whose id is the filter: by kind, then by name.

    At most `search_results_max` of each kind are found, and at most `search_names_max` names are compared.
    """
    snapshot, limits, application = reading.snapshot, reading.limits, message.application
    searched = [
        kind
        for kind in kinds.values()
        if kind.title is not None and may_read(message.scopes, list_operation(kind))
    ]
    count = sum(records.total(snapshot, kind, application) for kind in searched)
    reading.check_time(is_long=count > SCAN_INLINE_MAX)
    text = message.query.filter
    matches = compile_glob(text if "*" in text else f"*{text}*")
    size, left = reading.answer_size(), limits.search_names_max
    shown: list[Doc] = []
    for kind in searched:
        results = 0
        for id, name in islice(_names(snapshot, kind, application), left):
            left -= 1
            if not matches(name) and id.hex() != text.lower():
                continue
            found = records.find(snapshot, kind, application, id)
            if found is not None:
                size.add(len(found.raw))
                shown.append(_show(kind, found))
                results += 1
            if results == limits.search_results_max:
                break
    return shown


def list_operation(kind: Kind) -> str:
    """The operation that lists the records of a kind in an application."""
    return _LISTS.get(kind.name, f"{kind.name}s.get")


def _names(snapshot: Snapshot, kind: Kind, application: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield the id and the name of each record of a kind; in lower case, from the index, and in its order."""
    assert kind.title is not None
    db, low, high = index_range(kind, application, kind.title)
    for key in snapshot.keys(db, low, high):
        id = bytes(key[-keys.ID_BYTES :])
        name = keys.folded_text(key[len(low) : -keys.ID_BYTES])
        if name is None:  # it is longer than the index keeps
            found = records.find(snapshot, kind, application, id)
            name = "" if found is None else _name(kind, found)
        yield id, name


def _show(kind: Kind, found: Found) -> Doc:
    shown = {name: found.doc[name] for name in _SHOWN if found.doc.get(name) is not None}
    type = _TYPES.get(kind.name, kind.name)
    return {"id": found.id.hex(), "name": _name(kind, found), **shown, "_type": type}


def _name(kind: Kind, found: Found) -> str:
    assert kind.title is not None
    return str(kind.sort_key(found.doc, kind.title) or "")
