"""The query string becomes the typed struct of a route, or a sentence that names the parameter."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.actors.errors import Invalid
from trunkline.actors.messages.devices import DevicePage, History, TagValueSearch
from trunkline.http.query_string import QueryParser

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
    assert HISTORY.parse(b"start=-5&end=0&limit=7")[0] == History(start=-5, end=0, limit=7)


def test_a_blank_parameter_is_an_absent_one() -> None:
    assert page("filterField=&filter=&page=") == DevicePage()


@pytest.mark.parametrize("text", ["_links=false", "_links=0", "_actions=x&_links=false&_embedded=y"])
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


def test_a_query_in_brackets_reads_numbers_booleans_and_null() -> None:
    found = page(
        "query[name][$eq]=pump&query[creationDate][$gt]=5&query[gatewayId]=null&query[name][$ci]=true"
    )
    assert found.query == {
        "name": {"$eq": "pump", "$ci": True},
        "creationDate": {"$gt": 5},
        "gatewayId": None,
    }


def test_a_query_of_arrays_in_brackets() -> None:
    found = page("query[$or][0][name]=a&query[$or][1][name]=b")
    assert found.query == {"$or": [{"name": "a"}, {"name": "b"}]}


def test_a_query_as_json_text_is_taken_as_it_is() -> None:
    query = {"$and": [{"name": {"$startsWith": "p"}}, {"tags": {"floor": "2"}}]}
    assert page("query=" + quote(msgspec.json.encode(query).decode())).query == query


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sortDirecton=asc", "sortDirecton: there is no such field in this query"),
        ("page=two", "page: got str, expected int"),
        ("page=-1", "page: the value does not fit: expected int >= 0"),
        ("perPage=1001", "perPage: the value does not fit: expected int <= 1000"),
        ("sortField=colour", "sortField: 'colour' is not one of the allowed values"),
        ("query=%7B%22name%22", "query: is not JSON"),
        ("query=name", "query: is not a JSON object"),
        ("query[name", "query[name: is not a name of a query parameter"),
        ("query=x&query[name]=y", "query[name]: is given both as a value and as an object"),
        ("name=%ff", "The query string can not be read"),
        ("a" + "[a]" * 30 + "=1", "nests deeper than 20 levels"),
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
