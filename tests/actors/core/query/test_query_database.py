"""A document database gives the same answers: the advanced query against montydb, over drawn documents.

montydb is the query engine of MongoDB written anew in Python and kept equal to it by its own tests; it shares
nothing with ours. What our grammar has and a database has not is asked in its words, and where the two differ
on purpose the question is put so that they must agree. These are all the differences:

| Here | There | Asked there as |
|---|---|---|
| missing is null, also for `$gte` and `$lte` | for these only a stored null is | missing fields are stored as null |
| a list without elements is null | it is a value | empty lists are stored as null |
| `$startsWith`, `$endsWith`, `$contains` | none | regular expressions |
| `$ci` | none | regular expressions that ignore case; texts are drawn from ASCII |
| identifiers in any case | texts | lower-case texts |
| times as ISO text, `$date` or milliseconds | dates | milliseconds |
| operators on the text of a time | none | a second field that holds the text |
| conditions on tags | none | `$elemMatch` |
| an empty `$and`, `$or` or `$nor` is refused | MongoDB refuses it too, the engine does not | never |
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from montydb.engine.queries import QueryFilter

from tests.actors.query_strategies import FIELDS, PLAIN, Doc, Json, iso_of
from trunkline.actors.core.query.compile import compile_query

ALL_OPERATORS = [
    *("$eq", "$ne", "$gt", "$lt", "$gte", "$lte", "$in", "$nin"),
    *("$startsWith", "$endsWith", "$contains"),
]


def ours(query: Json, docs: list[Doc]) -> list[bool]:
    compiled = compile_query(query, FIELDS)
    return [compiled.matches(doc) for doc in docs]


def theirs(query: Json, docs: list[Doc]) -> list[bool]:
    asked = QueryFilter(translated(query))
    return [bool(asked(stored(doc))) for doc in docs]


def stored(doc: Doc) -> Doc:
    """The document as the database is to hold it."""
    kept = {name: doc.get(name) for name in FIELDS} | {
        name: doc.get(name) or None for name in ("list", "ids")
    }
    at = doc.get("at")
    return {**kept, "tags": doc.get("tags") or [], "atText": None if at is None else iso_of(at)}


# -- the query in the words of the database ------------------------------------------------------------------


def translated(query: Json) -> dict[str, Any]:
    conditions: list[dict[str, Any]] = []
    for key, condition in query.items():
        if key.startswith("$"):
            conditions.append({key: [translated(part) for part in condition]})
        elif key == "tags":
            conditions.append(tags(condition))
        elif isinstance(condition, dict) and "$date" not in condition:
            ci = condition.get("$ci", False)
            conditions += [
                one(key, name, operand, ci) for name, operand in condition.items() if name != "$ci"
            ]
        else:
            conditions.append({key: read(key, condition)})
    return {"$and": conditions}


def one(field: str, name: str, operand: Json, ci: bool) -> dict[str, Any]:
    """One operator of one field."""
    flags = re.DOTALL | (re.IGNORECASE if ci or field == "ref" else 0)
    if name in ("$startsWith", "$endsWith", "$contains"):
        text = re.escape(operand)
        forms = {"$startsWith": rf"\A{text}", "$endsWith": rf"{text}\Z", "$contains": text}
        return {"atText" if field == "at" else field: {"$regex": re.compile(forms[name], flags)}}
    if ci and name in ("$eq", "$ne", "$in", "$nin"):
        items = operand if name in ("$in", "$nin") else [operand]
        each = [
            {field: {"$regex": re.compile(rf"\A{re.escape(item)}\Z", flags)}}
            if isinstance(item, str)
            else {field: item}
            for item in items
        ]
        wanted: dict[str, Any] = {"$or": each} if each else {field: {"$in": []}}
        return wanted if name in ("$eq", "$in") else {"$nor": [wanted]}
    if name in ("$in", "$nin"):
        return {field: {name: [read(field, item) for item in operand]}}
    return {field: {name: read(field, operand)}}


def read(field: str, operand: Json) -> Json:
    """An operand as the database is to hold it."""
    if field in ("id", "ids", "ref") and isinstance(operand, str):
        return operand.lower()
    if field == "at" and isinstance(operand, dict):
        operand = operand["$date"]
    if field == "at" and isinstance(operand, str):
        return round(datetime.fromisoformat(operand).timestamp() * 1000)
    return operand


def tags(condition: Json) -> dict[str, Any]:
    if condition is None:
        return {"tags": []}
    if "$ne" in condition:
        return {"$nor": [tags(condition["$ne"])]}
    if "$eq" in condition:
        return tags(condition["$eq"])
    if "$tagKey" in condition or "$tagValue" in condition:
        names = {"$tagKey": "key", "$tagValue": "value"}
        return pair({names[name]: side for name, side in condition.items()})
    return {"$and": [pair({"key": key, "value": side}) for key, side in condition.items()]}


def pair(given_sides: dict[str, Json]) -> dict[str, Any]:
    """One tag that fits the asking sides; or, for each side that forbids, none of those that it forbids."""
    asked: dict[str, Any] = {}
    forbidden: dict[str, Any] = {}
    for name, side in given_sides.items():
        if side is None:
            forbidden[name] = {"$ne": None}
        elif isinstance(side, dict) and "$nin" in side:
            forbidden[name] = {"$in": side["$nin"]}
        else:
            asked[name] = side
    if not forbidden:
        return {"tags": {"$elemMatch": asked}}
    return {"$nor": [{"tags": {"$elemMatch": {**asked, name: texts}}} for name, texts in forbidden.items()]}


# -- the comparison ------------------------------------------------------------------------------------------

VALUES: list[Any] = [None, False, True, -2, 0, 1, 2, 2.0, 2.5, "", "a", "A", "ab", "bA", "aba", "b.b"]
DOCUMENTS: list[Doc] = [
    {},
    *({"v": value} for value in VALUES),
    {"list": []},
    *({"list": [first, second]} for first in VALUES if first is not None for second in ("b", 7)),
]


@pytest.mark.parametrize("ci", [False, True], ids=["case", "ci"])
@pytest.mark.parametrize("name", ALL_OPERATORS)
def test_each_operator_answers_the_same_for_each_pair_of_values(name: str, ci: bool) -> None:
    """Every operand against every value, alone and as one element of two."""
    for value in VALUES:
        if value is None and name in ("$in", "$nin"):
            continue
        if name in ("$startsWith", "$endsWith", "$contains") and not (isinstance(value, str) and value):
            continue
        operand = [value, "zz", -9] if name in ("$in", "$nin") else value
        for field in ("v", "list"):
            query = {field: {name: operand, "$ci": ci}}
            docs = [doc for doc in DOCUMENTS if field in doc or not doc]
            assert ours(query, docs) == theirs(query, docs), query


some_documents = st.lists(PLAIN.documents, min_size=8, max_size=12)


@pytest.mark.slow
@settings(max_examples=200)
@given(PLAIN.queries, some_documents)
def test_any_query_answers_the_same(query: Json, docs: list[Doc]) -> None:
    """Conditions joined in every way: 200 queries, each of 8 documents or more."""
    assert ours(query, docs) == theirs(query, docs)


@pytest.mark.load
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(10))
@settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(query=PLAIN.queries, docs=some_documents)
def test_any_query_answers_the_same_for_a_long_time(part: int, query: Json, docs: list[Doc]) -> None:
    """The same with 50,000 queries over half a million documents, in ten parts."""
    assert ours(query, docs) == theirs(query, docs)
