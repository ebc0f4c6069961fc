"""Pages of lists: the query, the filter and the envelope of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import Meta

from trunkline.actors.core.query.compile import Bounds, compile_glob, glob_bounds
from trunkline.actors.core.records.kind import value_at
from trunkline.actors.core.values.structs import Query
from trunkline.actors.core.values.terms import (
    SortDirection,
)


class Page(Query, frozen=True):
    """Paging and filtering of a list, from the query string. `page` counts from zero."""

    page: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    per_page: Annotated[int, Meta(ge=1, le=1000)] = 100
    sort_field: str = "name"
    sort_direction: SortDirection = "asc"
    filter: Annotated[str, Meta(max_length=1024)] | None = None


Match = Callable[[Mapping[str, Any]], bool]


def all_of(matches: list[Match]) -> Match | None:
    """Combine predicates into one; None if there are none, so that an index can serve the list."""
    if not matches:
        return None
    if len(matches) == 1:
        return matches[0]
    return lambda doc: all(match(doc) for match in matches)


def glob_match(query: Page, field: str | None) -> list[Match]:
    """The `filterField` and `filter` of a list as a predicate; an empty list if either is blank."""
    if field is None or not query.filter:
        return []
    matches = compile_glob(query.filter)
    return [lambda doc: matches(str(value_at(doc, field) or ""))]


def glob_range(query: Page, field: str | None) -> Mapping[str, Bounds]:
    """The bounds of the field in documents that `glob_match` accepts. The field must be a text."""
    bounds = None if field is None else glob_bounds(query.filter or "")
    return {} if field is None or bounds is None else {field: bounds}


def page_fields(items: list[Any], total: int, query: Any) -> dict[str, Any]:
    """The fields of an answer with a page of a list; the query has `page`, `per_page` and `sort_direction`."""
    return {
        "items": items,
        "count": len(items),
        "total_count": total,
        "page": query.page,
        "per_page": query.per_page,
        "sort_direction": query.sort_direction,
    }


def envelope(type: str, items: list[dict[str, Any]], total: int, query: Page) -> dict[str, Any]:
    """The answer to a list: the items of the page, the counts, and the parameters of the request."""
    shown: dict[str, Any] = {
        "items": items,
        "count": len(items),
        "totalCount": total,
        "page": query.page,
        "perPage": query.per_page,
        "sortField": query.sort_field,
        "sortDirection": query.sort_direction,
        "_type": type,
    }
    filter_field = getattr(query, "filter_field", None)
    if filter_field is not None:
        shown["filterField"] = filter_field
    if query.filter is not None:
        shown["filter"] = query.filter
    asked = getattr(query, "query", None)
    if asked is not None:
        shown["query"] = asked
    return shown
