"""Isolation: users, applications and devices have access to their own resources, and to nothing else."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import Server
from tests.e2e.rows import DEVICE_READS, DEVICE_WRITES, ROWS, UNKNOWN, api_token, path_of, send
from trunkline.actors import server_users
from trunkline.actors.core.records import records
from trunkline.actors.people.accounts.reach import TOPIC_FILTER
from trunkline.actors.platform.applications.keys import APPLICATION_KEY
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import encode

OTHER_PASSWORD = "Other-horse-9"


# Isolation of applications and users.


async def test_a_user_does_not_reach_the_applications_of_another(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    await server_users.add_user(server.root, "other@example.com", OTHER_PASSWORD)
    other = await server.log_in("other@example.com", OTHER_PASSWORD)
    ids = (application.rpartition("/")[2], device.rpartition("/")[2])
    async with server.client(other) as client:
        for route in ROWS:
            if "{applicationId}" in route.path:
                response = await send(client, route, path_of(route, *ids))
                assert response.status_code == 403, route.operation
    listed = await server.call("GET", "/applications", token=other)
    assert (listed["items"], listed["totalCount"]) == ([], 0)
    counts = await server.call("GET", "/me", token=other)
    assert counts["summary"]["appCount"] == counts["summary"]["deviceCount"] == 0
    days = await server.call("GET", "/me/deviceCounts", token=other)
    assert all(day["total"] == 0 for day in days["counts"])
    # And the owner's do not show those of the other.
    await server.call("POST", "/applications", {"name": "theirs"}, token=other)
    assert [each["name"] for each in (await server.call("GET", "/applications"))["items"]] == ["house"]


async def test_an_application_token_stays_in_its_application(server: Server) -> None:
    own, other = await server.application("own"), await server.application("other")
    token = await api_token(server, own, "all.Application")
    async with server.client(token) as client:
        for route in ROWS:
            for application, status in ((other.rpartition("/")[2], 403), (UNKNOWN, 404)):
                response = await send(client, route, path_of(route, application))
                in_application = "{applicationId}" in route.path
                assert response.status_code == (status if in_application else 403), route.operation
    await server.call("GET", own, token=token, status=200)
    key = await server.call("POST", f"{own}/keys", {}, token=token, status=201)
    assert key["createdByType"] == "apiToken"


async def test_a_users_token_is_none_of_another_user(server: Server) -> None:
    made = await server.call("POST", "/me/tokens", {"name": "mine"})
    await server_users.add_user(server.root, "other@example.com", OTHER_PASSWORD)
    other = await server.log_in("other@example.com", OTHER_PASSWORD)
    path = f"/me/tokens/{made['id']}"
    await server.call("GET", path, token=other, status=404)
    await server.call("PATCH", path, {"status": "inactive"}, token=other, status=404)
    await server.call("DELETE", path, token=other, status=404)
    assert (await server.call("GET", "/me/tokens", token=other))["totalCount"] == 0
    await server.call("GET", "/me", token=made["token"], status=200)


async def test_records_of_one_application_are_not_found_in_another(server: Server) -> None:
    own, other = await server.application("own"), await server.application("other")
    key = await server.call("POST", f"{own}/keys", {})
    token = await server.call("POST", f"{own}/tokens", {"name": "t"})
    device = await server.device(own)
    for path in (f"keys/{key['id']}", f"tokens/{token['id']}", f"devices/{device.rpartition('/')[2]}"):
        await server.call("GET", f"{own}/{path}", status=200)
        for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
            await server.call(method, f"{other}/{path}", body, status=404)
    await server.call("GET", f"/me/tokens/{token['id']}", status=404)


# The access of a device token.


class House:
    """An application with devices A, B and C; B carries the tag floor=1."""

    def __init__(self, server: Server, application: str, devices: dict[str, str]) -> None:
        self.server = server
        self.application = application
        self.devices = devices

    def id(self, name: str) -> str:
        return self.devices[name].rpartition("/")[2]

    async def seen(self, token: str) -> str:
        """The names of the devices that the token may read."""
        found = ""
        for name, path in self.devices.items():
            async with self.server.client(token) as client:
                codes = {
                    (await client.get(f"{path}{each}")).status_code for each in ("", "/state", "/command")
                }
            assert codes in ({200}, {403}), name
            found += name if codes == {200} else ""
        return found


async def make_house(server: Server) -> House:
    application = await server.application()
    devices = {
        name: await server.device(application, name, tags=tags)
        for name, tags in (("A", []), ("B", [{"key": "floor", "value": "1"}]), ("C", []))
    }
    return House(server, application, devices)


async def test_a_key_reaches_the_devices_that_it_allows(server: Server) -> None:
    house = await make_house(server)
    a, b = house.id("A"), house.id("B")
    floor = [{"key": "floor", "value": "1"}]
    keys: list[tuple[str, dict[str, Any], str]] = [
        ("A", {}, "ABC"),
        ("A", {"filterType": "all"}, "ABC"),
        ("A", {"filterType": "whitelist", "deviceIds": [a]}, "A"),
        ("A", {"deviceIds": [a.upper(), b]}, "AB"),
        ("A", {"deviceIds": [a], "deviceTags": floor}, "AB"),
        ("B", {"deviceTags": floor}, "B"),
        ("B", {"deviceTags": [{"key": "floor"}]}, "B"),
        ("B", {"deviceTags": [{"value": "1"}]}, "B"),
        # `filterType` is about topics.
        ("A", {"filterType": "none"}, "ABC"),
        ("A", {"filterType": "none", "deviceIds": [a]}, "A"),
        ("A", {"filterType": "all", "deviceIds": [a]}, "A"),
        ("A", {"filterType": "blacklist", "deviceIds": [a]}, "A"),
        ("B", {"filterType": "blacklist", "deviceTags": floor}, "B"),
        ("A", {"filterType": "whitelist"}, "ABC"),
        ("A", {"filterType": "blacklist"}, "ABC"),
    ]
    for name, key, seen in keys:
        token, _ = await server.device_token(house.devices[name], **key)
        assert await house.seen(token) == seen, key
        for other, path in house.devices.items():
            command = {"name": "go"}
            await server.call(
                "POST", f"{path}/command", command, token=token, status=200 if other in seen else 403
            )
            # State is for oneself, whatever the key allows.
            for suffix, body in (
                ("state", {"data": {"temp": 1}}),
                ("setConnectionStatus", {"status": "connected"}),
            ):
                await server.call(
                    "POST", f"{path}/{suffix}", body, token=token, status=200 if other == name else 403
                )


async def test_a_command_to_many_reaches_all_or_none(server: Server) -> None:
    house = await make_house(server)
    token, _ = await server.device_token(house.devices["A"], deviceIds=[house.id("A"), house.id("B")])
    path = f"{house.application}/devices/command"
    both = {"name": "go", "deviceIds": [house.id("A"), house.id("B")]}
    await server.call("POST", path, both, token=token, status=200)
    beyond = {"name": "stop", "deviceIds": [house.id("A"), house.id("C")]}
    await server.call("POST", path, beyond, token=token, status=403)
    for name in "AB":
        commands = await server.call("GET", f"{house.devices[name]}/command?limit=10")
        assert [each["name"] for each in commands] == ["go"]
    # Queries select only what the key allows, as they do where devices are read, and tell nothing of the others.
    answers = [
        await server.call("POST", path, {"name": "up", "deviceQuery": {"name": name}}, token=token)
        for name in ("C", "nobody", "B")
    ]
    assert answers == [{"success": True}] * 3
    for name, names in (("A", ["go"]), ("B", ["up", "go"]), ("C", [])):
        commands = await server.call("GET", f"{house.devices[name]}/command?limit=10")
        assert [each["name"] for each in commands] == names


async def test_lists_and_queries_show_no_more_than_the_key_allows(server: Server) -> None:
    house = await make_house(server)
    for path in house.devices.values():
        await server.call("POST", f"{path}/state", {"data": {"temp": 1}})
    await server.call("DELETE", await server.device(house.application, "D"))
    narrow, _ = await server.device_token(house.devices["A"], deviceIds=[house.id("A"), house.id("B")])
    wide, _ = await server.device_token(house.devices["A"])
    for token, seen in ((narrow, "AB"), (wide, "ABC")):
        ids = {house.id(name) for name in seen}
        for query in ("", "?perPage=1000&sortField=id", '?query={"name":{"$in":["A","B","C"]}}'):
            for path in ("devices", "devices/compositeState"):
                listed = await server.call("GET", f"{house.application}/{path}{query}", token=token)
                assert {each["id"] for each in listed["items"]} == ids
                assert listed["totalCount"] == len(ids)
        floor = await server.call("GET", f"{house.application}/devices?tagFilter[0][key]=floor", token=token)
        assert [each["name"] for each in floor["items"]] == ["B"]
        outside = await server.call(
            "GET", f"{house.application}/devices?filterField=name&filter=C", token=token
        )
        assert outside["totalCount"] == len(ids) - 2
        for operation in ("time-series-query", "last-value-query"):
            path = f"{house.application}/data/{operation}"
            bodies: list[dict[str, Any]] = [
                {},
                {"deviceQuery": {}},
                {"deviceTags": [{"key": "floor"}], "deviceQuery": {}},
            ]
            for body in bodies:
                found = await server.call("POST", path, body, token=token, status=200)
                assert set(found.get("devices", found)) == ids, (operation, body)
            for_c = {"deviceIds": [house.id("C")]}
            await server.call("POST", path, for_c, token=token, status=200 if "C" in seen else 403)
    deleted = await server.call("GET", f"{house.application}/devices?queryDeleted=true", token=narrow)
    assert deleted["items"] == []


async def test_a_key_that_does_not_allow_the_device_logs_nobody_in(server: Server) -> None:
    house = await make_house(server)
    for key in (
        {"deviceIds": [house.id("B")]},
        {"filterType": "all", "deviceIds": [house.id("B")]},
        {"filterType": "blacklist", "deviceIds": [house.id("B")]},
    ):
        made = await server.call("POST", f"{house.application}/keys", key)
        credentials = {"deviceId": house.id("A"), "key": made["key"], "secret": made["secret"]}
        await server.call("POST", "/auth/device", credentials, token="", status=401)


async def test_an_older_key_allows_what_it_allowed_until_its_filter_is_set(server: Server) -> None:
    house = await make_house(server)
    path, application = f"{house.application}/keys", bytes.fromhex(house.application.rpartition("/")[2])
    older: list[tuple[dict[str, Any], str, str]] = [
        ({"filterType": "none"}, "", "ABC"),
        ({"filterType": "blacklist", "deviceIds": [house.id("B")]}, "AC", "B"),
        ({"filterType": "blacklist", "deviceTags": [{"key": "floor", "value": "1"}]}, "AC", "B"),
    ]
    for key, before, after in older:
        made = await server.call("POST", path, key)
        with server.system.store.snapshot() as snapshot:
            found = records.find(snapshot, APPLICATION_KEY, application, bytes.fromhex(made["id"]))
        assert found is not None
        batch = Batch()
        doc = {name: value for name, value in found.doc.items() if name != TOPIC_FILTER}
        batch.put(keys.RECORDS, keys.record_key(APPLICATION_KEY.name, application, found.id), encode(doc))
        await server.system.journal.submit(batch).wait()

        async def admitted(made: dict[str, Any] = made) -> str:
            names = ""
            for name in "ABC":
                body = {"deviceId": house.id(name), "key": made["key"], "secret": made["secret"]}
                async with server.client("") as client:
                    names += name if (await client.post("/auth/device", json=body)).is_success else ""
            return names

        each = f"{path}/{made['id']}"
        assert await admitted() == before
        assert (await server.call("GET", each))["deviceFilterType"] == key["filterType"]
        assert "deviceFilterType" in await server.call("PATCH", each, {"name": "old"})
        assert await admitted() == before
        assert "deviceFilterType" not in await server.call("PATCH", each, {"filterType": key["filterType"]})
        assert await admitted() == after


async def test_tags_that_change_move_the_fence_at_once(server: Server) -> None:
    house = await make_house(server)
    a, b, c = (house.devices[name] for name in "ABC")
    floor = {"tags": [{"key": "floor", "value": "1"}]}
    await server.call("PATCH", a, floor)
    token, _ = await server.device_token(a, deviceTags=floor["tags"])
    assert await house.seen(token) == "AB"
    await server.call("PATCH", c, floor)
    await server.call("PATCH", b, {"tags": []})
    assert await house.seen(token) == "AC"
    await server.call("PATCH", a, {"tags": []})
    await server.call("GET", a, token=token, status=401)
    await server.call("PATCH", a, floor)
    assert await house.seen(token) == "AC"


async def test_a_device_token_does_nothing_else(server: Server) -> None:
    house = await make_house(server)
    other = await server.application("other")
    stranger = await server.device(other)
    token, key = await server.device_token(house.devices["A"])
    ids = (house.application.rpartition("/")[2], house.id("A"))
    open_to_devices = DEVICE_READS | DEVICE_WRITES
    async with server.client(token) as client:
        for route in ROWS:
            if route.event is None:
                response = await send(client, route, path_of(route, *ids))
                assert (response.status_code == 403) == (route.operation not in open_to_devices), (
                    route.operation
                )
            if "{applicationId}" in route.path:
                response = await send(client, route, path_of(route, other.rpartition("/")[2]))
                assert response.status_code == 403, route.operation
                response = await send(client, route, path_of(route))
                assert response.status_code == (404 if route.operation in open_to_devices else 403)
        assert (await client.get(key)).status_code == 403
        assert (await client.get(f"{house.application}/devices/{UNKNOWN}")).status_code == 404
        # Another application's device is not found in one's own.
        assert (
            await client.get(f"{house.application}/devices/{stranger.rpartition('/')[2]}")
        ).status_code == 404


async def test_a_gateway_reports_for_its_peripherals_only(server: Server) -> None:
    application = await server.application()
    gateway = await server.device(application, "gateway", deviceClass="gateway")
    gateway_id = gateway.rpartition("/")[2]
    second = await server.device(application, "second", deviceClass="edgeCompute")
    sensor = await server.device(application, "sensor", deviceClass="peripheral", gatewayId=gateway_id)
    token, _ = await server.device_token(gateway, deviceIds=[gateway_id])
    state = {"data": {"temp": 1}}
    await server.call("POST", f"{sensor}/state", state, token=token, status=200)
    await server.call(
        "POST", f"{sensor}/setConnectionStatus", {"status": "connected"}, token=token, status=200
    )
    # The peripheral itself, and a gateway that is not its own, report nothing for the other.
    its_own, _ = await server.device_token(sensor)
    await server.call("POST", f"{gateway}/state", state, token=its_own, status=403)
    seconds, _ = await server.device_token(second)
    answer = await server.call("POST", f"{sensor}/state", state, token=seconds, status=403)
    assert "peripherals" in answer["message"]
    # Reading and commanding needs a key that allows it.
    await server.call("POST", f"{sensor}/command", {"name": "go"}, token=token, status=403)
    await server.call("POST", f"{sensor}/command", {"name": "go"}, token=seconds, status=200)
    # Moved to the other gateway, or under no gateway any more, it is out of reach at once.
    await server.call("PATCH", sensor, {"gatewayId": second.rpartition("/")[2]})
    await server.call("POST", f"{sensor}/state", state, token=token, status=403)
    await server.call("POST", f"{sensor}/state", state, token=seconds, status=200)
    await server.call("PATCH", second, {"deviceClass": "standalone"})
    await server.call("POST", f"{sensor}/state", state, token=seconds, status=403)
    await server.call("PATCH", sensor, {"deviceClass": "standalone"})
    await server.call("PATCH", second, {"deviceClass": "gateway"})
    await server.call("POST", f"{sensor}/state", state, token=seconds, status=403)


async def test_the_scopes_of_a_device_token_narrow_it(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    made = await server.call("POST", f"{application}/keys", {})
    credentials = {"deviceId": device.rpartition("/")[2], "key": made["key"], "secret": made["secret"]}

    async def log_in(*scopes: str) -> str:
        body = {**credentials, "requestedScopes": list(scopes)}
        return str((await server.call("POST", "/auth/device", body, token=""))["token"])

    reading, sending = await log_in("all.Device.read"), await log_in("device.sendState")
    state = {"data": {"temp": 1}}
    await server.call("GET", f"{device}/state", token=reading, status=200)
    await server.call("POST", f"{device}/state", state, token=reading, status=403)
    await server.call("POST", f"{device}/state", state, token=sending, status=200)
    await server.call("GET", f"{device}/state", token=sending, status=403)
    for scope in ("all.User", "all.Application", "device.patch", "device.*", "all.Application.read"):
        body = {**credentials, "requestedScopes": [scope]}
        answer = await server.call("POST", "/auth/device", body, token="", status=400)
        assert answer["message"].startswith(f"requestedScopes[0]: '{scope}' is not for devices")
