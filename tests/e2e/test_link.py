"""The device link on real sockets: states, acknowledgements, refusals, windows, tokens, and how links end."""

from __future__ import annotations

import errno
import struct
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import cbor2
import pytest
import trio
from cbor2 import CBORTag
from trio_websocket import ConnectionRejected

from tests.e2e.link_house import BASE_MS, House, house, house_in
from tests.e2e.link_peer import JSON, connected, linked
from tests.e2e.sse_client import until
from tests.http.websocket_peer import masked
from tests.patience import PATIENCE_S
from trunkline.actors.fleet.devices.commands.links import Links
from trunkline.http.wire.websocket_frames import BINARY

__all__ = ["house"]


def doubles(*values: float) -> CBORTag:
    return CBORTag(86, struct.pack(f"<{len(values)}d", *values))


# States.


async def test_states_of_every_form_are_stored_before_they_are_acknowledged(house: House) -> None:
    async with linked(house.server, house.device, house.token) as (peer, facts):
        assert (facts["n"], facts["backlogN"]) == (0, 0)
        await peer.send(1, 1, BASE_MS, {"temp": 1, "label": "a"})
        await peer.send(2, 2, ["temp", "on"], [[BASE_MS + 1, 2, True], [BASE_MS + 2, None, False]])
        await peer.send(3, 5, BASE_MS + 3, CBORTag(70, struct.pack("<2I", 0, 1)), {"temp": doubles(3.5, 4.5)})
        assert await peer.until_stored(5) == []
        assert [state["data"] for state in await house.states()] == [
            {"temp": 1, "label": "a"},
            {"temp": 2, "on": True},
            {"on": False},
            {"temp": 3.5},
            {"temp": 4.5},
        ]


async def test_the_form_in_json(house: House) -> None:
    async with linked(house.server, house.device, house.token, protocol=JSON) as (peer, _):
        await peer.send(1, 1, BASE_MS, {"temp": 1})
        await peer.send(2, 2, ["temp"], [[BASE_MS + 1, 2], [BASE_MS + 2, 3]])
        await peer.send(3, 3, BASE_MS, [3, 4], {"temp": [4, 5]})
        assert await peer.until_stored(3) == []
    assert await house.values() == [1, 2, 3, 4, 5]


async def test_a_refused_frame_stores_nothing_and_the_others_go_on(house: House) -> None:
    async with linked(house.server, house.device, house.token) as (peer, _):
        await peer.send(1, 1, BASE_MS, {"temp": 1})
        await peer.send(2, 2, ["temp", "wrong"], [[BASE_MS + 1, 2, 2]])
        await peer.send(2, 3, ["temp"], [[BASE_MS + 2, 3], [BASE_MS + 3, "much"]])
        await peer.send(1, 4, BASE_MS + 4, {"temp": 4})
        refusals = await peer.until_stored(4)
        assert [refusal[:3] for refusal in refusals] == [[2, 2, "Validation"], [2, 3, "Validation"]]
        assert "wrong" in refusals[0][3]
        assert "temp" in refusals[1][3]
    assert await house.values() == [1, 4]


async def test_a_throttled_frame_names_the_bucket_and_the_time(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data", send_state={"calls": 2, "window_s": 15}) as house:
        async with linked(house.server, house.device, house.token) as (peer, _):
            for n in (1, 2, 3):
                await peer.send(1, n, BASE_MS + n, {"temp": n})
            refusal = await peer.next()
            while refusal[0] == 1:
                refusal = await peer.next()
            assert refusal[:3] == [2, 3, "TooManyRequests"]
            assert refusal[4]["bucket"] == "send_state"
            assert 0 < refusal[4]["retryMs"] <= 15_000
        assert await house.values() == [1, 2]


async def test_many_frames_in_one_segment_are_acknowledged_together(house: House) -> None:
    async with (
        linked(house.server, house.device, house.token) as (peer, facts),
        trio.open_nursery() as nursery,
    ):
        for n in range(1, facts["window"] + 1):
            nursery.start_soon(peer.send, 1, n, BASE_MS + n, {"temp": n})
            await trio.lowlevel.checkpoint()
        await peer.until_stored(facts["window"])
    assert await house.values() == list(range(1, facts["window"] + 1))


async def test_a_gateway_sends_for_its_peripherals_only(house: House) -> None:
    server = house.server
    gateway = await server.device(house.application, "gateway", deviceClass="gateway")
    id = gateway.rpartition("/")[2]
    own = await server.device(house.application, "own", deviceClass="peripheral", gatewayId=id)
    stranger = await server.device(house.application, "stranger", deviceClass="gateway")
    of_stranger = {"deviceClass": "peripheral", "gatewayId": stranger.rpartition("/")[2]}
    other = await server.device(house.application, "other", **of_stranger)
    token, _ = await server.device_token(gateway)
    async with linked(server, gateway, token) as (peer, _):
        for n, device in enumerate((own, other, gateway, house.device), 1):
            await peer.send(1, n, BASE_MS, {"temp": n}, {"device": device.rpartition("/")[2]})
        await peer.send(1, 5, BASE_MS, {"temp": 5}, {"device": "f" * 24})
        await peer.send(1, 6, BASE_MS + 1, {"temp": 6})
        refusals = await peer.until_stored(6)
        assert [refusal[1:3] for refusal in refusals] == [[2, "Forbidden"], [4, "Forbidden"], [5, "NotFound"]]
    assert await house.values(device=own) == [1]
    assert await house.values(device=gateway) == [3, 6]
    assert await house.values(device=other) == []
    async with linked(server, gateway, token) as (peer, _):
        await peer.send(1, 1, BASE_MS, {"temp": 9}, {"device": own.rpartition("/")[2]})
        await peer.until_stored(1)
    assert await house.values(device=own) == [1]


async def test_a_backlog_is_counted_apart(house: House) -> None:
    async with linked(house.server, house.device, house.token) as (peer, _):
        await peer.send(2, 1, ["temp"], [[BASE_MS, 1], [BASE_MS + 1, 2]], {"backlog": True})
        await peer.send(1, 2, BASE_MS + 5, {"temp": 3})
        await peer.send(1, 3, BASE_MS + 2, {"temp": 4}, {"backlog": True})
        stored = [await peer.next() for _ in range(3)]
        assert sorted(stored) == [[1, 1, True], [1, 2], [1, 3, True]]
    assert await house.values() == [1, 2, 4, 3]
    async with linked(house.server, house.device, house.token) as (peer, facts):
        assert (facts["n"], facts["backlogN"]) == (2, 3)
        await peer.send(1, 3, BASE_MS + 2, {"temp": 9}, {"backlog": True})
        assert await peer.next() == [1, 3, True]
    assert await house.values() == [1, 2, 4, 3]


# What closes a link.


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        ([[1, 1, None, {"temp": 1}]], "hello"),
        ([[0, {"session": 1}], [0, {"session": 1}]], "twice"),
        ([[0, {"session": 1}], [1, 5, None, {"temp": 1}], [1, 5, None, {"temp": 1}]], "rise"),
        ([[0, {"session": -1}]], "session"),
        ([[9]], "kind"),
    ],
)
async def test_a_malformed_frame_closes_with_a_sentence(house: House, frames: list[Any], said: str) -> None:
    async with connected(house.server, house.device, house.token) as peer:
        for frame in frames:
            await peer.send(*frame, checked=False)
        code, reason = await peer.close_code()
        assert code == 4400
        assert said in reason


async def test_the_form_must_be_that_of_the_protocol(house: House) -> None:
    async with connected(house.server, house.device, house.token) as peer:
        await peer.send_raw("[0,{}]")
        assert (await peer.close_code())[0] == 4400
    async with connected(house.server, house.device, house.token, protocol=JSON) as peer:
        await peer.send_raw(b"\x80")
        assert (await peer.close_code())[0] == 4400


def masked_frame(n: int) -> bytes:
    return masked(BINARY, cbor2.dumps([1, n, BASE_MS, {"temp": n}]))


async def test_more_frames_than_the_window(tmp_path: Path) -> None:
    async with (
        house_in(tmp_path / "data", link_unacked_frames_max=2) as house,
        connected(house.server, house.device, house.token) as peer,
    ):
        await peer.send(0, {"session": 1})
        frames = b"".join(masked_frame(n) for n in (1, 2, 3))
        await peer.socket._stream.send_all(frames)
        assert (await peer.close_code())[0] == 4413


async def test_a_refused_frame_makes_place_in_the_window(tmp_path: Path) -> None:
    """Also while a frame before it waits for its commit."""
    async with (
        house_in(tmp_path / "data", link_unacked_frames_max=2) as house,
        linked(house.server, house.device, house.token) as (peer, _),
    ):
        wrong = masked(BINARY, cbor2.dumps([1, 2, BASE_MS, {"none": 2}]))
        await peer.socket._stream.send_all(masked_frame(1) + wrong + masked_frame(3))
        assert [refusal[1] for refusal in await peer.until_stored(3)] == [2]


async def test_a_newer_link_ends_the_older(house: House) -> None:
    async with (
        linked(house.server, house.device, house.token) as (older, _),
        linked(house.server, house.device, house.token, session=8) as (newer, _),
    ):
        assert (await older.close_code())[0] == 4410
        await newer.send(1, 1, BASE_MS, {"temp": 1})
        await newer.until_stored(1)
    assert await house.values() == [1]


async def test_a_stop_of_the_server_ends_links_with_a_code(house: House) -> None:
    async with linked(house.server, house.device, house.token) as (peer, _), trio.open_nursery() as nursery:
        nursery.start_soon(house.server.stop)
        assert (await peer.close_code())[0] == 4503


@pytest.mark.parametrize(("problem", "code"), [(errno.ENOSPC, 4503), (errno.EIO, 1011)])
async def test_a_link_that_cannot_be_stored_may_be_opened_again(
    house: House, monkeypatch: pytest.MonkeyPatch, problem: int, code: int
) -> None:
    """4403 would say that the token does not allow it, and the device would stay away."""

    def fail() -> float:
        raise OSError(problem, "told to fail")

    with monkeypatch.context() as patch:
        patch.setattr(house.server.system.store.journal, "_sync_delay_s", fail)
        async with connected(house.server, house.device, house.token) as peer:
            await peer.send(0, {"session": 1})
            assert (await peer.close_code())[0] == code
    async with linked(house.server, house.device, house.token):
        pass


async def test_a_device_that_is_deleted_loses_its_link(house: House) -> None:
    async with linked(house.server, house.device, house.token) as (peer, _):
        await house.server.call("DELETE", house.device)
        assert (await peer.close_code())[0] == 4404


# Tokens.


async def test_the_token_may_come_in_the_first_frame(house: House) -> None:
    async with connected(house.server, house.device, None) as peer:
        await peer.send(0, {"session": 1, "token": house.token})
        assert (await peer.next())[0] == 0
        await peer.send(1, 1, BASE_MS, {"temp": 1})
        await peer.until_stored(1)
    for hello, code in (({"session": 1}, 4401), ({"session": 1, "token": "x"}, 4401)):
        async with connected(house.server, house.device, None) as peer:
            await peer.send(0, hello)
            assert (await peer.close_code())[0] == code
    other = await house.server.device(house.application)
    async with connected(house.server, other, None) as peer:
        await peer.send(0, {"session": 1, "token": house.token})
        assert (await peer.close_code())[0] == 4403


async def test_a_token_that_is_revoked_before_the_hello_opens_nothing(house: House) -> None:
    async with connected(house.server, house.device, house.token) as peer:
        await house.server.call("PATCH", house.key, {"status": "inactive"})
        await peer.send(0, {"session": 1})
        assert (await peer.close_code())[0] == 4401


async def test_a_refusal_before_the_link_is_a_response(house: House) -> None:
    other = await house.server.device(house.application)
    for device, token, status in (
        (house.device, "x", 401),
        (other, house.token, 403),
        (house.device[:-4] + "ffff", house.server.token, 404),
    ):
        with pytest.raises(ConnectionRejected) as caught:
            async with connected(house.server, device, token):
                pass
        rejected = caught.value
        assert rejected.status_code == status
        assert rejected.body is not None
        assert b'"message"' in rejected.body
    await house.server.call("GET", f"{house.device}/link", status=426)


async def test_a_token_that_ends_closes_the_link(house: House) -> None:
    async with linked(house.server, house.device, house.token) as (peer, _):
        await house.server.call("PATCH", house.key, {"status": "inactive"})
        assert (await peer.close_code())[0] == 4401


# The connection of the device.


async def test_a_link_is_the_connection_of_the_device(house: House) -> None:
    server = house.server
    async with linked(server, house.device, house.token) as (peer, _):
        await peer.send(1, 1, BASE_MS, {"temp": 1})
        await peer.until_stored(1)
        assert (await server.call("GET", house.device))["connectionInfo"]["connected"] == 1

    async def logged() -> bool:
        return len(await server.call("GET", f"{house.device}/logs", params={"limit": 10, "start": 1})) == 2

    with trio.fail_after(PATIENCE_S):
        while not await logged():
            await trio.lowlevel.checkpoint()
    left, came = await server.call("GET", f"{house.device}/logs", params={"limit": 10, "start": 1})
    assert came["connected"] == 1
    assert left["connected"] == 0
    assert left["disconnectReason"].startswith("1000")
    assert left["messagesFromClient"] == 2
    assert left["messagesToClient"] == 2
    assert left["ipAddress"] == "127.0.0.1"
    assert (await server.call("GET", house.device))["connectionInfo"]["connected"] == 0


async def test_links_beyond_the_bound_of_connections_are_refused(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house, AsyncExitStack() as held:
        for _ in range(3):
            device = await house.server.device(house.application)
            token, _ = await house.server.device_token(device)
            await held.enter_async_context(linked(house.server, device, token))
        await until(lambda: len(house.server.system.component(Links)) == 3)
