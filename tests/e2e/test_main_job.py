"""The main job: a device sends its state, a command reaches it at once, and both are there afterwards."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import trio

from tests.e2e.conftest import Server
from tests.patience import PATIENCE_S


async def sse_events(response: httpx.Response) -> AsyncIterator[dict[str, str]]:
    """The events of a stream, comments as {"comment": ...}."""
    event: dict[str, str] = {}
    async for line in response.aiter_lines():
        if not line:
            if event:
                yield event
            event = {}
        elif line.startswith(":"):
            yield {"comment": line[1:]}
        else:
            name, _, value = line.partition(": ")
            event[name] = value


async def test_a_device_sends_state_and_obeys_a_command(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    token, _ = await server.device_token(device)
    async with server.client(token) as client, client.stream("GET", f"{device}/commandStream") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        events = sse_events(stream)
        with trio.fail_after(PATIENCE_S):
            assert await anext(events) == {"comment": ""}
            await server.call("POST", f"{device}/state", {"data": {"temp": 21.5}}, token=token)
            await server.call("POST", f"{device}/command", {"name": "switch", "payload": {"on": True}})
            event = await anext(event async for event in events if "event" in event)
    assert event["event"] == "deviceCommand"
    command = json.loads(event["data"])
    assert (command["name"], command["payload"]) == ("switch", {"on": True})
    assert event["id"].isdigit()
    assert await server.call("GET", f"{device}/command") == [command]
    (state,) = await server.call("GET", f"{device}/state", token=token)
    assert state["data"] == {"temp": 21.5}


async def test_it_is_still_there_after_a_restart(start_server) -> None:  # type: ignore[no-untyped-def]
    async with start_server() as first:
        application = await first.application()
        device = await first.device(application)
        await first.call(
            "POST", f"{device}/state", [{"data": {"temp": n}, "time": 1000 + n} for n in range(100)]
        )
    async with start_server() as second:
        states = await second.call("GET", f"{device}/state?limit=1000&sortDirection=asc")
        assert [state["data"]["temp"] for state in states] == list(range(100))
        assert (await second.call("GET", device))["name"] == "pump"
