"""Routes of endpoints: which paths a route matches, which routes clash, and which endpoint serves a request.

A route consists of segments: `/devices/{id}/state`. A segment is a literal text, a parameter `{p}`, or, as the last
one, an optional parameter `{p?}` or the rest of the path `{p*}`, which may be empty. A slash at the end of a path or
of a route has no meaning. Literals are compared with regard to case, after percent-decoding.

The most specific route serves a request: routes are compared segment by segment from the left, and a literal is more
specific than a parameter, a parameter than the rest of the path, and the end of a route than the rest of the path.
Two routes of one method clash if they could match the same path and neither is more specific. Pure: no store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from trunkline.actors.core.values.errors import Invalid

_PARAMETER: Final = re.compile(r"\{([0-9a-zA-Z_]{1,255})([?*]?)\}")
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f{}?#]")
_FORM: Final = "write it as /devices/{id}, /devices/{id?} or /files/{path*}"

_PARAMETER_KEY: Final = "{}"
_REST_KEY: Final = "{*}"
_END: Final = "/"
"""Keys of the tree. A literal has the key `=` and its text, so it is never equal to one of these."""

Shape = tuple[str, ...]
"""The segments of a route as keys of the tree, without the names of parameters."""


class Pattern(NamedTuple):
    """A route with or without its optional parameter. `names` are those of the parameters, in order."""

    shape: Shape
    names: tuple[str, ...]


class Served(NamedTuple):
    """The endpoint that serves a request, and the values of the parameters of its route, decoded."""

    endpoint: bytes
    path: dict[str, str]


def patterns(route: str) -> tuple[Pattern, ...]:
    """What a route matches: one pattern, or two if its last parameter is optional. Raises `Invalid`."""
    if not route.startswith("/"):
        raise Invalid(f"route: {route[:100]!r} does not begin with a slash; {_FORM}.")
    shape: list[str] = []
    names: list[str] = []
    segments = route[1:].removesuffix("/").split("/") if route != "/" else []
    for position, segment in enumerate(segments):
        found = _PARAMETER.fullmatch(segment)
        if found is None:
            shape.append("=" + _literal(segment))
            continue
        name, kind = found.groups()
        if name in names:
            raise Invalid(
                f"route: the parameter {name} stands in it twice; give each parameter its own name."
            )
        if kind and position < len(segments) - 1:
            raise Invalid(f"route: {segment} is followed by more; only the last segment can be of this kind.")
        names.append(name)
        if kind == "?":
            return (
                Pattern((*shape, _PARAMETER_KEY), tuple(names)),
                Pattern(tuple(shape), tuple(names[:-1])),
            )
        shape.append(_REST_KEY if kind == "*" else _PARAMETER_KEY)
    return (Pattern(tuple(shape), tuple(names)),)


def _literal(segment: str) -> str:
    if not segment:
        raise Invalid(f"route: has an empty segment between two slashes; {_FORM}.")
    if _FORBIDDEN.search(segment):
        raise Invalid(
            f"route: {segment[:100]!r} is not a valid segment: a parameter is a whole segment, and spaces, "
            f"braces, ? and # cannot be in a literal; {_FORM}."
        )
    return unquote(segment)


def order_text(route: str) -> str:
    """A text by which routes sort in the order in which they are tried: the most specific first."""
    (pattern, *_) = patterns(route)
    ranks = {_PARAMETER_KEY: "1", _REST_KEY: "2"}
    return "/".join(ranks.get(key, f"0{key[1:]}") for key in pattern.shape)


class RouteTree:
    """The routes of the endpoints of one experience version."""

    __slots__ = ("_roots",)

    def __init__(self, endpoints: Iterable[tuple[bytes, str, str]] = ()) -> None:
        """Take `(endpoint, method, route)` of each endpoint."""
        self._roots: dict[str, dict[str, Any]] = {}
        for endpoint, method, route in endpoints:
            self.add(endpoint, method, route)

    def add(self, endpoint: bytes, method: str, route: str) -> None:
        """Add an endpoint, which must not clash with another one."""
        for pattern in patterns(route):
            node = self._roots.setdefault(method, {})
            for key in pattern.shape:
                node = node.setdefault(key, {})
            node[_END] = (endpoint, pattern.names)

    def clashing(self, method: str, route: str, *, but: bytes | None = None) -> bytes | None:
        """The endpoint whose route clashes with this one, if any; `but` is an endpoint that does not count."""
        for pattern in patterns(route):
            node: dict[str, Any] | None = self._roots.get(method)
            for key in pattern.shape:
                node = None if node is None else node.get(key)
            if node is not None and _END in node and node[_END][0] != but:
                other: bytes = node[_END][0]
                return other
        return None

    def find(self, method: str, path: str) -> Served | None:
        """The endpoint that serves a method (lower case) and a path without query string; None if there is none.

        HEAD is served by the endpoint for GET. Takes at most one step for each segment of each route.
        """
        root = self._roots.get("get" if method == "head" else method)
        if root is None:
            return None
        segments = (
            [unquote(each) for each in path[1:].removesuffix("/").split("/")] if path.strip("/") else []
        )
        end = len(segments)
        # The most specific branch is on top of the stack.
        stack: list[tuple[dict[str, Any], int, tuple[str, ...]]] = [(root, 0, ())]
        while stack:
            node, at, values = stack.pop()
            if at == end and _END in node:
                endpoint, names = node[_END]
                return Served(endpoint, dict(zip(names, values, strict=True)))
            if _REST_KEY in node:
                stack.append((node[_REST_KEY], end, (*values, "/".join(segments[at:]))))
            if at < end:
                if segments[at] and _PARAMETER_KEY in node:
                    stack.append((node[_PARAMETER_KEY], at + 1, (*values, segments[at])))
                if f"={segments[at]}" in node:
                    stack.append((node[f"={segments[at]}"], at + 1, values))
        return None
