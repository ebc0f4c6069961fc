"""MQTT over a network that cuts: nothing that was acknowledged is lost, and what has QoS 2 comes once."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest
import trio

from tests.e2e.mqtt_crash_clients import Gone, Publisher, Subscriber
from tests.e2e.mqtt_house import House, house_in
from tests.e2e.sse_client import until
from tests.faults.proxy import network
from tests.patience import PATIENCE_S
from trunkline.http.mqtt.packets import V3_1_1, V5
from trunkline.http.mqtt.service import MqttService

CONNECTIONS: Final = 60
CUTS: Final = range(90, 3_000, 41)
"""After so many bytes of both directions a connection is reset: from the answer to its CONNECT on."""


class Clients:
    """Two who publish, one of them a device, and two who listen, with one version of MQTT."""

    def __init__(self, house: House, version: int) -> None:
        def publisher(client_id: str, *, is_device: bool) -> Publisher:
            return Publisher(client_id, version, house.credentials, Random(version), is_device=is_device)

        self.publisher = publisher("publisher", is_device=False)
        self.device = publisher(house.id, is_device=True)
        self.subscribers = [
            Subscriber(f"subscriber-{qos}", version, house.credentials, Random(qos), qos) for qos in (1, 2)
        ]

    async def come_and_go(self, port: int, is_enough: Callable[[], bool]) -> None:
        """Connect again after each cut, until it is enough."""
        runs: list[Callable[[int], Awaitable[None]]] = [each.run for each in self.subscribers]
        async with trio.open_nursery() as nursery:
            for run in (self.publisher.run, self.device.run, *runs):
                nursery.start_soon(_again_and_again, partial(run, port))
            await until(is_enough)
            nursery.cancel_scope.cancel()

    async def finish(self, port: int) -> None:
        """Send what was not acknowledged, and take what is missing."""
        for publisher in (self.publisher, self.device):
            await publisher.run(port, is_last=True)
        for subscriber in self.subscribers:
            await subscriber.finish(port, partial(subscriber.has_all, [self.publisher]))


async def _again_and_again(run: Callable[[], Awaitable[None]]) -> None:
    while True:
        with suppress(Gone):
            await run()


async def check(house: House, clients: Clients) -> None:
    for subscriber in clients.subscribers:
        subscriber.check([clients.publisher])
    assert clients.publisher.repeated
    stored = [state["temp"] for state in await house.states()]
    assert stored == [float(number) for number in range(len(clients.device.sent))][: len(stored)]
    assert len(stored) == min(len(clients.device.sent), 1000)


@pytest.mark.parametrize(("version", "piece_bytes"), [(V3_1_1, 65_536), (V5, 7)])
async def test_clients_that_are_cut_at_any_byte_lose_nothing_and_get_nothing_twice(
    tmp_path: Path, version: int, piece_bytes: int
) -> None:
    async with house_in(tmp_path / "data") as house:
        direct = house.server.mqtt_ports[0]
        clients = Clients(house, version)
        async with network(f"http://127.0.0.1:{direct}") as between:
            between.cuts, between.piece_bytes = itertools.cycle(CUTS), piece_bytes
            far = int(between.url.rpartition(":")[2])
            for subscriber in clients.subscribers:
                await subscriber.subscribe(direct)
            await clients.come_and_go(far, lambda: between.connections >= CONNECTIONS)
        sessions = house.server.system.component(MqttService).sessions
        await until(lambda: not sessions)  # one that had not come yet would take over from the next
        with trio.fail_after(PATIENCE_S):
            await clients.finish(direct)
        await check(house, clients)
