"""Command and state streams on real sockets: who hears what, what a returning client gets, how streams end."""

from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.sse_client import opened_stream, until
from tests.patience import PATIENCE_S
from trunkline.actors.fleet.devices.actor.commands import COMMAND_TOPIC

LOOSE = {"send_state": "off", "send_command": "off"}


async def test_a_command_reaches_every_stream_of_its_device_and_no_other(server: Server) -> None:
    application = await server.application()
    device, other = await server.device(application), await server.device(application)
    token, _ = await server.device_token(device)
    async with (
        opened_stream(server, device, token=token) as one,
        opened_stream(server, device) as two,
        opened_stream(server, other) as elsewhere,
        opened_stream(server, device, resource="stateStream") as states,
    ):
        assert one.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert one.headers["cache-control"] == "no-store, no-transform"
        body = {"name": "switch", "payload": {"on": True}}
        await server.call("POST", f"{device}/command", body)
        await server.call("POST", f"{other}/command", {"name": "other"})
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}}, token=token)
        (logged,) = await server.call("GET", f"{device}/command")
        first, second = await one.event(), await two.event()
        assert first is not None
        assert first == second
        assert (first.name, first.data) == ("deviceCommand", logged)
        assert first.id.isdigit()
        assert await elsewhere.names(1) == ["other"]
        state = await states.event()
        assert state is not None
        assert (state.name, state.data["data"]) == ("deviceState", {"temp": 1})


async def test_an_open_stream_does_not_change_the_connection_status(server: Server) -> None:
    device = await server.device(await server.application())
    token, _ = await server.device_token(device)
    before = await server.call("GET", device)
    assert before["connectionInfo"] == {"connected": None}
    async with opened_stream(server, device, token=token) as stream:
        assert await stream.next() is not None
        assert await server.call("GET", device) == before
    await until(lambda: len(server.system.streams) == 0)
    assert await server.call("GET", device) == before
    assert await server.call("GET", f"{device}/logs") == []


@pytest.mark.slow
async def test_a_client_that_comes_back_misses_nothing_and_gets_nothing_twice(start_server: Any) -> None:
    """It leaves and returns with its last id, again and again, while commands keep flowing."""
    total = 400
    async with start_server(limits={**LOOSE, "stream_replay_max": 7}) as server:
        device = await server.device(await server.application())
        seen: list[str] = []
        last_id = "0"

        async def keep_sending() -> None:
            async with server.client() as client:
                for number in range(total):
                    sent = await client.post(f"{device}/command", json={"name": f"c{number}"})
                    assert sent.status_code == 200

        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep_sending)
            visit = 0
            while len(seen) < total:
                visit += 1
                async with opened_stream(server, device, last_id=last_id) as stream:
                    for _ in range(min(1 + visit * 5 % 37, total - len(seen))):
                        event = await stream.event()
                        if event is None:
                            break
                        seen.append(event.data["name"])
                        last_id = event.id
        assert visit > 5
        assert seen == [f"c{number}" for number in range(total)]
        assert await server.call("GET", f"{device}/command") == [
            {"name": "c399", "time": (await server.call("GET", f"{device}/command"))[0]["time"]}
        ]


async def test_head_has_the_head_of_a_stream_and_no_length(server: Server) -> None:
    device = await server.device(await server.application())
    async with server.client() as client:
        for _ in range(2):  # on one connection
            head = await client.head(f"{device}/stateStream")
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert "content-length" not in head.headers
    await until(lambda: len(server.system.streams) == 0)


async def test_a_client_that_leaves_is_forgotten(server: Server) -> None:
    device = await server.device(await server.application())
    async with opened_stream(server, device), opened_stream(server, device, resource="stateStream"):
        assert len(server.system.streams) == 2
    await until(lambda: len(server.system.streams) == 0)
    await server.call("POST", f"{device}/command", {"name": "to nobody"})


async def test_a_head_request_opens_no_stream(server: Server) -> None:
    device = await server.device(await server.application())
    headers = {"Authorization": f"Bearer {server.token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, verify=False) as client:
        for name in ("commandStream", "stateStream"):
            with trio.fail_after(PATIENCE_S):
                answer = await client.head(f"{device}/{name}")
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert answer.content == b""
    await until(lambda: len(server.system.streams) == 0)


async def test_streams_end_with_what_they_stand_on(server: Server) -> None:
    """Its device, its application, its key; other streams go on."""
    application, other = await server.application(), await server.application("shed")
    survivor, gone, keyed = [await server.device(application) for _ in range(3)]
    stranger = await server.device(other)
    token, key = await server.device_token(keyed)
    async with (
        opened_stream(server, survivor) as stays,
        opened_stream(server, gone) as with_device,
        opened_stream(server, gone, resource="stateStream") as states_with_device,
        opened_stream(server, keyed, token=token) as with_key,
        opened_stream(server, stranger) as with_application,
    ):
        await server.call("DELETE", gone)
        assert await with_device.event() is None
        assert await states_with_device.event() is None
        await server.call("PATCH", key, {"status": "inactive"})
        assert await with_key.event() is None
        await server.call("DELETE", other)
        assert await with_application.event() is None
        await server.call("POST", f"{survivor}/command", {"name": "still here"})
        assert await stays.names(1) == ["still here"]
        assert len(server.system.streams) == 1
    for device in (gone, stranger):
        await server.call("GET", f"{device}/commandStream", status=404)
    await server.call("GET", f"{keyed}/commandStream", token=token, status=401)


async def test_a_drain_ends_the_streams_with_what_was_sent(start_server: Any) -> None:
    async with start_server() as server:
        device = await server.device(await server.application())
        async with opened_stream(server, device) as stream, trio.open_nursery() as nursery:
            await server.call("POST", f"{device}/command", {"name": "last"})
            nursery.start_soon(server.stop)
            assert await stream.names(1) == ["last"]
            assert await stream.event() is None


async def raw_stream(server: Server, device: str) -> trio.SocketStream:
    """A stream on a bare socket that can take only little, with its answer's head read."""
    host, port = server.url.removeprefix("http://").split(":")
    connection = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await connection.connect((host, int(port)))
    stream = trio.SocketStream(connection)
    await stream.send_all(
        f"GET {device}/commandStream?keepAliveInterval=1 HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n".encode()
    )
    head = b""
    with trio.fail_after(PATIENCE_S):
        while b":\n\n" not in head:
            head += await stream.receive_some(4096)
    assert head.startswith(b"HTTP/1.1 200 ")
    return stream


@pytest.mark.slow
async def test_a_reader_that_stops_reading_costs_bounded_memory_and_slows_nobody(start_server: Any) -> None:
    """It is let go and counted; what it did not take is bounded by the socket's buffers and its own."""
    limits = {
        **LOOSE,
        "write_timeout_s": 1.0,
        "stream_buffer_length_max": 20,
        "stream_buffer_bytes_max": 200_000,
    }
    async with start_server(limits=limits) as server:
        device = await server.device(await server.application())
        streams = server.system.streams
        slow = await raw_stream(server, device)
        async with slow, opened_stream(server, device) as fast, server.client() as client:
            device_id = device.rpartition("/")[2]
            (mailbox,) = [each for each in server.system.mailboxes() if each.ref.id.hex() == device_id]
            assert mailbox.subscribers is not None
            subscription = next(iter(mailbox.subscribers[COMMAND_TOPIC]))
            held = 0
            payload = "x" * 50_000
            sent = 0
            with trio.fail_after(PATIENCE_S):
                while streams.slow_consumers == 0:
                    answer = await client.post(
                        f"{device}/command", json={"name": f"c{sent}", "payload": payload}
                    )
                    assert answer.status_code == 200
                    assert await fast.names(1) == [f"c{sent}"], "the other reader has it at once"
                    held = max(held, *(each._bytes for each in streams._open))
                    sent += 1
                    assert sent < 1000, "the kernel's buffers are not as large as that"
            assert held <= 200_000
            assert streams.slow_consumers == 1
            await until(lambda: len(streams) == 1)
            await client.post(f"{device}/command", json={"name": "after"})
            assert await fast.names(1) == ["after"]
            assert subscription.ending is None or subscription._bytes == 0


@pytest.mark.slow
async def test_many_streams_are_kept_alive(start_server: Any) -> None:
    """Each gets its comments, and one command reaches all of them. A thousand are in `test_many_streams.py`."""
    count = 200
    async with start_server() as server:
        device = await server.device(await server.application())
        comments = [0] * count
        heard = [0] * count
        everybody = trio.Event()

        async def read(number: int, stream: trio.SocketStream) -> None:
            async with stream:
                while not heard[number]:
                    piece = await stream.receive_some(4096)
                    assert piece, "the server ended the stream"
                    comments[number] += piece.count(b":\n\n")
                    heard[number] += piece.count(b"event: deviceCommand\n")
            if all(heard):
                everybody.set()

        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for number in range(count):
                    nursery.start_soon(read, number, await raw_stream(server, device))
                assert len(server.system.streams) == count
                await until(lambda: min(comments) >= 2)
                assert sum(heard) == 0
                await server.call("POST", f"{device}/command", {"name": "all"})
                await everybody.wait()
        assert heard == [1] * count
        assert server.system.streams.slow_consumers == 0
        await until(lambda: len(server.system.streams) == 0)
