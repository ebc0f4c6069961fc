"""Where messages take their fields from: the path, or the call.

A field is filled by name. `data_table` is the id of the placeholder `{dataTableId}`; other names stand in `_SOURCES`.
Whether every field of a row's messages has a source is checked when the table is built, not when the first call comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from trunkline.actors.accounts.reach import Reach
from trunkline.actors.records.messages import Creator
from trunkline.actors.values.structs import Message
from trunkline.http.calls.call import Call
from trunkline.http.calls.route import Route

Source = Callable[[Call], Any]
Filled = tuple[tuple[str, Source], ...]
"""The fields of a message, and what fills them."""


def _reach(call: Call) -> Reach | None:
    return call.principal.reach


def _by(call: Call) -> Creator:
    return call.principal.creator


def _resource(call: Call) -> str:
    assert call.route.resource is not None
    return call.route.resource.name


def _record(call: Call) -> Any:
    assert call.route.resource is not None
    return call.ids[call.route.resource.kind.name]


_SOURCES: Final[Mapping[str, Source]] = {
    "body": lambda call: call.body,
    "by": _by,
    "ids": lambda call: call.ids,
    "if_match": lambda call: call.if_match,
    "now_ms": lambda call: call.now_ms,
    "query": lambda call: call.query,
    "reach": _reach,
    "record": _record,
    "resource": _resource,
}
OF_THE_MOMENT: Final = frozenset({"body", "now_ms"})
"""The fields in which calls differ that have the same head."""


def filled(route: Route, message: type[Message]) -> Filled:
    """What fills the fields of `message`, which answers `route`. Raises TypeError for a field that nothing fills."""
    ids = route.ids if route.made is None else route.ids | {route.made}
    found: list[tuple[str, Source]] = []
    for field in msgspec.structs.fields(message):
        name = _camel(field.name)
        if name in ids:
            found.append((field.name, _id(name)))
        elif field.name in _SOURCES and _has(route, field.name):
            found.append((field.name, _SOURCES[field.name]))
        elif field.required:
            raise TypeError(f"{route.operation}: nothing fills {message.__name__}.{field.name}")
    return tuple(found)


def _has(route: Route, name: str) -> bool:
    """Whether calls of the row have such a value."""
    if name == "body":
        return route.body is not None
    if name in ("record", "resource"):
        return route.resource is not None
    return route.access != "none" or name not in ("by", "reach")


def _id(name: str) -> Source:
    return lambda call: call.ids[name]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
