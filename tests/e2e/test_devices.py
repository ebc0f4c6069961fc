"""Devices over HTTP: their records, entity tags, classes and families."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of, names

NOBODY = "0123456789abcdef01234567"

# -- one device ----------------------------------------------------------------------------------------------


async def test_a_device_from_birth_to_death(server: Server) -> None:
    application = await server.application()
    body = {
        "name": "pump",
        "description": "in the cellar",
        "tags": [{"key": "floor", "value": "-1"}, {"key": "floor", "value": "0"}],
        "attributes": [{"name": "temp", "dataType": "number", "description": "°C"}],
        "keepDuplicates": True,
    }
    made = await server.call("POST", f"{application}/devices", body, status=201)
    path = f"{application}/devices/{made['id']}"
    assert {name: made[name] for name in body} == body
    assert made["deviceId"] == made["id"]
    assert made["applicationId"] == id_of(application)
    assert made["deviceClass"] == "standalone"
    assert made["creationDate"] == made["lastUpdated"]
    assert made["connectionInfo"] == {"connected": None}
    assert made["_type"] == "device"
    assert made["_links"]["self"] == {"href": path}
    assert await server.call("GET", path) == made
    changed = await server.call("PATCH", path, {"name": "well", "tags": []})
    assert (changed["name"], changed["tags"], changed["description"]) == ("well", [], "in the cellar")
    assert changed["lastUpdated"] > made["lastUpdated"]
    assert changed["creationDate"] == made["creationDate"]
    assert changed["_etag"] != made["_etag"]
    assert await server.call("DELETE", path) == {"success": True}
    for method in ("GET", "DELETE"):
        refused = await server.call(method, path, status=404)
        assert refused == {"type": "NotFound", "message": f"There is no device {made['id']} here."}
    await server.call("PATCH", path, {"name": "x"}, status=404)


async def test_tags_and_attributes_come_as_objects_where_they_are_wanted_so(server: Server) -> None:
    application = await server.application()
    tags = [{"key": "floor", "value": "1"}, {"key": "room", "value": "a"}, {"key": "floor", "value": "2"}]
    device = await server.device(application, tags=tags)
    plain = await server.call("GET", device)
    shown = await server.call(
        "GET", f"{device}?tagsAsObject=true&attributesAsObject=true&excludeConnectionInfo=true"
    )
    assert shown["tags"] == {"floor": ["1", "2"], "room": ["a"]}
    assert shown["attributes"]["temp"] == {"dataType": "number"}
    assert "connectionInfo" not in shown
    assert plain["tags"] == tags
    shape = "tagsAsObject=1&attributesAsObject=true&excludeConnectionInfo=true"
    (listed,) = (await server.call("GET", f"{application}/devices?{shape}"))["items"]
    assert listed == shown
    patched = await server.call("PATCH", f"{device}?tagsAsObject=true", {"name": "x"})
    assert patched["tags"] == {"floor": ["1", "2"], "room": ["a"]}
    made = await server.call(
        "POST", f"{application}/devices?tagsAsObject=true", {"name": "y", "tags": tags[:1]}
    )
    assert made["tags"] == {"floor": ["1"]}


async def test_entity_tags_save_a_transfer_and_guard_a_change(server: Server) -> None:
    device = await server.device(await server.application())
    async with server.client() as client:
        first = await client.get(device)
        etag = first.headers["etag"]
        assert etag.startswith(f'"{first.json()["_etag"]}-')
        unchanged = await client.get(device, headers={"If-None-Match": f'"x", W/{etag}'})
        assert (unchanged.status_code, unchanged.content) == (304, b"")
        assert unchanged.headers["etag"] == etag
        for shape in ("tagsAsObject=true", "attributesAsObject=true", "_links=false"):
            other = await client.get(f"{device}?{shape}", headers={"If-None-Match": etag})
            assert other.status_code == 200, shape
        changed = await client.patch(device, json={"name": "one"}, headers={"If-Match": etag})
        assert changed.status_code == 200
        for refused in (
            await client.patch(device, json={"name": "two"}, headers={"If-Match": etag}),
            await client.delete(device, headers={"If-Match": etag}),
        ):
            assert refused.status_code == 412
            assert refused.json()["type"] == "PreconditionFailed"
            assert changed.json()["_etag"] in refused.json()["message"]
        assert (await client.get(device, headers={"If-None-Match": etag})).json()["name"] == "one"
        again = changed.headers["etag"]
        assert (await client.patch(device, json={}, headers={"If-Match": "*"})).status_code == 200
        assert (await client.delete(device, headers={"If-Match": again})).status_code == 412


WRONG_BODIES: list[tuple[Any, str]] = [
    ({}, "name: is missing"),
    ({"name": ""}, "name: "),
    ({"name": "x" * 256}, "name: "),
    ({"name": "x", "deviceClass": "spaceship"}, "deviceClass: is 'spaceship'; give one of"),
    ({"name": "x", "colour": "red"}, "colour: there is no such field"),
    ({"name": "x", "tags": [{"key": "a b", "value": "1"}]}, "tags[0].key: "),
    ({"name": "x", "tags": [{"key": "a", "value": ""}]}, "tags[0].value: "),
    ({"name": "x", "tags": [{"key": "a", "value": "1"}] * 101}, "tags: "),
    ({"name": "x", "attributes": [{"name": "a", "dataType": "int"}]}, "attributes[0].dataType: "),
    ({"name": "x", "attributes": [{"name": "ä", "dataType": "number"}]}, "attributes[0].name: "),
    (
        {"name": "x", "attributes": [{"name": "a", "dataType": "number"}] * 2},
        "attributes[1].name: a appears twice in the list",
    ),
    (
        {"name": "x", "attributes": [{"name": f"a{n}", "dataType": "blob"} for n in range(257)]},
        "attributes: ",
    ),
    ({"name": "x", "systemInterval": 4}, "systemInterval: "),
    ({"name": "x", "gatewayId": "123"}, "gatewayId: "),
    ({"name": "x", "parentId": NOBODY}, f"parentId: {NOBODY} is not a system device"),
    ({"name": "x", "deviceClass": "peripheral"}, "gatewayId: is missing"),
    (
        {"name": "x", "deviceClass": "peripheral", "gatewayId": NOBODY},
        f"gatewayId: {NOBODY} is not a gateway",
    ),
    ({"name": "x", "gatewayId": NOBODY}, "gatewayId: a device of class standalone has no gateway"),
    ([], "The body: is an array; give an object"),
]


async def test_a_wrong_body_is_refused_by_the_name_of_its_field(server: Server) -> None:
    application = await server.application()
    for body, sentence in WRONG_BODIES:
        refused = await server.call("POST", f"{application}/devices", body, status=400)
        assert refused["type"] == "Validation"
        assert refused["message"].startswith(sentence), refused["message"]
    assert (await server.call("GET", f"{application}/devices"))["totalCount"] == 0


async def test_a_device_that_is_not_there(server: Server) -> None:
    application = await server.application()
    for id, status in (("xyz", 400), (f"{NOBODY}x", 400), (NOBODY, 404), (NOBODY.upper(), 404)):
        refused = await server.call("GET", f"{application}/devices/{id}", status=status)
        assert refused["type"] == {400: "Validation", 404: "NotFound"}[status]
        assert refused["message"].startswith({400: "deviceId: ", 404: "There is no device "}[status])


async def test_an_id_may_be_written_in_capitals(server: Server) -> None:
    device = await server.device(await server.application())
    application, _, id = device.rpartition("/devices/")
    assert (await server.call("GET", f"{application}/devices/{id.upper()}"))["id"] == id


async def test_a_device_of_another_application_is_not_there(server: Server) -> None:
    mine, other = await server.application(), await server.application("shed")
    device = await server.device(mine)
    await server.call("GET", f"{other}/devices/{id_of(device)}", status=404)
    await server.call("GET", f"/applications/{NOBODY}/devices/{id_of(device)}", status=404)


# -- classes and families ------------------------------------------------------------------------------------

CLASSES = ("standalone", "gateway", "peripheral", "floating", "edgeCompute", "system", "embedded")


async def test_every_class_can_be_made(server: Server) -> None:
    application = await server.application()
    gateway = await server.device(application, deviceClass="gateway")
    for kind in CLASSES:
        family = {"gatewayId": id_of(gateway)} if kind == "peripheral" else {}
        device = await server.device(application, deviceClass=kind, **family)
        assert (await server.call("GET", device))["deviceClass"] == kind


async def test_only_a_gateway_has_peripherals(server: Server) -> None:
    application = await server.application()
    gateway = await server.device(application, deviceClass="gateway")
    for kind in CLASSES:
        family = {"gatewayId": id_of(gateway)} if kind == "peripheral" else {}
        candidate = await server.device(application, deviceClass=kind, **family)
        body = {"name": "sensor", "deviceClass": "peripheral", "gatewayId": id_of(candidate).upper()}
        if kind in ("gateway", "edgeCompute"):
            made = await server.call("POST", f"{application}/devices", body, status=201)
            assert made["gatewayId"] == id_of(candidate)
        else:
            refused = await server.call("POST", f"{application}/devices", body, status=400)
            assert refused["message"].startswith(f"gatewayId: {id_of(candidate)} is not a gateway")


async def test_a_device_is_sent_back_as_it_was_read_though_what_is_above_it_was_deleted(
    server: Server,
) -> None:
    application = await server.application()
    gateway = await server.device(application, deviceClass="gateway")
    house = await server.device(application, deviceClass="system")
    family = {"deviceClass": "peripheral", "gatewayId": id_of(gateway), "parentId": id_of(house)}
    sensor = await server.device(application, **family)
    other = await server.device(application)
    for each in (gateway, house):
        await server.call("DELETE", each)
    read = await server.call("GET", sensor)
    assert {name: read[name] for name in family} == family
    assert (await server.call("PATCH", sensor, {**family, "name": "renamed"}))["name"] == "renamed"
    for body, field in (
        (family, "gatewayId"),
        ({"parentId": id_of(house)}, "parentId"),
    ):
        refused = await server.call("PATCH", other, body, status=400)
        assert refused["message"].startswith(f"{field}: ")


async def test_a_peripheral_changes_its_gateway_and_its_class(server: Server) -> None:
    application = await server.application()
    one = await server.device(application, deviceClass="gateway")
    two = await server.device(application, deviceClass="edgeCompute")
    sensor = await server.device(application, deviceClass="peripheral", gatewayId=id_of(one))
    moved = await server.call("PATCH", sensor, {"gatewayId": id_of(two)})
    assert moved["gatewayId"] == id_of(two)
    await server.call("PATCH", sensor, {"gatewayId": id_of(sensor)}, status=400)
    refused = await server.call(
        "PATCH", sensor, {"deviceClass": "standalone", "gatewayId": id_of(one)}, status=400
    )
    assert refused["message"].startswith("gatewayId: a device of class standalone has no gateway")
    alone = await server.call("PATCH", sensor, {"deviceClass": "standalone"})
    assert "gatewayId" not in alone, "who is no peripheral any more has no gateway"
    token, _ = await server.device_token(two)
    await server.call("POST", f"{sensor}/state", {"data": {"temp": 1}}, token=token, status=403)
    refused = await server.call("PATCH", sensor, {"deviceClass": "peripheral"}, status=400)
    assert refused["message"].startswith("gatewayId: is missing")


async def test_parents_are_systems_and_nobody_is_an_own_ancestor(server: Server) -> None:
    application = await server.application()
    house = await server.device(application, name="house", deviceClass="system")
    floor = await server.device(application, name="floor", deviceClass="system", parentId=id_of(house))
    pump = await server.device(application, name="pump", parentId=id_of(floor).upper())
    shown = await server.call("GET", pump)
    assert (shown["parentId"], shown["ancestorIds"]) == (id_of(floor), [id_of(floor), id_of(house)])
    for child, parent, sentence in (
        (house, pump, "is not a system device"),
        (house, floor, "is a descendant of this device"),
        (house, house, "is a descendant of this device"),
        (pump, pump, "is a descendant of this device"),
    ):
        refused = await server.call("PATCH", child, {"parentId": id_of(parent)}, status=400)
        assert refused["message"].startswith("parentId: ")
        assert sentence in refused["message"]
    listed = await server.call("GET", f"{application}/devices?parentId={id_of(floor)}")
    assert [each["id"] for each in listed["items"]] == [id_of(pump)]
    assert await names(server, application, "parentId=null") == ["house"]
    below = quote(json.dumps({"ancestorId": id_of(house)}))
    assert await names(server, application, f"query={below}") == ["floor", "pump"]
    freed = await server.call("PATCH", pump, {"parentId": None})
    assert freed.get("parentId") is None
    assert "ancestorIds" not in freed
