"""The actors of an application that are in memory, and the actor and the throttles of one device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.actors.house import ManualClock
from tests.e2e.conftest import Server, running_server
from tests.e2e.link_house import house_in
from tests.e2e.link_peer import linked
from tests.e2e.sse_client import opened_stream

STATE = {"data": {"temp": 1}}
IDLE = {
    "mailboxDepth": 0,
    "oldestMessageAgeMs": 0,
    "handled": 0,
    "refused": 0,
    "restarts": 0,
    "subscribers": 0,
}


def id_of(path: str) -> str:
    return path.rpartition("/")[2]


async def names(server: Server, application: str, query: str) -> list[str]:
    listed = await server.call("GET", f"{application}/actors?kind=device&{query}")
    return [each["name"] for each in listed["items"]]


async def test_actors_are_listed_with_what_they_have_done(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application, other = await server.application(), await server.application("other")
        await server.device(other)
        clock.pass_s(1)
        device = await server.device(application)
        table = await server.call("POST", f"{application}/data-tables", {"name": "log", "columns": []})
        for status in (200, 200, 400):
            body = STATE if status == 200 else {"data": {"temp": "warm"}}
            await server.call("POST", f"{device}/state", body, status=status)
        clock.pass_s(1)
        async with opened_stream(server, device):
            listed = await server.call("GET", f"{application}/actors")
        assert listed["time"] == "2024-05-01T12:00:02.000Z"
        shown = {each["kind"]: each for each in listed["items"]}
        assert shown["device"] == {
            **IDLE,
            "kind": "device",
            "id": id_of(device),
            "name": "pump",
            "handled": 3,
            "refused": 1,
            "subscribers": 1,
            "lastError": "Validation",
            "lastUsed": "2024-05-01T12:00:01.000Z",
        }
        assert (shown["dataTable"]["name"], shown["dataTable"]["id"]) == ("log", table["id"])
        assert shown["application"]["id"] == id_of(application)
        assert listed["totalCount"] == listed["count"] == len(listed["items"])
        handled = [each["handled"] for each in listed["items"]]
        assert handled == sorted(handled, reverse=True)
        only = await server.call("GET", f"{application}/actors?kind=dataTable")
        assert ([each["kind"] for each in only["items"]], only["totalCount"]) == (["dataTable"], 1)


async def test_actors_are_sorted_and_paged(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application = await server.application()
        for number in range(5):
            clock.pass_s(1)
            device = await server.device(application, f"pump {number}")
            for _ in range((number * 3) % 5):
                await server.call("POST", f"{device}/state", STATE)
            await server.call("POST", f"{device}/state", {"data": {"temp": "warm"}}, status=400)
        busiest = [f"pump {number}" for number in (3, 1, 4, 2, 0)]
        assert await names(server, application, "") == busiest
        assert await names(server, application, "sortDirection=asc") == busiest[::-1]
        pages = [await names(server, application, f"perPage=2&page={page}") for page in range(4)]
        assert pages == [busiest[:2], busiest[2:4], busiest[4:], []]
        newest = [f"pump {number}" for number in (4, 3, 2, 1, 0)]
        assert await names(server, application, "sortField=lastUsed") == newest
        for field in ("mailboxDepth", "oldestMessageAgeMs", "restarts", "refused", "subscribers"):
            # Equal values: each actor is on one page.
            listed = [
                *await names(server, application, f"sortField={field}&perPage=3"),
                *await names(server, application, f"sortField={field}&perPage=3&page=1"),
            ]
            assert sorted(listed) == sorted(busiest)


async def test_a_wrong_choice_of_actors_is_refused_with_what_would_be_right(server: Server) -> None:
    application = await server.application()
    for query, sentence in (
        ("kind=pump", "kind: there are no actors of the kind 'pump'; give one of application, "),
        ("page=100", "page: lists of actors show the first 10000; sort by another field, or give a kind."),
        ("sortField=name", "sortField: "),
        ("perPage=101", "perPage: "),
    ):
        refused = await server.call("GET", f"{application}/actors?{query}", status=400)
        assert refused["message"].startswith(sentence), refused


# One device.


async def test_the_actor_of_a_device_has_its_throttles_and_spends_nothing(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock, limits={"set_connection_status": "off"}) as server:
        application = await server.application()
        device = await server.device(application)
        await server.call("POST", f"{device}/state", STATE)
        clock.pass_s(5)
        await server.call("POST", f"{device}/state", STATE)
        past = [{"time": clock.wall_ms() - number, **STATE} for number in range(7)]
        await server.call("POST", f"{device}/state?backlog=true", past)
        for _ in range(2):
            shown = await server.call("GET", f"{device}/actor")
            assert (shown["active"], shown["handled"], shown["links"], shown["commandsWaiting"]) == (
                True,
                4,
                0,
                0,
            )
            assert shown["throttles"] == [
                throttle("send_state", "device", 30, 15, 28, 10),
                throttle("send_command", "device", 30, 15, 30, 0),
                throttle("backlog_states", "application", 50_000, 1, 49_993, 1),
            ]
        await server.call("GET", f"{application}/devices/{'0' * 24}/actor", status=404)


def throttle(
    bucket: str, per: str, limit: int, window_s: float, remaining: int, reset_s: float
) -> dict[str, Any]:
    return {
        "bucket": bucket,
        "per": per,
        "limit": limit,
        "windowSeconds": window_s,
        "remaining": remaining,
        "resetSeconds": reset_s,
    }


async def test_a_device_that_is_not_in_memory_stays_out_of_it(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data") as server:
        device = await server.device(await server.application())
    async with running_server(tmp_path / "data") as server:
        active = server.system.active
        shown = await server.call("GET", f"{device}/actor")
        assert server.system.active == active
    assert not shown["active"]
    assert {name: shown[name] for name in IDLE} == IDLE
    assert not {"lastUsed", "lastError"} & shown.keys()
    assert [each["remaining"] for each in shown["throttles"]] == [30, 30, 30, 50_000]


async def test_links_and_commands_that_wait_are_shown(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:
        async with linked(house.server, house.device, house.token) as (peer, _):
            await house.server.call("POST", f"{house.device}/command", {"name": "on"})
            await peer.next()
            shown = await house.server.call("GET", f"{house.device}/actor")
        assert (shown["links"], shown["commandsWaiting"]) == (1, 1)
        assert [each["bucket"] for each in shown["throttles"]] == ["backlog_states"]
