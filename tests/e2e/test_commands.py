"""Commands over HTTP: to one device, and to many at once or to none of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.actors.house import START_MS, ManualClock, at
from tests.e2e.conftest import Server
from tests.e2e.device_calls import id_of

NOBODY = "0123456789abcdef01234567"


async def sent_to(server: Server, device: str) -> list[str]:
    """The names of the commands in a device's log, oldest first."""
    found = await server.call("GET", f"{device}/command?limit=1000&sortDirection=asc")
    return [command["name"] for command in found]


async def test_a_command_is_logged_with_its_payload_and_time(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        device = await server.device(await server.application())
        assert await server.call("GET", f"{device}/command") == []
        payloads: list[Any] = [{"on": True, "list": [1, None, "x"]}, "text", 0, None, []]
        for payload in payloads:
            body = {"name": "switch", "payload": payload}
            assert await server.call("POST", f"{device}/command", body) == {"success": True}
            (command,) = await server.call("GET", f"{device}/command")
            assert command == {"name": "switch", "time": at(0), "payload": payload}
        await server.call("POST", f"{device}/command", {"name": "bare", "time": "2024-05-01T11:00:00Z"})
        (command,) = await server.call("GET", f"{device}/command")
        assert command == {"name": "bare", "time": at(-3_600_000)}
        clock.pass_s(60)
        await server.call("POST", f"{device}/command", {"name": "later"})
        for query, expected in (
            ("limit=2", ["later", "bare"]),
            ("limit=2&sortDirection=asc", ["switch", "switch"]),
            ("duration=60000&limit=9", ["later", "bare", *["switch"] * 5]),
            ("duration=59999&limit=9", ["later"]),
            (f"since={START_MS}&limit=9", ["later"]),
            (f"start={START_MS}&end={START_MS + 59_999}&limit=1", ["bare"]),
            ("end=-1&limit=1", ["bare"]),
            (f"start={START_MS + 60_001}", []),
        ):
            found = await server.call("GET", f"{device}/command?{query}")
            assert [command["name"] for command in found] == expected, query


async def test_commands_that_expire_say_what_became_of_them(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application = await server.application()
        first, second = await server.device(application), await server.device(application)
        await server.call("POST", f"{first}/command", {"name": "one", "ttlSeconds": 10})
        many = {"name": "all", "ttlSeconds": 60, "deviceIds": [id_of(first), id_of(second)]}
        await server.call("POST", f"{application}/devices/command", many)
        clock.pass_s(10)
        found = await server.call("GET", f"{first}/command?limit=9&sortDirection=asc")
        assert [command["status"] for command in found] == ["expired", "queued"]
        assert [command["expiresAt"] for command in found] == [at(10_000), at(60_000)]
        (command,) = await server.call("GET", f"{second}/command")
        assert command["expiresAt"] == at(60_000)


REFUSED: list[tuple[Any, str]] = [
    ({"name": "x", "ttlSeconds": 0}, "ttlSeconds: "),
    ({"name": "x", "ttlSeconds": 1.5}, "ttlSeconds: "),
    ({"name": "x", "ttlSeconds": 31_536_001}, "ttlSeconds: "),
    ({}, "name: is missing"),
    ({"name": ""}, "name: "),
    ({"name": "x" * 256}, "name: "),
    ({"name": 5}, "name: "),
    ({"name": "x", "time": "soon"}, "time: "),
    ({"name": "x", "colour": "red"}, "colour: there is no such field"),
    ([{"name": "x"}], "The body: "),
]


async def test_a_wrong_command_is_refused_by_the_name_of_its_field(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    for body, sentence in REFUSED:
        refused = await server.call("POST", f"{device}/command", body, status=400)
        assert refused["message"].startswith(sentence), refused["message"]
        if isinstance(body, dict):
            body = {**body, "deviceIds": [id_of(device)]}
        refused = await server.call("POST", f"{application}/devices/command", body, status=400)
        assert refused["message"].startswith(sentence), refused["message"]
    nested = b"[" * 101 + b"]" * 101
    async with server.client() as client:
        sent = await client.post(
            f"{device}/command",
            content=b'{"name":"x","payload":' + nested + b"}",
            headers={"content-type": "application/json"},
        )
    assert (sent.status_code, sent.json()["message"][:20]) == (400, "payload: nests deepe")
    assert await sent_to(server, device) == []


async def test_a_command_reaches_every_device_that_is_named(server: Server) -> None:
    """By id, by tag, by query, and by all of them together, each device once."""
    application = await server.application()
    floor = [{"key": "floor", "value": "1"}]
    one, two, three, four = [
        await server.device(application, name, tags=tags)
        for name, tags in (("one", []), ("two", floor), ("three", floor), ("four", []))
    ]
    everyone = {"one": one, "two": two, "three": three, "four": four}
    targets: list[tuple[dict[str, Any], set[str]]] = [
        ({"deviceIds": [id_of(one), id_of(two), id_of(one).upper()]}, {"one", "two"}),
        ({"deviceTags": [{"key": "floor"}]}, {"two", "three"}),
        ({"deviceTags": [{"key": "floor", "value": "2"}, {"value": "1"}]}, {"two", "three"}),
        ({"deviceQuery": {"name": {"$in": ["one", "four"]}}}, {"one", "four"}),
        ({"deviceQuery": {}}, set(everyone)),
        (
            {
                "deviceIds": [id_of(four)],
                "deviceTags": [{"key": "floor"}],
                "deviceQuery": {"name": "two"},
            },
            {"two", "three", "four"},
        ),
        ({"deviceQuery": {"name": "nobody"}}, set()),
    ]
    for number, (target, expected) in enumerate(targets):
        body = {"name": f"c{number}", "payload": number, **target}
        assert await server.call("POST", f"{application}/devices/command", body) == {"success": True}
        reached = {name for name, device in everyone.items() if f"c{number}" in await sent_to(server, device)}
        assert reached == expected, target
        for name in expected:
            assert (await sent_to(server, everyone[name])).count(f"c{number}") == 1


async def test_a_command_to_many_goes_to_all_or_to_none(server: Server) -> None:
    application, shed = await server.application(), await server.application("shed")
    one, two = await server.device(application, "one"), await server.device(application, "two")
    stranger = await server.device(shed, "stranger")
    gone = await server.device(application, "gone")
    await server.call("DELETE", gone)
    ids = [id_of(one), id_of(two)]
    for body, status, sentence in (
        ({}, 400, "deviceIds, deviceTags or deviceQuery: name the devices"),
        ({"deviceIds": []}, 400, "deviceIds, deviceTags or deviceQuery: name the devices"),
        ({"deviceIds": [*ids, NOBODY]}, 400, f"deviceIds: there is no device {NOBODY}"),
        ({"deviceIds": [*ids, id_of(gone)]}, 400, "deviceIds: there is no device"),
        ({"deviceIds": [*ids, id_of(stranger)]}, 400, "deviceIds: there is no device"),
        ({"deviceIds": [*ids, "x"]}, 400, "deviceIds[2]: "),
        ({"deviceIds": [NOBODY] * 1001}, 400, "deviceIds: "),
        ({"deviceTags": [{"key": "a"}] * 101}, 400, "deviceTags: "),
        ({"deviceTags": [{"colour": "red"}]}, 400, "deviceTags[0].colour: "),
        ({"deviceQuery": {"colour": "red"}}, 400, "deviceQuery.colour: "),
        ({"deviceQuery": {"$or": [{"name": {"$near": 1}}]}}, 400, "deviceQuery.$or[0].name.$near: "),
        ({"deviceIds": ids, "time": 99_999_999_999_999}, 400, "time: "),
    ):
        refused = await server.call(
            "POST", f"{application}/devices/command", {"name": "x", **body}, status=status
        )
        assert refused["message"].startswith(sentence), refused["message"]
    assert await sent_to(server, one) == []
    assert await sent_to(server, two) == []
    assert await sent_to(server, stranger) == []


async def test_one_throttled_device_holds_the_whole_call_back(start_server: Any) -> None:
    async with start_server(clock=ManualClock()) as server:
        application = await server.application()
        busy, idle = await server.device(application, "busy"), await server.device(application, "idle")
        async with server.client() as client:
            for _ in range(30):
                assert (await client.post(f"{busy}/command", json={"name": "go"})).status_code == 200
            to_all = {"name": "all", "deviceQuery": {}}
            refused = await client.post(f"{application}/devices/command", json=to_all)
        assert refused.status_code == 429
        assert refused.json()["message"].startswith(f"Nothing was sent: device {id_of(busy)}")
        assert refused.headers["ratelimit"] == '"send_command";r=0;t=15'
        assert refused.headers["retry-after"] == "15"
        assert await sent_to(server, idle) == []
        await server.call("POST", f"{application}/devices/command", {"name": "x", "deviceIds": [id_of(idle)]})
        assert await sent_to(server, idle) == ["x"]


@pytest.mark.slow
async def test_more_than_a_thousand_devices_are_refused(start_server: Any) -> None:
    async with start_server(limits={"changed_devices_max": 1001}) as server:
        application = await server.application()
        recipe = (await server.call("POST", f"{application}/device-recipes", {"name": "d"}))["id"]
        await server.call("POST", f"{application}/device-recipes/{recipe}/bulkCreate", {"count": 1001})
        paths = []
        for page in range(2):
            listed = await server.call(
                "GET", f"{application}/devices", params={"page": page, "perPage": 1000}
            )
            paths += [f"{application}/devices/{each['id']}" for each in listed["items"]]
        assert len(paths) == 1001
        async with server.client() as client:
            command = f"{application}/devices/command"
            too_many = await client.post(command, json={"name": "x", "deviceQuery": {}})
            assert too_many.status_code == 413
            assert too_many.json()["message"].startswith("More than 1000 devices are selected")
            assert [await sent_to(server, path) for path in paths[::250]] == [[]] * 5
            await client.delete(paths[-1])
            fits = await client.post(command, json={"name": "x", "deviceQuery": {}})
            assert fits.status_code == 200, fits.text
            ids = [id_of(path) for path in paths[:-1]]
            assert (await client.post(command, json={"name": "y", "deviceIds": ids})).status_code == 200
        assert [await sent_to(server, path) for path in paths[:-1:199]] == [["x", "y"]] * 6


async def test_a_device_commands_those_that_its_key_allows(server: Server) -> None:
    application = await server.application()
    me, friend, stranger = [await server.device(application, name) for name in ("me", "friend", "stranger")]
    token, _ = await server.device_token(me, filterType="whitelist", deviceIds=[id_of(me), id_of(friend)])
    both = {"name": "hello", "deviceIds": [id_of(me), id_of(friend)]}
    await server.call("POST", f"{application}/devices/command", both, token=token)
    await server.call("POST", f"{friend}/command", {"name": "hey"}, token=token)
    await server.call("POST", f"{stranger}/command", {"name": "hey"}, token=token, status=403)
    beyond = {"name": "no", "deviceIds": [id_of(friend), id_of(stranger)]}
    await server.call("POST", f"{application}/devices/command", beyond, token=token, status=403)
    await server.call(
        "POST", f"{application}/devices/command", {"name": "all", "deviceQuery": {}}, token=token
    )
    assert await sent_to(server, friend) == ["hello", "hey", "all"]
    assert await sent_to(server, stranger) == []
    read = await server.call("GET", f"{friend}/command?limit=9", token=token)
    assert json.dumps(read).count("hello") == 1
