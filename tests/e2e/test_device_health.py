"""The health of devices: what is expected of each of them, and from when on it is silent."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tests.actors.house import START_MS, ManualClock
from tests.e2e.conftest import Server
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.state.signs_of_life import DEFAULT, learned

STATE = {"data": {"temp": 1}}


def id_of(path: str) -> str:
    return path.rpartition("/")[2]


async def health(server: Server, device: str, query: str = "") -> dict[str, Any]:
    """The health of a device, without its name and its newest values."""
    application = device.rpartition("/devices/")[0]
    shown = await server.call("GET", f"{application}/devices/health?deviceIds={id_of(device)}{query}")
    return {key: each for key, each in shown["items"][0].items() if key not in ("name", "compositeState")}


def times_of(*gaps_s: float) -> list[int]:
    times = [START_MS]
    for gap_s in gaps_s:
        times.append(times[-1] + round(gap_s * 1000))
    return times


def test_an_interval_is_learned_from_the_gaps_between_reports() -> None:
    assert learned(times_of(10, 10, 10)) == DEFAULT
    assert learned(times_of(60, 60, 60, 60)) == (60_000, 180_000, "history")
    # One outage does not count, reports at irregular times do.
    assert learned(times_of(*[60] * 7, 7200, *[60] * 7)) == (60_000, 180_000, "history")
    assert learned(times_of(60, 500, 20, 400, 60, 30)) == (60_000, 800_000, "history")
    # At least a minute, at most three days.
    assert learned(times_of(1, 1, 1, 1)).silent_ms == 60_000
    assert learned(times_of(*[604_800] * 5)).silent_ms == 3 * 86_400_000


async def test_a_device_is_silent_after_three_of_its_intervals(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application = await server.application()
        fields: dict[str, dict[str, Any]] = {
            "hourly": {"expectedIntervalSeconds": 3600},
            "quick": {"expectedIntervalSeconds": 10},
            "learned": {},
            "once": {},
            "link": {},
            "never": {},
        }
        devices = {name: await server.device(application, name, **more) for name, more in fields.items()}
        past = [{"time": START_MS - 600_000 * number, **STATE} for number in range(5, 0, -1)]
        await server.call("POST", f"{devices['learned']}/state", past)
        for name in ("hourly", "quick", "learned", "once"):
            await server.call("POST", f"{devices[name]}/state", STATE)
        await server.call("POST", f"{devices['link']}/setConnectionStatus", {"status": "connected"})

        async def silent(query: str = "") -> set[str]:
            listed = await server.call("GET", f"{application}/silentDevices{query}")
            shown = await server.call("GET", f"{application}/overview{query}")
            assert shown["devices"]["silent"] == listed["totalCount"]
            if not query:  # a query over devices says the same
                asked = json.dumps({"expectedBy": {"$lt": iso(clock.wall_ms())}})
                found = await server.call("GET", f"{application}/devices?query={quote(asked)}")
                assert found["totalCount"] == listed["totalCount"]
            return {each["name"] for each in listed["items"]}

        for wait_s, expected in (
            (14, set()),
            (20, {"quick"}),
            (270, {"quick", "once"}),
            (1500, {"quick", "once", "learned"}),
            (9000, {"quick", "once", "learned", "hourly"}),
        ):
            clock.pass_s(wait_s)
            assert await silent() == expected
            for name, device in devices.items():
                word = {"link": "connected", "never": "neverSeen"}.get(name, "reporting")
                assert (await health(server, device))["health"] == ("silent" if name in expected else word)
        assert await silent("?silentAfterSeconds=31536000") == set()
        ids = {name: id_of(device) for name, device in devices.items()}
        assert await health(server, devices["learned"]) == {
            "deviceId": ids["learned"],
            "health": "silent",
            "lastSeen": "2024-05-01T12:00:00.000Z",
            "expectedBy": "2024-05-01T12:30:00.000Z",
            "expectedIntervalSeconds": 600,
            "expectedFrom": "history",
            "silentAfterSeconds": 1800,
        }
        assert (await health(server, devices["once"]))["expectedFrom"] == "default"
        assert "expectedBy" not in await health(server, devices["link"])
        # Without the interval of its own, a device is as any other.
        await server.call("PATCH", devices["hourly"], {"expectedIntervalSeconds": None})
        assert (await health(server, devices["hourly"]))["silentAfterSeconds"] == 300
        await server.call("PATCH", devices["hourly"], {"expectedIntervalSeconds": 7200})
        assert (await server.call("GET", devices["hourly"]))["expectedIntervalSeconds"] == 7200
        clock.pass_s(2)
        assert await silent() == {"quick", "once", "learned"}
        await server.call("PATCH", devices["hourly"], {"expectedIntervalSeconds": 4}, status=400)


async def test_a_report_counts_when_it_arrives_whatever_time_it_names(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application = await server.application()
        offsets_ms = (-86_400_000, -3_600_000, -30_000, 0, 5000, 3_600_000)
        devices = {each: await server.device(application, expectedIntervalSeconds=5) for each in offsets_ms}
        for _ in range(3):
            clock.pass_s(20)
            now_ms = clock.wall_ms()
            for offset_ms, device in devices.items():
                await server.call("POST", f"{device}/state", {"time": now_ms + offset_ms, **STATE})
                shown = await health(server, device)
                assert (shown["health"], shown["lastSeen"]) == ("reporting", iso(now_ms)), offset_ms
                assert shown["expectedBy"] == iso(now_ms + 15_000)
            query = quote(json.dumps({"lastSeen": {"$eq": iso(now_ms)}}))
            found = await server.call("GET", f"{application}/devices?query={query}")
            assert found["totalCount"] == len(devices)
        clock.pass_s(16)
        for device in devices.values():
            assert (await health(server, device))["health"] == "silent"


async def test_devices_are_selected_by_when_a_sign_of_life_is_expected(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application = await server.application()
        quick = await server.device(application, "quick", expectedIntervalSeconds=10)
        await server.device(application, "never")
        for device in (quick, await server.device(application, "usual")):
            await server.call("POST", f"{device}/state", STATE)

        async def names(query: str) -> list[str]:
            shown = await server.call("GET", f"{application}/devices?query={query}")
            return [each["name"] for each in shown["items"]]

        assert await names('{"expectedBy":{"$lt":"2024-05-01T12:00:31Z"}}') == ["quick"]
        assert await names('{"expectedBy":{"$gte":"2024-05-01T12:05:00Z"}}') == ["usual"]
        assert await names('{"expectedBy":null}') == ["never"]


async def test_a_recipe_and_a_change_of_many_devices_set_the_interval(server: Server) -> None:
    application = await server.application()
    recipe = await server.call(
        "POST", f"{application}/device-recipes", {"name": "pump", "expectedIntervalSeconds": 900}
    )
    assert recipe["expectedIntervalSeconds"] == 900
    await server.call(
        "POST", f"{application}/device-recipes/{recipe['id']}/bulkCreate", {"count": 2}, status=201
    )

    async def intervals() -> list[int | None]:
        shown = await server.call("GET", f"{application}/devices")
        return [each.get("expectedIntervalSeconds") for each in shown["items"]]

    assert await intervals() == [900, 900]
    target = {"target": "expectedIntervalSeconds"}
    for operation, expected in (({"operation": "set", "value": 60}, 60), ({"operation": "remove"}, None)):
        body = {"query": {}, "updateOperations": [{**operation, **target}]}
        await server.call("PATCH", f"{application}/devices", body)
        assert await intervals() == [expected, expected]


async def test_newest_values_are_shown_with_the_health_within_reach(server: Server) -> None:
    application = await server.application()
    one, other = await server.device(application, "one"), await server.device(application, "other")
    await server.call("POST", f"{one}/state", {"data": {"temp": 1.5, "on": True}})
    path = f"{application}/devices/health?deviceIds={id_of(other)},{id_of(one)},{'0' * 24}"
    shown = await server.call("GET", f"{path}&attributes=temp")
    assert [each["name"] for each in shown["items"]] == ["other", "one"]
    assert [{key: at["value"] for key, at in each["compositeState"].items()} for each in shown["items"]] == [
        {}, {"temp": 1.5}
    ]  # fmt: skip
    token, _ = await server.device_token(one, deviceIds=[id_of(one)], name="key")
    shown = await server.call("GET", path, token=token)
    assert [each["name"] for each in shown["items"]] == ["one"]
    assert shown["items"][0]["compositeState"].keys() == {"temp", "on"}
    assert (await server.call("GET", f"{application}/devices/health"))["items"] == []
    await server.call(
        "GET", f"{application}/devices/health?deviceIds={','.join(['0' * 24] * 101)}", status=400
    )
