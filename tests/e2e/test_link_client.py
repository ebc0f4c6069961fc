"""The link's client against real servers: crashes of either end, refusals, and what ends it for good."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from tests.e2e.link_house import BASE_MS, House, house_in
from tests.e2e.link_peer import connected
from tests.e2e.server_process import serving
from tests.patience import PATIENCE_S
from tests.ports import reserved_port
from trunkline.bench.errors import ApiError, BenchError
from trunkline.bench.link_client import LinkClient, LinkEnded, running
from trunkline.bench.link_frames import Command, Refusal, typed
from trunkline.bench.link_queue import FrameQueue


def client_of(house: House, **options: Any) -> LinkClient:
    return LinkClient(house.server.url, house.device, house.token, pause_min_s=0.01, **options)


async def test_states_of_every_form(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house, running(client_of(house)) as client:
        await client.send_state({"temp": 1, "label": "a"}, BASE_MS)
        await client.send_rows(["temp"], [[BASE_MS + 1, 2], [BASE_MS + 2, 3]])
        await client.send_columns(BASE_MS, [3, 4], {"temp": typed(86, struct.pack("<2d", 4, 5))})
        with trio.fail_after(PATIENCE_S):
            await client.settled()
        assert await house.values() == [1, 2, 3, 4, 5]


async def test_the_form_in_json(tmp_path: Path) -> None:
    async with (
        house_in(tmp_path / "data") as house,
        running(client_of(house, queue=FrameQueue(text=True))) as client,
    ):
        await client.send_state({"temp": 1}, BASE_MS)
        with trio.fail_after(PATIENCE_S):
            await client.settled()
        assert await house.values() == [1]


async def test_more_frames_than_the_window_wait(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data", link_unacked_frames_max=2) as house:
        client = client_of(house)
        for n in range(20):
            await client.send_state({"temp": n}, BASE_MS + n)
        async with running(client):
            with trio.fail_after(PATIENCE_S):
                await client.settled()
        assert await house.values() == list(range(20))


async def test_a_throttled_frame_is_sent_again_and_another_refusal_is_told(tmp_path: Path) -> None:
    refusals: list[Refusal] = []
    throttle = {"calls": 4, "window_s": 1}
    async with (
        house_in(tmp_path / "data", send_state=throttle) as house,
        running(client_of(house, on_refusal=refusals.append)) as client,
    ):
        await client.send_state({"none": 0}, BASE_MS)
        for n in range(1, 8):
            await client.send_state({"temp": n}, BASE_MS + n)
        with trio.fail_after(PATIENCE_S):
            await client.settled()
        assert await house.values() == list(range(1, 8))
    assert [(one.n, one.type) for one in refusals] == [(1, "Validation")]


async def test_commands_are_handled_once_and_acknowledged(tmp_path: Path) -> None:
    commands: list[Command] = []
    arrived = trio.Event()

    def take(command: Command) -> None:
        commands.append(command)
        if command.name == "last":
            arrived.set()

    async with house_in(tmp_path / "data") as house:
        server = house.server

        async def statuses() -> list[str]:
            log = await server.call("GET", f"{house.device}/command", params={"limit": 10, "start": 1})
            return [command["status"] for command in log]

        async with running(client_of(house)) as client:
            await client.send_state({"temp": 1})
            await client.settled()
        for value in (1, 2):
            await server.call(
                "POST", f"{house.device}/command", {"name": "setTarget", "payload": {"value": value}}
            )
        async with running(client_of(house, on_command=take)):
            await server.call("POST", f"{house.device}/command", {"name": "last"})
            with trio.fail_after(PATIENCE_S):
                await arrived.wait()
                while await statuses() != ["acknowledged"] * 3:
                    await trio.lowlevel.checkpoint()
        async with running(client_of(house, on_command=take)) as client:
            await client.send_state({"temp": 2})
            await client.settled()
    assert [(one.name, one.payload) for one in commands[:2]] == [
        ("setTarget", {"value": 1}),
        ("setTarget", {"value": 2}),
    ]
    assert len(commands) == 3


@pytest.mark.slow
async def test_everything_is_stored_once_and_in_order_while_server_and_client_are_killed(
    tmp_path: Path,
) -> None:
    """The server is killed while frames are under way, and the client forgets all but its file."""
    with reserved_port() as port:
        await kill_both(tmp_path, port)


async def kill_both(tmp_path: Path, port: int) -> None:
    data, file = tmp_path / "data", tmp_path / "queue"
    arguments = ("--port", str(port), "--limits", "off")
    path = token = ""
    sent = 0
    for _ in range(3):
        async with serving(data, *arguments) as server:
            if not path:
                path = await server.device(await server.application())
                token, _ = await server.device_token(path)
            queue = FrameQueue(file)
            client = LinkClient(server.url, path, token, queue=queue, pause_min_s=0.01)
            async with running(client):
                for _ in range(100):
                    await client.send_rows(["temp"], [[BASE_MS + sent + at, sent + at] for at in range(3)])
                    sent += 3
                with trio.fail_after(PATIENCE_S):
                    while len(queue) > 60:
                        await trio.lowlevel.checkpoint()
                await server.kill()
            queue.close()
    interruptions: list[Exception] = []
    queue = FrameQueue(file)
    last = LinkClient(
        f"http://127.0.0.1:{port}",
        path,
        token,
        queue=queue,
        on_interrupted=interruptions.append,
        pause_min_s=0.01,
        random=Random(3),
    )
    async with running(last):
        with trio.fail_after(PATIENCE_S):
            while not interruptions:
                await trio.lowlevel.checkpoint()
        async with serving(data, *arguments) as server:
            with trio.fail_after(PATIENCE_S):
                await last.settled()
            query = {"limit": 1000, "sortDirection": "asc", "start": 1}
            found = await server.call("GET", f"{path}/state", params=query)
            assert [state["data"]["temp"] for state in found] == list(range(sent))
    queue.close()


async def test_what_has_no_prospect_ends_the_client(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:

        async def ends(client: LinkClient) -> BaseException:
            with trio.fail_after(PATIENCE_S), pytest.raises(BenchError) as caught:
                await client.run()
            return caught.value

        refused = await ends(LinkClient(house.server.url, house.device, "x"))
        assert isinstance(refused, ApiError)
        assert refused.status == 401
        other = await house.server.device(house.application)
        refused = await ends(LinkClient(house.server.url, other, house.token))
        assert isinstance(refused, ApiError)
        assert refused.status == 403

        client = client_of(house)
        await client.send_state({"temp": 1}, BASE_MS)
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def _() -> None:
                await client.settled()
                async with connected(house.server, house.device, house.token) as newer:
                    await newer.send(0, {"session": 1})
                    await newer.next()

            ended = await ends(client)
        assert isinstance(ended, LinkEnded)
        assert ended.code == 4410
