"""The query string becomes the typed struct of a route, or a sentence that names the parameter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any, get_type_hints
from urllib.parse import quote, urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from tests.actors.query_strategies import FIELDS as DRAWN_FIELDS
from tests.actors.query_strategies import PLAIN
from trunkline.actors.core.query.compile import compile_query
from trunkline.actors.core.query.fields import Field
from trunkline.actors.core.query.schema import QUERY_FIELDS
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.devices.record.messages import DevicePage, History, TagValueSearch
from trunkline.actors.fleet.devices.record.terms import DEVICE_FIELDS
from trunkline.http.calls.query_string import QueryParser, query_fields
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE

PAGE = QueryParser(DevicePage)
HISTORY = QueryParser(History)


def page(text: str) -> Any:
    return PAGE.parse(text.encode())[0]


def test_nothing_given_is_the_defaults() -> None:
    assert HISTORY.parse(b"") == (History(), True)


def test_numbers_and_booleans_are_read_from_text() -> None:
    found = page("page=2&perPage=50&excludeConnectionInfo=true&tagsAsObject=1&sortDirection=desc")
    assert (found.page, found.per_page, found.exclude_connection_info, found.tags_as_object) == (
        2,
        50,
        True,
        True,
    )
    assert HISTORY.parse(b"start=-5&end=0&limit=7")[0] == History(start="-5", end="0", limit=7)


def test_a_blank_parameter_is_an_absent_one() -> None:
    assert page("filterField=&filter=&page=") == DevicePage()


def test_an_unknown_parameter_is_refused_even_if_it_is_blank() -> None:
    with pytest.raises(Invalid, match=r"^fliter:"):
        page("fliter=")


@pytest.mark.parametrize("name", ["_links", "_actions", "_embedded"])
@pytest.mark.parametrize("value", ["null", "2", "yes", "+", "true&{name}=true"])
def test_a_switch_is_true_or_false(name: str, value: str) -> None:
    with pytest.raises(Invalid, match=f"^{name}: must be true or false"):
        PAGE.parse(f"{name}={value.format(name=name)}".encode())


@pytest.mark.parametrize("text", ["_links=false", "_links=0", "_actions=TRUE&_links=false&_embedded=1"])
def test_links_can_be_dropped_and_what_clients_of_the_family_send_is_accepted(text: str) -> None:
    assert PAGE.parse(text.encode()) == (DevicePage(), False)


@pytest.mark.parametrize(
    "text",
    [
        "deviceClass=gateway&deviceClass=system",
        "deviceClass=gateway,system",
        "deviceClass[]=gateway&deviceClass[]=system",
        "deviceClass[0]=gateway&deviceClass[1]=system",
        "deviceClass=" + quote('["gateway","system"]'),
    ],
)
def test_every_form_of_a_list_means_the_same(text: str) -> None:
    assert page(text).device_class == ["gateway", "system"]


@pytest.mark.parametrize(
    "text",
    [
        "tagFilter[0][key]=floor&tagFilter[0][value]=2&tagFilter[1][key]=lab",
        "tagFilter=" + quote('[{"key":"floor","value":"2"},{"key":"lab"}]'),
    ],
)
def test_tag_filters_in_brackets_and_in_json(text: str) -> None:
    filters = page(text).tag_filter
    assert msgspec.to_builtins(filters) == [{"key": "floor", "value": "2"}, {"key": "lab"}]


BRACKETS: list[tuple[str, Any]] = [
    ("[name]=5", {"name": "5"}),
    ("[name]=true", {"name": "true"}),
    ("[name]=", {"name": ""}),
    ("[name]=null", {"name": None}),
    ("[name][$eq]=5", {"name": {"$eq": "5"}}),
    ("[name][$ci]=true&[name][$eq]=pump", {"name": {"$ci": True, "$eq": "pump"}}),
    ("[name][$ci]=yes&[name][$eq]=pump", {"name": {"$ci": "yes", "$eq": "pump"}}),
    ("[name][$startsWith]=5", {"name": {"$startsWith": "5"}}),
    ("[name][$contains]=null", {"name": {"$contains": "null"}}),
    ("[name][$in][0]=5&[name][$in][1]=null", {"name": {"$in": ["5", "null"]}}),
    ("[name][$in][]=a,b&[name][$in][]=c", {"name": {"$in": ["a,b", "c"]}}),
    ("[name][$in][10]=a&[name][$in][9]=b", {"name": {"$in": ["b", "a"]}}),
    ("[name][$in]=a&[name][$in]=b", {"name": {"$in": ["a", "b"]}}),
    ("[name][$nin]=a", {"name": {"$nin": ["a"]}}),
    ("[name]=a&[name]=b", {"name": ["a", "b"]}),
    ("[any]=5", {"any": 5}),
    ("[any][$gt]=-1.5e3", {"any": {"$gt": -1500.0}}),
    ("[any]=1e999", {"any": "1e999"}),
    ("[any]=05", {"any": "05"}),
    ("[any]=true", {"any": True}),
    ("[any][$in][]=1&[any][$in][]=false&[any][$in][]=x", {"any": {"$in": [1, False, "x"]}}),
    ("[size]=5", {"size": 5}),
    ("[size][$in][]=5&[size][$in][]=0.5", {"size": {"$in": [5, 0.5]}}),
    ("[size]=true", {"size": "true"}),
    ("[on]=true", {"on": True}),
    ("[on]=1", {"on": "1"}),
    ("[id]=" + "1" * 24, {"id": "1" * 24}),
    ("[id][$in][]=" + "1" * 24, {"id": {"$in": ["1" * 24]}}),
    ("[gatewayId]=null", {"gatewayId": None}),
    ("[row][$gt]=" + "2" * 24, {"row": {"$gt": "2" * 24}}),
    ("[topics][$contains]=7", {"topics": {"$contains": "7"}}),
    ("[topics]=7", {"topics": "7"}),
    ("[creationDate][$gt]=5", {"creationDate": {"$gt": 5}}),
    ("[creationDate]=true", {"creationDate": "true"}),
    ("[creationDate][$gt]=2024-05-01", {"creationDate": {"$gt": "2024-05-01"}}),
    ("[creationDate][$gt][$date]=2024-05-01", {"creationDate": {"$gt": {"$date": "2024-05-01"}}}),
    ("[creationDate][$date]=2024-05-01", {"creationDate": {"$date": "2024-05-01"}}),
    ("[creationDate][$startsWith]=2024", {"creationDate": {"$startsWith": "2024"}}),
    ("[tags][floor]=2", {"tags": {"floor": "2"}}),
    ("[tags][2]=true", {"tags": {"2": "true"}}),
    ("[tags][0]=a&[tags][1]=b", {"tags": {"0": "a", "1": "b"}}),
    ("[tags]=null", {"tags": None}),
    ("[tags][floor]=null", {"tags": {"floor": None}}),
    ("[tags][floor][$in][]=1&[tags][floor][$in][]=null", {"tags": {"floor": {"$in": ["1", "null"]}}}),
    ("[tags][$tagKey]=1&[tags][$tagValue][$nin]=2", {"tags": {"$tagKey": "1", "$tagValue": {"$nin": ["2"]}}}),
    ("[tags][$ne][floor]=2", {"tags": {"$ne": {"floor": "2"}}}),
    ("[tags][$eq]=null", {"tags": {"$eq": None}}),
    ("[$or][0][name]=1&[$or][1][name]=2", {"$or": [{"name": "1"}, {"name": "2"}]}),
    ("[$or][1][name]=1&[$or][0][name]=2", {"$or": [{"name": "2"}, {"name": "1"}]}),
    ("[$or][][name]=1&[$or][][size]=2", {"$or": [{"name": "1"}, {"size": 2}]}),
    ("[$and][0][$nor][0][tags][a]=1", {"$and": [{"$nor": [{"tags": {"a": "1"}}]}]}),
    # A value of no known form stays unchanged; the compiler refuses it with its position.
    ("[$or][name]=1", {"$or": {"name": "1"}}),
    ("[$or]=1", {"$or": ["1"]}),
    ("[colour]=5", {"colour": "5"}),
    ("[name][near][0]=5", {"name": {"near": {"0": "5"}}}),
    ("[\u00b2]=5", {"\u00b2": "5"}),
    ("[name][$in][\u00b2]=5", {"name": {"$in": {"\u00b2": "5"}}}),
    ("[name][$in][" + "9" * 5000 + "]=5", {"name": {"$in": {"9" * 5000: "5"}}}),
]

TYPED = {
    **DEVICE_FIELDS,
    "any": Field("value"),
    "size": Field("value", "number"),
    "on": Field("value", "boolean"),
    "row": Field("value", "id"),
    "topics": Field("values", "string"),
}


class TypedPage(msgspec.Struct, frozen=True):
    """A route that takes a query over every kind of field."""

    query: Annotated[dict[str, Any], Meta(extra={QUERY_FIELDS: TYPED})] | None = None
    drawn: Annotated[dict[str, Any], Meta(extra={QUERY_FIELDS: DRAWN_FIELDS})] | None = None


TYPED_PAGE = QueryParser(TypedPage)


@pytest.mark.parametrize(("text", "expected"), BRACKETS, ids=[text[:60] for text, _ in BRACKETS])
def test_a_text_in_brackets_is_read_by_what_its_field_holds(text: str, expected: Any) -> None:
    names = "&".join(f"query{pair}" for pair in text.split("&"))
    found = TYPED_PAGE.parse(quote(names, safe="[]$=&").encode())[0].query
    assert found == expected
    assert repr(found) == repr(expected)


def pairs_of(value: Any, name: str, numbered: bool) -> Iterator[tuple[str, str]]:
    """A query as the bracketed names and texts of a URL."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from pairs_of(inner, f"{name}[{key}]", numbered)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            plain = not numbered and not isinstance(inner, dict)
            yield from pairs_of(inner, f"{name}[]" if plain else f"{name}[{index}]", numbered)
    else:
        yield name, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def can_be_bracketed(value: Any) -> bool:
    """Brackets have no empty array and no empty object."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return bool(value) and all(map(can_be_bracketed, inner))
    return True


@given(PLAIN.queries.filter(can_be_bracketed), st.booleans())
def test_both_forms_of_a_query_are_one(query: Any, numbered: bool) -> None:
    as_json = urlencode({"drawn": msgspec.json.encode(query).decode()})
    in_brackets = urlencode(list(pairs_of(query, "drawn", numbered)))
    found = [TYPED_PAGE.parse(text.encode())[0].drawn for text in (as_json, in_brackets)]
    assert found == [query, query]
    compile_query(found[1], DRAWN_FIELDS)


parts_of_names = st.sampled_from(
    [*TYPED, *("$and", "$or", "$eq", "$in", "$ci", "$date", "$tagKey", "", "0", "1", "10", "x", "\u00b2")]
)
texts = st.sampled_from(["", "5", "-1.5", "true", "null", "2024-05-01", "a,b", "1" * 24, "[]", "{", "\u00b2"])


@given(st.lists(st.tuples(st.lists(parts_of_names, max_size=5), texts), max_size=5))
def test_whatever_stands_in_brackets_is_read_or_refused(pairs: list[tuple[list[str], str]]) -> None:
    named = [("query" + "".join(f"[{part}]" for part in parts), text) for parts, text in pairs]
    with suppress(Invalid):
        found = TYPED_PAGE.parse(urlencode(named).encode())[0].query
        msgspec.json.encode(found)
        if found is not None:
            compile_query(found, TYPED).matches({})


@pytest.mark.parametrize(
    "route", [route for route in TABLE.routes if "query" in route.query.__struct_encode_fields__]
)
def test_each_query_of_the_api_carries_the_table_of_its_fields(route: Route) -> None:
    assert query_fields(get_type_hints(route.query, include_extras=True)["query"]) is not None


def test_a_query_as_json_text_is_taken_as_it_is() -> None:
    query = {"$and": [{"name": {"$startsWith": "p"}}, {"tags": {"floor": "2"}}]}
    text = msgspec.json.encode(query).decode()
    assert page("query=" + quote(text)).query == page("query=" + quote(f"\n {text} ")).query == query


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "sortDirecton=asc",
            "sortDirecton: there is no such field in this query (did you mean sortDirection?)",
        ),
        (
            "limit=5",
            "limit: there is no such field in this query (did you mean perPage?); it takes page, perPage,",
        ),
        ("per_page=5", "per_page: there is no such field in this query (did you mean perPage?)"),
        ("sort=name", "(did you mean sortField or sortDirection?)"),
        ("page=two", "page: is 'two'; give an integer from 0 to 10000000."),
        ("page=-1", "page: is '-1'; give an integer from 0 to 10000000."),
        ("perPage=1001", "perPage: is '1001'; give an integer from 1 to 1000."),
        (
            "sortField=colour",
            "sortField: is 'colour'; give one of connectionStatus, creationDate, deletedAt, id, ",
        ),
        (
            "deviceClass=gateway,boat",
            "deviceClass[1]: is 'boat'; give one of edgeCompute, embedded, floating, ",
        ),
        ("tagsAsObject=maybe", "tagsAsObject: is 'maybe'; give true or false."),
        ("query=%7B%22name%22", "query: is not JSON"),
        ("query=name", "query: is not a JSON object"),
        ("query[name", "query[name: is not a name of a query parameter"),
        ("query=x&query[name]=y", "query[name]: is given both as a value and as an object"),
        ("name=%ff", "The query string cannot be read"),
        ("a" + "[a]" * 41 + "=1", "nests deeper than 40 levels"),
        ("query=" + quote('{"$and":[' * 5000), "query: nests too deeply"),
        ("&".join(f"a{n}=1" for n in range(1001)), "at most 1000 fields"),
    ],
)
def test_what_is_wrong_is_said_with_the_name(text: str, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        page(text)
    assert sentence in refused.value.message


def test_a_required_parameter_is_missed_by_name() -> None:
    with pytest.raises(Invalid, match="key: is missing; this query needs it"):
        QueryParser(TagValueSearch).parse(b"")


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5))
def test_whatever_is_sent_is_parsed_or_refused(pairs: dict[str, str]) -> None:
    with suppress(Invalid):
        PAGE.parse(urlencode(pairs, errors="replace").encode())


@given(st.binary(max_size=60))
def test_raw_bytes_are_parsed_or_refused(raw: bytes) -> None:
    with suppress(Invalid):
        PAGE.parse(raw)
