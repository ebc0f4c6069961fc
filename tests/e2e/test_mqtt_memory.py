"""What an MQTT client costs that is connected and silent: the bound on connections bounds memory only if this holds."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import NOT_BY_DOORS
from tests.e2e.mqtt_client import MqttClient
from tests.e2e.mqtt_house import House, house_in
from tests.e2e.sse_client import until
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.packets import V3_1_1, V5
from trunkline.http.mqtt.service import MqttService

CLIENTS = 200
ONCE = 20
"""Clients before those that are measured: what is made once for all is there then."""
BYTES_MAX = 7_000


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


async def connect(house: House, number: int, sock: trio.socket.SocketType, client: MqttClient) -> None:
    """Connect a client that is no device, with a session that outlives the connection."""
    await sock.connect(("127.0.0.1", house.server.mqtt_ports[0]))
    properties = {"session_expiry_interval": 3600} if client.version == V5 else {}
    answer = await client.connect(
        f"client {number}", clean_start=False, keep_alive_s=60, properties=properties, **house.credentials
    )
    assert answer.code == packets.SUCCESS


@NOT_BY_DOORS
@pytest.mark.slow
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("version", [V3_1_1, V5])
async def test_an_idle_connection_with_a_session_costs_less_than_nine_kilobytes(
    tmp_path: Path, version: int
) -> None:
    async with house_in(tmp_path / "data") as house:
        sockets = [trio.socket.socket() for _ in range(ONCE + CLIENTS)]
        clients = [MqttClient(trio.SocketStream(sock), version) for sock in sockets]
        pairs = list(zip(range(len(clients)), sockets, clients, strict=True))
        for pair in pairs[:ONCE]:
            await connect(house, *pair)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        async with trio.open_nursery() as nursery:
            for pair in pairs[ONCE:]:
                nursery.start_soon(connect, house, *pair)
        house.server.system.journal.flush()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        assert len(house.server.system.component(MqttService).sessions) == len(clients)
        for client in clients:
            await trio.aclose_forcefully(client.stream)
        await until(lambda: not house.server.system.component(MqttService).sessions)
    assert (after - before) / CLIENTS < BYTES_MAX
