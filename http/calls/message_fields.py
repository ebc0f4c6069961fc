"""How the fields of messages are filled: from the path parameters, or from the call.

A field is filled by its name. `data_table` is the id of the path parameter `{dataTableId}`; other names are in
`_SOURCES`. A field of a route's messages that has no source is an error when the route table is built, not when the
first call comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.values.structs import Message
from trunkline.actors.people.accounts.reach import Reach
from trunkline.http.calls.call import Call
from trunkline.http.calls.route import Route

Source = Callable[[Call], Any]
FieldSources = tuple[tuple[str, Source], ...]
"""The fields of a message, each with the function that reads its value from the call."""


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
    "origin": lambda call: call.origin,
    "query": lambda call: call.query,
    "reach": _reach,
    "record": _record,
    "resource": _resource,
    "scopes": lambda call: call.principal.scopes,
}
PER_CALL_FIELDS: Final = frozenset({"body", "now_ms"})
"""The fields whose values differ between calls with the same request head."""


def field_sources(route: Route, message: type[Message]) -> FieldSources:
    """The sources of the fields of a message of `route`. Raises TypeError for a required field without a source."""
    ids = route.id_names if route.created_id is None else route.id_names | {route.created_id}
    sources: list[tuple[str, Source]] = []
    required = _required_fields(message)
    for field in message.__struct_fields__:
        name = _camel(field)
        if name in ids:
            sources.append((field, _id(name)))
        elif field in _SOURCES and _provides(route, field):
            sources.append((field, _SOURCES[field]))
        elif field in required:
            raise TypeError(f"{route.operation}: nothing fills {message.__name__}.{field}")
    return tuple(sources)


def _required_fields(message: type[Message]) -> frozenset[str]:
    """The fields without a default. `msgspec.structs.fields` tells as much, after it has evaluated all annotations."""
    fields, defaults = message.__struct_fields__, message.__struct_defaults__
    without = fields[: len(fields) - len(defaults)]
    # Among fields that are given by keyword, some with a default may come before one without.
    among = (
        name
        for name, default in zip(fields[len(without) :], defaults, strict=True)
        if default is msgspec.NODEFAULT
    )
    return frozenset((*without, *among))


def _provides(route: Route, name: str) -> bool:
    """Whether calls of the route have such a value."""
    if name == "body":
        return route.body is not None
    if name in ("record", "resource"):
        return route.resource is not None
    return not (route.access == "none" or route.anonymous) or name not in ("by", "origin", "reach", "scopes")


def _id(name: str) -> Source:
    return lambda call: call.ids[name]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
