"""The largest queries do not hold the event loop for long: each operator, with each kind of field.

What is fed is generated from the tables of operators and kinds: a query is compiled, and one document is matched. How
many are matched in a turn of the loop is no part of it (`core/query/price.py`).
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any, get_args

import pytest

from tests.actors.core.formulas.worst_values import GENEROUS, LIMIT_MS
from trunkline.actors.core.query.compile import CONDITIONS_MAX, LOGICAL, QueryError, compile_query
from trunkline.actors.core.query.conditions import OPERATORS
from trunkline.actors.core.query.fields import Field, FieldKind, Holds
from trunkline.actors.core.query.problems import ITEMS_MAX

pytestmark = pytest.mark.slow

DOCUMENT_CHARS = 32_767
"""Characters of a text of a record."""
OPERANDS: dict[str, Any] = {
    "text": "a" * 900_000,
    "wide": "ß" * 400_000,
    "digits": "1" * 900_000,
    "id": "a" * 24,
    "number": 1e300,
    "time": "2024-05-01T12:00:00.000Z",
    "null": None,
    "items": ["a" * 9_000 + str(at) for at in range(ITEMS_MAX)],
    "numbers": list(range(ITEMS_MAX)),
    "too many": ["a"] * 200_000,
    "tag": {"$tagKey": "a" * 255, "$tagValue": {"$in": ["b" * 255] * ITEMS_MAX}},
    "object": {f"k{at}": "a" for at in range(60_000)},
    "part": {"type": "timer", "config": {f"k{at}": at for at in range(100)}},
}
BODY = 1_000_000
"""Characters of the query of a call."""
SIZES = {name: 20 + len(json.dumps(operand, ensure_ascii=False)) for name, operand in OPERANDS.items()}
DOCUMENTS: list[Any] = [
    "a" * DOCUMENT_CHARS,
    "ß" * DOCUMENT_CHARS,
    ["a" * 255] * 100,
    [{"key": "a" * 255, "value": "a" * 255}] * 100,
    [{"type": "timer", "key": "k", "config": {}}] * 1_000,
    1,
    None,
]
FIELDS = [Field(kind) for kind in get_args(FieldKind)] + [Field("value", holds) for holds in get_args(Holds)]


def documents(field: Field) -> list[Any]:
    """The worst values that such a field may have."""
    if field.kind in ("tags", "parts"):
        return [each for each in DOCUMENTS if isinstance(each, list) and isinstance(each[0], dict)]
    if field.kind in ("values", "ids"):
        return [each for each in DOCUMENTS if isinstance(each, list) and isinstance(each[0], str)]
    return [each for each in DOCUMENTS if not isinstance(each, list)]


def took_ms(query: Any, field: Field) -> float:
    """Compile a query, and match one document, in milliseconds of this thread: the longer of both."""
    began_ns = time.thread_time_ns()
    try:
        compiled = compile_query(query, {"a": field})
    except QueryError:
        return (time.thread_time_ns() - began_ns) / 1e6
    longest_ns = time.thread_time_ns() - began_ns
    for value in documents(field):
        began_ns = time.thread_time_ns()
        with suppress(Exception):  # a document that the field does not describe
            compiled.matches({"a": value})
        longest_ns = max(longest_ns, time.thread_time_ns() - began_ns)
    return longest_ns / 1e6


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.kind}-{field.holds}")
def test_the_worst_conditions_do_not_hold_the_loop(field: Field) -> None:
    for name, operand in OPERANDS.items():
        for operator in (*OPERATORS, None):
            for folded in (False, True):
                given = {} if operator is None else {operator: operand, **({"$ci": True} if folded else {})}
                condition = given if operator else operand
                many = [{"a": condition}] * min(ITEMS_MAX - 1, BODY // SIZES[name])
                queries: list[Any] = [{"a": condition}]
                queries += [{key: many} for key in LOGICAL if many]
                for query in queries:
                    if operator is None and folded:
                        continue
                    took = took_ms(query, field)
                    if took > LIMIT_MS:
                        took = min(took, took_ms(query, field))
                    assert took < GENEROUS * LIMIT_MS, (name, operator, folded, [*query])


def test_the_deepest_and_widest_queries_do_not_hold_the_loop() -> None:
    field = Field("value")
    deep: Any = {"a": 1}
    for _ in range(5_000):
        deep = {"$and": [deep]}
    wide = {"$or": [{"$and": [{"a": at} for at in range(ITEMS_MAX)]}] * (CONDITIONS_MAX // ITEMS_MAX)}
    unknown = {f"field{at}": 1 for at in range(60_000)}
    for query in (deep, wide, unknown, {"a" * 900_000: 1}, {"$" + "a" * 900_000: 1}):
        assert min(took_ms(query, field) for _ in range(2)) < GENEROUS * LIMIT_MS
