"""Frames of the device link that come again after a lost connection: each is stored once, and refused once."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.e2e.conftest import running_server
from tests.e2e.link_house import BASE_MS, House, house, house_in
from tests.e2e.link_peer import linked

__all__ = ["house"]


async def test_a_frame_that_is_sent_again_is_stored_once(house: House) -> None:
    for _ in range(3):
        async with linked(house.server, house.device, house.token) as (peer, _):
            for n in (1, 2, 3):
                await peer.send(1, n, BASE_MS + n, {"temp": n})
            assert await peer.until_stored(3) == []
    async with linked(house.server, house.device, house.token) as (peer, facts):
        assert facts["n"] == 3
        await peer.send(1, 4, BASE_MS + 4, {"temp": 4})
        await peer.until_stored(4)
    assert await house.values() == [1, 2, 3, 4]
    async with linked(house.server, house.device, house.token, session=8) as (peer, facts):
        assert facts["n"] == 0
        await peer.send(1, 1, BASE_MS + 5, {"temp": 5})
        await peer.until_stored(1)
    assert await house.values() == [1, 2, 3, 4, 5]


async def test_the_numbers_are_remembered_over_a_restart(tmp_path: Path) -> None:
    async with house_in(tmp_path / "data") as house:
        device, token = house.device, house.token
        async with linked(house.server, device, token) as (peer, _):
            await peer.send(1, 9, BASE_MS, {"temp": 1})
            await peer.until_stored(9)
    async with running_server(tmp_path / "data", engine="fast") as server:
        async with linked(server, device, token) as (peer, facts):
            assert facts["n"] == 9
            await peer.send(1, 9, BASE_MS, {"temp": 2})
            await peer.until_stored(9)
        (state,) = await server.call("GET", f"{device}/state", params={"limit": 5, "start": 1})
        assert state["data"] == {"temp": 1}


async def test_a_refusal_that_is_lost_with_the_connection_comes_again(house: House) -> None:
    async with linked(house.server, house.device, house.token) as (peer, _):
        await peer.send(1, 1, BASE_MS, {"temp": 1})
        await peer.send(1, 2, BASE_MS + 1, {"wrong": 2})
        await peer.send(2, 3, ["temp"], [[BASE_MS + 2, 3]])
        await peer.send(1, 4, BASE_MS + 3, {"temp": 4})
        await peer.until_stored(4)
    async with linked(house.server, house.device, house.token) as (peer, facts):
        assert facts["n"] == 1
        await peer.send(1, 2, BASE_MS + 1, {"wrong": 2})
        await peer.send(2, 3, ["temp"], [[BASE_MS + 2, 3]])
        await peer.send(1, 4, BASE_MS + 3, {"temp": 4})
        (refusal,) = await peer.until_stored(4)
        assert (refusal[:3], refusal[4]) == ([2, 2, "Overloaded"], {"retryMs": 0})
        await peer.send(1, 5, BASE_MS + 4, {"temp": 5})
        assert await peer.until_stored(5) == []
    async with linked(house.server, house.device, house.token) as (peer, facts):
        assert facts["n"] == 1, "the refusal may have been lost again"
        for n in range(6, 140):  # two windows
            await peer.send(1, n, BASE_MS + n, {"temp": n})
            await peer.until_stored(n)
    async with linked(house.server, house.device, house.token) as (_, facts):
        assert facts["n"] == 139
    assert await house.values() == [1, 3, 4, 5, *range(6, 140)]


async def test_a_stored_frame_that_comes_again_is_not_refused_for_want_of_room(tmp_path: Path) -> None:
    """A refusal would say that nothing of it is stored, and its states would come once more in another frame."""
    async with house_in(tmp_path / "data", send_state={"calls": 2, "window_s": 50}) as house:
        async with linked(house.server, house.device, house.token) as (peer, _):
            await peer.send(1, 1, BASE_MS, {"temp": 1})
            await peer.send(1, 2, BASE_MS + 1, {"temp": 2})
            await peer.until_stored(2)
        async with linked(house.server, house.device, house.token) as (peer, _):
            for n in (1, 2):
                await peer.send(1, n, BASE_MS, {"temp": n})
                assert await peer.next() == [1, n]
            await peer.send(1, 3, BASE_MS + 2, {"temp": 3})
            assert (await peer.next())[:3] == [2, 3, "TooManyRequests"]
        assert await house.values() == [1, 2]


async def test_a_stored_frame_that_comes_again_is_not_refused_with_a_commit_that_it_shares(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> float:
        raise OSError(errno.ENOSPC, "told to fail")

    async with linked(house.server, house.device, house.token) as (peer, _):
        await peer.send(1, 1, BASE_MS, {"temp": 1})
        await peer.until_stored(1)
    async with linked(house.server, house.device, house.token) as (peer, _):
        await house.server.call("POST", f"{house.device}/command", {"name": "open"})
        command = (await peer.next())[1]
        with monkeypatch.context() as patch:
            patch.setattr(house.server.system.store.journal, "_sync_delay_s", fail)
            await peer.send_at_once(
                [4, command], [1, 1, BASE_MS, {"temp": 1}], [1, 2, BASE_MS + 1, {"temp": 2}]
            )
            assert await peer.next() == [1, 1]
            assert (await peer.next())[:3] == [2, 2, "StorageFull"]
    assert await house.values() == [1]
