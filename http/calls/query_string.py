"""The query string: parsing the text into the typed struct of a route.

Accepts `a=b`, repeated names (`c=x&c=y`), bracketed names (`tagFilter[0][key]=x`, `query[name][$eq]=y`) and JSON text
for a structured parameter (`query={"name":"x"}`). Names that the route does not know are refused, except
`_links`, `_actions` and `_embedded`, which every route accepts. The values of a bracketed query are interpreted by
`core/query/brackets.py`, with the field table of the parameter.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from trunkline.actors.core.query import brackets as query_brackets
from trunkline.actors.core.query.fields import Fields
from trunkline.actors.core.query.schema import QUERY_FIELDS
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.invalid_input import invalid
from trunkline.actors.core.values.structs import BLANK

FIELDS_MAX = 1000
DEPTH_MAX = 40
"""Brackets in one name: enough for a query of the depth that the compiler accepts, two for each level."""
_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)\Z")
_PART = re.compile(r"\[([^\[\]]*)\]")


class QueryParser:
    """Parses query strings into one struct type. Made once for each type (`query_parser`)."""

    __slots__ = ("_blanks", "_default", "_fields", "_lists", "_names", "_structured", "_type")

    def __init__(self, type: type[msgspec.Struct]) -> None:
        self._type = type
        try:
            self._default: Any = type()
        except TypeError:  # a parameter is required
            self._default = None
        hints = get_type_hints(type, include_extras=True)
        names = dict(zip(type.__struct_fields__, type.__struct_encode_fields__, strict=True))
        self._names = frozenset(names.values())
        shapes = {names[field]: _container_types(hints[field]) for field in names}
        tables = {names[field]: query_fields(hints[field]) for field in names}
        self._fields = {name: table for name, table in tables.items() if table is not None}
        self._blanks = frozenset(names[field] for field in names if _takes_blank(hints[field]))
        self._lists = frozenset(name for name, shape in shapes.items() if list in shape)
        self._structured = frozenset(name for name, shape in shapes.items() if shape & {list, dict})

    def parse(self, raw: bytes) -> tuple[Any, bool]:
        """Return the struct, and whether the response contains links. Raises `Invalid` with the parameter.

        `_links=false` leaves the links out; `_actions` and `_embedded` are checked and have no effect.
        """
        if not raw and self._default is not None:
            return self._default, True
        values = _nested_values(raw)
        links, _, _ = [_switch(values, name) for name in ("_links", "_actions", "_embedded")]
        for name in self._structured & values.keys():
            values[name] = self._decode_structured(name, values[name])
        # A blank parameter that is known counts as not given, because clients send forms with empty fields;
        # but not where blank has a meaning of its own.
        dropped = self._names - self._blanks
        given = {name: value for name, value in values.items() if value != "" or name not in dropped}
        try:
            return msgspec.convert(given, self._type, strict=False), links
        except msgspec.ValidationError as error:
            raise invalid(error, "query", self._type, given) from None

    def _decode_structured(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            try:
                return msgspec.json.decode(value)
            except msgspec.DecodeError as error:
                raise Invalid(f"{name}: is not JSON: {error}.") from None
            except RecursionError:
                raise Invalid(f"{name}: nests too deeply; make it flatter.") from None
        if name in self._lists:
            if isinstance(value, str):
                return [part for part in value.split(",") if part]
            return query_brackets.array(value)
        if isinstance(value, str) and value:
            raise Invalid(f"{name}: is not a JSON object; pass JSON text or bracketed names.")
        if name in self._fields:
            return query_brackets.read_query(value, self._fields[name])
        return _with_arrays(value)


def _with_arrays(value: Any) -> Any:
    """An object in its JSON form: what has numbers as its names is an array."""
    value = query_brackets.array(value) if isinstance(value, dict) else value
    if isinstance(value, list):
        return [_with_arrays(item) for item in value]
    return {name: _with_arrays(each) for name, each in value.items()} if isinstance(value, dict) else value


def _switch(values: dict[str, Any], name: str) -> bool:
    """Take a parameter that is true or false out of `values`; true if it is not given or blank."""
    value = str(values.pop(name, "") or "true").lower()
    if value not in ("true", "1", "false", "0"):
        raise Invalid(f"{name}: must be true or false.")
    return value in ("true", "1")


@cache
def query_parser(type: type[msgspec.Struct]) -> QueryParser:
    """The parser of query strings of this type; most routes have one of a few types."""
    return QueryParser(type)


def query_fields(hint: Any) -> Fields | None:
    """The field table in the type hint of an advanced query; None for any other hint."""
    for part in (hint, *get_args(hint)):
        for meta in getattr(part, "__metadata__", ()):
            if isinstance(meta, msgspec.Meta) and meta.extra and QUERY_FIELDS in meta.extra:
                table: Fields = meta.extra[QUERY_FIELDS]
                return table
    return None


def _takes_blank(hint: Any) -> bool:
    """Whether a blank parameter has a meaning of its own."""
    parts = (hint, *get_args(hint))
    metas = [meta for part in parts for meta in getattr(part, "__metadata__", ())]
    return any(isinstance(meta, msgspec.Meta) and BLANK in (meta.extra or ()) for meta in metas)


def _container_types(hint: Any) -> set[type]:
    """The container types that a hint allows."""
    origin = get_origin(hint)
    if origin in (list, dict):
        return {origin}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return {dict}
    found: set[type] = set()
    for part in get_args(hint):
        found |= _container_types(part)
    return found


def _nested_values(raw: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"
        )
    except ValueError:
        raise Invalid(
            f"The query string cannot be read: it must be percent-encoded UTF-8 with at most {FIELDS_MAX} fields."
        ) from None
    values: dict[str, Any] = {}
    for name, value in pairs:
        found = _NAME.match(name)
        if found is None:
            raise Invalid(f"{name[:100]}: is not a name of a query parameter.")
        _insert(values, [found[1], *_PART.findall(found[2])], value, name)
    return values


def _insert(values: dict[str, Any], path: list[str], value: str, name: str) -> None:
    if len(path) > DEPTH_MAX:
        raise Invalid(f"{name[:100]}: nests deeper than {DEPTH_MAX} levels.")
    here = values
    *above, last = path
    for part in above:
        inner = here.setdefault(part or str(len(here)), {})  # `[]` is the next item
        if not isinstance(inner, dict):
            raise Invalid(f"{name[:100]}: is given both as a value and as an object.")
        here = inner
    key = last or str(len(here))
    if key in here:
        before = here[key]
        if isinstance(before, dict):
            raise Invalid(f"{name[:100]}: is given both as a value and as an object.")
        here[key] = [*before, value] if isinstance(before, list) else [before, value]
    else:
        here[key] = value
