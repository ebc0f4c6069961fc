"""Checks that share one server: each has topics and clients of its own, so that many run at once. Owns no test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from tests.e2e.mqtt_client import MqttClient, mqtt_client
from tests.e2e.mqtt_house import House
from trunkline.http.mqtt import packets, writer
from trunkline.http.mqtt.packets import V3_1_1, V5, PingResp, Publish

BOTH = (V3_1_1, V5)
KEPT_S = 100_000
"""For how long the session of a client of 5.0 is kept, where a check asks for that."""
_AT_ONCE = 8
_STUCK_S = 60
"""A check that waits for so long for a packet has failed; all take a second together."""


class Place:
    """Where a check runs: a topic that no other check uses, and names of clients."""

    def __init__(self, house: House, version: int, name: str) -> None:
        self.house = house
        self.version = version
        self.topic = f"{name}/{version}"

    def id(self, who: str) -> str:
        return f"{self.topic}/{who}"

    @asynccontextmanager
    async def client(
        self, who: str, version: int = 0, *, kept: bool = False, **fields: Any
    ) -> AsyncIterator[MqttClient]:
        """A connected client, of the version of the check; with `kept`, its session outlives the connection."""
        version = version or self.version
        if kept:
            fields["clean_start"] = False
            if version == V5:
                own = {"session_expiry_interval": KEPT_S}
                fields["properties"] = {**own, **fields.get("properties", {})}
        async with self.house.client(self.id(who), version, **fields) as client:
            yield client

    @asynccontextmanager
    async def stranger(self) -> AsyncIterator[MqttClient]:
        """A connection without a CONNECT."""
        async with mqtt_client(self.house.server.mqtt_ports[0], self.version) as client:
            yield client


Check = Callable[[Place], Awaitable[None]]


class Checks:
    """The checks of a file, by name, each with the versions for which it holds."""

    def __init__(self) -> None:
        self.all: dict[str, tuple[Check, tuple[int, ...]]] = {}

    def of(self, *versions: int) -> Callable[[Check], Check]:
        def add(check: Check) -> Check:
            name: str = check.__name__
            self.all[name] = (check, versions)
            return check

        return add

    async def run(self, house: House, at_once: int = _AT_ONCE) -> list[str]:
        """Run all. Returns a line for each that failed."""
        failed: list[str] = []
        limit = trio.CapacityLimiter(at_once)

        async def run_one(name: str, check: Check, version: int) -> None:
            async with limit:
                try:
                    with trio.fail_after(_STUCK_S):
                        await check(Place(house, version, name))
                except* Exception as problems:  # noqa: BLE001 - the other checks run on
                    failed.extend(f"{name}, version {version}: {each!r}" for each in flat(problems))

        async with trio.open_nursery() as nursery:
            for name, (check, versions) in self.all.items():
                for version in versions:
                    nursery.start_soon(run_one, name, check, version)
        return failed


def flat(problems: BaseExceptionGroup[Any]) -> list[BaseException]:
    found: list[BaseException] = []
    for each in problems.exceptions:
        found += flat(each) if isinstance(each, BaseExceptionGroup) else [each]
    return found


async def nothing_waits(client: MqttClient) -> None:
    """Nothing was sent to the client before this moment."""
    await client.send(writer.PINGREQ)
    packet = await client.next()
    assert type(packet) is PingResp, packet


async def ends(client: MqttClient, code: int) -> None:
    """The server ends the connection: with this code in 5.0, else without a word."""
    assert await client.farewell() == (code if client.version == V5 else None)


async def leaves(client: MqttClient) -> None:
    """The client says goodbye, and the server has seen it."""
    await client.goodbye()
    assert await client.next() is None


async def got(client: MqttClient, number: int) -> list[bytes]:
    """The payloads of the next messages."""
    return [(await client.message()).payload for _ in range(number)]


def publish(client: MqttClient, topic: str, payload: bytes, **fields: Any) -> bytes:
    """The bytes of a PUBLISH."""
    return writer.publish(client.version, Publish(topic, payload, **fields))


def answer(client: MqttClient, kind: int, packet_id: int, code: int = packets.SUCCESS) -> bytes:
    """The bytes of an acknowledgement."""
    return writer.ack(client.version, kind, packet_id, code)


async def closed_with(client: MqttClient, data: bytes) -> bytes:
    """All bytes of the server after these, until it closes the connection."""
    await client.send(data)
    found = bytearray()
    try:
        while more := await client.stream.receive_some(1000):
            found += more
    except trio.BrokenResourceError:
        pass
    return bytes(found)
