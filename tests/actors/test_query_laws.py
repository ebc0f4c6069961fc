"""What holds for every query and every document: the laws of logic, and agreement with a document database.

The database is mongomock, whose filter is another reading of the same rules. Where the two differ on purpose:

- `$startsWith`, `$endsWith`, `$contains` and `$ci` are regular expressions there; tags are `$elemMatch`;
- it takes true for 1 and false for 0 in equality (the database itself does not): no 0 and 1 are drawn;
- it forgets that a missing field is `$gte` and `$lte` null (the database does not), and for it, as for the
  database, an empty list is not null: the lists and ranges that meet null are left to the tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mongomock.filtering import filter_applies

from trunkline.actors.query import Field, QueryError, compile_glob, compile_query

FIELDS = {
    "v": Field("value"),
    "w": Field("value"),
    "list": Field("values"),
    "id": Field("id"),
    "ids": Field("ids"),
    "at": Field("time"),
    "tags": Field("tags"),
}

Json = Any

# Small alphabets, so that documents and queries meet often.
texts = st.text("aAbB.", max_size=3)
numbers = st.sampled_from([-2, -1.5, 2, 2.0, 2.5, 3, 7])
scalars = st.one_of(texts, numbers, st.booleans())
hex_ids = st.sampled_from(["0a" * 12, "0b" * 12, "0c" * 12])
moments = st.sampled_from([2, 86_400_000, 1_714_521_600_000])
tag_texts = st.sampled_from(["a", "b", "c"])
tag_lists = st.lists(st.fixed_dictionaries({"key": tag_texts, "value": tag_texts}), max_size=3)

documents = st.fixed_dictionaries(
    {},
    optional={
        "v": st.one_of(scalars, st.none()),
        "w": st.one_of(scalars, st.none()),
        "list": st.lists(scalars, min_size=1, max_size=3),
        "id": st.one_of(hex_ids, st.none()),
        "ids": st.lists(hex_ids, min_size=1, max_size=3),
        "at": st.one_of(moments, st.none()),
        "tags": tag_lists,
    },
)


def operators_of(operands: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    lists = st.lists(operands, max_size=3)
    plain = dict.fromkeys(("$eq", "$ne"), st.one_of(operands, st.none()))
    ranges = dict.fromkeys(("$gt", "$lt", "$gte", "$lte"), operands)
    return {**plain, **ranges, "$in": lists, "$nin": lists}


def one_operator(operands: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        [st.fixed_dictionaries({name: operand}) for name, operand in operators_of(operands).items()]
    )


def text_operators() -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(["$startsWith", "$endsWith", "$contains"])
    return st.tuples(names, texts.filter(bool)).map(lambda pair: dict([pair]))


def ordinary_conditions() -> st.SearchStrategy[dict[str, Any]]:
    """Few operators at once: of many, hardly a document meets all, and a wrong one would not show."""
    one = st.one_of(one_operator(scalars), text_operators())
    case = st.sampled_from([{}, {"$ci": True}, {"$ci": False}])
    return st.one_of(
        st.tuples(one, case).map(lambda parts: {**parts[0], **parts[1]}),
        st.tuples(one, one, case).map(lambda parts: {**parts[0], **parts[1], **parts[2]}),
    )


ordinary = ordinary_conditions()
sides = st.one_of(
    tag_texts,
    st.none(),
    st.lists(tag_texts, max_size=2).map(lambda items: {"$in": items}),
    st.lists(tag_texts, max_size=2).map(lambda items: {"$nin": items}),
)
tag_pairs = st.fixed_dictionaries({}, optional={"$tagKey": sides, "$tagValue": sides}).filter(bool)
tag_forms = st.one_of(st.none(), tag_pairs, st.dictionaries(tag_texts, sides, min_size=1, max_size=2))
tag_conditions = st.one_of(
    tag_forms,
    tag_forms.map(lambda form: {"$eq": form}),
    tag_forms.map(lambda form: {"$ne": form}),
)
fields = st.one_of(
    st.tuples(st.sampled_from(["v", "w", "list"]), st.one_of(scalars, st.none(), ordinary)),
    st.tuples(st.sampled_from(["id", "ids"]), st.one_of(hex_ids, st.none(), one_operator(hex_ids))),
    st.tuples(st.just("at"), st.one_of(moments, st.none(), one_operator(moments))),
    st.tuples(st.just("tags"), tag_conditions),
)
simple = st.lists(fields, min_size=1, max_size=2).map(dict)
queries = st.recursive(
    simple,
    lambda inner: st.dictionaries(
        st.sampled_from(["$and", "$or", "$nor"]),
        st.lists(inner, min_size=1, max_size=3),
        min_size=1,
        max_size=2,
    ),
    max_leaves=6,
)


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


# -- another reading of the rules ----------------------------------------------------------------------------


def translated(query: Json) -> dict[str, Any]:
    """The query as mongomock understands it."""
    conditions: list[dict[str, Any]] = []
    for key, condition in query.items():
        if key.startswith("$"):
            conditions.append({key: [translated(part) for part in condition]})
        elif key == "tags":
            conditions.append(translated_tags(condition))
        elif isinstance(condition, dict):
            ci = condition.get("$ci", False)
            conditions += [
                {key: translated_operator(name, operand, ci)}
                for name, operand in condition.items()
                if name != "$ci"
            ]
        else:
            conditions.append({key: condition})
    return {"$and": conditions}


def translated_operator(name: str, operand: Any, ci: bool) -> dict[str, Any]:
    flags = re.DOTALL | (re.IGNORECASE if ci else 0)
    if name in ("$startsWith", "$endsWith", "$contains"):
        escaped = re.escape(operand)
        expression = {"$startsWith": rf"\A{escaped}", "$endsWith": rf"{escaped}\Z", "$contains": escaped}[
            name
        ]
        return {"$regex": re.compile(expression, flags)}
    if ci and name in ("$eq", "$ne", "$in", "$nin"):
        items = operand if isinstance(operand, list) else [operand]
        folded = [
            re.compile(rf"\A{re.escape(item)}\Z", flags) if isinstance(item, str) else item for item in items
        ]
        return {"$in" if name in ("$eq", "$in") else "$nin": folded}
    return {name: operand}


def translated_tags(condition: Json) -> dict[str, Any]:
    if isinstance(condition, dict) and "$ne" in condition:
        return {"$nor": [translated_tags(condition["$ne"])]}
    if isinstance(condition, dict) and "$eq" in condition:
        return translated_tags(condition["$eq"])
    if condition is None:
        return {"$nor": [{"tags": {"$elemMatch": {"key": {"$ne": None}}}}]}
    if "$tagKey" in condition or "$tagValue" in condition:
        given_sides = {"key": condition.get("$tagKey", ...), "value": condition.get("$tagValue", ...)}
        return translated_pair({name: side for name, side in given_sides.items() if side is not ...})
    return {"$and": [translated_pair({"key": key, "value": side}) for key, side in condition.items()]}


def translated_pair(pair: dict[str, Any]) -> dict[str, Any]:
    """One tag that fits the asking sides; or, for each side that forbids, none of those that it forbids."""
    asked: dict[str, Any] = {}
    forbidden: dict[str, Any] = {}
    for name, side in pair.items():
        if side is None:
            forbidden[name] = {"$ne": None}
        elif isinstance(side, dict) and "$nin" in side:
            forbidden[name] = {"$in": side["$nin"]}
        else:
            asked[name] = side
    if not forbidden:
        return {"tags": {"$elemMatch": asked}}
    return {"$nor": [{"tags": {"$elemMatch": {**asked, name: texts}}} for name, texts in forbidden.items()]}


VALUES: list[Any] = [None, False, True, -2, 2, 2.0, 2.5, "", "a", "A", "ab", "bA", "aba", "b.b"]
DOCUMENTS: list[dict[str, Any]] = [
    {},
    *({"v": value} for value in VALUES),
    *({"list": [first, second]} for first in VALUES for second in ("b", 7)),
]
THEIRS: Callable[[Json, Json], bool] = filter_applies


@pytest.mark.parametrize("ci", [False, True], ids=["case", "ci"])
@pytest.mark.parametrize(
    "name",
    ["$eq", "$ne", "$gt", "$lt", "$gte", "$lte", "$in", "$nin", "$startsWith", "$endsWith", "$contains"],
)
def test_each_operator_of_a_database_answers_the_same_for_each_pair_of_values(name: str, ci: bool) -> None:
    """Every operand against every value, alone and as one element of two."""
    for value in VALUES:
        if value is None and name not in ("$eq", "$ne"):
            continue
        if name in ("$startsWith", "$endsWith", "$contains") and (not isinstance(value, str) or not value):
            continue
        operand = [value, "zz", -9] if name in ("$in", "$nin") else value
        for field in ("v", "list"):
            query = {field: {name: operand, "$ci": ci}}
            docs = [doc for doc in DOCUMENTS if field in doc or not doc]
            assert matched(query, docs) == [THEIRS(translated(query), doc) for doc in docs], query


@pytest.mark.slow
@settings(max_examples=400)
@given(queries, st.lists(documents, min_size=8, max_size=12))
def test_a_document_database_answers_the_same(query: Json, docs: list[dict[str, Any]]) -> None:
    """Conditions joined in every way: 400 queries, each of 8 documents or more."""
    assert matched(query, docs) == [THEIRS(translated(query), doc) for doc in docs]
