"""The advanced query over HTTP: both forms in the URL mean the same, on every operation that takes one."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.e2e.conftest import Server
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE

TAKING_ONE = [
    route
    for route in TABLE.routes
    if "query" in route.query.__struct_encode_fields__
    and route.method == "GET"
    and [part.name for part in route.path_parameters] == ["application"]
]

# Each row: brackets, the JSON that means the same, and the devices that both find.
BOTH_FORMS: list[tuple[str, Any, list[str]]] = [
    ("query[tags][floor]=2", {"tags": {"floor": "2"}}, ["2"]),
    ("query[tags][2]=true", {"tags": {"2": "true"}}, ["true"]),
    ("query[tags][$tagValue][$in]=2", {"tags": {"$tagValue": {"$in": ["2"]}}}, ["2"]),
    ("query[tags]=null", {"tags": None}, ["null"]),
    ("query[tags][$ne][floor]=2", {"tags": {"$ne": {"floor": "2"}}}, ["null", "true"]),
    ("query[name]=2", {"name": "2"}, ["2"]),
    ("query[name][$eq]=true", {"name": {"$eq": "true"}}, ["true"]),
    ("query[name][$in][]=null&query[name][$in][]=2", {"name": {"$in": ["null", "2"]}}, ["2", "null"]),
    ("query[name][$in]=2", {"name": {"$in": ["2"]}}, ["2"]),
    ("query[name][$eq]=TRUE&query[name][$ci]=true", {"name": {"$eq": "TRUE", "$ci": True}}, ["true"]),
    ("query[name][$startsWith]=tr", {"name": {"$startsWith": "tr"}}, ["true"]),
    ("query[parentId]=null&query[name][$ne]=2", {"parentId": None, "name": {"$ne": "2"}}, ["null", "true"]),
    ("query[creationDate][$gt]=5", {"creationDate": {"$gt": 5}}, ["2", "null", "true"]),
    ("query[creationDate][$lt][$date]=2001-01-01", {"creationDate": {"$lt": {"$date": "2001-01-01"}}}, []),
    ("query[attributeName]=7", {"attributeName": "7"}, ["null"]),
    ("query[$or][0][name]=2&query[$or][1][name]=x", {"$or": [{"name": "2"}, {"name": "x"}]}, ["2"]),
    ("query[$nor][][name]=2&query[$nor][][tags]=null", {"$nor": [{"name": "2"}, {"tags": None}]}, ["true"]),
]  # fmt: skip


async def test_both_forms_find_the_same_devices(server: Server) -> None:
    application = await server.application()
    await server.device(application, "2", tags=[{"key": "floor", "value": "2"}])
    await server.device(application, "true", tags=[{"key": "2", "value": "true"}])
    await server.device(application, "null", attributes=[{"name": "7", "dataType": "number"}])
    for brackets, query, expected in BOTH_FORMS:
        as_json = urlencode({"query": json.dumps(query)})
        for form in (brackets, quote(brackets, safe="=&"), as_json):
            listed = await server.call("GET", f"{application}/devices?{form}")
            assert sorted(each["name"] for each in listed["items"]) == expected, form
            assert listed["query"] == query, form


@pytest.mark.parametrize("route", TAKING_ONE, ids=lambda route: route.operation)
async def test_each_operation_takes_both_forms(server: Server, route: Route) -> None:
    """Every table of fields has `id`, and no record is without one."""
    application = await server.application()
    await server.device(application, "pump", tags=[{"key": "floor", "value": "2"}])
    await server.call("POST", f"{application}/keys", {})
    path = route.path.replace("/applications/{applicationId}", application)
    needed = {"key": "&key=floor", "version": "&version=develop"}
    more = "".join(more for name, more in needed.items() if name in route.query.__struct_encode_fields__)
    everything = await server.call("GET", f"{path}?_links=false{more}")
    for condition, brackets in (({"$ne": None}, "query[id][$ne]=null"), (None, "query[id]=null")):
        as_json = urlencode({"query": json.dumps({"id": condition})})
        found = [
            await server.call("GET", f"{path}?_links=false&{form}{more}") for form in (as_json, brackets)
        ]
        for each in found:
            each.pop("query", None)
        assert found[0] == found[1]
        # A query replaces the class of workflows, which a list of them shows only where it applies.
        assert condition is None or found[0].items() <= everything.items()
    refused = await server.call("GET", f"{path}?query[colour]=red{more}", status=400)
    assert refused["message"].startswith("query.colour: "), refused
    empty = await server.call(
        "GET", f"{path}?{urlencode({'query': json.dumps({'$or': []})})}{more}", status=400
    )
    assert empty["message"].startswith("query.$or: an empty array")
