"""Queries as editors and templates write them: blank sides of tags, texts of numbers and times, empty arrays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.conftest import Server
from tests.e2e.test_dashboard_data import made, parts
from tests.e2e.test_data_table_rows import SCORES, filled, shown
from tests.e2e.test_data_tables import make_table
from tests.e2e.test_reports import block

FLOOR = [{"key": "floor", "value": "1"}]


async def fleet(server: Server) -> str:
    application = await server.application()
    for name, tags in (("north", FLOOR), ("south", [{"key": "room", "value": "1"}]), ("attic", [])):
        await server.device(application, name, tags=tags)
    return application


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        ({"$tagKey": "floor", "$tagValue": ""}, ["north"]),
        ({"$tagKey": "", "$tagValue": "1"}, ["north", "south"]),
        ({"$eq": {"$tagKey": "floor", "$tagValue": ""}}, ["north"]),
        ({"$ne": {"$tagKey": "floor", "$tagValue": ""}}, ["attic", "south"]),
        ({"$tagKey": "", "$tagValue": ""}, []),
        ({"$tagKey": ""}, []),
        ({"floor": ""}, []),
    ],
)
async def test_a_blank_side_of_a_tag_means_any(server: Server, tags: Any, names: list[str]) -> None:
    application = await fleet(server)
    found = await server.call("GET", f"{application}/devices?query={json.dumps({'tags': tags})}")
    assert [each["name"] for each in found["items"]] == names


@pytest.mark.parametrize(
    ("score", "names"),
    [
        ({"$eq": "7"}, ["b"]),
        ("7.0", ["b"]),
        ({"$ne": "7"}, ["a", "c"]),
        ({"$in": ["-1", 12]}, ["a", "c"]),
        ({"$gt": "7"}, ["c"]),
        ({"$lt": "1.2e1"}, ["a", "b"]),
        ("", []),
        ("seven", []),
        ("0x7", []),
        ({"$lt": "1e999"}, []),
    ],
)
async def test_a_column_of_numbers_is_compared_with_the_number_in_a_text(
    server: Server, score: Any, names: list[str]
) -> None:
    rows = [{"name": name, "score": number} for name, number in (("a", -1), ("b", 7), ("c", 12))]
    path = await filled(server, rows)
    assert sorted(await shown(server, path, body={"score": score})) == names


async def test_a_column_of_texts_and_one_of_booleans(server: Server) -> None:
    columns = [*SCORES, {"name": "won", "dataType": "boolean", "constraint": "optional"}]
    path = await make_table(server, await server.application(), columns)
    await server.call("POST", f"{path}/rows", [{"name": "7", "won": True}, {"name": "8"}], status=201)
    for query, names in (
        ({"name": "7"}, ["7"]),
        ({"name": 7}, []),
        ({"won": "true"}, ["7"]),
        ({"won": "yes"}, []),
    ):
        assert await shown(server, path, body=query) == names, query


async def test_a_time_may_be_a_text_of_milliseconds(server: Server) -> None:
    path = await filled(server, [{"name": "a"}])
    assert await shown(server, path, body={"createdAt": {"$gt": "0"}}) == ["a"]
    assert await shown(server, path, body={"createdAt": {"$gt": {"$date": "4102444800000"}}}) == []
    refused = await server.call(
        "POST", f"{path}/rows/query", {"createdAt": {"$gt": "12 o'clock"}}, status=400
    )
    assert "ISO 8601" in refused["message"]


@pytest.mark.parametrize(("query", "count"), [('{"$or": []}', 3), ('{"$and":[]}', 3), ('{"$nor": []}', 0)])
async def test_a_query_that_is_kept_may_have_no_conditions_yet(
    server: Server, query: str, count: int
) -> None:
    application = await fleet(server)
    group = await server.call(
        "POST", f"{application}/experience/groups", {"name": "g", "deviceQueryJson": query}
    )
    assert group["deviceQueryJson"] == query
    each = f"{application}/experience/groups/{group['id']}"
    counted = await server.call("GET", f"{each}?includeDirectDeviceCount=true")
    assert counted["directDeviceCount"] == count
    devices = await server.call("GET", f'{application}/devices?query={{"experienceGroupId":"{group["id"]}"}}')
    assert devices["totalCount"] == count
    counts = {"segments": [{"id": "all", "query": query}]}
    path = await made(server, application, [block(0, "device-count", "c", counts)])
    assert [part["value"] for part in (await parts(server, path, {}))["c"]] == [count]
    # What is sent now is refused as before.
    await server.call("GET", f"{application}/devices?query={query}", status=400)
