"""MQTT clients with sessions that outlive their connections: they publish, subscribe, are cut, and come back.

Owns who connects when, and the look at what each has got. Does not own one connection (`mqtt_connection.py`), nor what
a client ought to get (`mqtt_client.py`).
"""

from __future__ import annotations

from random import Random
from typing import Final

import trio

from tests.simulation.model import Broken
from tests.simulation.mqtt_client import Mqtt, MqttClient
from tests.simulation.mqtt_connection import MqttConnection
from tests.simulation.part import Part
from tests.simulation.site import nothing
from tests.simulation.world import World

CLIENTS: Final = 4
COMES_S: Final = 200
"""So long after everything else has come to rest a client has all its messages, and an older connection has ended."""


class Connections:
    """The connections of all clients, the latest of each last."""

    def __init__(self) -> None:
        self.all: list[MqttConnection] = []

    def open(self, world: World, client: MqttClient) -> list[MqttConnection]:
        """The one that a client uses, as far as it knows."""
        self.all = [each for each in self.all if each.life is world.life]
        return [each for each in self._of(client) if not each.is_left_behind]

    def left_behind(self, client: MqttClient) -> list[MqttConnection]:
        """Older ones of a client of which the server must know that there is a newer one."""
        return [each for each in self._of(client) if each.is_left_behind and not each.wire.was_cut]

    def _of(self, client: MqttClient) -> list[MqttConnection]:
        return [each for each in self.all if each.client is client and not each.is_over]

    def connect(self, world: World, client: MqttClient, chance: Random, *, healthy: bool = False) -> None:
        """Connect a client, which may be connected."""
        connection = MqttConnection(world, client, Random(chance.getrandbits(64)), healthy=healthy)
        for older in self.open(world, client):
            connection.is_superseded = True
            older.leave_behind()
        connection.before = [each for each in self.all if each.client is client and not each.was_welcome]
        self.all.append(connection)
        world.callers.start_soon(connection.live)


def _one(world: World, chance: Random) -> MqttConnection | None:
    """A connection that is welcome."""
    open = [
        each
        for client in world.of(Mqtt).clients.values()
        for each in world.of(Connections).open(world, client)
        if each.is_welcome
    ]
    return chance.choice(open) if open else None


async def connect(world: World, chance: Random) -> None:
    client = world.of(Mqtt).client(chance.randrange(CLIENTS))
    connections = world.of(Connections)
    open = connections.open(world, client)
    if not open or (chance.random() < 0.2 and all(each.is_welcome for each in open)):
        connections.connect(world, client, chance)


async def publish(world: World, chance: Random) -> None:
    connection = _one(world, chance)
    for _ in range(chance.choice((1, 1, 2, 4))):
        if connection is not None:
            await connection.publish(chance)


async def subscribe(world: World, chance: Random) -> None:
    connection = _one(world, chance)
    if connection is not None:
        await connection.subscribe(chance)


async def leave(world: World, chance: Random) -> None:
    connection = _one(world, chance)
    if connection is not None:
        await connection.leave(goodbye=chance.random() < 0.5)


async def look(world: World) -> None:
    """Every client comes back on a connection that lasts, and gets what it must have."""
    mqtt, connections = world.of(Mqtt), world.of(Connections)
    for client in mqtt.clients.values():
        open = connections.open(world, client)
        if not open or any(each.wire.was_cut or each.owes for each in open):
            connections.connect(
                world, client, Random(f"{world.seed} {world.number} {client.id}"), healthy=True
            )
    missing: list[str] = []
    for _ in range(COMES_S):
        missing = [problem for client in mqtt.clients.values() if (problem := _problem(world, client))]
        if not missing:
            break
        await trio.sleep(1)
    else:
        raise Broken("; ".join(missing))
    for will in mqtt.wills:
        mqtt.over(will)
    mqtt.wills.clear()
    for client in mqtt.clients.values():
        with client.inbox.watched() as window:
            pass
        names = [
            name
            for name in client.inbox.things
            if name not in client.excused and (world.quota is None or name in client.got)
        ]
        window.check({name: name for name in client.got if name in names}, names)


def _problem(world: World, client: MqttClient) -> str:
    """What a client still waits for."""
    open = world.of(Connections).open(world, client)
    if not open or open[0].owes:  # what it has lost comes again with its next connection only
        world.of(Connections).connect(world, client, Random(f"{world.seed} again {client.id}"), healthy=True)
        return f"{client.id} cannot connect"
    if not open[0].is_welcome or open[0].waits_for:
        return f"{client.id} is not answered: {open[0].waits_for}"
    if world.of(Connections).left_behind(client):
        return f"{client.id} has an older connection beside that which it uses"
    missing = world.of(Mqtt).missing(client) if world.quota is None else []
    return f"{client.id} has not got {missing}" if missing else ""


PART: Final = Part(nothing, {connect: 8, publish: 14, subscribe: 7, leave: 4}, look, divided=True)
