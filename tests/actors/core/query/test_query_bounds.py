"""The bounds of a query never leave out a match, and are as narrow as an index can use."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.actors.query_strategies import FIELDS, HEX_IDS, Doc, Json, World
from tests.rounds import examples
from trunkline.actors.core.query import bounds as query_bounds
from trunkline.actors.core.query.bounds import SPANS_MAX, Span, id_ranges, listed_ids
from trunkline.actors.core.query.compile import Bounds, Field, compile_query, glob_bounds
from trunkline.actors.core.query.compile import compile_glob as glob_of
from trunkline.store import keys

ID_A, ID_B, ID_C = HEX_IDS

# Letters whose case folds to others, characters that are escaped in keys, and texts that keys cut off.
LONG_TEXTS = st.tuples(st.sampled_from("aAß"), st.sampled_from([150, 199, 300]), st.sampled_from("bß"))
ODD_TEXTS = st.one_of(
    st.text("aAß\u017fK\u212a\x00\x01é\u0130", max_size=3),
    LONG_TEXTS.map(lambda parts: parts[0] * parts[1] + parts[2]),
)
ODD_NUMBERS = st.sampled_from(
    [-2, -0.0, 0, 1, 1.5, 2**53, 2**53 + 1, 2.0**53, 2**64 + 1, 2**64, -(10**30), 1e308]
)
ODD = World(ODD_TEXTS, ODD_NUMBERS)


def bounds_of(query: Json, field: str = "v") -> Bounds | None:
    return compile_query(query, FIELDS).bounds.get(field)


def covers(span: Span, key: bytes) -> bool:
    return span.low <= key < span.high


# -- sound ---------------------------------------------------------------------------------------------------


@settings(max_examples=examples(150))
@given(ODD.queries, st.lists(ODD.documents, min_size=8, max_size=12))
def test_every_match_lies_within_the_bounds(query: Json, docs: list[Doc]) -> None:
    """As a value, and as a key of an index, which ends with the id of its record."""
    compiled = compile_query(query, FIELDS)
    for doc in filter(compiled.matches, docs):
        for field, bounds in compiled.bounds.items():
            value = doc.get(field)
            assert value in bounds
            for last in (b"\x00", b"\xff"):
                key = keys.sortable(value) + last * keys.ID_BYTES
                assert any(covers(span, key) for span in bounds.spans)


@settings(max_examples=examples(150))
@given(ODD.queries)
def test_bounds_are_in_order_and_apart(query: Json) -> None:
    for bounds in compile_query(query, FIELDS).bounds.values():
        ends = [end for span in bounds.spans for end in span]
        assert ends == sorted(set(ends))
        if bounds.values is not None:
            assert all(value in bounds for value in bounds.values)
            assert len(bounds.spans) <= len(bounds.values)


@given(
    st.sampled_from(["$gt", "$lt", "$gte", "$lte", "$startsWith"]), st.text("0aAfgz", min_size=1), st.data()
)
def test_the_ranges_of_ids_hold_every_match(name: str, text: str, data: st.DataObject) -> None:
    whole = st.text("0123456789abcdef", min_size=24, max_size=24)
    operand = data.draw(st.sampled_from([text, data.draw(whole)]))
    id = data.draw(
        st.one_of(
            whole, st.just((operand.lower() + "0" * 24)[:24]), st.just((operand.lower() + "f" * 24)[:24])
        )
    )
    assume(set(id) <= set("0123456789abcdef"))
    compiled = compile_query({"ref": {name: operand}}, FIELDS)
    raw = bytes.fromhex(id)
    inside = any(
        low <= raw and (high is None or raw < high) for low, high in id_ranges(compiled.bounds["ref"])
    )
    # Both ends of a range are within the bounds, also those that the query leaves out.
    assert inside == (compiled.matches({"ref": id}) or id == operand.lower())


@given(st.text("aAß*", max_size=5), ODD_TEXTS)
def test_what_a_glob_takes_lies_within_its_bounds(pattern: str, text: str) -> None:
    bounds = glob_bounds(pattern)
    if bounds is not None and glob_of(pattern)(text):
        assert text in bounds


edges = st.integers(0, 12)
several = st.lists(st.tuples(edges, edges).map(sorted), max_size=5)


@given(several, several)
def test_bounds_join_as_sets_do(one: list[list[int]], other: list[list[int]]) -> None:
    """Whatever lies within both, or within one of them, and nothing else."""

    def made(runs: list[list[int]]) -> Bounds:
        ends = [(query_bounds.at_least(low), query_bounds.at_most(high)) for low, high in runs]
        bounds = query_bounds.union(query_bounds.within(*each) for each in ends)
        assert bounds is not None
        return bounds

    left, right = made(one), made(other)
    joined, either = query_bounds.intersection(left, right), made([*one, *other])
    for number in range(13):
        in_one = any(low <= number <= high for low, high in one)
        in_other = any(low <= number <= high for low, high in other)
        assert (number in left, number in right) == (in_one, in_other)
        assert (number in joined) == (in_one and in_other)
        assert (number in either) == (in_one or in_other)


def test_the_beginning_of_a_text_may_be_longer_than_a_key() -> None:
    for operator in ("$startsWith", "$eq"):
        bounds = bounds_of({"v": {operator: "A" * 300, "$ci": True}})
        assert bounds is not None
        assert "a" * 300 in bounds
        assert "a" * 90 not in bounds


# -- narrow --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ({"v": "a"}, ["a"]),
        ({"v": None}, [None]),
        ({"v": {"$in": [1, 1.0, True, "1"]}}, [1, True, "1"]),
        ({"v": {"$in": []}}, []),
        ({"v": {"$gt": None}}, []),
        ({"v": {"$lte": None}}, [None]),
        ({"v": {"$gte": False}}, [False, True]),
        ({"v": {"$lt": True}}, [False]),
        ({"v": {"$eq": 5, "$ci": True}}, [5]),
        ({"v": {"$in": ["a", "b", 3], "$gt": "a"}}, ["a", "b"]),
        ({"$and": [{"v": {"$in": [1, 2]}}, {"v": {"$in": [2, 3]}}]}, [2]),
        ({"v": 1, "$and": [{"v": {"$in": [True]}}]}, []),
        ({"$or": [{"v": 1}, {"v": 2, "w": 3}]}, [1, 2]),
        ({"$or": [{"$or": [{"v": 1}]}, {"v": None}]}, [1, None]),
        ({"v": 1, "$nor": [{"v": 1}]}, [1]),
    ],
    ids=str,
)
def test_equality_gives_the_values(query: Json, values: list[Any]) -> None:
    bounds = bounds_of(query)
    assert bounds is not None
    assert bounds.values is not None
    assert [(value, isinstance(value, bool)) for value in bounds.values] == [
        (value, isinstance(value, bool)) for value in values
    ]


VALUES: list[Any] = [None, False, True, -1, 0, 2.5, 3, "", "Pump", "pump", "pump 1", "PUMPS", "q"]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ({"v": {"$gt": 0}}, [0, 2.5, 3]),
        ({"v": {"$gte": 0, "$lt": 2.5}}, [0, 2.5]),
        ({"v": {"$lte": 0}}, [-1, 0]),
        ({"v": {"$ne": None}}, VALUES[1:]),
        ({"v": {"$startsWith": "pump"}}, ["Pump", "pump", "pump 1", "PUMPS"]),
        ({"v": {"$startsWith": "PUMP ", "$ci": True}}, ["pump 1"]),
        ({"v": {"$eq": "PUMP", "$ci": True}}, ["Pump", "pump"]),
        ({"v": {"$in": ["Q", 3, "PUMP"], "$ci": True}}, [3, "Pump", "pump", "q"]),
        ({"v": {"$endsWith": "x"}}, VALUES[7:]),
        ({"v": {"$contains": "x"}}, VALUES[7:]),
        ({"v": {"$gt": "m"}}, VALUES[7:]),
        ({"v": {"$gt": "m", "$lt": 5}}, []),
        ({"$or": [{"v": {"$gt": 2}}, {"v": {"$lt": -0.5}}]}, [-1, 2.5, 3]),
        ({"$or": [{"v": {"$lt": 1}}, {"v": "q"}]}, [-1, 0, "q"]),
        ({"$and": [{"v": {"$gte": 0}}, {"$or": [{"v": 3}, {"v": {"$startsWith": "p"}}]}]}, [3]),
    ],
    ids=str,
)
def test_a_range_or_a_beginning_gives_a_span(query: Json, kept: list[Any]) -> None:
    bounds = bounds_of(query)
    assert bounds is not None
    assert [value for value in VALUES if value in bounds] == kept


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"w": 1},
        {"v": {"$ne": 1}},
        {"v": {"$nin": [1, 2]}},
        {"$nor": [{"v": 1}]},
        {"$or": [{"v": 1}, {"w": 1}]},
        {"$or": [{"v": 1}, {}]},
        {"$or": [{"v": 1}, {"v": {"$ne": 2}}]},
    ],
    ids=str,
)
def test_what_tells_nothing_has_no_bounds(query: Json) -> None:
    assert bounds_of(query) is None


@pytest.mark.parametrize("query", [{"list": 1}, {"ids": ID_A}, {"tags": {"a": "b"}}, {"tags": None}], ids=str)
def test_many_values_and_tags_have_no_bounds(query: Json) -> None:
    assert compile_query(query, FIELDS).bounds == {}


def test_times_are_bounded_as_moments() -> None:
    bounds = bounds_of({"at": {"$gte": "1970-01-02", "$lt": {"$date": "1970-01-03"}}}, "at")
    assert bounds is not None
    at = [None, 0, 86_399_999, 86_400_000, 172_800_000, 172_800_001]
    assert [time_ms for time_ms in at if time_ms in bounds] == [86_400_000, 172_800_000]
    text = bounds_of({"at": {"$startsWith": "1970"}}, "at")
    assert text is not None
    assert [time_ms for time_ms in at if time_ms in text] == at[1:]


def test_identifiers_are_bounded_as_they_stand_in_keys() -> None:
    exact = bounds_of({"id": {"$in": [ID_B.upper(), ID_A]}}, "id")
    assert exact is not None
    assert exact.values == (ID_B, ID_A)
    assert listed_ids(exact) == [bytes.fromhex(ID_B), bytes.fromhex(ID_A)]
    odd = bounds_of({"ref": {"$in": [ID_A.upper(), "zz", "0a", "0a " * 12, "\ud800", 5]}}, "ref")
    assert odd is not None
    assert listed_ids(odd) == [bytes.fromhex(ID_A)]
    behind = bounds_of({"ref": {"$gt": ID_A, "$lte": ID_B}}, "ref")
    assert behind is not None
    assert list(id_ranges(behind)) == [(bytes.fromhex(ID_A), bytes.fromhex("0b" * 11 + "0c"))]
    assert listed_ids(behind) is None
    last = bounds_of({"id": {"$gte": "f" * 24}}, "id")
    assert last is not None
    assert list(id_ranges(last)) == [(b"\xff" * 12, None)]
    none = bounds_of({"id": None}, "id")
    assert none is not None
    assert list(id_ranges(none)) == []


@pytest.mark.parametrize("case", [{}, {"$ci": True}], ids=str)
def test_too_many_values_are_no_bounds(case: Json) -> None:
    """A query of a thousand conditions may list a hundred thousand values."""

    def query(parts: int) -> Json:
        lists = [[f"{outer}/{inner}" for inner in range(100)] for outer in range(parts)]
        return {"$or": [{"v": {"$in": each, **case}} for each in lists]}

    bounds = bounds_of(query(10))
    assert bounds is not None
    assert len(bounds.spans) == SPANS_MAX
    assert bounds_of(query(11)) is None
    assert bounds_of({"v": 1, **query(11)}) is not None


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("pump", ["Pump", "pump"]),
        ("PUMP*", ["Pump", "pump", "pump 1", "PUMPS"]),
        ("pu*1", ["Pump", "pump", "pump 1", "PUMPS"]),
    ],
)
def test_a_glob_has_the_bounds_of_its_beginning(pattern: str, kept: list[str]) -> None:
    bounds = glob_bounds(pattern)
    assert bounds is not None
    assert [value for value in VALUES if value in bounds] == kept


@pytest.mark.parametrize("pattern", ["", " ", "*", "*pump"])
def test_a_glob_without_a_beginning_has_no_bounds(pattern: str) -> None:
    assert glob_bounds(pattern) is None


def test_nothing_is_within_no_spans() -> None:
    assert None not in Bounds(())
    assert query_bounds.one_of([]).spans == ()
    assert compile_query({"n": {"$in": []}}, {"n": Field("value")}).bounds["n"].spans == ()
