"""The advanced query means what its rules say, and a mistake in one is named with its place.

Tables, ordered as the rules in `trunkline.actors.core.query.compile`; what holds for all queries stands in
`test_query_laws.py`. It is long because each rule and each mistake has a row.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from trunkline.actors.core.query.compile import (
    Field,
    QueryError,
    compile_glob,
    compile_query,
)
from trunkline.actors.core.query.problems import ITEMS_MAX, TAG_CHARS_MAX
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS
from trunkline.actors.platform.applications.keys import APPLICATION_KEY_FIELDS

ID_A, ID_B, ID_C = "0a" * 12, "0b" * 12, "0c" * 12

FIELDS = {
    "v": Field("value"),
    "w": Field("value"),
    "list": Field("values"),
    "id": Field("id"),
    "ids": Field("ids"),
    "ref": Field("value", "id"),
    "at": Field("time"),
    "tags": Field("tags"),
}

MAY_1 = 1_714_521_600_000  # 2024-05-01T00:00:00.000Z

FLOOR_1 = {"key": "floor", "value": "1"}
FLOOR_2 = {"key": "floor", "value": "2"}
ROOM_1 = {"key": "room", "value": "1"}


def matches(query: object, doc: dict[str, Any]) -> bool:
    return compile_query(query, FIELDS).matches(doc)


# Each row: a query, documents that it matches, documents that it does not.
LOGIC = [
    ({}, [{}, {"v": 1}], []),
    ({"v": 1, "w": 2}, [{"v": 1, "w": 2}], [{"v": 1}, {"w": 2}, {}]),
    ({"$and": [{"v": 1}, {"w": 2}]}, [{"v": 1, "w": 2}], [{"v": 1}, {"w": 2}]),
    ({"$or": [{"v": 1}, {"w": 2}]}, [{"v": 1}, {"w": 2}], [{"v": 2, "w": 1}]),
    ({"$nor": [{"v": 1}, {"w": 2}]}, [{"v": 2, "w": 1}], [{"v": 1}, {"w": 2}]),
    ({"$or": [{"v": 1}, {"v": 2}], "w": 3}, [{"v": 2, "w": 3}], [{"v": 2}, {"w": 3}]),
    ({"$or": [{}]}, [{}], []),
    ({"$or": [{"$and": [{"$nor": [{"v": 1}]}]}]}, [{}], [{"v": 1}]),
]

SCALARS = [
    ({"v": "a"}, [{"v": "a"}], [{"v": "A"}, {"v": None}, {}, {"v": 1}]),
    ({"v": {"$eq": "a"}}, [{"v": "a"}], [{"v": "A"}]),
    ({"v": ""}, [{"v": ""}], [{}, {"v": None}]),
    ({"v": None}, [{}, {"v": None}], [{"v": 0}, {"v": False}, {"v": ""}]),
    ({"v": {"$ne": None}}, [{"v": 0}, {"v": False}, {"v": ""}], [{}, {"v": None}]),
    ({"v": {"$gte": None}}, [{}, {"v": None}], [{"v": 0}]),
    ({"v": {"$lte": None}}, [{}, {"v": None}], [{"v": 0}]),
    ({"v": {"$gt": None}}, [], [{}, {"v": None}, {"v": 0}]),
    ({"v": {"$lt": None}}, [], [{}, {"v": None}, {"v": 0}]),
    ({"v": {"$ne": "a"}}, [{}, {"v": None}, {"v": 1}, {"v": "b"}], [{"v": "a"}]),
    (
        {"v": {"$in": ["a", 1]}},
        [{"v": "a"}, {"v": 1}, {"v": 1.0}],
        [{}, {"v": None}, {"v": True}, {"v": "1"}],
    ),
    ({"v": {"$in": [True]}}, [{"v": True}], [{"v": 1}, {"v": False}]),
    ({"v": {"$in": []}}, [], [{}, {"v": 1}]),
    ({"v": {"$nin": ["a", 1]}}, [{}, {"v": None}, {"v": True}, {"v": "1"}], [{"v": "a"}, {"v": 1.0}]),
    ({"v": {"$nin": []}}, [{}, {"v": 1}], []),
    ({"v": 1}, [{"v": 1}, {"v": 1.0}], [{"v": True}, {"v": "1"}]),
    ({"v": 2**53 + 1}, [{"v": 2**53 + 1}], [{"v": 2.0**53}]),
    ({"v": True}, [{"v": True}], [{"v": 1}, {"v": False}, {"v": "true"}]),
    ({"v": False}, [{"v": False}], [{"v": 0}, {"v": None}, {}]),
    ({"v": {"$gt": 1}}, [{"v": 1.5}, {"v": 2}], [{"v": 1}, {"v": True}, {"v": "2"}, {"v": None}, {}]),
    ({"v": {"$gte": 0}}, [{"v": 0}], [{"v": False}, {"v": True}, {"v": "0"}]),
    ({"v": {"$gt": 1, "$lt": 3}}, [{"v": 2}], [{"v": 1}, {"v": 3}]),
    ({"v": {"$gt": "a"}}, [{"v": "aa"}, {"v": "b"}], [{"v": "a"}, {"v": "B"}, {"v": 99}]),
    ({"v": {"$lte": "\uffff"}}, [{"v": "\ue000"}], [{"v": "\U00010000"}]),
    ({"v": {"$gt": False}}, [{"v": True}], [{"v": False}, {"v": 1}]),
    ({"v": {"$lte": True}}, [{"v": True}, {"v": False}], [{"v": 0}, {}]),
    # A document that breaks its table is no reason to fail: it matches as another type does.
    ({"v": {"$ne": 1}}, [{"v": [1]}, {"v": {"a": 1}}], []),
    ({"v": {"$in": [1, "a"]}}, [], [{"v": [1]}, {"v": {"a": 1}}]),
]

TEXTS = [
    ({"v": {"$startsWith": "pu"}}, [{"v": "pump"}, {"v": "pu"}], [{"v": "Pump"}, {"v": "up"}, {"v": 1}, {}]),
    ({"v": {"$endsWith": "mp"}}, [{"v": "pump"}, {"v": "mp"}], [{"v": "pumP"}, {"v": "mpx"}, {"v": None}]),
    ({"v": {"$contains": "um"}}, [{"v": "pump"}], [{"v": "pUmp"}, {"v": True}, {}]),
    ({"v": {"$contains": ".*"}}, [{"v": "a.*b"}], [{"v": "ab"}]),
    ({"v": {"$startsWith": "p", "$endsWith": "p"}}, [{"v": "pump"}, {"v": "p"}], [{"v": "pumps"}]),
    ({"v": {"$startsWith": "PU", "$ci": True}}, [{"v": "pump"}, {"v": "PUMP"}], [{"v": "ump"}]),
    ({"v": {"$endsWith": "MP", "$ci": True}}, [{"v": "pump"}], [{"v": "mpx"}]),
    ({"v": {"$contains": "UM", "$ci": True}}, [{"v": "pump"}], [{"v": 1}]),
    ({"v": {"$eq": "Straße", "$ci": True}}, [{"v": "STRASSE"}, {"v": "straße"}], [{"v": "strase"}, {}]),
    ({"v": {"$ne": "A", "$ci": True}}, [{"v": "b"}, {}, {"v": 1}], [{"v": "a"}, {"v": "A"}]),
    ({"v": {"$in": ["A", 1], "$ci": True}}, [{"v": "a"}, {"v": 1}], [{"v": "b"}, {"v": True}]),
    ({"v": {"$nin": ["A", 1], "$ci": True}}, [{"v": "b"}, {"v": True}, {}], [{"v": "a"}, {"v": 1}]),
    ({"v": {"$in": ["STRASSE"], "$ci": True}}, [{"v": "Straße"}], [{"v": "Strase"}]),
    ({"v": {"$eq": 1, "$ci": True}}, [{"v": 1}], [{"v": True}, {"v": "1"}]),
    ({"v": {"$gt": "B", "$ci": True}}, [{"v": "a"}], [{"v": "A"}]),
    ({"v": {"$eq": "a", "$ci": False}}, [{"v": "a"}], [{"v": "A"}]),
]

LISTS = [
    ({"list": "a"}, [{"list": ["a"]}, {"list": ["b", "a"]}], [{"list": ["b"]}, {"list": []}, {}]),
    ({"list": None}, [{"list": []}, {"list": None}, {}], [{"list": ["a"]}, {"list": [0]}]),
    ({"list": {"$ne": None}}, [{"list": ["a"]}], [{"list": []}, {}]),
    ({"list": {"$ne": "a"}}, [{"list": ["b"]}, {"list": []}, {}], [{"list": ["b", "a"]}]),
    ({"list": {"$in": ["a", "z"]}}, [{"list": ["b", "a"]}], [{"list": ["b"]}, {}]),
    ({"list": {"$nin": ["a", "z"]}}, [{"list": ["b"]}, {}], [{"list": ["b", "a"]}]),
    ({"list": {"$gt": 2}}, [{"list": [1, 3]}, {"list": ["x", 3]}], [{"list": [1, 2]}, {"list": ["x"]}]),
    ({"list": {"$gt": 4, "$lt": 2}}, [{"list": [1, 5]}], [{"list": [3]}, {"list": [5]}]),
    ({"list": {"$contains": "B", "$ci": True}}, [{"list": ["x", "abc"]}], [{"list": ["x"]}, {"list": []}]),
    ({"ids": ID_A}, [{"ids": [ID_B, ID_A]}], [{"ids": [ID_B]}, {"ids": []}, {}]),
    ({"ids": {"$nin": [ID_A]}}, [{"ids": [ID_B]}, {}], [{"ids": [ID_B, ID_A]}]),
    ({"ids": None}, [{}, {"ids": []}], [{"ids": [ID_A]}]),
]

IDS = [
    ({"id": ID_A}, [{"id": ID_A}], [{"id": ID_B}, {}]),
    ({"id": ID_A.upper()}, [{"id": ID_A}], [{"id": ID_B}]),
    ({"id": None}, [{}, {"id": None}], [{"id": ID_A}]),
    ({"id": {"$ne": None}}, [{"id": ID_A}], [{}]),
    ({"id": {"$ne": ID_A}}, [{"id": ID_B}, {}], [{"id": ID_A}]),
    ({"id": {"$gt": ID_B.upper()}}, [{"id": ID_C}], [{"id": ID_B}, {"id": ID_A}, {}]),
    ({"id": {"$lte": ID_B}}, [{"id": ID_A}, {"id": ID_B}], [{"id": ID_C}]),
    ({"id": {"$in": [ID_A, ID_B.upper()]}}, [{"id": ID_A}, {"id": ID_B}], [{"id": ID_C}, {}]),
    ({"id": {"$nin": [ID_A]}}, [{"id": ID_B}, {}], [{"id": ID_A}]),
]

# Identifiers that take every operator, as those of rows and events.
REFS = [
    ({"ref": ID_A.upper()}, [{"ref": ID_A}], [{"ref": ID_B}, {}]),
    ({"ref": {"$in": [ID_A.upper(), "x", 5]}}, [{"ref": ID_A}], [{"ref": ID_B}]),
    (
        {"ref": {"$gt": ID_A.upper(), "$lt": ID_C.upper()}},
        [{"ref": ID_B}],
        [{"ref": ID_A}, {"ref": ID_C}, {}],
    ),
    ({"ref": {"$startsWith": "0A"}}, [{"ref": ID_A}], [{"ref": ID_B}]),
    ({"ref": {"$endsWith": "0B", "$ne": None}}, [{"ref": ID_B}], [{"ref": ID_A}, {}]),
    ({"ref": "no id"}, [], [{"ref": ID_A}, {}]),
]

TIMES = [
    ({"at": "2024-05-01T00:00:00.000Z"}, [{"at": MAY_1}], [{"at": MAY_1 + 1}, {}]),
    ({"at": {"$date": "2024-05-01T02:00:00+02:00"}}, [{"at": MAY_1}], [{"at": None}]),
    ({"at": MAY_1}, [{"at": MAY_1}], [{"at": MAY_1 - 1}]),
    ({"at": {"$gt": "2024-05-01"}}, [{"at": MAY_1 + 1}], [{"at": MAY_1}, {"at": None}, {}]),
    ({"at": {"$gte": MAY_1, "$lt": {"$date": "2024-05-02"}}}, [{"at": MAY_1}], [{"at": MAY_1 + 86_400_000}]),
    ({"at": {"$gt": MAY_1 - 0.5}}, [{"at": MAY_1}], [{"at": MAY_1 - 1}]),
    ({"at": {"$gt": "1969-12-31"}}, [{"at": 0}], [{}]),
    ({"at": None}, [{}, {"at": None}], [{"at": 0}]),
    ({"at": {"$ne": None}}, [{"at": 0}], [{}]),
    ({"at": {"$in": ["2024-05-01", 0]}}, [{"at": MAY_1}, {"at": 0}], [{"at": 1}, {}]),
    ({"at": {"$nin": ["2024-05-01"]}}, [{"at": 1}, {}], [{"at": MAY_1}]),
    ({"at": {"$startsWith": "2024-05-01T"}}, [{"at": MAY_1}], [{"at": 0}, {}]),
    ({"at": {"$contains": "t00", "$ci": True}}, [{"at": MAY_1}], [{"at": MAY_1 + 3_600_000}]),
]

TAGS = [
    ({"tags": None}, [{}, {"tags": []}, {"tags": None}], [{"tags": [FLOOR_1]}]),
    ({"tags": {"$eq": None}}, [{}], [{"tags": [FLOOR_1]}]),
    ({"tags": {"$ne": None}}, [{"tags": [FLOOR_1]}], [{}, {"tags": []}]),
    ({"tags": {"floor": "1"}}, [{"tags": [ROOM_1, FLOOR_1]}], [{"tags": [FLOOR_2, ROOM_1]}, {}]),
    ({"tags": {"floor": None}}, [{}, {"tags": [ROOM_1]}], [{"tags": [FLOOR_1]}]),
    ({"tags": {"floor": {"$in": ["1", "3"]}}}, [{"tags": [FLOOR_1]}], [{"tags": [FLOOR_2, ROOM_1]}, {}]),
    (
        {"tags": {"floor": {"$nin": ["1"]}}},
        [{}, {"tags": [ROOM_1]}, {"tags": [FLOOR_2]}],
        [{"tags": [FLOOR_1]}, {"tags": [FLOOR_2, FLOOR_1]}],
    ),
    ({"tags": {"floor": "1", "room": "1"}}, [{"tags": [FLOOR_1, ROOM_1]}], [{"tags": [FLOOR_1]}, {}]),
    ({"tags": {"floor": "1", "room": None}}, [{"tags": [FLOOR_1]}], [{"tags": [FLOOR_1, ROOM_1]}]),
    ({"tags": {"$tagKey": "floor"}}, [{"tags": [FLOOR_2]}], [{"tags": [ROOM_1]}, {}]),
    ({"tags": {"$tagValue": "1"}}, [{"tags": [ROOM_1]}], [{"tags": [FLOOR_2]}, {}]),
    (
        {"tags": {"$tagKey": "floor", "$tagValue": "1"}},
        [{"tags": [FLOOR_1]}],
        [{"tags": [FLOOR_2, ROOM_1]}, {}],
    ),
    ({"tags": {"$tagKey": {"$in": ["floor", "x"]}, "$tagValue": "2"}}, [{"tags": [FLOOR_2]}], [{}]),
    ({"tags": {"$tagKey": {"$nin": ["floor"]}}}, [{}, {"tags": [ROOM_1]}], [{"tags": [ROOM_1, FLOOR_1]}]),
    (
        {"tags": {"$tagKey": {"$nin": ["floor"]}, "$tagValue": "1"}},
        [{"tags": [ROOM_1]}, {"tags": [ROOM_1, FLOOR_2]}],
        [{"tags": [FLOOR_1]}, {"tags": [ROOM_1, FLOOR_1]}],
    ),
    (
        {"tags": {"$tagKey": {"$nin": ["room"]}, "$tagValue": {"$nin": ["2"]}}},
        [{}, {"tags": [FLOOR_1]}],
        [{"tags": [FLOOR_2]}, {"tags": [ROOM_1]}],
    ),
    ({"tags": {"$tagKey": None}}, [{}], [{"tags": [FLOOR_1]}]),
    ({"tags": {"$tagKey": "floor", "$tagValue": None}}, [{}, {"tags": [ROOM_1]}], [{"tags": [FLOOR_1]}]),
    ({"tags": {"$tagKey": {"$in": []}}}, [], [{}, {"tags": [FLOOR_1]}]),
    ({"tags": {"$tagKey": {"$nin": []}}}, [{}, {"tags": [FLOOR_1]}], []),
    ({"tags": {"$eq": {"floor": "1"}}}, [{"tags": [FLOOR_1]}], [{"tags": [FLOOR_2]}, {}]),
    ({"tags": {"$ne": {"floor": "1"}}}, [{"tags": [FLOOR_2]}, {}], [{"tags": [FLOOR_1]}]),
    ({"tags": {"$ne": {"floor": "1", "room": "1"}}}, [{"tags": [FLOOR_1]}], [{"tags": [FLOOR_1, ROOM_1]}]),
    ({"tags": {"$ne": {"$tagKey": "floor"}}}, [{"tags": [ROOM_1]}, {}], [{"tags": [FLOOR_1, ROOM_1]}]),
    # The filter of a key may name only one of the two.
    ({"tags": {"$tagKey": "floor"}}, [{"tags": [{"key": "floor"}]}], [{"tags": [{"value": "floor"}]}]),
]


@pytest.mark.parametrize(
    ("query", "matched", "unmatched"), [*LOGIC, *SCALARS, *TEXTS, *LISTS, *IDS, *REFS, *TIMES, *TAGS], ids=str
)
def test_a_query_matches_what_its_rules_say(
    query: object, matched: list[dict[str, Any]], unmatched: list[dict[str, Any]]
) -> None:
    compiled = compile_query(query, FIELDS)
    assert [doc for doc in matched if not compiled.matches(doc)] == []
    assert [doc for doc in unmatched if compiled.matches(doc)] == []


@pytest.mark.parametrize(
    ("query", "path", "problem"),
    [
        (None, "query", "null is not a query; give an object"),
        ([], "query", "an array is not a query"),
        ({"nmae": 1}, "nmae", "no such field; give one of v, w, list"),
        ({"lists": 1}, "lists", "did you mean list?"),
        ({"$ro": []}, "$ro", "not a logical operator (did you mean $or?)"),
        ({"$gt": 1}, "$gt", "operators such as $gt below a field"),
        ({"$or": {}}, "$or", "an empty object is not an array"),
        ({"$or": [{}, 7]}, "$or[1]", "7 is not a query"),
        ({"$and": []}, "$and", "an empty array joins nothing; give at least one query, or leave $and out"),
        ({"$or": []}, "$or", "an empty array joins nothing"),
        ({"v": 1, "$nor": []}, "$nor", "an empty array joins nothing"),
        ({"$and": [{"$or": []}]}, "$and[0].$or", "an empty array joins nothing"),
        (
            {"$or": [{}, {"$and": [{"v": {"$gt": []}}]}]},
            "$or[1].$and[0].v.$gt",
            "an array cannot be compared",
        ),
        ({"v": []}, "v", "an array cannot be compared; give a string, number, boolean or null"),
        ({"v": {}}, "v", "nothing to compare with; give at least one of $eq"),
        ({"v": {"$ci": True}}, "v", "nothing to compare with"),
        ({"v": {"$ci": 1, "$eq": "a"}}, "v.$ci", "1 is not a boolean"),
        ({"v": {"gt": 1}}, "v.gt", "no such operator (did you mean $gt?)"),
        ({"v": {"$regex": "x"}}, "v.$regex", "(did you mean $startsWith, $endsWith or $contains?)"),
        ({"v": {"like": "x"}}, "v.like", "(did you mean $startsWith, $endsWith or $contains?)"),
        ({"v": {"$exists": True}}, "v.$exists", "(did you mean $ne?)"),
        ({"v": {"$regex": "a"}}, "v.$regex", "give one of $eq, $ne"),
        ({"v": {"$eq": {"a": 1}}}, "v.$eq", "an object cannot be compared"),
        ({"v": {"$startsWith": ""}}, "v.$startsWith", "'' cannot be searched for"),
        (
            {"v": {"$contains": 5}},
            "v.$contains",
            "5 cannot be searched for; give a text of at least one character",
        ),
        ({"v": {"$in": "a"}}, "v.$in", "'a' is not an array"),
        ({"v": {"$in": ["a", None]}}, "v.$in[1]", "null cannot be listed"),
        ({"v": {"$nin": [[]]}}, "v.$nin[0]", "an array cannot be compared"),
        ({"id": "abc"}, "id", "'abc' is not an identifier; give 24 hex digits or null"),
        ({"id": 5}, "id", "5 is not an identifier"),
        ({"id": f"{ID_A}\n"}, "id", "is not an identifier"),
        ({"id": {}}, "id", "0 operators; give exactly one"),
        (
            {"id": {"$gt": ID_A, "$lt": ID_B}},
            "id",
            "2 operators; give exactly one, and join several with $and",
        ),
        ({"id": {"$startsWith": "0a"}}, "id.$startsWith", "no such operator of identifiers"),
        ({"ids": {"$eq": ID_A, "$ci": True}}, "ids.$ci", "no such operator of identifiers"),
        ({"ids": {"$in": [ID_A, "x"]}}, "ids.$in[1]", "'x' is not an identifier"),
        ({"at": "yesterday"}, "at", "'yesterday' is not an ISO 8601 time"),
        ({"at": True}, "at", "true is not a time; give an ISO 8601 text"),
        ({"at": {"$gt": "2024-02-30"}}, "at.$gt", "not a valid date and time"),
        ({"at": {"$gt": {"$date": 5}}}, "at.$gt.$date", "5 is not a time"),
        ({"at": {"$date": "2024-05-01", "$gt": 1}}, "at", "an object is not a time"),
        ({"at": {"$in": [0, False]}}, "at.$in[1]", "false is not a time"),
        ({"tags": {}}, "tags", "an empty object is not a condition on tags; give null"),
        ({"tags": "floor"}, "tags", "'floor' is not a condition on tags"),
        ({"tags": {"$eq": None, "$ne": None}}, "tags", "$eq or $ne stands alone"),
        ({"tags": {"$eq": {"$ne": None}}}, "tags.$eq", "'$ne' is not a valid tag key"),
        ({"tags": {"$tagKey": "a", "b": "c"}}, "tags", "'b' cannot stand beside $tagKey"),
        ({"tags": {"$tagName": "a"}}, "tags", "'$tagName' is not a valid tag key"),
        ({"tags": {"a b": "c"}}, "tags", "'a b' is not a valid tag key, which is 1 to 255 letters"),
        ({"tags": {"floor": 1}}, "tags.floor", "1 is not a condition on a tag; give a string, null"),
        ({"tags": {"floor": {"$gt": "1"}}}, "tags.floor", "an object is not a condition on a tag"),
        ({"tags": {"floor": {"$in": ["1", 2]}}}, "tags.floor.$in[1]", "2 is not a string"),
        ({"tags": {"$ne": {"$tagKey": {"$nin": 5}}}}, "tags.$ne.$tagKey.$nin", "5 is not an array"),
    ],
    ids=str,
)
def test_a_mistake_is_named_with_its_place(query: object, path: str, problem: str) -> None:
    with pytest.raises(QueryError) as caught:
        compile_query(query, FIELDS)
    assert caught.value.path == path
    assert problem in caught.value.problem
    assert str(caught.value) == f"{path}: {caught.value.problem}."


def test_a_mistake_is_a_refusal_that_the_edge_knows() -> None:
    with pytest.raises(Invalid, match=r"^deviceQuery\.\$or\[0\]\.v: "):
        compile_query({"$or": [{"v": []}]}, FIELDS, at="deviceQuery")
    with pytest.raises(QueryError, match=r"^deviceQuery: "):
        compile_query(5, FIELDS, at="deviceQuery")


def test_a_message_is_short_however_long_the_mistake() -> None:
    long = "x" * 100_000
    for query in (
        {long: 1},
        {f"${long}": 1},
        {"v": {long: 1}},
        {"id": long},
        {"at": long},
        {"tags": {long: 1}},
    ):
        with pytest.raises(QueryError) as caught:
            compile_query(query, FIELDS)
        assert len(str(caught.value)) < 500
    with pytest.raises(QueryError, match="over 300 digits"):
        compile_query({"id": 10**5000}, FIELDS)


def test_tags_may_be_a_map() -> None:
    """As events hold them: of each key one value."""
    as_map = {"tags": {"floor": "1", "room": "1"}}
    as_list = {"tags": [FLOOR_1, ROOM_1]}
    for query, _, _ in TAGS:
        compiled = compile_query(query, FIELDS)
        assert compiled.matches(as_map) == compiled.matches(as_list), query
        assert compiled.matches({"tags": {}}) == compiled.matches({}), query


def test_a_message_is_short_however_many_fields_there_are() -> None:
    many = {f"column{number}" + "x" * 200: Field("value") for number in range(50)}
    for fields, shown in (
        (many, " and 49 more"),
        ({f"c{number}": Field("value") for number in range(50)}, "c28, c29 and 20 more"),
    ):
        with pytest.raises(QueryError, match="there is no such field") as caught:
            compile_query({"y": 1}, fields)
        assert shown in str(caught.value)
        assert len(str(caught.value)) < 500


# -- bounds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"$and": [{}] * 3}, "$and"),
        ({"v": {"$in": [1, 2, 3]}}, "v.$in"),
        ({"id": {"$nin": [ID_A, ID_B, ID_C]}}, "id.$nin"),
        ({"tags": {"abc": {"$in": ["1", "2", "3"]}}}, "tags.abc.$in"),
        ({"tags": {"$tagKey": "1234"}}, "tags.$tagKey"),
        ({"tags": {"$tagValue": {"$in": ["1234"]}}}, "tags.$tagValue.$in[0]"),
        ({"tags": {"floor": "1"}}, "tags"),
        ({"tags": {"a": "1234"}}, "tags.a"),
    ],
    ids=str,
)
def test_items_and_characters_are_bounded(query: object, path: str) -> None:
    with pytest.raises(QueryError) as caught:
        compile_query(query, FIELDS, items_max=2, tag_chars_max=3)
    assert caught.value.path == path
    compile_query(query, FIELDS, items_max=3, tag_chars_max=5)


def test_the_defaults_are_those_of_the_api() -> None:
    assert (ITEMS_MAX, TAG_CHARS_MAX) == (100, 255)
    compile_query({"$or": [{"v": {"$in": list(range(100))}}] * 100, "tags": {"k" * 255: "v" * 255}}, FIELDS)
    too_large: list[object] = [
        {"$or": [{}] * 101},
        {"v": {"$in": list(range(101))}},
        {"tags": {"a": "v" * 256}},
    ]
    for query in too_large:
        with pytest.raises(QueryError):
            compile_query(query, FIELDS)


def nested(levels: int) -> dict[str, Any]:
    query: dict[str, Any] = {"v": 1}
    for _ in range(levels):
        query = {"$and": [query]}
    return query


def test_the_depth_is_bounded() -> None:
    assert compile_query(nested(3), FIELDS, depth_max=3).matches({"v": 1})
    with pytest.raises(QueryError, match=r"^\$and\[0\]\.\$and\[0\]\.\$and\[0\]\.\$and: .*at most 3 levels"):
        compile_query(nested(4), FIELDS, depth_max=3)
    with pytest.raises(QueryError, match="at most 16 levels"):
        compile_query(nested(900), FIELDS)


@pytest.mark.parametrize(
    ("query", "conditions"),
    [
        ({"v": 1, "w": {"$gt": 1, "$lt": 3, "$ci": True}}, 3),
        ({"$or": [{"v": 1}, {"w": 1}, {}]}, 3),
        ({"tags": {"a": "1", "b": "2"}}, 2),
        ({"tags": {"$ne": {"a": "1", "b": "2"}}}, 2),
        ({"tags": None, "at": {"$date": "2024-05-01"}, "id": ID_A}, 3),
    ],
    ids=str,
)
def test_the_conditions_are_bounded_in_all(query: object, conditions: int) -> None:
    compile_query(query, FIELDS, conditions_max=conditions)
    with pytest.raises(QueryError, match=f"give at most {conditions - 1} conditions"):
        compile_query(query, FIELDS, conditions_max=conditions - 1)


# -- what a compiled query is --------------------------------------------------------------------------------


def test_a_compiled_query_keeps_nothing_of_its_source() -> None:
    source: dict[str, Any] = {"$or": [{"v": {"$in": [1]}}, {"tags": {"floor": {"$in": ["1"]}}}]}
    compiled = compile_query(source, FIELDS)
    before = copy.deepcopy(source)
    source["$or"][0]["v"]["$in"].append(2)
    source["$or"].append({})
    assert not compiled.matches({"v": 2})
    assert before == {"$or": [{"v": {"$in": [1]}}, {"tags": {"floor": {"$in": ["1"]}}}]}


def test_a_compiled_query_says_which_fields_it_reads() -> None:
    query = {"$nor": [{"v": 1}, {"$and": [{"tags": None}]}], "at": None}
    assert compile_query(query, FIELDS).fields == {"v", "tags", "at"}
    assert compile_query({}, FIELDS).fields == frozenset()


def test_devices_are_found_by_every_field_of_the_api() -> None:
    doc = {
        "id": ID_A,
        "creationDate": MAY_1,
        "lastUpdated": MAY_1,
        "name": "Pump",
        "deviceClass": "peripheral",
        "gatewayId": ID_B,
        "parentId": ID_C,
        "ancestorId": [ID_C, ID_B],
        "attributeName": ["temperature", "humidity"],
        "tags": [FLOOR_1],
        "connectedAt": MAY_1,
        "connectionStatus": "connected",
        "lastSeen": MAY_1,
        "expectedBy": MAY_1,
    }
    query = {
        "id": {"$in": [ID_A]},
        "creationDate": {"$gte": "2024-05-01"},
        "lastUpdated": MAY_1,
        "deletedAt": None,
        "name": {"$eq": "pump", "$ci": True},
        "deviceClass": {"$in": ["peripheral", "floating"]},
        "gatewayId": ID_B,
        "parentId": {"$ne": None},
        "ancestorId": ID_B,
        "attributeName": {"$startsWith": "hum"},
        "experienceUserId": None,
        "experienceGroupId": {"$ne": ID_A},
        "tags": {"floor": "1"},
        "connectedAt": {"$lt": "2024-05-02"},
        "disconnectedAt": None,
        "connectionStatus": {"$ne": "disconnected"},
        "lastSeen": {"$gte": "2024-05-01"},
        "expectedBy": {"$lt": "2024-05-02"},
    }
    compiled = compile_query(query, DEVICE_FIELDS)
    assert compiled.fields == DEVICE_FIELDS.keys()
    assert compiled.matches(doc)
    for name in query:
        assert not compile_query({"$nor": [{name: query[name]}]}, DEVICE_FIELDS).matches(doc)


def test_application_keys_are_found_by_every_field_of_the_api() -> None:
    doc = {
        "id": ID_A,
        "status": "active",
        "deviceIds": [ID_B],
        "filterType": "whitelist",
        "pubTopics": ["a/b"],
    }
    query = {"status": "active", "deviceIds": ID_B, "deviceTags": None, "pubTopics": {"$startsWith": "a/"}}
    assert compile_query(query, APPLICATION_KEY_FIELDS).matches(doc)
    required = "id creationDate lastUpdated status deviceIds deviceTags key description filterType"
    assert {*required.split(), "pubTopics", "subTopics"} <= APPLICATION_KEY_FIELDS.keys()


# -- globs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "matched", "unmatched"),
    [
        ("", ["", "a"], []),
        ("  ", ["", "a"], []),
        ("*", ["", "a", "a\nb"], []),
        ("pump", ["pump", "PUMP"], ["pumps", "a pump", ""]),
        ("pump*", ["pump", "Pump 1"], ["a pump"]),
        ("*pump", ["pump", "a PUMP"], ["pumps"]),
        ("*pump*", ["pump", "a pump b"], ["pum p"]),
        ("p*p", ["pp", "pump"], ["p", "pumps"]),
        ("ab*ba", ["abba", "ab-ba"], ["aba"]),
        ("a**b", ["ab", "a1b"], ["a", "b"]),
        ("a*b*c", ["abc", "a1b2c"], ["acb", "ac"]),
        ("*ab*ab*", ["abab"], ["aba"]),
        ("*aa*aa*", ["aaaa"], ["aaa"]),
        ("a*ab*b", ["aabb"], ["aab", "abb", "ab"]),
        ("a.c", ["a.c"], ["abc"]),
        ("[ab]?", ["[ab]?"], ["a1"]),
        ("\\*", ["\\", "\\x"], ["*"]),
        ("STRASSE*", ["Straße 5"], ["Strase"]),
    ],
)
def test_a_glob_knows_only_the_star(pattern: str, matched: list[str], unmatched: list[str]) -> None:
    glob = compile_glob(pattern)
    assert [text for text in matched if not glob(text)] == []
    assert [text for text in unmatched if glob(text)] == []


def test_a_hostile_glob_costs_no_more_than_its_length() -> None:
    """A backtracking matcher would not come back within the lifetime of the machine."""
    assert not compile_glob("*a" * 500 + "*b")("a" * 20_000)
    assert compile_glob("*a" * 500 + "*")("a" * 20_000)
