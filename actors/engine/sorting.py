"""The order of JSON values in which arrays are sorted, and sorting by it beside other threads."""

from __future__ import annotations

from heapq import merge
from operator import itemgetter
from typing import Any, Final

from trunkline.actors.core.formulas.values import double, type_of

SORTED_AT_ONCE: Final = 1_024
"""Items that one call of C sorts; those of more are merged, by which other threads do not wait."""

Items = list[Any]
_RANKS: Final = {"boolean": 0, "number": 1, "string": 2, "array": 3, "object": 3, "null": 4, "undefined": 4}


def rank(value: Any) -> tuple[int, Any]:
    """What values are sorted by. Texts are ordered by UTF-16 code units, as in JavaScript."""
    rank = _RANKS[type_of(value)]
    if rank > 2:
        return rank, 0
    return rank, value.encode("utf-16-be", "surrogatepass") if rank == 2 else double(value)


def sort_by(items: Items, values: Items, descending: bool) -> tuple[None, Items]:
    ranked = list(zip(map(rank, values), items, strict=True))
    parts = []
    for start in range(0, len(ranked), SORTED_AT_ONCE):
        part = ranked[start : start + SORTED_AT_ONCE]
        part.sort(key=itemgetter(0), reverse=descending)
        parts.append(part)
    return None, [item for _, item in merge(*parts, key=itemgetter(0), reverse=descending)]
