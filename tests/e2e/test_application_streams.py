"""Streams of the states of an application: who is in them, and what a client finds that comes back."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.sse_client import Event, EventReader, opened_stream, until
from tests.patience import PATIENCE_S
from trunkline.actors import boot

LOOSE = {"send_state": "off"}
FLOOR = [{"key": "floor", "value": "2"}]


def states(server: Server, application: str, last_id: str | None = None, **query: Any) -> Any:
    """Open a stream of states."""
    given = {name: each if isinstance(each, (str, int)) else json.dumps(each) for name, each in query.items()}
    return opened_stream(
        server, application, resource="stateStream", query=str(httpx.QueryParams(given)), last_id=last_id
    )


async def report(server: Server, device: str, temp: float, **data: Any) -> None:
    """Send a state."""
    await server.call("POST", f"{device}/state", {"data": {"temp": temp, **data}})


async def taken(stream: EventReader, count: int) -> list[Event]:
    """The next events, without comments."""
    found = [await stream.event() for _ in range(count)]
    return [each for each in found if each is not None]


def said(events: Sequence[Event]) -> list[tuple[str, float]]:
    """Device and temperature of each."""
    assert {each.name for each in events} <= {"deviceState"}
    return [(each.data["deviceId"], each.data["data"]["temp"]) for each in events]


def id_of(device: str) -> str:
    """The id in the path of a device."""
    return device.rpartition("/")[2]


async def test_a_stream_has_the_states_of_the_devices_that_it_selects(server: Server) -> None:
    application, other = await server.application(), await server.application("shed")
    one, two = await server.device(application), await server.device(application, "fan", tags=FLOOR)
    stranger = await server.device(other)
    first, second = id_of(one), id_of(two)
    async with (
        states(server, application) as every,
        states(server, application, deviceIds=first) as by_id,
        states(server, application, deviceTags=FLOOR) as by_tag,
        states(server, application, deviceQuery={"name": {"$startsWith": "f"}}) as by_query,
        states(server, application, deviceIds=first, deviceQuery={"name": "fan"}) as by_either,
        states(server, application, attributes="label,on") as labelled,
        states(server, other) as elsewhere,
    ):
        await report(server, stranger, 0)
        await report(server, one, 1, label="a")
        await server.call(
            "POST", f"{two}/state", [{"data": {"temp": 2}, "time": 1000}, {"data": {"temp": 3}}]
        )
        await report(server, one, 4)
        assert said(await taken(every, 4)) == [(first, 1), (second, 2), (second, 3), (first, 4)]
        assert said(await taken(by_id, 2)) == [(first, 1), (first, 4)]
        assert said(await taken(by_tag, 2)) == [(second, 2), (second, 3)]
        assert said(await taken(by_query, 2)) == [(second, 2), (second, 3)]
        assert said(await taken(by_either, 4)) == [(first, 1), (second, 2), (second, 3), (first, 4)]
        (event,) = await taken(labelled, 1)
        assert event.data == {"deviceId": first, "time": event.data["time"], "data": {"label": "a"}}
        assert said(await taken(elsewhere, 1)) == [(id_of(stranger), 0)]


async def test_a_device_is_in_a_stream_while_it_matches(server: Server) -> None:
    """It is asked anew for each state, live and where a client comes back."""
    application = await server.application()
    moved = await server.device(application)
    async with states(server, application, deviceTags=FLOOR) as stream:
        opened = (await stream.next(),) and stream
        await report(server, moved, 1)
        await server.call("PATCH", moved, {"tags": FLOOR})
        await report(server, moved, 2)
        created = await server.device(application, "new", tags=FLOOR)
        await report(server, created, 3)
        await server.call("PATCH", moved, {"tags": []})
        await report(server, moved, 4)
        await report(server, created, 5)
        await server.call("DELETE", created)
        last = await server.device(application, "last", tags=FLOOR)
        await report(server, last, 6)
        live = await taken(opened, 4)
        assert said(live) == [(id_of(moved), 2), (id_of(created), 3), (id_of(created), 5), (id_of(last), 6)]
    async with states(server, application, last_id=live[0].id, deviceTags=FLOOR) as stream:
        back = await taken(stream, 1)
        assert back == live[3:], "those of the devices that match now"


async def test_backlogs_are_in_no_stream_also_where_a_client_comes_back(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    past = [{"data": {"temp": 0}, "time": 1000 + number} for number in range(40)]
    async with states(server, application) as stream:
        await report(server, device, 1)
        await server.call("POST", f"{device}/state?backlog=true", past)
        await report(server, device, 2)
        live = await taken(stream, 2)
    assert said(live) == [(id_of(device), 1), (id_of(device), 2)]
    async with (
        states(server, application, last_id=live[0].id) as stream,
        opened_stream(server, device, resource="stateStream", last_id=live[0].id) as own,
    ):
        await report(server, device, 3)
        assert said(await taken(stream, 2)) == [(id_of(device), 2), (id_of(device), 3)]
        assert [each.data["data"] for each in await taken(own, 2)] == [{"temp": 2}, {"temp": 3}]


async def test_states_of_removed_attributes_alone_are_not_sent_again(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    async with states(server, application) as stream:
        await report(server, device, 1)
        (seen,) = await taken(stream, 1)
    await report(server, device, 2)
    await report(server, device, 3, label="kept")
    await server.call("DELETE", f"{device}/attributes/temp")
    await server.call("POST", f"{device}/state", {"data": {"label": "new"}})
    async with (
        states(server, application, last_id=seen.id) as every,
        opened_stream(server, device, resource="stateStream", last_id=seen.id) as own,
    ):
        for again in (every, own):
            missed = await taken(again, 2)
            assert [each.data["data"] for each in missed] == [{"label": "kept"}, {"label": "new"}]


async def test_the_state_of_a_connection_selects_as_well(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    async with states(server, application, deviceQuery={"connectionStatus": "connected"}) as stream:
        await report(server, device, 1)
        await server.call("POST", f"{device}/setConnectionStatus", {"status": "connected"})
        await report(server, device, 2)
        assert said(await taken(stream, 1)) == [(id_of(device), 2)]


async def test_what_a_stream_cannot_follow_is_refused(server: Server) -> None:
    application = await server.application()
    device = id_of(await server.device(application))
    for query, word in (
        ({"deviceQuery": json.dumps({"ancestorId": device})}, "deviceQuery: ancestorId"),
        ({"deviceQuery": json.dumps({"experienceGroupId": device})}, "deviceQuery: experienceGroupId"),
        ({"deviceQuery": json.dumps({"nmae": "x"})}, "deviceQuery.nmae"),
        ({"deviceIds": "0" * 24}, "deviceIds: there is no device"),
        ({"deviceIds": "x"}, "deviceIds[0]"),
        ({"keepAliveInterval": "61"}, "keepAliveInterval"),
        ({"tags": "x"}, "tags"),
    ):
        async with server.client() as client:
            answer = await client.get(f"{application}/stateStream", params=query)
        assert answer.status_code == 400, query
        assert answer.json()["message"].startswith(word), answer.text
    async with server.client() as client:
        answer = await client.get(f"{application}/stateStream", headers={"Last-Event-ID": "x"})
        assert answer.status_code == 400
    headers = {"Authorization": f"Bearer {server.token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, verify=False) as client:
        with trio.fail_after(PATIENCE_S):
            answer = await client.head(f"{application}/stateStream")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    await until(lambda: len(server.system.streams) == 0)
    token, _ = await server.device_token(f"{application}/devices/{device}")
    await server.call("GET", f"{application}/stateStream", token=token, status=403)


async def test_a_stream_ends_with_its_application(server: Server) -> None:
    application = await server.application()
    async with states(server, application) as stream:
        await server.call("DELETE", application)
        assert await stream.event() is None


@pytest.mark.slow
async def test_events_are_the_same_live_and_when_they_are_sent_again(start_server: Any) -> None:
    """Also where devices share commits, and wherever the log keeps them; from each of the ids."""
    async with start_server(limits={**LOOSE, "stream_replay_max": 5}) as server:
        application = await server.application()
        devices = [await server.device(application, f"d{number}") for number in range(6)]
        async with states(server, application) as stream:

            async def send(device: str) -> None:
                async with server.client() as client:
                    for number in range(20):
                        body: Any = {"data": {"temp": number}}
                        if number % 7 == 3:
                            body = [{"data": {"temp": number}, "time": 1000 + part} for part in range(3)]
                        assert (await client.post(f"{device}/state", json=body)).status_code == 200

            async with trio.open_nursery() as nursery:
                for device in devices:
                    nursery.start_soon(send, device)
            live = await taken(stream, 6 * 26)
        ids = [int(each.id) for each in live]
        assert ids == sorted(set(ids))

        async def again(at: int) -> None:
            async with states(server, application, last_id=live[at].id, keepAliveInterval=1) as stream:
                assert await taken(stream, len(live) - at - 1) == live[at + 1 :]
                assert await stream.next() == Event("", "", None)

        for flushes in range(2):
            async with trio.open_nursery() as nursery:
                for at in (0, 1, 77, 154):
                    nursery.start_soon(again, at)
            if not flushes:
                await boot.flush_reports(server.system)
        (one,) = {device for device in devices if id_of(device) == live[3].data["deviceId"]}
        async with opened_stream(server, one, resource="stateStream", last_id=live[3].id) as own:
            later = [each for each in live[4:] if each.data["deviceId"] == id_of(one)]
            found = await taken(own, len(later))
        assert [(each.id, each.data["data"]) for each in found] == [
            (each.id, each.data["data"]) for each in later
        ]


async def test_a_client_is_told_when_what_it_missed_is_not_kept(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    async with states(server, application) as stream:
        await report(server, device, 1)
        (seen,) = await taken(stream, 1)
    for temp in (2, 3):
        await report(server, device, temp)
        await boot.flush_reports(server.system)
    async with states(server, application, last_id=seen.id) as stream:
        (reset,) = await taken(stream, 1)
        assert reset.name == "reset"
        assert reset.data["message"].startswith("Not everything since your last id is kept.")
        await report(server, device, 4)
        assert said(await taken(stream, 1)) == [(id_of(device), 4)]
    async with states(server, application, last_id=reset.id) as stream:
        assert said(await taken(stream, 1)) == [(id_of(device), 4)]


async def test_a_client_that_gets_no_events_comes_back_with_an_id_that_is_kept(server: Server) -> None:
    """Its comments carry the position, so what others report does not make its id too old."""
    application = await server.application()
    quiet, busy = await server.device(application), await server.device(application)
    query = f"deviceIds={id_of(quiet)}&keepAliveInterval=1"
    async with (
        server.client() as client,
        client.stream("GET", f"{application}/stateStream", params=query) as response,
    ):
        lines = response.aiter_lines()

        async def next_id() -> str:
            with trio.fail_after(PATIENCE_S):
                async for line in lines:
                    if line.startswith("id: "):
                        return line.removeprefix("id: ")
            raise AssertionError("the stream has ended")

        first = await next_id()
        for _ in range(2):
            await report(server, busy, 1)
            await boot.flush_reports(server.system)
        while (last := await next_id()) == first:
            pass
    async with states(server, application, last_id=last, deviceIds=id_of(quiet)) as stream:
        await report(server, quiet, 2)
        assert said(await taken(stream, 1)) == [(id_of(quiet), 2)]
    async with states(server, application, last_id=first, deviceIds=id_of(quiet)) as stream:
        assert [each.name for each in await taken(stream, 1)] == ["reset"]


@pytest.mark.slow
async def test_a_reader_that_stops_reading_is_closed_and_counted(start_server: Any) -> None:
    limits = {**LOOSE, "write_timeout_s": 1.0, "application_stream_buffer_bytes_max": 200_000}
    async with start_server(limits=limits) as server:
        application = await server.application()
        device = await server.device(application)
        host, port = server.url.removeprefix("http://").split(":")
        connection = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await connection.connect((host, int(port)))
        async with trio.SocketStream(connection) as slow, states(server, application) as fast:
            await slow.send_all(
                f"GET {application}/stateStream HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: Bearer {server.token}\r\n\r\n".encode()
            )
            streams = server.system.streams
            await until(lambda: len(streams) == 2)
            sent, label = 0, "x" * 30_000
            while not streams.slow_consumers:
                await report(server, device, sent, label=label)
                assert said(await taken(fast, 1)) == [(id_of(device), sent)]
                assert max(each._bytes for each in streams._open) <= 200_000
                sent += 1
                assert sent < 1000, "the kernel's buffers are not as large as that"
            await until(lambda: len(streams) == 1)
            metrics = (await server.client("").get("/metrics")).text
            assert "slow_consumers_closed_total 1.0" in metrics


async def test_an_application_has_a_bound_of_streams_of_its_own(start_server: Any) -> None:
    async with start_server(limits={"application_streams_max": 3}) as server:
        application, other = await server.application(), await server.application("shed")
        device = await server.device(application)
        async with (
            states(server, application) as one,
            states(server, application) as two,
            states(server, application, attributes="temp") as three,
            states(server, other),
            opened_stream(server, device, resource="stateStream"),
        ):
            async with server.client() as client:
                refused = await client.get(f"{application}/stateStream")
            assert refused.status_code == 503
            assert refused.json()["message"].startswith("3 streams of this application are open")
            await report(server, device, 1)
            for stream in (one, two, three):
                assert said(await taken(stream, 1)) == [(id_of(device), 1)]
        await until(lambda: len(server.system.streams) == 0)
        async with states(server, application):
            assert len(server.system.streams) == 1


@pytest.mark.slow
async def test_a_hundred_streams_of_different_selections_get_what_is_theirs(start_server: Any) -> None:
    async with start_server(limits=LOOSE) as server:
        application = await server.application()
        devices = [await server.device(application, f"d{number}") for number in range(20)]
        heard: list[list[tuple[str, float]]] = [[] for _ in range(100)]
        ready = 0

        async def read(number: int) -> None:
            nonlocal ready
            query = {"name": f"d{number % 20}"} if number < 60 else {}
            expected = 5 if number < 60 else 100
            async with states(server, application, deviceQuery=query) as stream:
                ready += 1
                heard[number] = said(await taken(stream, expected))

        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(read, number)
            await until(lambda: ready == 100)
            for temp in range(5):
                for device in devices:
                    await report(server, device, temp)
        for number, found in enumerate(heard):
            chosen = [devices[number % 20]] if number < 60 else devices
            assert found == [(id_of(device), temp) for temp in range(5) for device in chosen]
