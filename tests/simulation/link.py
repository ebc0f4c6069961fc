"""Devices that keep a link: they report in frames, get commands, lose the connection at any byte, and come back.

A frame that was not acknowledged is sent again, and stored once. Commands come in order, and until they are
acknowledged again with each connection.

Owns who connects when. Does not own one connection (`link_connection.py`), nor what a device remembers
(`link_device.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import trio

from tests.simulation.access import Keys, Login, log_in_as, toggle
from tests.simulation.devices import Fleet, Meter, commands_of
from tests.simulation.link_connection import LinkConnection
from tests.simulation.link_device import LinkDevice
from tests.simulation.model import Broken
from tests.simulation.part import Part
from tests.simulation.site import nothing, surely
from tests.simulation.world import World

HEARD_S: Final = 100
"""So long after everything else has come to rest a connected device has all its commands."""
_SUPERSEDED_S: Final = 45
"""An older link ends sooner than a client that is silent."""
_UNACKNOWLEDGED_MAX: Final = 12


class LinkDevices:
    """All devices with a link, by the ids of their meters."""

    def __init__(self) -> None:
        self.all: dict[str, LinkDevice] = {}
        self._connections: dict[str, LinkConnection] = {}
        self._left_behind: list[LinkConnection] = []

    def of(self, meter: Meter, chance: Random) -> LinkDevice:
        if meter.id not in self.all:
            self.all[meter.id] = LinkDevice(meter, chance)
        return self.all[meter.id]

    def connected(self, world: World) -> Iterator[tuple[LinkDevice, LinkConnection]]:
        """The devices that are connected, as far as they know."""
        for id, device in self.all.items():
            connection = self.connection(world, id)
            if connection is not None and connection.is_welcome:
                yield device, connection

    def connection(self, world: World, id: str) -> LinkConnection | None:
        """The connection of a device in this life."""
        found = self._connections.get(id)
        return found if found is not None and found.life is world.life and not found.is_over else None

    def left_behind(self, world: World) -> list[LinkConnection]:
        """Older ones of devices that are connected again, of which the server must know it."""
        self._left_behind = [
            each for each in self._left_behind if each.life is world.life and not each.is_over
        ]
        connected = {device.meter.id for device, _ in self.connected(world)}
        return [
            each
            for each in self._left_behind
            if each.device.meter.id in connected and not each.socket.wire.to_client.is_dead
        ]

    def drop(self, world: World, id: str) -> None:
        """A device is started again: its connection is gone."""
        connection = self.connection(world, id)
        if connection is not None:
            connection.drop()

    def connect(self, device: LinkDevice, connection: LinkConnection) -> None:
        """From now on a device has this connection. The server may hear of the two in another order."""
        older = self._connections.get(device.meter.id)
        if older is not None and older.life is connection.life:
            older.leave_behind()
            connection.is_superseded = True
            self._left_behind.append(older)
        self._connections[device.meter.id] = connection


def has_link(world: World, meter: Meter) -> bool:
    """Whether a device uses a link: every second one does."""
    return list(world.of(Fleet).meters).index(meter.id) % 2 == 0


async def connect(world: World, chance: Random) -> None:
    """A device connects, or connects once more."""
    meter = world.of(Fleet).one(chance)
    if meter is None or not has_link(world, meter):
        return
    devices = world.of(LinkDevices)
    device = devices.of(meter, chance)
    if devices.connection(world, meter.id) is not None and chance.random() < 0.5:
        return
    if chance.random() < 0.1:
        devices.drop(world, meter.id)
        device.begin_again(chance)
    if chance.random() < 0.5:
        await log_in_as(world, meter, chance)
    logins: list[Login] = [each for each in world.of(Keys).logins if each.device == meter.id]
    login = chance.choice(logins[-3:]) if logins and chance.random() < 0.7 else None
    connection = LinkConnection(world, device, login, Random(chance.getrandbits(64)))
    devices.connect(device, connection)
    world.callers.start_soon(connection.live)


async def send(world: World, chance: Random) -> None:
    """A connected device sends a frame, or some at once."""
    found = list(world.of(LinkDevices).connected(world))
    if not found:
        return
    device, connection = chance.choice(found)
    for _ in range(chance.choice((1, 2, 4, 8))):
        if len(device.frames) < _UNACKNOWLEDGED_MAX:
            await connection.report(chance)
    if chance.random() < 0.15:
        connection.lose_answers(chance)


async def revoke(world: World, chance: Random) -> None:
    """The key of a connected device is switched off."""
    book = world.of(Keys).book
    ids = {
        connection.login.key
        for _, connection in world.of(LinkDevices).connected(world)
        if connection.login is not None and book.sure().get(connection.login.key) == "active"
    }
    if ids:
        await toggle(world, chance.choice(sorted(ids)), chance)


async def leave(world: World, chance: Random) -> None:
    """A connected device leaves."""
    found = list(world.of(LinkDevices).connected(world))
    if found:
        _, connection = chance.choice(found)
        await connection.leave(chance)


async def look(world: World) -> None:
    """Whoever is connected has all its commands, in their order, and may be connected."""
    fleet, keys, devices = world.of(Fleet), world.of(Keys), world.of(LinkDevices)
    for older in devices.left_behind(world):
        await _ends(older, f"{older.title} is open beside a newer one", _SUPERSEDED_S)
    for device, connection in list(devices.connected(world)):
        meter, login = device.meter, connection.login
        if connection.socket.wire.to_client.is_dead:
            continue  # it does not know
        if fleet.records.thing(meter.id).states == {None}:
            await _ends(connection, f"the link of {meter.id[-4:]} is open, but the device was deleted")
        elif login is not None and "active" not in keys.book.thing(login.key).states:
            await _ends(connection, f"the link of {meter.id[-4:]} is open, but its key opens nothing")
        elif surely(fleet.records, meter.id):
            await _look_at_commands(world, device, connection)


async def _ends(connection: LinkConnection, problem: str, within_s: int = HEARD_S) -> None:
    for _ in range(within_s):
        if connection.is_over or connection.socket.wire.to_client.is_dead:
            return
        await trio.sleep(1)
    raise Broken(problem)


async def _look_at_commands(world: World, device: LinkDevice, connection: LinkConnection) -> None:
    meter = device.meter
    assert device.before is not None
    missing: set[Any] = set()
    for _ in range(HEARD_S):
        missing = set(meter.commands.sure()) - device.before - device.heard
        if not missing or connection.is_over or connection.socket.wire.to_client.is_dead:
            break
        await trio.sleep(1)
    else:
        raise Broken(f"link of {meter.id[-4:]}: the commands {sorted(missing)} wait, and were not sent")
    order = await commands_of(world, meter)
    heard = [name for name in connection.heard if name in order]
    if strange := sorted(set(connection.heard) - set(order)):
        raise Broken(f"link of {meter.id[-4:]}: the commands {strange} were sent, and are not stored")
    if [name for name in order if name in heard] != heard:
        raise Broken(f"link of {meter.id[-4:]}: {heard} were sent, the order of the log is {order}")
    connection.finish()


PART: Final = Part(nothing, {connect: 12, send: 18, leave: 1, revoke: 1}, look, divided=True)
