"""The route table: finds the route of a method and a path."""

from __future__ import annotations

from typing import Any

from trunkline.actors.values.structs import Message
from trunkline.http.calls.message_fields import FieldSources, field_sources
from trunkline.http.calls.route import Route

RouteMatch = tuple[dict[str, Route], list[str]]
"""The routes of a path by method, and the values of its path parameters."""


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
                node = node.setdefault("{}" if part.startswith("{") else part, {})
            methods: dict[str, Route] = node.setdefault("/", {})
            assert route.method not in methods, f"two routes for {route.method} {route.path}"
            methods[route.method] = route
        self.operations = frozenset(route.operation for route in routes)
        self.scopes = {route.operation: route.scopes for route in routes}

    def match(self, path: str) -> RouteMatch | None:
        """The routes of a path by method, and the values of its path parameters; None for an unknown path.

        A literal segment takes precedence over a path parameter.
        """
        node = self._root
        values: list[str] = []
        for part in path.strip("/").split("/"):
            found = node.get(part) if part not in ("/", "{}") else None
            if found is None:
                found = node.get("{}")
                if found is None or not part:
                    return None
                values.append(part)
            node = found
        methods = node.get("/")
        return None if methods is None else (methods, values)
