"""Lists of devices over HTTP: order, pages, filters, queries, deleted ones, and searches for names and tags."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of, names


async def test_a_list_says_what_it_is(server: Server) -> None:
    application = await server.application()
    for name in ("b", "a", "c"):
        await server.device(application, name)
    listed = await server.call("GET", f"{application}/devices?perPage=2&page=1&filterField=name&filter=*")
    items = listed.pop("items")
    assert [item["name"] for item in items] == ["c"]
    assert listed == {
        "count": 1,
        "totalCount": 3,
        "page": 1,
        "perPage": 2,
        "sortField": "name",
        "sortDirection": "asc",
        "filterField": "name",
        "filter": "*",
        "applicationId": id_of(application),
        "_type": "devices",
        "_links": {"self": {"href": f"{application}/devices"}, "application": {"href": application}},
    }
    bare = await server.call("GET", f"{application}/devices?_links=false&_actions=false&_embedded=true")
    assert "_links" not in bare
    assert all("_links" not in item for item in bare["items"])


async def test_a_list_repeats_what_it_was_narrowed_by(server: Server) -> None:
    application = await server.application()
    tags = [{"key": "floor", "value": "1"}]
    parent = id_of(await server.device(application, "hall", deviceClass="system"))
    await server.device(application, "pump", tags=tags, parentId=parent)
    query = f"tagFilter[0][key]=floor&tagFilter[1][value]=1&deviceClass=standalone&parentId={parent.upper()}"
    listed = await server.call("GET", f"{application}/devices?{query}")
    assert [item["name"] for item in listed["items"]] == ["pump"]
    assert listed["tagFilter"] == [{"key": "floor"}, {"value": "1"}]
    assert (listed["deviceClass"], listed["parentId"]) == ("standalone", parent)
    listed = await server.call("GET", f"{application}/devices?deviceClass=gateway,system&parentId=null")
    assert [item["name"] for item in listed["items"]] == ["hall"]
    assert "deviceClass" not in listed
    assert listed["parentId"] is None
    assert "tagFilter" not in listed


async def test_lists_are_sorted_by_each_field_and_paged(server: Server) -> None:
    application = await server.application()
    paths = {name: await server.device(application, name) for name in ("delta", "Alpha", "charlie", "Bravo")}
    await server.call("POST", f"{paths['charlie']}/setConnectionStatus", {"status": "connected"})
    await server.call("POST", f"{paths['delta']}/setConnectionStatus", {"status": "disconnected"})
    await server.call("PATCH", paths["Alpha"], {"description": "touched last"})
    made = list(paths)
    by_field = {
        "name": ["Alpha", "Bravo", "charlie", "delta"],
        "id": made,
        "creationDate": made,
        "lastUpdated": ["delta", "charlie", "Bravo", "Alpha"],
        "connectionStatus": ["Alpha", "Bravo", "charlie", "delta"],
        "deletedAt": made,
    }
    for field, expected in by_field.items():
        assert await names(server, application, f"sortField={field}") == expected, field
        backwards = await names(server, application, f"sortField={field}&sortDirection=desc")
        assert backwards == expected[::-1], field
        paged = [
            name
            for page in range(3)
            for name in await names(server, application, f"sortField={field}&perPage=2&page={page}")
        ]
        assert paged == expected, field


FILTERS: list[tuple[str, list[str]]] = [
    ("", ["Boiler", "boiler-2", "lamp", "pump*"]),
    ("filterField=name&filter=boiler*", ["Boiler", "boiler-2"]),
    ("filterField=name&filter=*-2", ["boiler-2"]),
    ("filterField=name&filter=*M*", ["lamp", "pump*"]),
    ("filterField=name&filter=boiler", ["Boiler"]),
    ("filterField=name&filter=", ["Boiler", "boiler-2", "lamp", "pump*"]),
    ("filterField=&filter=lamp", ["Boiler", "boiler-2", "lamp", "pump*"]),
    ("deviceClass=floating", ["lamp"]),
    ("deviceClass=floating&deviceClass=gateway", ["boiler-2", "lamp"]),
    ("deviceClass=floating,gateway", ["boiler-2", "lamp"]),
    ("deviceClass[]=floating&deviceClass[]=gateway", ["boiler-2", "lamp"]),
    ('deviceClass=["gateway"]', ["boiler-2"]),
    ("tagFilter[0][key]=floor", ["Boiler", "lamp"]),
    ("tagFilter[0][key]=floor&tagFilter[0][value]=1", ["Boiler"]),
    ("tagFilter[0][value]=1&tagFilter[1][value]=2", ["Boiler", "lamp"]),
    ('tagFilter=[{"key":"floor","value":"2"}]', ["lamp"]),
    ('tagFilter=[{"key":"floor"},{"value":"red"}]', ["Boiler", "lamp", "pump*"]),
    ("tagFilter[0][key]=floor&deviceClass=floating", ["lamp"]),
    ('query={"name":{"$startsWith":"boil","$ci":true}}', ["Boiler", "boiler-2"]),
    ("query[name][$startsWith]=boil", ["boiler-2"]),
    ('query={"$or":[{"deviceClass":"gateway"},{"tags":{"floor":"2"}}]}', ["boiler-2", "lamp"]),
    ("query[$or][0][deviceClass]=gateway&query[$or][1][tags][paint]=red", ["boiler-2", "pump*"]),
    ('query={"attributeName":"rpm"}', ["pump*"]),
    ('query={"tags":null}', ["boiler-2"]),
    ("query={}&filterField=name&filter=l*", ["lamp"]),
    ("page=1&perPage=3", ["pump*"]),
    ("page=9", []),
]


async def test_filters(server: Server) -> None:
    application = await server.application()
    await server.device(application, "Boiler", tags=[{"key": "floor", "value": "1"}])
    await server.device(application, "boiler-2", deviceClass="gateway")
    await server.device(application, "lamp", deviceClass="floating", tags=[{"key": "floor", "value": "2"}])
    rpm = [{"name": "rpm", "dataType": "number"}]
    await server.device(application, "pump*", tags=[{"key": "paint", "value": "red"}], attributes=rpm)
    for query, expected in FILTERS:
        assert await names(server, application, quote(query, safe="&=")) == expected, query


WRONG_QUERIES: list[tuple[str, str]] = [
    ("sortField=colour", "sortField: "),
    ("sortDirection=up", "sortDirection: "),
    ("page=-1", "page: "),
    ("page=x", "page: "),
    ("perPage=0", "perPage: "),
    ("perPage=1001", "perPage: "),
    ("perPage=99999999999999999999999", "perPage: "),
    ("filterField=colour", "filterField: "),
    ("deviceClass=spaceship", "deviceClass[0]: "),
    ("tagFilter=floor", "tagFilter[0]: "),
    ("tagFilter[0][colour]=red", "tagFilter[0].colour: "),
    ("parentId=house", "parentId: "),
    ("query=x", "query: is not a JSON object"),
    ('query={"name"', "query: is not JSON"),
    ('query={"colour":"red"}', "query.colour: "),
    ('query={"name":{"$near":1}}', "query.name.$near: "),
    ("queryDeleted=perhaps", "queryDeleted: "),
    ("colour=red", "colour: there is no such field in this query"),
]


@pytest.mark.parametrize(("text", "expected"), [("PUMP*", 2), ("*1", 2), ("tank", 0), ("", 3)])
async def test_a_list_without_a_field_of_the_filter_is_filtered_by_name(
    server: Server, text: str, expected: int
) -> None:
    application = await server.application()
    for name in ("pump1", "pump2", "Tank1"):
        device = await server.device(application, name)
    for path in ("devices/payloadCounts", f"devices/{id_of(device)}/export", "devices/export"):
        await server.call("POST", f"{application}/{path}", {}, status=202)
    states = f"{application}/devices/compositeState?sortField=name&filter={text}"
    assert (await server.call("GET", states))["totalCount"] == expected
    counted = await server.call("GET", f"{states}&perPage=1&query={quote(json.dumps({'name': 'pump1'}))}")
    assert counted["totalCount"] == (text != "tank")
    for wanted, jobs in ((quote("devices.*"), 2), ("*export", 2), ("export", 0), ("", 3)):
        assert (await server.call("GET", f"{application}/jobLogs?filter={wanted}"))["totalCount"] == jobs


async def test_a_wrong_list_query_is_refused_by_the_name_of_its_field(server: Server) -> None:
    application = await server.application()
    for query, sentence in WRONG_QUERIES:
        refused = await server.call("GET", f"{application}/devices?{quote(query, safe='&=')}", status=400)
        assert refused["message"].startswith(sentence), refused["message"]


async def test_a_query_string_that_is_too_long_is_414(server: Server) -> None:
    """The document names this status, as the check of every answer finds."""
    application = await server.application()
    ids = ",".join([id_of(application)] * 1500)
    answer = await server.call("GET", f"{application}/devices?filter={ids}", status=414)
    assert answer["type"] == "TargetTooLong"


async def test_deleted_devices_are_listed_apart(server: Server) -> None:
    application = await server.application()
    pump, lamp, fan = [await server.device(application, name) for name in ("pump", "lamp", "fan")]
    await server.call("DELETE", pump)
    await server.call("DELETE", fan)
    assert await names(server, application) == ["lamp"]
    deleted = await server.call("GET", f"{application}/devices?queryDeleted=true&sortField=deletedAt")
    assert [each["name"] for each in deleted["items"]] == ["pump", "fan"]
    assert all(each["deletedAt"] > each["creationDate"] for each in deleted["items"])
    assert deleted["totalCount"] == 2
    after = quote(json.dumps({"deletedAt": {"$gt": deleted["items"][0]["deletedAt"]}}))
    assert await names(server, application, f"queryDeleted=true&query={after}") == ["fan"]
    assert (await server.call("GET", application))["summary"]["deviceCount"] == 1
    await server.call("GET", lamp)


@pytest.mark.slow
async def test_a_long_list_is_read_beside_the_loop(server: Server) -> None:
    """More than the loop may scan: the same answer, from a worker thread."""
    application = await server.application()
    async with server.client() as client:
        for number in range(301):
            made = await client.post(f"{application}/devices", json={"name": f"d{number:03}"})
            assert made.status_code == 201
    everything = [f"d{number:03}" for number in range(301)]
    assert await names(server, application, "perPage=1000") == everything
    assert await names(server, application, "perPage=1000&query=%7B%7D") == everything
    assert await names(server, application, "filterField=name&filter=*00&sortDirection=desc") == [
        "d300",
        "d200",
        "d100",
        "d000",
    ]


@pytest.mark.slow
async def test_a_devices_token_lists_what_its_key_allows(server: Server) -> None:
    application = await server.application()
    floor = [{"key": "floor", "value": "1"}]
    me, friend, neighbour, stranger = [
        await server.device(application, name, tags=tags)
        for name, tags in (("me", []), ("friend", []), ("neighbour", floor), ("stranger", []))
    ]
    for key, expected in (
        ({}, ["friend", "me", "neighbour", "stranger"]),
        ({"filterType": "whitelist", "deviceIds": [id_of(me)]}, ["me"]),
        ({"filterType": "whitelist", "deviceIds": [id_of(me), id_of(friend)]}, ["friend", "me"]),
        (
            {"filterType": "whitelist", "deviceIds": [id_of(me)], "deviceTags": floor},
            ["me", "neighbour"],
        ),
        ({"filterType": "blacklist", "deviceIds": [id_of(me)]}, ["me"]),
    ):
        token, _ = await server.device_token(me, **key)
        assert await names(server, application, token=token) == expected
        assert (
            await names(server, application, "query=%7B%7D&sortDirection=desc", token=token) == expected[::-1]
        )
        composite = await server.call("GET", f"{application}/devices/compositeState", token=token)
        assert [each["name"] for each in composite["items"]] == expected
        assert composite["totalCount"] == len(expected)
        for device, name in ((friend, "friend"), (neighbour, "neighbour"), (stranger, "stranger")):
            await server.call("GET", device, token=token, status=200 if name in expected else 403)


# -- names and tags ------------------------------------------------------------------------------------------


async def test_names_and_tags_are_searched_across_devices(server: Server) -> None:
    application = await server.application()
    tags = [{"key": "floor", "value": "1"}, {"key": "room", "value": "kitchen"}]
    pump = await server.device(application, "pump", tags=tags)
    more = [{"name": "rpm", "dataType": "number"}, {"name": "place", "dataType": "gps"}]
    fan = await server.device(
        application,
        "fan",
        deviceClass="floating",
        attributes=more,
        tags=[{"key": "floor", "value": "2"}, {"key": "floor", "value": "1"}],
    )
    gone = await server.device(application, "gone", tags=[{"key": "ghost", "value": "1"}])
    await server.call("DELETE", gone)

    async def search(what: str, query: str = "") -> Any:
        return await server.call("GET", f"{application}/devices/{what}?{quote(query, safe='&=')}")

    assert await search("attributeNames") == {"attributeNames": ["label", "on", "place", "rpm", "temp"]}
    assert await search("attributeNames", "dataType=number&dataType=gps&startsWith=r") == {
        "attributeNames": ["rpm"]
    }
    assert await search("attributeNames", 'query={"name":"fan"}&dataType=gps') == {
        "attributeNames": ["place"]
    }
    assert await search("deviceNames") == {
        "deviceSummary": [
            {"id": id_of(fan), "deviceClass": "floating", "name": "fan"},
            {"id": id_of(pump), "deviceClass": "standalone", "name": "pump"},
        ]
    }
    assert [each["name"] for each in (await search("deviceNames", "startsWith=p"))["deviceSummary"]] == [
        "pump"
    ]
    assert await search("tagKeys") == {"tagKeys": ["floor", "room"]}
    assert await search("tagKeys", "startsWith=r") == {"tagKeys": ["room"]}
    assert await search("tagKeys", 'query={"deviceClass":"floating"}') == {"tagKeys": ["floor"]}
    assert await search("tagValues", "key=floor") == {"tagKey": "floor", "tagValues": ["1", "2"]}
    assert await search("tagValues", "key=floor&startsWith=2") == {"tagKey": "floor", "tagValues": ["2"]}
    assert await search("tagValues", "key=ghost") == {"tagKey": "ghost", "tagValues": []}
    refused = await server.call("GET", f"{application}/devices/tagValues", status=400)
    assert refused["message"].startswith("key: is missing")


async def test_devices_are_found_by_when_they_were_last_seen(server: Server) -> None:
    application = await server.application()
    paths = {name: await server.device(application, name) for name in ("new", "reports", "left", "early")}
    late, early = "2024-05-02T00:00:00.000Z", "2024-05-01T00:00:00.000Z"
    await server.call("POST", f"{paths['reports']}/state", {"data": {"temp": 1}})
    for name, time in (("left", late), ("early", early)):
        status = {"status": "disconnected", "disconnectedAt": time}
        await server.call("POST", f"{paths[name]}/setConnectionStatus", status)

    async def found(condition: object) -> list[str]:
        query = quote(json.dumps({"lastSeen": condition}))
        return await names(server, application, f"sortField=id&query={query}")

    assert await found(None) == ["new"]
    assert await found({"$lt": late}) == ["early"]
    assert await found({"$lte": late}) == ["left", "early"]
    assert await found({"$gt": late}) == ["reports"]


LONG = "\u00df" * 200 + "end"
"""The key of an index holds only the beginning of it: its case-folded form and the name itself have 1,000 bytes."""


@pytest.mark.parametrize("text", ["*UMP*", "*p*1*", "*end", "pump-1*", "*", "pump-3", "*no such*"])
async def test_a_search_by_name_gives_the_same_by_each_way(server: Server, text: str) -> None:
    """By the keys of the index of names alone, by the records that they lead to, and by the records of all devices."""
    application = await server.application()
    made = ["Ump", "mast", LONG, *(f"{kind}-{number}" for kind in ("pump", "PUMP") for number in range(20))]
    for number, name in enumerate(made):
        await server.device(application, name, tags=[{"key": "floor", "value": str(number % 2)}])
    pattern = re.compile(".*".join(map(re.escape, text.casefold().split("*"))))
    in_order = sorted(made, key=lambda name: (name.casefold(), name))
    wanted = [name for name in in_order if pattern.fullmatch(name.casefold())]
    search = f"filterField=name&filter={quote(text)}"
    assert await names(server, application, search) == wanted
    assert await names(server, application, f"{search}&sortDirection=desc") == wanted[::-1]
    assert await names(server, application, f"{search}&perPage=3&page=1") == wanted[3:6]
    listed = await server.call("GET", f"{application}/devices?{search}&perPage=1")
    assert listed["totalCount"] == len(wanted)
    by_id = [name for name in made if name in wanted]
    assert await names(server, application, f"{search}&sortField=id") == by_id
    upper = [name for number, name in enumerate(made) if name in wanted and number % 2]
    query = quote('{"tags":{"floor":"1"}}')
    assert await names(server, application, f"{search}&sortField=id&query={query}") == upper
