"""The query string: from text to the typed struct of a route.

Takes `a=b`, repeated names (`c=x&c=y`), bracketed names (`tagFilter[0][key]=x`, `query[name][$eq]=y`) and
JSON text for a structured parameter (`query={"name":"x"}`). Names that the route does not know are refused,
except those that every client of this API may send.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from trunkline.actors.errors import Invalid
from trunkline.http.errors import invalid

UNIVERSAL = frozenset({"_links", "_actions", "_embedded"})
"""`_links=false` drops the links of the answer; the other two are accepted and change nothing."""

FIELDS_MAX = 1000
DEPTH_MAX = 20
_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)\Z")
_PART = re.compile(r"\[([^\[\]]*)\]")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?\Z")


class QueryParser:
    """Parses query strings into one struct type. Made once for each route."""

    __slots__ = ("_default", "_lists", "_structured", "_type")

    def __init__(self, type: type[msgspec.Struct]) -> None:
        self._type = type
        try:
            self._default: Any = type()
        except TypeError:  # a parameter is required
            self._default = None
        hints = get_type_hints(type, include_extras=False)
        names = dict(zip(type.__struct_fields__, type.__struct_encode_fields__, strict=True))
        shapes = {names[field]: _shapes(hints[field]) for field in names}
        self._lists = frozenset(name for name, shape in shapes.items() if list in shape)
        self._structured = frozenset(name for name, shape in shapes.items() if shape & {list, dict})

    def parse(self, raw: bytes) -> tuple[Any, bool]:
        """The struct, and whether links are wanted. Raises `Invalid` naming the parameter."""
        if not raw and self._default is not None:
            return self._default, True
        values = _nested(raw)
        links = str(values.pop("_links", "true")).lower() not in ("false", "0")
        values.pop("_actions", None)
        values.pop("_embedded", None)
        for name in self._structured & values.keys():
            values[name] = self._structure(name, values[name])
        # A blank parameter is an absent one, as clients send forms with empty fields.
        given = {name: value for name, value in values.items() if value != ""}
        try:
            return msgspec.convert(given, self._type, strict=False), links
        except msgspec.ValidationError as error:
            raise invalid(error, "query") from None

    def _structure(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value[:1] in ("{", "["):
            try:
                return msgspec.json.decode(value)
            except msgspec.DecodeError as error:
                raise Invalid(f"{name}: is not JSON: {error}.") from None
        if name in self._lists:
            if isinstance(value, str):
                return [part for part in value.split(",") if part]
            if isinstance(value, dict):
                return _as_list(value)
        elif isinstance(value, str) and value:
            raise Invalid(f"{name}: is not a JSON object; pass JSON text or bracketed names.")
        return _typed(value)


def _shapes(hint: Any) -> set[type]:
    """The containers that a hint allows."""
    origin = get_origin(hint)
    if origin in (list, dict):
        return {origin}
    found: set[type] = set()
    for part in get_args(hint):
        found |= _shapes(part)
    return found


def _nested(raw: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"
        )
    except ValueError:
        raise Invalid(
            f"The query string can not be read: it must be percent-encoded UTF-8 with at most {FIELDS_MAX} fields."
        ) from None
    values: dict[str, Any] = {}
    for name, value in pairs:
        found = _NAME.match(name)
        if found is None:
            raise Invalid(f"{name[:100]}: is not a name of a query parameter.")
        _place(values, [found[1], *_PART.findall(found[2])], value, name)
    return values


def _place(values: dict[str, Any], path: list[str], value: str, name: str) -> None:
    if len(path) > DEPTH_MAX:
        raise Invalid(f"{name[:100]}: nests deeper than {DEPTH_MAX} levels.")
    here = values
    for part, following in pairwise(path):
        key = part or str(len(here))
        inner = here.setdefault(key, {})
        if not isinstance(inner, dict):
            raise Invalid(f"{name[:100]}: is given both as a value and as an object.")
        here = inner
        if following == "":
            path = [*path[:-1], str(len(here))]
    key = path[-1]
    if key in here:
        before = here[key]
        if isinstance(before, dict):
            raise Invalid(f"{name[:100]}: is given both as a value and as an object.")
        here[key] = [*before, value] if isinstance(before, list) else [before, value]
    else:
        here[key] = value


def _as_list(value: dict[str, Any]) -> Any:
    """`{"0": x, "1": y}`, as bracketed names make it, as a list; anything else as it is."""
    if value and all(key.isdigit() for key in value):
        return [_untyped(value[key]) for key in sorted(value, key=int)]
    return value


def _untyped(value: Any) -> Any:
    """Containers of bracketed names; the texts in them stay texts."""
    if isinstance(value, dict):
        return {key: _untyped(inner) for key, inner in value.items()}
    return value


def _typed(value: Any) -> Any:
    """Bracketed names carry only text: numbers, booleans and null are read from their JSON spelling."""
    if isinstance(value, dict):
        inner = {key: _typed(item) for key, item in value.items()}
        if inner and all(key.isdigit() for key in inner):
            return [inner[key] for key in sorted(inner, key=int)]
        return inner
    if isinstance(value, list):
        return [_typed(item) for item in value]
    if value in ("true", "false", "null") or (isinstance(value, str) and _NUMBER.match(value)):
        return msgspec.json.decode(value)
    return value
