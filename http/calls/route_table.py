"""The route table: finds the route of a method and a path."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.names import similar_names
from trunkline.actors.core.values.structs import Message
from trunkline.http.calls.message_fields import FieldSources, field_sources
from trunkline.http.calls.path_parameters import REST
from trunkline.http.calls.route import Route

RouteMatch = tuple[dict[str, Route], list[str]]
"""The routes of a path by method, and the values of its path parameters."""


_PARAMETER: Final = "{}"
_REST: Final = "{*}"
_BELOW: Final = "/*"
_NO_SEGMENTS: Final = ("/", _PARAMETER, _REST, _BELOW)
"""The names of nodes that are no literal segment of a path."""


class RouteTable:
    """All routes. `match` finds those of a path.

    `field_sources` has the sources of the fields for each message of each route. Raises TypeError for a route whose
    parts are inconsistent.
    """

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self.routes = routes
        self.field_sources: dict[tuple[Route, type[Message]], FieldSources] = {
            (route, message): field_sources(route, message)
            for route in routes
            for message in (route.message, route.then, *route.uses)
            if message is not None
        }
        self._root: dict[str, Any] = {}
        for route in routes:
            node = self._root
            for part in route.path.strip("/").split("/"):
                node = node.setdefault(_node_name(part), {})
            methods: dict[str, Route] = node.setdefault("/", {})
            assert route.method not in methods, f"two routes for {route.method} {route.path}"
            methods[route.method] = route
            if route.below:
                node[_BELOW] = methods
        self.operations = frozenset(route.operation for route in routes)
        self.by_operation = {route.operation: route for route in routes}

    def match(self, path: str) -> RouteMatch | None:
        """The routes of a path by method, and the values of its path parameters; None for an unknown path.

        A literal segment takes precedence over a path parameter. A parameter of `REST` is all segments that are left;
        those after a path with routes that are `below` are ignored.
        """
        node = self._root
        values: list[str] = []
        parts = path.strip("/").split("/")
        for number, part in enumerate(parts):
            found = node.get(part) if part not in _NO_SEGMENTS else None
            if found is None:
                if _BELOW in node:
                    return node[_BELOW], values
                if not part:
                    return None
                found = node.get(_PARAMETER)
                if found is None:
                    if _REST not in node:
                        return None
                    values.append("/".join(parts[number:]))
                    node = node[_REST]
                    break
                values.append(part)
            node = found
        methods = node.get("/")
        return None if methods is None else (methods, values)

    def read_path(self, route: Route, values: list[str]) -> dict[str, Any]:
        """The values of the path parameters of a route by name.

        Raises `Invalid` for the first one that does not fit, with the path that was probably meant.
        """
        ids: dict[str, Any] = {}
        for part, value in zip(route.path_parameters, values, strict=True):
            try:
                ids[part.name] = part.read(value)
            except Invalid as refusal:
                path = self._similar_path(
                    route.path.partition(f"{{{part.placeholder}}}")[0], part.placeholder, value
                )
                meant = f" (did you mean {path}?)." if path else "."
                raise Invalid(refusal.message.removesuffix(".") + meant) from None
        return ids

    def _similar_path(self, before: str, placeholder: str, word: str) -> str | None:
        """The path that somebody may have meant who wrote a word for a path parameter after `before`."""
        paths = {route.path for route in self.routes if route.path.startswith(before)}
        below = f"{before}{{{placeholder}}}/{word}"
        if below in paths:
            return below
        literals = {path.removeprefix(before).partition("/")[0] for path in paths}
        similar = similar_names(word, sorted(each for each in literals if not each.startswith("{")))
        return f"{before}{similar[0]}" if similar else None


def _node_name(part: str) -> str:
    """The name of the node of a segment of a route's path."""
    if not part.startswith("{"):
        return part
    return _REST if part[1:-1] in REST else _PARAMETER
