"""What devices are told where their states, or their sessions, cannot be stored, and where nobody knows whether they
are: then nothing is refused, and they send it again."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from trio_websocket import ConnectionClosed

from tests.e2e.link_house import BASE_MS
from tests.e2e.link_peer import linked
from tests.e2e.mqtt_client import mqtt_client
from tests.e2e.mqtt_house import VERSIONS, House, house
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V5
from trunkline.store.errors import LogUnreachable, StoreError, StoreLost
from trunkline.store.memory_map import MemoryMap

__all__ = ["house"]  # the fixture

STATE = b'{"data": {"temp": 1}}'
UNKNOWN = [StoreLost("told to fail"), LogUnreachable("told to fail")]
"""The errors of the store after which nobody knows."""


@contextmanager
def failing(
    house: House, monkeypatch: pytest.MonkeyPatch, problem: OSError, told: StoreError | None = None
) -> Iterator[None]:
    """Commits fail meanwhile, and those who wait for one are told so, or something else."""
    journal = house.server.system.store.journal

    def fail() -> float:
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr(journal, "_sync_delay_s", fail)
        if told is not None:
            patch.setattr(MemoryMap, "commit_error", lambda *_: told)
        yield


@pytest.mark.parametrize(
    ("problem", "code"), [(errno.ENOSPC, packets.QUOTA_EXCEEDED), (errno.EIO, packets.UNSPECIFIED_ERROR)]
)
async def test_a_client_is_told_why_its_session_cannot_be_stored(
    house: House, monkeypatch: pytest.MonkeyPatch, problem: int, code: int
) -> None:
    async with mqtt_client(house.server.mqtt_ports[0]) as client:
        lasting = {"clean_start": False, "properties": {"session_expiry_interval": 60}}
        await client.connect("sleeper", **house.credentials, **lasting)
        with failing(house, monkeypatch, OSError(problem, "told to fail")):
            await client.send(writer.subscribe(V5, packets.Subscribe(1, (packets.Filter("a", 1),), {})))
            assert await client.farewell() == code


@pytest.mark.parametrize("told", UNKNOWN)
@VERSIONS
@pytest.mark.parametrize("qos", [1, 2])
async def test_a_publisher_of_what_may_be_stored_is_disconnected(
    house: House, monkeypatch: pytest.MonkeyPatch, told: StoreError, version: int, qos: int
) -> None:
    async with house.client(version=version) as client:
        with failing(house, monkeypatch, OSError(errno.EIO, "told to fail"), told):
            publish = packets.Publish(f"losant/{house.id}/state", STATE, qos, packet_id=1)
            await client.send(writer.publish(version, publish))
            code = packets.UNSPECIFIED_ERROR if isinstance(told, StoreLost) else packets.SERVER_BUSY
            assert await client.farewell() == (code if version == V5 else None)


@pytest.mark.parametrize("told", UNKNOWN)
@pytest.mark.parametrize("options", [[], [{"backlog": True}]])
async def test_a_link_with_a_frame_that_may_be_stored_ends(
    house: House, monkeypatch: pytest.MonkeyPatch, told: StoreError, options: list[Any]
) -> None:
    token, _ = await house.server.device_token(house.device)
    async with linked(house.server, house.device, token) as (peer, _):
        with failing(house, monkeypatch, OSError(errno.EIO, "told to fail"), told):
            await peer.send(1, 1, BASE_MS, {"temp": 1}, *options)
            with pytest.raises(ConnectionClosed) as closed:
                await peer.next()
        assert closed.value.reason is not None
        assert closed.value.reason.code == (1011 if isinstance(told, StoreLost) else 4503)
    async with linked(house.server, house.device, token) as (peer, facts):
        assert (facts["n"], facts["backlogN"]) == (0, 0)
        await peer.send(1, 1, BASE_MS, {"temp": 1}, *options)
        assert (await peer.next())[:2] == [1, 1]
