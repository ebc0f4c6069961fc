"""Device attributes over HTTP: declared, changed, renamed, taken away, and what that does to their data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of

StartServer = Callable[..., Any]


async def test_an_attribute_from_birth_to_death(server: Server) -> None:
    application = await server.application()
    device = await server.device(application, attributes=[])
    body = {
        "name": "pic",
        "dataType": "blob",
        "contentType": "image/png",
        "description": "the camera's",
        "attributeTags": {"unit": "px"},
    }
    made = await server.call("POST", f"{device}/attributes", body, status=201)
    assert {name: made[name] for name in body} == body
    assert (made["deviceId"], made["applicationId"]) == (id_of(device), id_of(application))
    assert made["_type"] == "deviceAttribute"
    assert made["_links"]["self"] == {"href": f"{device}/attributes/pic"}
    assert await server.call("GET", f"{device}/attributes/pic") == made
    before = await server.call("GET", device)
    assert before["attributes"] == [body]
    changed = await server.call(
        "PATCH", f"{device}/attributes/pic", {"description": "old", "attributeTags": {}}
    )
    assert (changed["description"], changed["attributeTags"]) == ("old", {})
    assert changed["contentType"] == "image/png"
    after = await server.call("GET", device)
    assert after["lastUpdated"] > before["lastUpdated"]
    assert after["_etag"] != before["_etag"]
    assert await server.call("DELETE", f"{device}/attributes/pic") == {"success": True}
    for method, sent in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        refused = await server.call(method, f"{device}/attributes/pic", sent, status=404)
        assert refused["message"] == "The device declares no attribute pic."


async def test_a_device_has_a_bound_in_bytes(start_server: StartServer) -> None:
    async with start_server(limits={"device_bytes_max": 20_000}) as server:
        device = await server.device(await server.application(), attributes=[])
        tags = {f"key{n}": "v" * 200 for n in range(40)}
        for name in ("a", "b"):
            body = {"name": name, "dataType": "number", "attributeTags": tags}
            await server.call("POST", f"{device}/attributes", body, status=201)
        before = await server.call("GET", device)
        too_much = {"name": "c", "dataType": "number", "attributeTags": tags}
        refused = await server.call("POST", f"{device}/attributes", too_much, status=400)
        assert refused["message"].startswith("attributes: the device and its attributes would take 2")
        assert "at most 20000" in refused["message"]
        await server.call("PATCH", f"{device}/attributes/b", {"description": "d" * 5000}, status=400)
        await server.call("PATCH", device, {"attributes": [too_much, *before["attributes"]]}, status=400)
        whole = [too_much, *before["attributes"]]
        application = device.partition("/devices/")[0]
        await server.call("POST", f"{application}/devices", {"name": "d", "attributes": whole}, status=400)
        assert await server.call("GET", device) == before
        await server.call("POST", f"{device}/setConnectionStatus", {"status": "connected"})
        await server.call("PATCH", f"{device}/attributes/b", {"attributeTags": {}})
        await server.call("POST", f"{device}/attributes", too_much, status=201)


async def test_a_renamed_attribute_takes_its_data_along(server: Server) -> None:
    device = await server.device(await server.application())
    await server.call("POST", f"{device}/state", {"data": {"temp": 21, "on": True}, "time": 1000})
    renamed = await server.call("PATCH", f"{device}/attributes/temp", {"name": "celsius"})
    assert (renamed["name"], renamed["dataType"]) == ("celsius", "number")
    assert renamed["_links"]["self"] == {"href": f"{device}/attributes/celsius"}
    await server.call("GET", f"{device}/attributes/temp", status=404)
    (state,) = await server.call("GET", f"{device}/state")
    assert state["data"] == {"celsius": 21, "on": True}
    assert (await server.call("GET", f"{device}/compositeState"))["celsius"]["value"] == 21
    refused = await server.call("POST", f"{device}/state", {"data": {"temp": 1}}, status=400)
    assert refused["message"].startswith("data.temp: the device declares no such attribute")
    taken = await server.call("PATCH", f"{device}/attributes/celsius", {"name": "on"}, status=400)
    assert taken["message"] == "name: the device already declares an attribute on."
    again = await server.call("POST", f"{device}/attributes", {"name": "temp", "dataType": "string"})
    assert again["name"] == "temp"
    (state,) = await server.call("GET", f"{device}/state")
    assert state["data"] == {"celsius": 21, "on": True}


async def test_the_data_of_a_removed_attribute_is_hidden_and_never_comes_back(server: Server) -> None:
    """However it is removed, and however one of the same name is declared again."""
    application = await server.application()

    async def by_route(device: str) -> None:
        await server.call("DELETE", f"{device}/attributes/temp")
        await server.call("POST", f"{device}/attributes", {"name": "temp", "dataType": "number"})

    async def by_patch(device: str) -> None:
        declared = (await server.call("GET", device))["attributes"]
        rest = [each for each in declared if each["name"] != "temp"]
        await server.call("PATCH", device, {"attributes": rest})
        await server.call("PATCH", device, {"attributes": declared})

    for remove_and_declare in (by_route, by_patch):
        device = await server.device(application)
        await server.call("POST", f"{device}/state", {"data": {"temp": 1, "on": True}, "time": 1000})
        await server.call("POST", f"{device}/state", {"data": {"temp": 2}, "time": 2000})
        await remove_and_declare(device)
        states = await server.call("GET", f"{device}/state?limit=1000")
        assert states == [{"time": "1970-01-01T00:16:40.000Z", "data": {"on": True}}]
        assert (await server.call("GET", f"{device}/state")) == states, "an emptied state does not count"
        assert "temp" not in await server.call("GET", f"{device}/compositeState")
        query = {"start": 1, "deviceIds": [id_of(device)]}
        series = await server.call("POST", f"{application}/data/time-series-query", query)
        (points,) = [each["points"] for each in series["devices"].values()]
        assert [point["data"] for point in points] == [{"on": True}]
        last = {"attribute": "temp", "deviceIds": [id_of(device)]}
        assert await server.call("POST", f"{application}/data/last-value-query", last) == {}
        await server.call("POST", f"{device}/state", {"data": {"temp": 3}, "time": 2000})
        (state,) = await server.call("GET", f"{device}/state")
        assert state["data"] == {"temp": 3}


async def test_the_type_of_an_attribute_is_fixed(server: Server) -> None:
    device = await server.device(await server.application())
    refused = await server.call("PATCH", f"{device}/attributes/temp", {"dataType": "string"}, status=400)
    assert refused["message"].startswith("dataType: there is no such field")
    declared = (await server.call("GET", device))["attributes"]
    declared[0] = {"name": "temp", "dataType": "string"}
    refused = await server.call("PATCH", device, {"attributes": declared}, status=400)
    assert refused["message"].startswith("attributes[0].dataType: temp is declared as number and stays so")


async def test_a_device_declares_at_most_256_attributes(server: Server) -> None:
    application = await server.application()
    full = [{"name": f"a{number}", "dataType": "number"} for number in range(256)]
    device = await server.device(application, attributes=full)
    one_more = {"name": "one_more", "dataType": "number"}
    refused = await server.call("POST", f"{device}/attributes", one_more, status=400)
    assert refused["message"] == "name: the device already declares 256 attributes, which is the limit."
    refused = await server.call("PATCH", device, {"attributes": [*full, one_more]}, status=400)
    assert refused["message"].startswith("attributes: ")
    data = {attribute["name"]: number for number, attribute in enumerate(full)}
    await server.call("POST", f"{device}/state", {"data": data})
    (state,) = await server.call("GET", f"{device}/state")
    assert state["data"] == data
    listed = await server.call("GET", f"{device}/attributes")
    assert (listed["count"], listed["totalCount"]) == (256, 256)
    await server.call("DELETE", f"{device}/attributes/a7")
    await server.call("POST", f"{device}/attributes", one_more, status=201)


REFUSED: list[tuple[Any, str]] = [
    ({}, "name: is missing"),
    ({"name": "a"}, "dataType: is missing"),
    ({"name": "temp", "dataType": "number"}, "name: the device already declares an attribute temp"),
    ({"name": "a b", "dataType": "number"}, "name: "),
    ({"name": "", "dataType": "number"}, "name: "),
    ({"name": "x" * 256, "dataType": "number"}, "name: "),
    ({"name": "a", "dataType": "float"}, "dataType: is 'float'; give one of"),
    ({"name": "a", "dataType": "blob", "contentType": "x" * 65}, "contentType: "),
    ({"name": "a", "dataType": "blob", "description": "x" * 32_768}, "description: "),
    ({"name": "a", "dataType": "number", "attributeTags": {"a b": "c"}}, "attributeTags"),
    ({"name": "a", "dataType": "number", "attributeTags": {"a": ""}}, "attributeTags"),
    ({"name": "a", "dataType": "number", "system": {"aggregation": "NONE"}}, "system.aggregation: "),
    ({"name": "a", "dataType": "number", "colour": "red"}, "colour: "),
]


async def test_a_wrong_attribute_is_refused_by_the_name_of_its_field(server: Server) -> None:
    device = await server.device(await server.application())
    for body, sentence in REFUSED:
        refused = await server.call("POST", f"{device}/attributes", body, status=400)
        assert refused["message"].startswith(sentence), refused["message"]
    assert (await server.call("GET", f"{device}/attributes"))["totalCount"] == 3


async def test_attributes_are_listed_sorted_and_filtered(server: Server) -> None:
    device = await server.device(await server.application())
    await server.call("POST", f"{device}/attributes", {"name": "Tempo", "dataType": "string"})
    listed = await server.call("GET", f"{device}/attributes?filterField=name&filter=temp*")
    assert [item["name"] for item in listed.pop("items")] == ["temp", "Tempo"]
    assert listed == {
        "count": 2,
        "totalCount": 2,
        "sortField": "name",
        "sortDirection": "asc",
        "filterField": "name",
        "filter": "temp*",
        "applicationId": device.split("/")[2],
        "deviceId": id_of(device),
        "_type": "deviceAttributes",
        "_links": listed["_links"],
    }
    for query, expected in (
        ("", ["label", "on", "temp", "Tempo"]),
        ("sortDirection=desc", ["Tempo", "temp", "on", "label"]),
        ("sortField=dataType", ["on", "temp", "label", "Tempo"]),
        ("filterField=dataType&filter=string", ["label", "Tempo"]),
        ("filterField=dataType&filter=", ["label", "on", "temp", "Tempo"]),
        ("filter=temp", ["label", "on", "temp", "Tempo"]),
    ):
        found = await server.call("GET", f"{device}/attributes?{query}")
        assert [item["name"] for item in found["items"]] == expected, query
    for query in ("sortField=id", "filterField=description", "page=1"):
        await server.call("GET", f"{device}/attributes?{query}", status=400)
