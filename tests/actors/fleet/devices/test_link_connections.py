"""Links in the connection log, and the links of gateways, which carry the commands of peripherals."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing

from tests.actors.fleet.devices.link_session import begin, committed, connect, links, log_of
from tests.actors.house import House, at, running_again, running_house
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Crashed, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.bulk.bulk_messages import RestoreDevice
from trunkline.actors.fleet.devices.commands.link_session import LinkEnd
from trunkline.actors.fleet.devices.commands.links import RETRY_S
from trunkline.actors.fleet.devices.record.messages import (
    DeleteDevice,
    DevicePatch,
    PatchDevice,
)
from trunkline.actors.maintenance.sweep import sweep
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.store import keys
from trunkline.store.errors import StoreBroken

# The connection log.


async def test_the_log_says_when_links_were_open_and_why_they_ended(house: House) -> None:
    device = await house.device()
    session = await connect(house, device)
    await house.command(device, "go")
    house.clock.pass_s(5)
    session.close("The client left.")
    session.close("The client left.")
    await committed(house)
    assert await log_of(house, device) == [
        {"connected": 1, "time": at(0), "ipAddress": "10.0.0.9"},
        {
            "connected": 0,
            "time": at(5000),
            "disconnectReason": "The client left.",
            "messagesFromClient": 7,
            "messagesToClient": 1,
            "ipAddress": "10.0.0.9",
        },
    ]
    assert await house.payloads(device) == {"deviceCommand": 1, "deviceConnect": 1, "deviceDisconnect": 1}
    assert len(links(house)) == 0


async def test_a_newer_link_ends_the_older(house: House) -> None:
    device = await house.device()
    older = await connect(house, device)
    newer = await connect(house, device)
    assert older.ended == [LinkEnd.SUPERSEDED]
    older.close("superseded")
    await committed(house)
    log = await log_of(house, device)
    assert [entry["connected"] for entry in log] == [1, 0, 1]
    assert log[1]["disconnectReason"] == LinkEnd.SUPERSEDED.value
    await house.command(device, "go")
    assert (older.names, newer.names) == ([], ["go"])
    assert list(links(house)) == [newer.link]


async def test_two_links_that_are_opened_at_once_end_as_one(house: House) -> None:
    device = await house.device()
    older, newer = begin(house, device), begin(house, device)
    await committed(house)
    assert (older.ended, newer.ended) == ([LinkEnd.SUPERSEDED], [])
    assert list(links(house)) == [newer.link]
    newest = begin(house, device)
    newest.close()
    await committed(house)
    assert newer.ended == [LinkEnd.SUPERSEDED]
    assert len(links(house)) == 0
    assert [entry["connected"] for entry in await log_of(house, device)] == [1, 0, 1, 0, 1, 0]


async def test_a_deleted_device_has_no_link(house: House) -> None:
    device = await house.device()
    session = await connect(house, device)
    await house.ask(device, DeleteDevice())
    assert session.ended == [LinkEnd.GONE]
    session.close()
    await committed(house)
    await house.ask(device, RestoreDevice())
    assert [entry["connected"] for entry in await log_of(house, device)] == [1, 0]
    with house.system.store.snapshot() as snapshot:
        assert snapshot.get(keys.META, keys.open_link_key(house.application, device)) is None


async def test_a_device_that_is_deleted_while_its_link_is_opened_has_none(house: House) -> None:
    device = await house.device()
    session = begin(house, device)
    house.system.begin(house.ref(device), DeleteDevice())
    await committed(house)
    assert (session.opened, session.ended, len(links(house))) == ([None], [LinkEnd.GONE], 0)
    session.close()
    await committed(house)


async def test_links_that_were_open_when_the_server_was_killed_end_at_the_next_start(tmp_path: Path) -> None:
    async with running_house(tmp_path) as house:
        devices = [await house.device() for _ in range(3)]
        sessions = [await connect(house, device) for device in devices]
        sessions[1].close()
        await house.command(devices[0], "go")
    async with running_again(tmp_path, house, 60_000) as house:
        for device, reason in ((devices[0], "The server stopped."), (devices[1], "The client left.")):
            last = (await log_of(house, device))[-1]
            assert (last["connected"], last["disconnectReason"]) == (0, reason)
        with house.system.store.snapshot() as snapshot:
            prefix = keys.OPEN_LINKS_PREFIX
            assert not snapshot.count(keys.META, prefix, keys.prefix_end(prefix))
        assert (await connect(house, devices[0])).names == ["go"]


# Peripherals.


async def peripheral_of(house: House, gateway: bytes) -> bytes:
    return await house.device(deviceClass="peripheral", gatewayId=gateway.hex())


async def give(house: House, device: bytes, gateway: bytes) -> None:
    body = msgspec.convert({"gatewayId": gateway.hex()}, DevicePatch)
    await house.ask(device, PatchDevice(body=body))
    await committed(house)


async def test_a_gateway_gets_the_commands_of_its_peripherals(house: House) -> None:
    gateway = await house.device(deviceClass="gateway")
    (await connect(house, gateway)).close()
    first, second = await peripheral_of(house, gateway), await peripheral_of(house, gateway)
    await house.command(first, "a")
    await house.command(gateway, "own")
    await house.command(second, "b")
    session = await connect(house, gateway)
    assert {(command.name, command.device) for command in session.given} == {
        ("a", first), ("own", None), ("b", second)
    }  # fmt: skip
    late = await peripheral_of(house, gateway)
    await house.command(late, "c")
    await house.command(first, "d")
    assert session.names[3:] == ["c", "d"]
    for command in session.given:
        assert await session.acknowledge(command.id, command.device)
    session.close()
    assert (await connect(house, gateway)).given == []
    with house.system.store.snapshot() as snapshot:
        prefix = keys.WAITING_PREFIX
        assert not snapshot.count(keys.META, prefix, keys.prefix_end(prefix))


async def test_a_peripheral_that_moves_takes_its_commands_with_it(house: House) -> None:
    here, there = await house.device(deviceClass="gateway"), await house.device(deviceClass="gateway")
    old, new = await connect(house, here), await connect(house, there)
    device = await peripheral_of(house, here)
    await house.command(device, "a")
    await give(house, device, there)
    await house.command(device, "b")
    assert (old.names, new.names) == (["a"], ["a", "b"])
    with pytest.raises(NotFound):
        await old.acknowledge(old.given[0].id, device)
    new.close()
    await house.command(device, "c")
    await give(house, device, here)
    await house.command(device, "d")
    assert old.names == ["a", "a", "b", "c", "d"]


async def test_a_peripheral_with_a_link_of_its_own_is_not_carried(house: House) -> None:
    gateway = await house.device(deviceClass="gateway")
    carrying = await connect(house, gateway)
    device = await peripheral_of(house, gateway)
    await house.command(device, "a")
    own = await connect(house, device)
    await house.command(device, "b")
    assert (carrying.names, own.names) == (["a"], ["a", "b"])
    await own.acknowledge(own.given[0].id)
    own.close()
    await committed(house)
    await house.command(device, "c")
    assert carrying.names == ["a", "b", "c"]


async def test_a_peripheral_that_is_restored_gets_what_waited(house: House) -> None:
    gateway = await house.device(deviceClass="gateway")
    (await connect(house, gateway)).close()
    device = await peripheral_of(house, gateway)
    await house.command(device, "a")
    await house.ask(device, DeleteDevice())
    session = await connect(house, gateway)
    assert session.given == []
    session.close()
    await house.ask(device, RestoreDevice())
    assert (await connect(house, gateway)).names == ["a"]


# What goes wrong.


async def test_a_deleted_application_has_no_links(house: House) -> None:
    device = await house.device()
    session = await connect(house, device)
    await house.system.ask(Ref("application", ROOT, house.application), DeleteApplication())
    await committed(house)
    assert session.ended == [LinkEnd.GONE]
    session.close()
    assert len(links(house)) == 0
    while await sweep(house.system):
        pass
    with house.system.store.snapshot() as snapshot:
        prefix = keys.OPEN_LINKS_PREFIX
        assert not snapshot.count(keys.META, prefix, keys.prefix_end(prefix))


async def test_a_link_whose_opening_is_not_stored_is_none(house: House) -> None:
    device = await house.device()
    house.system.journal._sync_delay_s = failing
    session = begin(house, device)
    await committed(house)
    house.system.journal._sync_delay_s = None
    assert [type(error) for error in session.opened] == [Crashed]
    session.close()
    await committed(house)
    assert (len(links(house)), await log_of(house, device)) == (0, [])


async def test_the_end_of_a_link_is_logged_later_if_it_cannot_be_stored(
    house: House, autojump_clock: trio.testing.MockClock
) -> None:
    device = await house.device()
    session = await connect(house, device)
    house.system.journal._sync_delay_s = failing
    session.close()
    await committed(house)
    house.system.journal._sync_delay_s = None
    assert len(await log_of(house, device)) == 1
    await trio.sleep(RETRY_S + 1)
    await committed(house)
    assert [entry["connected"] for entry in await log_of(house, device)] == [1, 0]


async def test_a_link_ends_if_what_it_was_given_cannot_be_stored(house: House) -> None:
    device = await house.device()
    (await connect(house, device)).close()
    await house.command(device, "go")
    session = await connect(house, device, room=0)
    house.system.journal._sync_delay_s = failing
    session.room = 1000
    assert session.link is not None
    links(house).pump(session.link)
    await committed(house)
    house.system.journal._sync_delay_s = None
    assert (session.given, session.ended) == ([], [LinkEnd.FAILED])
    session.close()
    await committed(house)
    assert (await connect(house, device)).names == ["go"]


def failing() -> float:
    raise StoreBroken("the disk is gone")
