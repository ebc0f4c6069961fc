"""Streams for consoles: the events of an application and the connections of its devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Server
from tests.e2e.server_process import serving, trunkline
from tests.e2e.sse_client import Event, EventReader, opened_stream, until


async def create(server: Server, application: str, subject: str, **more: Any) -> str:
    """Create an event and return its id."""
    body = {"level": "info", "state": "new", "subject": subject, **more}
    made = await server.call("POST", f"{application}/events", body)
    return str(made["id"])


async def taken(stream: EventReader, count: int) -> list[Event]:
    """The next events, without comments."""
    found = [await stream.event() for _ in range(count)]
    return [each for each in found if each is not None]


def said(events: list[Event]) -> list[tuple[str, str]]:
    """What happened to which event."""
    assert {each.name for each in events} <= {"eventChange"}
    return [(each.data["change"], each.data["eventId"]) for each in events]


async def test_a_stream_tells_what_happens_to_events(server: Server) -> None:
    application, other = await server.application(), await server.application("shed")
    device = await server.device(application)
    async with (
        opened_stream(server, application, resource="eventStream") as stream,
        opened_stream(server, other, resource="eventStream") as elsewhere,
    ):
        id = await create(
            server, application, "hot", deviceId=device.rpartition("/")[2], message="x", data=[1]
        )
        second = await create(server, application, "cold")
        await server.call("PATCH", f"{application}/events/{id}", {"state": "acknowledged"})
        await server.call("PATCH", f"{application}/events?state=new", {"level": "error"})
        await server.call("DELETE", f"{application}/events/{second}")
        there = await create(server, other, "other")
        events = await taken(stream, 5)
        assert said(events) == [
            ("created", id),
            ("created", second),
            ("changed", id),
            ("changed", second),
            ("deleted", second),
        ]
        shown = await server.call("GET", f"{application}/events/{id}")
        changed = events[2].data["event"]
        assert changed == {name: shown[name] for name in changed}
        assert changed["deviceName"] == "pump"
        assert not {"message", "data", "updates"} & changed.keys()
        assert events[3].data["event"]["level"] == "error"
        assert "event" not in events[4].data
        assert said(await taken(elsewhere, 1)) == [("created", there)]


async def test_a_client_of_events_comes_back_to_each_place(start_server: Any) -> None:
    limits = {"stream_replay_max": 2, "event_create": "off", "kept_event_changes_max": 12}
    async with start_server(limits=limits) as server:
        application = await server.application()
        async with opened_stream(server, application, resource="eventStream") as stream:
            ids = [await create(server, application, f"s{number}") for number in range(5)]
            await server.call("PATCH", f"{application}/events", {"level": "error"})
            await server.call("DELETE", f"{application}/events/{ids[0]}")
            live = await taken(stream, 11)
        numbers = [int(each.id) for each in live]
        assert numbers == sorted(set(numbers))
        for at, known in enumerate(live):
            # Of the deleted event only its deletion is sent again, and the others are as they are now.
            expected = [
                each
                for each in live[at + 1 :]
                if each.data["eventId"] != ids[0] or each.data["change"] == "deleted"
            ]
            async with opened_stream(server, application, resource="eventStream", last_id=known.id) as stream:
                found = await taken(stream, len(expected))
            assert [(each.id, each.data["change"]) for each in found] == [
                (each.id, each.data["change"]) for each in expected
            ]
            assert {each.data["event"]["level"] for each in found if "event" in each.data} <= {"error"}
        for number in range(6):
            await create(server, application, f"later {number}")
        for last in (live[0].id, str(1 << 40), "0"):
            async with opened_stream(server, application, resource="eventStream", last_id=last) as stream:
                (reset,) = await taken(stream, 1)
                assert reset.name == "reset"
                made = await create(server, application, "after")
                assert said(await taken(stream, 1)) == [("created", made)]


@pytest.mark.slow
async def test_changes_of_events_are_told_once_over_kills(tmp_path: Path) -> None:
    data, seen, ids = tmp_path / "data", list[Event](), list[str]()
    application, last_id = "", None
    for life in range(3):
        async with serving(data, "--limits", "off") as server:
            application = application or await server.application()
            if life:
                ids += [await create(server, application, f"away {life}.{number}") for number in range(3)]
            async with opened_stream(server, application, resource="eventStream", last_id=last_id) as stream:
                ids += [await create(server, application, f"live {life}.{number}") for number in range(3)]
                while len(seen) < len(ids):
                    seen += await taken(stream, 1)
                last_id = seen[-1].id
                await server.kill()
    assert said(seen) == [("created", id) for id in ids]
    done = await trunkline("check", "--data", str(data))
    assert done.returncode == 0, done.stdout


async def test_a_stream_tells_of_connections_and_disconnections(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    async with opened_stream(server, application, resource="connectionStream") as stream:
        await server.call(
            "POST", f"{device}/setConnectionStatus", {"status": "connected", "ipAddress": "192.0.2.1"}
        )
        gone = {"status": "disconnected", "disconnectReason": "tired", "messagesFromClient": 3}
        await server.call("POST", f"{device}/setConnectionStatus", gone)
        first, second = await taken(stream, 2)
    logged = await server.call("GET", f"{device}/logs", params={"limit": 10})
    whose = {"deviceId": device.rpartition("/")[2], "deviceName": "pump"}
    assert first.name == second.name == "deviceConnection"
    assert [second.data, first.data] == [{**whose, **each} for each in logged]


async def test_heads_and_tokens_of_devices_open_no_stream(server: Server) -> None:
    application = await server.application()
    token, _ = await server.device_token(await server.device(application))
    headers = {"Authorization": f"Bearer {server.token}"}
    for resource in ("eventStream", "connectionStream"):
        await server.call("GET", f"{application}/{resource}", token=token, status=403)
        async with httpx.AsyncClient(base_url=server.url, headers=headers, verify=False) as client:
            assert (await client.head(f"{application}/{resource}")).status_code == 200
    await until(lambda: len(server.system.streams) == 0)
