"""What holds for every query and every document: the laws of logic.

`test_query_database.py` holds the answers against those of a document database.
"""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.actors.query_strategies import FIELDS, PLAIN, Json, hex_ids, sides, tag_texts
from trunkline.actors.core.query.compile import QueryError, compile_glob, compile_query

scalars, documents, queries = PLAIN.scalars, PLAIN.documents, PLAIN.queries


def matched(query: Json, docs: list[dict[str, Any]]) -> list[bool]:
    compiled = compile_query(query, FIELDS)
    return [compiled.matches(doc) for doc in docs]


def inverse(answers: list[bool]) -> list[bool]:
    return [not answer for answer in answers]


some_documents = st.lists(documents, min_size=1, max_size=6)
some_queries = st.lists(queries, min_size=1, max_size=3)


# -- laws ----------------------------------------------------------------------------------------------------


@given(some_queries, some_documents)
def test_logic_obeys_de_morgan(parts: list[Json], docs: list[dict[str, Any]]) -> None:
    either, each = matched({"$or": parts}, docs), matched({"$and": parts}, docs)
    assert matched({"$nor": parts}, docs) == inverse(either)
    assert matched({"$and": [{"$nor": [part]} for part in parts]}, docs) == inverse(either)
    assert matched({"$or": [{"$nor": [part]} for part in parts]}, docs) == inverse(each)


@given(st.sampled_from(["v", "list"]), st.lists(scalars, max_size=4), st.booleans(), some_documents)
def test_ne_and_nin_are_the_inverse_of_eq_and_in(
    name: str, operands: list[Any], ci: bool, docs: list[dict[str, Any]]
) -> None:
    inside = matched({name: {"$in": operands, "$ci": ci}}, docs)
    assert matched({name: {"$nin": operands, "$ci": ci}}, docs) == inverse(inside)
    for operand in operands:
        equal = matched({name: {"$eq": operand, "$ci": ci}}, docs)
        assert matched({name: {"$ne": operand, "$ci": ci}}, docs) == inverse(equal)
    if operands:
        assert inside == matched({"$or": [{name: {"$eq": item, "$ci": ci}} for item in operands]}, docs)


@given(st.one_of(scalars, st.none()), some_documents)
def test_or_equal_is_the_range_or_equality(operand: Any, docs: list[dict[str, Any]]) -> None:
    for strict, loose in (("$gt", "$gte"), ("$lt", "$lte")):
        either = matched({"$or": [{"v": {strict: operand}}, {"v": operand}]}, docs)
        assert matched({"v": {loose: operand}}, docs) == either
    ordered = matched({"$or": [{"v": {"$gte": operand}}, {"v": {"$lt": operand}}]}, docs)
    brackets = [bracket(doc.get("v")) == bracket(operand) for doc in docs]
    assert ordered == brackets


def bracket(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


@given(queries, some_documents)
def test_a_query_answers_the_same_twice(query: Json, docs: list[dict[str, Any]]) -> None:
    compiled = compile_query(query, FIELDS)
    first = [compiled.matches(doc) for doc in docs]
    assert [compiled.matches(doc) for doc in docs] == first
    assert matched(query, docs) == first


@given(queries, documents)
def test_a_missing_field_is_null(query: Json, doc: dict[str, Any]) -> None:
    nulls = dict.fromkeys(FIELDS.keys() - doc.keys())
    assert matched(query, [doc]) == matched(query, [{**nulls, **doc}])


@given(queries, documents)
def test_only_the_fields_that_it_names_are_read(query: Json, doc: dict[str, Any]) -> None:
    compiled = compile_query(query, FIELDS)
    needed = {name: value for name, value in doc.items() if name in compiled.fields}
    assert compiled.matches(needed) == compiled.matches(doc)


@given(tag_texts, sides, some_documents)
def test_the_two_notations_of_a_tag_are_one(key: str, side: Json, docs: list[dict[str, Any]]) -> None:
    pair = {"$tagKey": key, "$tagValue": side}
    assert matched({"tags": {key: side}}, docs) == matched({"tags": pair}, docs)
    assert matched({"tags": {"$ne": pair}}, docs) == inverse(matched({"tags": {"$eq": pair}}, docs))


json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3), hex_ids
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [*FIELDS, "$and", "$or", "$eq", "$gt", "$in", "$ci", "$contains", "$date", "$tagKey", "x", ""]
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=12,
)


@given(json_values, some_documents)
def test_any_json_is_compiled_or_refused(value: Json, docs: list[dict[str, Any]]) -> None:
    try:
        compiled = compile_query(value, FIELDS)
    except QueryError:
        return
    assert {type(compiled.matches(doc)) for doc in docs} == {bool}


@given(st.text("ab*", max_size=6), st.text("abAB\n", max_size=8))
def test_a_glob_is_its_regular_expression(pattern: str, text: str) -> None:
    expression = ".*".join(re.escape(part) for part in pattern.split("*"))
    expected = not pattern or re.fullmatch(expression, text, re.IGNORECASE | re.DOTALL) is not None
    assert compile_glob(pattern)(text) is expected
