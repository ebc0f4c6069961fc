"""What rows of plain resources give as examples: a body that creates a record, and one that changes it.

Tests of all resources and of all lists make their records from these, so a new resource is tested with its row. They
need a field `name`; a resource without one, or with a secret, has lines of its own in these tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from trunkline.actors.core.records.resource import Resource
from trunkline.http.routes import TABLE


class RowExample(NamedTuple):
    """The examples of a resource, and the path and the operation of its list."""

    resource: Resource
    path: str
    listed: str
    post: dict[str, Any]
    patch: dict[str, Any]


def row_examples() -> Iterator[RowExample]:
    """Those of all resources whose rows have them."""
    changes = {route.resource: route.example for route in TABLE.routes if route.method == "PATCH"}
    for route in TABLE.routes:
        if route.resource is not None and route.new_id is not None and route.example is not None:
            listed = route.operation.removesuffix(".post") + ".get"
            post, patch = route.example, changes[route.resource]
            yield RowExample(route.resource, route.path, listed, post, patch)
