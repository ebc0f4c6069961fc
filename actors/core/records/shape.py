"""The fields of a stored document that a view shows, with times as ISO 8601 text."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.structs import View
from trunkline.actors.core.values.terms import IsoTime
from trunkline.actors.core.values.timestamps import iso


class Shape:
    """The fields of a view by their JSON names. `times` are those that are stored in milliseconds."""

    __slots__ = ("names", "times")

    def __init__(self, view: type[View]) -> None:
        hints = get_type_hints(view, include_extras=True)
        fields = {each.name: each.encode_name for each in msgspec.structs.fields(view)}
        self.names = tuple(name for name in fields.values() if not name.startswith("_") and name != "id")
        self.times = frozenset(fields[name] for name, hint in hints.items() if _is_time(hint))

    def of(self, doc: Doc) -> Doc:
        """The shown fields that a document has, in the order of the view."""
        times = self.times
        return {
            name: iso(doc[name]) if name in times else doc[name]
            for name in self.names
            if doc.get(name) is not None
        }


def _is_time(hint: Any) -> bool:
    """Whether a field is a time, or an optional time."""
    return hint == IsoTime or IsoTime in get_args(hint)
