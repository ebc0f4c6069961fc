"""What clients see of a move: their streams, links and MQTT sessions, and what was there before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Server, running_server
from tests.e2e.link_house import BASE_MS
from tests.e2e.link_peer import linked
from tests.e2e.mqtt_house import LOOSE, House
from tests.e2e.sse_client import opened_stream, until
from tests.patience import PATIENCE_S
from trunkline.actors.core.records.places import Places
from trunkline.actors.maintenance.foreign import markers
from trunkline.actors.maintenance.moves import move
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.packets import Will
from trunkline.store import keys

EXPIRY = {"session_expiry_interval": 1000}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """An application in the second partition; clients connect to the root."""
    async with running_server(
        tmp_path / "data", partitions=2, mqtt_port=0, engine="fast", limits=LOOSE
    ) as server:
        application = await server.application()
        device = await server.device(application)
        made = await server.call("POST", f"{application}/keys", {})
        path = f"{application}/keys/{made['id']}"
        yield House(server, application, device, made["key"], made["secret"], path)


def place(house: House) -> int:
    """The partition of the application, on which all processes agree."""
    id = bytes.fromhex(house.application.rpartition("/")[2])
    (number,) = {system.component(Places).of_application(id) for system in house.server.systems}
    return number


async def moved(house: House, to: int) -> None:
    """Move the application, as soon as nothing of it is left there from before."""
    server, id = house.server, house.application.rpartition("/")[2]
    with trio.fail_after(PATIENCE_S):
        while bytes.fromhex(id) in left(server, to):
            await trio.lowlevel.checkpoint()
        await move(server.systems[0], id, str(to))
    assert place(house) == to


def left(server: Server, number: int) -> list[bytes]:
    with server.systems[number].store.snapshot(own=True) as snapshot:
        return list(markers(snapshot, keys.FOREIGN_PREFIX))


async def test_streams_end_and_resume_where_they_were(house: House) -> None:
    server, device = house.server, house.device
    for to in (0, 1):
        async with opened_stream(server, device) as commands:
            await server.call("POST", f"{device}/command", {"name": f"before {to}"})
            event = await commands.event()
            assert event is not None
            assert event.data["name"] == f"before {to}"
            await moved(house, to)
            assert await commands.event() is None, "the stream has ended"
        await server.call("POST", f"{device}/command", {"name": f"missed {to}"})
        async with opened_stream(server, device, last_id=event.id) as commands:
            assert await commands.names(1) == [f"missed {to}"]
            await server.call("POST", f"{device}/command", {"name": f"after {to}"})
            assert await commands.names(1) == [f"after {to}"]


async def test_a_state_stream_that_has_missed_something_is_told_so(house: House) -> None:
    server, device = house.server, house.device
    for to in (0, 1):
        async with opened_stream(server, device, resource="stateStream") as states:
            await server.call("POST", f"{device}/state", {"data": {"temp": to}})
            event = await states.event()
            assert event is not None
        await server.call("POST", f"{device}/state", {"data": {"temp": 50 + to}})
        await moved(house, to)
        async with opened_stream(server, device, resource="stateStream", last_id=event.id) as states:
            first = await states.event()
            assert first is not None
            assert first.name == "reset"
            await server.call("POST", f"{device}/state", {"data": {"temp": 70 + to}})
            following = await states.event()
            assert following is not None
            assert following.data["data"] == {"temp": 70 + to}


async def test_links_end_and_go_on_with_the_frames_that_were_stored(house: House) -> None:
    token, _ = await house.server.device_token(house.device)
    async with linked(house.server, house.device, token) as (peer, _):
        await peer.send(1, 1, BASE_MS, {"temp": 1})
        assert await peer.until_stored(1) == []
        await moved(house, 0)
        code, _ = await peer.close_code()
        assert code == 4503, "as a server that stops: connect again"
    async with linked(house.server, house.device, token) as (peer, facts):
        assert facts["n"] == 1
        await peer.send(1, 2, BASE_MS + 1, {"temp": 2})
        assert await peer.until_stored(2) == []
    assert [state["temp"] for state in await house.states()] == [1, 2]


async def test_mqtt_sessions_go_along_with_what_waits_in_them(house: House) -> None:
    sleeper: dict[str, Any] = {"clean_start": False, "properties": EXPIRY}
    async with house.client("sleeper", **sleeper) as client:
        await client.subscribe("news", qos=1)
        await client.goodbye()
    will = Will("news", b"gone", 1)
    async with house.client("reader", **sleeper) as reader, house.client("mortal", will=will) as mortal:
        await reader.subscribe("news", qos=1)
        await reader.publish("news", b"kept", 1, retain=True)
        assert (await reader.message()).payload == b"kept"
        await moved(house, 0)
        assert await reader.farewell() == packets.SERVER_SHUTTING_DOWN
        assert await mortal.farewell() == packets.SERVER_SHUTTING_DOWN
    async with house.client("reader", **sleeper) as reader:
        assert (await reader.message()).payload == b"gone", "as after a restart"
        await reader.publish("news", b"after", 1)
        assert (await reader.message()).payload == b"after"
    async with house.client("sleeper", **sleeper) as client:
        assert [(await client.message()).payload for _ in range(3)] == [b"kept", b"gone", b"after"]


async def test_what_an_application_has_is_there_after_a_move(house: House) -> None:
    server, application = house.server, house.application
    await server.call("POST", f"{house.device}/state", {"data": {"temp": 1}})
    table = await server.call("POST", f"{application}/data-tables", {"name": "t", "columns": []})
    rows = f"{application}/data-tables/{table['id']}/rows"
    await server.call("POST", rows, {})
    for to in (0, 1, 0):
        await moved(house, to)
        assert len(await house.states()) == 1
        assert (await server.call("GET", rows))["totalCount"] == 1
        assert (await server.call("GET", "/applications"))["totalCount"] == 1
        await server.call("PATCH", application, {"description": str(to)})
        assert (await server.call("GET", application))["description"] == str(to)
    await server.call("DELETE", application)
    assert (await server.call("GET", "/applications"))["totalCount"] == 0
    await until(lambda: not left(server, 1))
