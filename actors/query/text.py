"""Advanced queries that are JSON text within a body, as in the blocks of dashboards and in the inputs of notebooks."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.values.errors import Invalid
from trunkline.actors.values.nesting import check_nesting


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
    return query
