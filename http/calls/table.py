"""The route table: from a method and a path to a row."""

from __future__ import annotations

from typing import Any

from trunkline.actors.values.structs import Message
from trunkline.http.calls.fields import Filled, filled
from trunkline.http.calls.route import Route


class RouteTable:
    """All rows, and the way from a method and a path to one of them.

    `filled` says for each row and each of its messages what fills the fields. Raises TypeError where something of a
    row does not fit together.
    """

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self.routes = routes
        self.filled: dict[tuple[Route, type[Message]], Filled] = {
            (route, message): filled(route, message)
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
            assert route.method not in methods, f"two rows for {route.method} {route.path}"
            methods[route.method] = route
        self.operations = frozenset(route.operation for route in routes)
        self.scopes = {route.operation: route.scopes for route in routes}

    def match(self, path: str) -> tuple[dict[str, Route], list[str]] | None:
        """The rows of a path by method, and the values of its placeholders; None for an unknown path.

        A literal segment wins over a placeholder.
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
