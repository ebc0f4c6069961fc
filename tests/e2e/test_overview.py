"""The overview of an application: exact counts of its devices, its traffic, its refusals and its events."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import trio

from tests.actors.house import START_MS, ManualClock
from tests.e2e.conftest import Server, running_server
from tests.e2e.link_house import BASE_MS, house_in
from tests.e2e.link_peer import linked
from trunkline.actors.core.values.errors import (
    Crashed,
    Forbidden,
    NotFound,
    Overloaded,
    PayloadTooLarge,
    StorageFull,
)
from trunkline.actors.fleet.devices.state.head import Head, advanced, last_arrival_ms
from trunkline.actors.fleet.devices.state.traffic import reason_of
from trunkline.store.report_items import Ahead

STATE = {"data": {"temp": 1}}
NO_EVENTS = {"info": 0, "warning": 0, "error": 0, "critical": 0}


def id_of(path: str) -> str:
    return path.rpartition("/")[2]


async def fleet(server: Server, application: str, query: str = "") -> dict[str, Any]:
    """The numbers of the devices, in the order of the fields."""
    shown = await server.call("GET", f"{application}/overview{query}")
    return {name: value for name, value in shown["devices"].items() if name not in ("asOf", "ageMs")}


# Devices.


async def test_devices_are_counted_by_their_last_sign_of_life(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application, other = await server.application(), await server.application("other")
        await server.device(other)
        names = ("never", "reported", "linked", "left", "past")
        devices = {name: await server.device(application, name) for name in names}
        await server.call("POST", f"{devices['reported']}/state", STATE)
        await server.call("POST", f"{devices['linked']}/setConnectionStatus", {"status": "connected"})
        for status in ("connected", "disconnected"):
            await server.call("POST", f"{devices['left']}/setConnectionStatus", {"status": status})
        # States of the past are no sign of life.
        past = [{"time": START_MS - 3_600_000, **STATE}]
        await server.call("POST", f"{devices['past']}/state?backlog=true", past)
        known = {"total": 5, "connected": 1, "disconnected": 1, "neverSeen": 2}
        assert await fleet(server, application) == {**known, "reporting": 3, "silent": 0}
        clock.pass_s(301)
        shown = await server.call("GET", f"{application}/overview")
        assert {**known, "reporting": 1, "silent": 2}.items() <= shown["devices"].items()
        assert shown["devices"]["ageMs"] == 0
        silent = {each["name"]: each["deviceId"] for each in shown["recent"]["silent"]}
        assert silent == {name: id_of(devices[name]) for name in ("left", "reported")}
        assert await fleet(server, application, "?silentAfterSeconds=301") == {
            **known,
            "reporting": 3,
            "silent": 0,
        }
        await server.call("POST", f"{devices['reported']}/state", STATE)
        await server.call("DELETE", devices["left"])
        clock.pass_s(60)
        assert await fleet(server, application) == {
            "total": 4, "connected": 1, "disconnected": 0, "reporting": 2, "silent": 0, "neverSeen": 2
        }  # fmt: skip
        assert (await fleet(server, other))["total"] == 1
        await server.call("GET", f"{application}/overview?silentAfterSeconds=0", status=400)


async def test_silent_devices_are_listed(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application = await server.application()
        for number in range(5):
            clock.pass_s(10)
            device = await server.device(application, f"pump {number}")
            if number < 3:
                await server.call("POST", f"{device}/state", STATE)
        clock.pass_s(280)

        async def names(query: str) -> list[str]:
            shown = await server.call("GET", f"{application}/silentDevices?{query}")
            assert shown["count"] == len(shown["items"])
            return [each["name"] for each in shown["items"]]

        assert await names("") == ["pump 1", "pump 0"]
        assert await names("sortDirection=asc") == ["pump 0", "pump 1"]
        assert await names("silentAfterSeconds=10&perPage=2&page=1") == ["pump 0"]
        assert await names("page=1") == []
        assert await names("state=neverSeen") == ["pump 4", "pump 3"]
        assert await names("state=neverSeen&sortDirection=asc&perPage=1") == ["pump 3"]
        shown = await server.call("GET", f"{application}/silentDevices?perPage=1")
        assert (shown["totalCount"], shown["asOf"]) == (2, "2024-05-01T12:05:30.000Z")
        assert shown["items"][0]["lastSeen"] == "2024-05-01T12:00:20.000Z"
        shown = await server.call("GET", f"{application}/silentDevices?state=neverSeen")
        assert "lastSeen" not in shown["items"][0]


async def test_a_count_is_kept_for_a_second_and_shared(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock, limits={"counted_fleets_max": 1}) as server:
        application, other = await server.application(), await server.application("other")
        assert (await fleet(server, application))["total"] == 0
        await server.device(application)
        clock.pass_s(0.5)
        shown = (await server.call("GET", f"{application}/overview"))["devices"]
        assert (shown["total"], shown["ageMs"]) == (0, 500)
        # Another application takes its place, so it is counted again.
        assert (await fleet(server, other))["total"] == 0
        found: list[int] = []

        async def ask() -> None:
            found.append((await fleet(server, application))["total"])

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
        assert found == [1] * 5


def test_the_last_arrival_is_that_of_the_whole_head() -> None:
    head = Head()
    cases: list[Ahead] = [Ahead.of(None, [])]
    head.report(1000, {1: 2.5, 2: "x"})
    for arrived_ms, is_silent in ((1000, False), (900, False), (2000, True), (-1, True)):
        head.arrived_ms, head.is_silent = arrived_ms, is_silent
        head.counts = {"deviceState": 3}
        cases.append(Ahead.of(head.encoded(), []))
        cases.append(Ahead.of(head.encoded(), [(1500, {1: 1}), (1200, {1: 3})]))
    for ahead in cases:
        assert last_arrival_ms(ahead) == advanced(ahead).arrived_ms


# Traffic.


async def test_what_is_stored_and_what_is_refused_is_counted_once(start_server: Any) -> None:
    limits = {
        "send_state": {"calls": 3, "window_s": 60},
        "send_command": {"calls": 1, "window_s": 60},
        "set_connection_status": {"calls": 1, "window_s": 60},
        "event_create": {"calls": 1, "window_s": 60},
        "backlog_states": {"calls": 10, "window_s": 60},
        "backlog_batch_states_max": 10,
        "backlog_wait_s": 0.5,
    }
    clock = ManualClock()
    async with start_server(clock=clock, limits=limits) as server:
        application = await server.application()
        device = await server.device(application)
        past = [{"time": START_MS - 1000 * number, **STATE} for number in range(1, 11)]
        calls: list[tuple[str, Any, int]] = [
            (f"{device}/state", [STATE, STATE], 200),
            (f"{device}/state", {"data": {"temp": "warm"}}, 400),
            (f"{device}/state", {"date": {}}, 400),  # refused before its throttle is asked
            (f"{device}/state", STATE, 200),
            (f"{device}/state", STATE, 429),
            (f"{device}/state?backlog=true", past + past[:1], 413),
            (f"{device}/state?backlog=true", past, 200),
            (f"{device}/state?backlog=true", past[:1], 429),
            (f"{device}/state?backlog=true", [STATE], 429),
            (f"{device}/command", {"name": "on"}, 200),
            (f"{device}/command", {"name": "on"}, 429),
            (f"{application}/devices/command", {"name": "on", "deviceIds": [id_of(device)]}, 429),
            (f"{device}/setConnectionStatus", {"status": "connected"}, 200),
            (f"{device}/setConnectionStatus", {"status": "disconnected"}, 429),
            (f"{application}/events", {"level": "info", "state": "new", "subject": "a"}, 201),
            (f"{application}/events", {"level": "info", "state": "new", "subject": "b"}, 429),
            (f"{application}/devices/{'0' * 24}/state", STATE, 404),
            (f"{application}/devices", {"name": ""}, 400),  # not traffic
        ]
        for path, body, status in calls:
            await server.call("POST", path, body, status=status)
        shown = await server.call("GET", f"{application}/overview")
        assert shown["time"] == shown["traffic"].pop("startedAt") == "2024-05-01T12:00:00.000Z"
        assert shown["traffic"] == {
            "states": 13,
            "commands": 1,
            "refused": {
                "invalid": 3,
                "send_state": 1,
                "backlog_states": 2,
                "send_command": 2,
                "set_connection_status": 1,
                "event_create": 1,
            },
            "history": {
                "start": "2024-05-01T12:00:00.000Z",
                "intervalSeconds": 10,
                "states": [13],
                "commands": [1],
                "refused": [10],
            },
        }
        refused = shown["recent"]["refused"]
        assert [each["reason"] for each in refused] == [
            "event_create", "set_connection_status", "send_command", "send_command", "backlog_states",
            "backlog_states", "invalid", "send_state", "invalid", "invalid",
        ]  # fmt: skip
        assert not {"deviceId", "name"} & refused[0].keys()
        assert "deviceId" not in refused[2]
        assert (refused[3]["deviceId"], refused[3]["name"]) == (id_of(device), "pump")
        assert refused[3]["operation"] == "device.sendCommand"
        assert "calls of send_command in any 60 seconds" in refused[3]["message"]


async def test_the_history_has_the_last_ten_minutes(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application = await server.application()
        device = await server.device(application)

        async def history() -> Any:
            return (await server.call("GET", f"{application}/overview"))["traffic"]["history"]

        await server.call("POST", f"{device}/state", [STATE, STATE])
        await server.call("POST", f"{device}/state", {}, status=400)
        clock.pass_s(9.999)
        await server.call("POST", f"{device}/state", STATE)
        clock.pass_s(20)
        await server.call("POST", f"{device}/command", {"name": "on"})
        shown = await history()
        assert (shown["states"], shown["commands"], shown["refused"]) == ([3, 0, 0], [0, 0, 1], [1, 0, 0])
        clock.pass_s(570)
        shown = await history()
        assert shown["start"] == "2024-05-01T12:00:00.000Z"
        assert shown["states"] == [3, *[0] * 59]
        clock.pass_s(10)
        await server.call("POST", f"{device}/state", STATE)
        shown = await history()
        assert shown["start"] == "2024-05-01T12:00:10.000Z"
        assert shown["states"] == [*[0] * 59, 1]
        assert shown["commands"] == [0, 1, *[0] * 58]
        clock.pass_s(3600)
        assert not any((await history())["states"])


async def test_while_the_clock_is_set_back_the_history_stands_still(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application = await server.application()
        device = await server.device(application)

        async def states() -> Any:
            return (await server.call("GET", f"{application}/overview"))["traffic"]["history"]["states"]

        assert await states() == [0]
        clock.pass_s(10)
        await server.call("POST", f"{device}/state", STATE)
        clock.set_wall(START_MS - 3_600_000)
        await server.call("POST", f"{device}/state", STATE)
        assert await states() == [0, 2]
        clock.set_wall(START_MS + 25_000)
        await server.call("POST", f"{device}/state", STATE)
        assert await states() == [0, 2, 1]


async def test_full_mailboxes_and_journals_and_disks_have_their_reasons(start_server: Any) -> None:
    async with start_server() as server:
        application = await server.application()
        device = await server.device(application)
        limits = server.system.limits
        for name, reason in (("mailbox_length_max", "mailbox"), ("waiting_writes_max", "journal")):
            server.system.limits = replace(limits, **{name: 0})
            await server.call("POST", f"{device}/state", STATE, status=503)
            server.system.limits = limits
            shown = await server.call("GET", f"{application}/overview")
            assert shown["recent"]["refused"][0]["reason"] == reason
        assert shown["traffic"]["refused"] == {"mailbox": 1, "journal": 1}
    assert reason_of(StorageFull("")) == "storage"
    assert reason_of(Crashed("")) == "fault"
    assert reason_of(Overloaded("")) == "server"
    assert reason_of(PayloadTooLarge("")) == "invalid"
    assert reason_of(NotFound("")) is reason_of(Forbidden("")) is None


async def test_frames_and_connections_of_links_are_counted(tmp_path: Path) -> None:
    bucket = {"calls": 1, "window_s": 60}
    async with house_in(tmp_path / "data", send_state=bucket) as house:
        async with linked(house.server, house.device, house.token) as (peer, _):
            await peer.send(2, 1, ["temp"], [[BASE_MS + at, at] for at in range(20)])
            await peer.send(2, 2, ["temp"], [[BASE_MS + at, at] for at in range(20, 35)], {"backlog": True})
            await peer.send(1, 3, BASE_MS, {"temp": 1})
            await peer.send(1, 4, BASE_MS, {"temp": "warm"}, {"backlog": True})
            frames = [await peer.next() for _ in range(4)]
        shown = await house.server.call("GET", f"{house.application}/overview")
        assert sorted(frame[0] for frame in frames) == [1, 1, 2, 2]
        assert shown["traffic"]["states"] == 35
        assert shown["traffic"]["refused"] == {"send_state": 1, "invalid": 1}
        refused = {each["reason"]: each for each in shown["recent"]["refused"]}
        assert {each["operation"] for each in refused.values()} == {"device.link"}
        assert {each["deviceId"] for each in refused.values()} == {id_of(house.device)}
        assert "data.temp" in refused["invalid"]["message"]
        assert shown["recent"]["connections"][-1]["connected"] == 1


async def test_the_counts_begin_again_with_the_server(tmp_path: Path) -> None:
    clock = ManualClock()
    async with running_server(tmp_path / "data", clock=clock) as server:
        application = await server.application()
        device = await server.device(application)
        await server.call("POST", f"{device}/state", STATE)
        await server.call("POST", f"{device}/state", {}, status=400)
        before = await server.call("GET", f"{application}/overview")
        assert before["traffic"]["refused"] == {"invalid": 1}
    clock.pass_s(10)
    async with running_server(tmp_path / "data", clock=clock) as server:
        await server.log_in()
        after = await server.call("GET", f"{application}/overview")
    assert after["traffic"] == {
        "startedAt": "2024-05-01T12:00:10.000Z",
        "states": 0,
        "commands": 0,
        "refused": {},
        "history": {
            "start": "2024-05-01T12:00:10.000Z",
            "intervalSeconds": 10,
            "states": [0],
            "commands": [0],
            "refused": [0],
        },
    }
    assert after["recent"] == {**before["recent"], "refused": []}
    assert {**after["devices"], "asOf": ""} == {**before["devices"], "asOf": ""}


async def test_the_application_that_was_counted_for_longest_makes_room(start_server: Any) -> None:
    async with start_server(limits={"traffic_applications_max": 2}) as server:
        applications = [await server.application(name) for name in "abc"]
        for application in applications:
            await server.call("POST", f"{await server.device(application)}/state", STATE)
        for application, states in zip(reversed(applications), (1, 1, 0), strict=True):
            shown = await server.call("GET", f"{application}/overview")
            assert shown["traffic"]["states"] == states


# Events, and what happened last.


async def test_open_events_are_counted_by_level(server: Server) -> None:
    application = await server.application()
    for level, state in (
        ("info", "new"),
        ("critical", "new"),
        ("critical", "new"),
        ("error", "acknowledged"),
        ("warning", "resolved"),
    ):
        await server.call("POST", f"{application}/events", {"level": level, "state": state, "subject": level})
    assert (await server.call("GET", f"{application}/overview"))["openEvents"] == {
        "new": {**NO_EVENTS, "info": 1, "critical": 2},
        "acknowledged": {**NO_EVENTS, "error": 1},
    }


async def test_what_happened_last_is_shown_with_names(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application = await server.application()
        devices = []
        for number in range(12):
            clock.pass_s(1)
            devices.append(await server.device(application, f"pump {number}"))
        clock.pass_s(1)
        await server.call("PATCH", devices[0], {"name": "first"})
        recent = (await server.call("GET", f"{application}/overview"))["recent"]
        assert [each["name"] for each in recent["changed"]] == [
            "first",
            *(f"pump {number}" for number in range(11, 2, -1)),
        ]
        assert recent["changed"][0]["deviceId"] == id_of(devices[0])
        assert recent["changed"][0]["lastUpdated"] == "2024-05-01T12:00:13.000Z"
        for status in ("connected", "disconnected"):
            clock.pass_s(1)
            body = {"status": status} | ({"disconnectReason": "asleep"} if status == "disconnected" else {})
            await server.call("POST", f"{devices[1]}/setConnectionStatus", body)
        await server.call("POST", f"{devices[2]}/setConnectionStatus", {"status": "connected"})
        await server.call("DELETE", devices[2])
        recent = (await server.call("GET", f"{application}/overview"))["recent"]
        own = {"deviceId": id_of(devices[1]), "name": "pump 1"}
        assert recent["connections"] == [
            {"deviceId": id_of(devices[2]), "time": "2024-05-01T12:00:15.000Z", "connected": 1},
            {**own, "time": "2024-05-01T12:00:15.000Z", "connected": 0, "disconnectReason": "asleep"},
            {**own, "time": "2024-05-01T12:00:14.000Z", "connected": 1},
        ]
        assert (recent["silent"], recent["refused"]) == ([], [])
