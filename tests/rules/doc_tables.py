"""The tables of the documentation that are generated from the code, and the documents that contain them.

Owns the tables of the API (routes, parameters, lists, fields, errors); `operator_tables.py` has the others.
A table is between two comments with its name; everything else in the documents is written by hand. `test_docs.py`
checks the tables. Run this module in the checkout to regenerate them:

    .venv/bin/python -m tests.rules.doc_tables
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, get_args, get_type_hints

import msgspec

from tests.rules import fault_tables, formula_tables, look, operator_tables
from tests.rules.markdown import code, codes, first_sentence, table
from tests.rules.package_order import described
from trunkline.actors.acting_later import ACTING
from trunkline.actors.catalogue import KINDS, QUERY_FIELDS
from trunkline.actors.core.values import errors
from trunkline.actors.engine.nodes import NODE_TEXTS
from trunkline.actors.people.organizations.roles import LEVELS, MEANINGS, ROLES, Level
from trunkline.actors.portability.bundles.portable import PORTABLE
from trunkline.actors.server_bounds import BOUNDS
from trunkline.http.calls.errors import ENGINE_STATUS, STATUS, MethodNotAllowed, UnsupportedMediaType
from trunkline.http.calls.query_string import query_fields
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE

# The API.


def routes() -> str:
    """Every operation, in the order of the paths."""
    head = ("Method", "Path", "Operation", "What it does", "Tokens", "Device token", "Throttle")
    order = sorted(TABLE.routes, key=lambda route: (route.path, METHODS.index(route.method)))
    return table(head, (_route_row(route) for route in order))


METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_FAMILIES: Final = {"all.User": "user", "all.Application": "application"}
_DEVICE_ACCESS: Final = {
    "no": "",
    "read": "read",
    "self": "itself, peripherals",
    "any": "what its key allows",
}


def _route_row(route: Route) -> Sequence[str]:
    kinds = [kind for family, kind in _FAMILIES.items() if family in route.scopes]
    lesser = [f"`.{each}`" for each, opens in (("read", route.access == "read"), ("cli", route.cli)) if opens]
    tokens = ", ".join(kinds) + (f" ({' and '.join(lesser)} too)" if lesser else "")
    return (
        route.method,
        code(route.path),
        code(route.operation),
        route.summary,
        tokens if kinds else "none needed",
        _DEVICE_ACCESS[route.device],
        code(route.throttle or ""),
    )


def roles() -> str:
    """The roles of members of organizations: what each may do, and the operations that only it and higher ones may."""
    head = ("Role", "May also", "The operations that are new with it")
    return table(head, (_role_row(role, level) for role, level in ROLES.items()))


def acting_later() -> str:
    """What acts later, in whose name, and how that right ends."""
    return table(("What acts later", "In whose name", "How the right ends"), iter(ACTING))


def server_bounds() -> str:
    """What the whole server has only so much of, and whose share a use takes."""
    head = ("What", "A use costs", "Limits", "Whose share it takes")
    return table(head, ((row.what, row.price, codes(row.limits), row.whose.strip()) for row in BOUNDS))


def _role_row(role: str, level: Level) -> Sequence[str]:
    if level in (Level.READ, Level.WRITE):
        operations = f"all others that {'read' if level is Level.READ else 'write'}"
    else:
        operations = codes([name for name, needed in LEVELS.items() if needed is level])
    return code(role), MEANINGS[level], operations


def node_types() -> str:
    """The types of nodes that run, with the first sentence of their files."""
    rows: dict[str, list[str]] = {}
    for name, text in sorted(NODE_TEXTS.items()):
        said = first_sentence(text).partition(": ")[2]
        rows.setdefault(said[:1].upper() + said[1:], []).append(name)
    return table(("Type", "What it does"), ((codes(names), said) for said, names in rows.items()))


def lists() -> str:
    """Every list: its sort fields, its filters, and its other parameters."""
    head = ("Operation", "`sortField` (default first)", "`sortDirection`", "`filterField`", "Also takes")
    return table(head, (_list_row(route) for route in TABLE.routes if _takes(route, "sortField")))


def parameters() -> str:
    """Every other operation that has query parameters."""
    rows = (
        (code(route.operation), codes(_names(route)))
        for route in sorted(TABLE.routes, key=lambda route: route.operation)
        if _names(route) and not _takes(route, "sortField")
    )
    return table(("Operation", "Query parameters"), rows)


def _names(route: Route) -> list[str]:
    return list(route.query.__struct_encode_fields__)


def _takes(route: Route, name: str) -> bool:
    return name in _names(route)


_PAGING: Final = frozenset({"page", "perPage", "filter", "sortField", "sortDirection", "filterField"})


def _list_row(route: Route) -> Sequence[str]:
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(route.query)}
    sort_fields = sorted(_choices(route, "sortField"), key=lambda name: name != defaults["sortField"])
    more = [name for name in _names(route) if name not in _PAGING]
    unpaged = "" if _takes(route, "page") else " (one page)"
    return (
        code(route.operation) + unpaged,
        codes(sort_fields),
        code(str(defaults["sortDirection"])),
        codes(_choices(route, "filterField")),
        codes(more),
    )


def _choices(route: Route, name: str) -> list[str]:
    if not _takes(route, name):
        return []
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(route.query)}
    return list(_texts(get_type_hints(route.query)[fields[name]]))


def _texts(hint: Any) -> Iterator[str]:
    for part in get_args(hint):
        if isinstance(part, str):
            yield part
        else:
            yield from _texts(part)


def places() -> str:
    """Every operation that takes an advanced query, and the parameter or body that contains it."""
    rows = (
        (code(route.operation), place, resource)
        for route in sorted(TABLE.routes, key=lambda route: route.operation)
        for place, resource in _queries(route)
    )
    return table(("Operation", "Where", "Fields of a"), rows)


def _queries(route: Route) -> Iterator[tuple[str, str]]:
    for part, found in (("URL", route.query), ("body", route.body)):
        if (whole := query_fields(found)) is not None:
            yield f"the {part}", whole.resource
        elif isinstance(found, type) and issubclass(found, msgspec.Struct):
            hints = get_type_hints(found, include_extras=True)
            for field in msgspec.structs.fields(found):
                if (known := query_fields(hints[field.name])) is not None:
                    yield f"{code(field.encode_name)} in the {part}", known.resource


def fields() -> str:
    """The fields of the advanced query and their types."""
    rows = (
        (found.resource, code(name), _HOLDS[field.kind, field.holds])
        for found in sorted(QUERY_FIELDS, key=lambda found: found.resource)
        for name, field in found.items()
    )
    return table(("Of a", "Field", "Holds"), rows)


_HOLDS: Final = {
    ("value", "string"): "text",
    ("value", "id"): "an identifier; takes all operators",
    ("values", "string"): "many texts",
    ("id", "any"): "an identifier",
    ("ids", "any"): "many identifiers",
    ("time", "any"): "a time",
    ("tags", "any"): "tags",
    ("value", "boolean"): "true or false",
    ("parts", "any"): "parts, by `type`, `key` and `config`",
}


def error_table() -> str:
    """Every error type with its status, including those of the HTTP engine."""
    known: tuple[type[errors.DomainError], ...] = (*errors.ERRORS, MethodNotAllowed, UnsupportedMediaType)
    said = {each.type: first_sentence(each.__doc__) for each in known}
    said["BadGateway"] = (
        "The process that owns the data has ended before it answered; whether the call was done is unknown."
    )
    said["NotImplemented"] = (
        "The connection refuses the method or the transfer coding, or the server does not do what the operation asks: "
        "it executes no notebooks, lacks the library for reports, or no workflow waits for a webhook or an endpoint."
    )
    statuses = ENGINE_STATUS | STATUS
    rows = (
        (str(status), code(name), said.get(name, "The connection refuses it before any operation sees it."))
        for name, status in sorted(statuses.items(), key=lambda each: each[1])
    )
    return table(("Status", "Type", "When"), rows)


# Bundles.


def portable() -> str:
    """What a bundle has, in the order of creation."""
    rows = (
        (code(each.name), code(_body_name(each.body)), code(each.created_by), code(each.option or ""))
        for each in PORTABLE
    )
    return table(("Name", "`body`, by its name in the API document", "Created by", "Only with"), rows)


def _body_name(body: Any) -> str:
    return body.__name__ if isinstance(body, type) else "row"


def not_portable() -> str:
    """What no bundle has, and why."""
    reasons: dict[str, list[str]] = {}
    for name, kind in KINDS.items():
        if kind.not_portable is not None:
            noun = "deleted device" if name == "deletedDevice" else kind.noun
            reasons.setdefault(kind.not_portable, []).append(noun)
    rows = ((", ".join(dict.fromkeys(nouns)), reason) for reason, nouns in reasons.items())
    return table(("Records", "Why not"), rows)


# The packages.


def packages() -> str:
    """The folders and packages of the two large rooms, the lowest first, with what each says of itself."""
    rows = ((code(name), said) for name, said in described(operator_tables.CHECKOUT))
    return table(("Package", "What it holds"), rows)


# The documents.

BLOCKS: Final[dict[str, dict[str, Callable[[], str]]]] = {
    "docs/reference/operations.md": {"routes": routes, "parameters": parameters, "lists": lists},
    "docs/reference/rights.md": {"roles": roles, "acting later": acting_later},
    "docs/reference/nodes.md": {
        "types of nodes": node_types,
        "functions": formula_tables.functions,
        "helpers": formula_tables.helpers,
    },
    "docs/reference/errors.md": {"errors": error_table},
    "docs/reference/query.md": {"places": places, "fields": fields},
    "docs/architecture.md": {"packages": packages, "server bounds": server_bounds},
    "docs/reference/bundles.md": {"portable": portable, "not portable": not_portable},
    "docs/reference/commands.md": {"commands": operator_tables.commands},
    "docs/reference/settings.md": {"settings": operator_tables.settings},
    "docs/reference/limits.md": {"limits": operator_tables.limits},
    "docs/reference/metrics.md": {"metrics": operator_tables.metrics},
    "docs/guides/testing.md": {
        **fault_tables.RARE_STATES,
        "mistakes": fault_tables.mistakes,
        "faults found": fault_tables.faults_found,
    },
    "docs/reference/look.md": {"sizes": look.sizes, "colours": look.colours},
}
"""For each document its tables, by name."""


def place(text: str, name: str, block: str) -> str:
    """The document with one table regenerated. Raises ValueError if the comments of the table are missing."""
    opening, closing = f"<!-- made from the code: {name} -->\n", f"\n<!-- end: {name} -->"
    before, found, rest = text.partition(opening)
    _, closed, after = rest.partition(closing)
    if not (found and closed):
        raise ValueError(f"{opening.strip()} and {closing.strip()} must stand in the document")
    return before + opening + block + closing + after


def written(document: str, text: str) -> str:
    """The document with all its tables regenerated."""
    for name, make in BLOCKS[document].items():
        text = place(text, name, make())
    return text


if __name__ == "__main__":
    for document in BLOCKS:
        path = operator_tables.CHECKOUT / document
        path.write_text(written(document, path.read_text(encoding="utf-8")), encoding="utf-8")
