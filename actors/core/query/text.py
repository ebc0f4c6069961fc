"""Advanced queries that people made in an editor: JSON text within a body, and the templates of nodes.

An editor leaves an empty array where somebody has chosen no condition yet. The API refuses such a query; here it means
what editors say: without conditions "all" and "any" match everything, and "none" matches nothing.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.nesting import check_nesting

NOTHING: Final[Any] = {"id": {"$in": []}}
"""The query that nothing matches. Every resource has an id."""


def parse_query(text: str, at: str) -> Any:
    """The query in a text; an empty one for a blank text. Raises `Invalid`."""
    if not text.strip():
        return {}
    try:
        query = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Invalid(f"{at}: is not JSON: {error}.") from None
    check_nesting(query, at)
    if not isinstance(query, dict | list):
        raise Invalid(f"{at}: is not an advanced query, which is a JSON object.")
    return as_edited(query)


def as_edited(query: Any) -> Any:
    """The query without the empty arrays that an editor has left at its top."""
    if not isinstance(query, dict):
        return query
    if query.get("$nor") == []:
        return NOTHING
    return {key: value for key, value in query.items() if key not in ("$and", "$or") or value != []}
