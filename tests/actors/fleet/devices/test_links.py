"""Commands over links: what waits, and what a link is given and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.actors.fleet.devices.link_session import begin, committed, connect, links
from tests.actors.house import House, at, running_house
from trunkline.actors.fleet.devices.bulk.removal_messages import RemoveData
from trunkline.actors.fleet.devices.record.messages import (
    CommandPost,
    SendCommand,
)
from trunkline.limits.table import Limits
from trunkline.store import keys


async def statuses(house: House, device: bytes) -> dict[str, str | None]:
    return {command["name"]: command.get("status") for command in await house.commands(device)}


async def test_a_device_without_a_link_has_no_waiting_commands(house: House) -> None:
    device = await house.device()
    await house.command(device, "years ago")
    assert await house.commands(device) == [{"name": "years ago", "time": at(0)}]
    with house.system.store.snapshot() as snapshot:
        assert snapshot.get(keys.TIMELINE, keys.waiting_key(device)) is None
    session = await connect(house, device)
    assert session.given == [], "the first link does not get what came before"


async def test_a_command_with_a_time_to_live_waits_for_the_first_link(house: House) -> None:
    device = await house.device()
    await house.command(device, "short", ttlSeconds=10)
    await house.command(device, "long", ttlSeconds=60, payload={"on": True})
    house.clock.pass_s(10)
    session = await connect(house, device)
    ((number, name, payload, time_ms, peripheral),) = session.given
    assert (name, payload, peripheral) == ("long", {"on": True}, None)
    assert time_ms == house.clock.wall_ms() - 10_000
    assert await house.commands(device) == [
        {"name": "short", "time": at(0), "id": number - 1, "status": "expired", "expiresAt": at(10_000)},
        {
            "name": "long",
            "time": at(0),
            "payload": {"on": True},
            "id": number,
            "status": "sent",
            "sentAt": at(10_000),
            "expiresAt": at(60_000),
        },
    ]
    assert links(house).expired == 1


async def test_a_command_stands_in_the_history_from_queued_to_acknowledged(house: House) -> None:
    device = await house.device()
    (await connect(house, device)).close()
    await house.command(device, "go")
    assert await statuses(house, device) == {"go": "queued"}
    house.clock.pass_s(1)
    session = await connect(house, device)
    assert await statuses(house, device) == {"go": "sent"}
    house.clock.pass_s(1)
    assert await session.acknowledge(session.given[0].id)
    assert await house.commands(device) == [
        {
            "name": "go",
            "time": at(0),
            "id": session.given[0].id,
            "status": "acknowledged",
            "sentAt": at(1000),
            "acknowledgedAt": at(2000),
        }
    ]
    assert not await session.acknowledge(session.given[0].id), "it does not wait any more"
    session.close()
    assert (await connect(house, device)).given == []
    assert (links(house).sent, links(house).acknowledged) == (1, 1)


@pytest.mark.parametrize("opened_after", range(6))
async def test_an_open_link_gets_each_command_once_and_in_order_whenever_it_was_opened(
    house: House, opened_after: int
) -> None:
    """The link is opened between any two turns of commands, and the loop goes on at any time for any time."""
    for stop_after in range(7):
        for passes in range(1, 6):
            device = await house.device()
            (await connect(house, device)).close()
            for number in range(6):
                if number == opened_after:
                    session = begin(house, device)
                house.system.begin(house.ref(device), SendCommand(body=CommandPost(name=f"c{number}")))
                if number == stop_after:
                    for _ in range(passes):
                        await trio.lowlevel.checkpoint()
            await committed(house)
            assert session.names == [f"c{number}" for number in range(6)]


async def test_a_command_that_is_read_before_its_commit_is_given_once(house: House) -> None:
    device = await house.device()
    session = await connect(house, device, room=0)
    send = SendCommand(body=CommandPost(name="a"))
    house.system.begin(house.ref(device), send)
    session.room = 1000
    assert session.link is not None
    links(house).pump(session.link)
    assert session.given == [], "it is not on disk yet"
    await committed(house)
    assert session.names == ["a"]
    assert await statuses(house, device) == {"a": "sent"}


async def test_what_was_not_acknowledged_comes_again(house: House) -> None:
    device = await house.device()
    session = await connect(house, device)
    for name in ("a", "b", "c"):
        await house.command(device, name)
    assert session.names == ["a", "b", "c"]
    await session.acknowledge(session.given[1].id)
    session.close()
    house.forget()
    again = await connect(house, device)
    assert again.given == [session.given[0], session.given[2]]


async def test_a_full_link_gets_the_rest_when_it_has_room(house: House) -> None:
    device = await house.device()
    session = await connect(house, device, room=2)
    for number in range(5):
        await house.command(device, f"c{number}")
    assert session.names == ["c0", "c1"]
    assert (await statuses(house, device))["c2"] == "queued"
    session.room = 100
    assert session.link is not None
    links(house).pump(session.link)
    await committed(house)
    await house.command(device, "c5")
    assert session.names == [f"c{number}" for number in range(6)]


async def test_waiting_commands_come_in_bounded_parts(tmp_path: Path) -> None:
    limits = Limits.off()
    async with running_house(tmp_path, limits=limits) as house:
        device = await house.device()
        (await connect(house, device)).close()
        for number in range(limits.link_page_commands_max * 2 + 3):
            await house.command(device, f"c{number}")
        session = await connect(house, device, room=1)
        assert len(session.given) == limits.link_page_commands_max
        session.room = 1000
        assert session.link is not None
        links(house).pump(session.link)
        await committed(house)
        assert session.names == [f"c{number}" for number in range(limits.link_page_commands_max * 2 + 3)]


async def test_over_the_bound_the_oldest_command_expires(house: House) -> None:
    device = await house.device()
    (await connect(house, device)).close()
    most = house.system.limits.waiting_commands_max
    for number in range(most + 2):
        await house.command(device, f"c{number}")
    found = await house.commands(device)
    assert [command["name"] for command in found if command["status"] == "expired"] == ["c0", "c1"]
    assert found[0]["expiresAt"] == at(0)
    session = await connect(house, device)
    assert session.names == [f"c{number}" for number in range(2, most + 2)]


async def test_a_command_that_was_removed_from_the_log_does_not_come_back(house: House) -> None:
    device = await house.device()
    session = await connect(house, device)
    await house.command(device, "a")
    await house.command(device, "b")
    with house.system.store.snapshot() as snapshot:
        first, second = (bytes(key) for key in snapshot.keys(keys.COMMANDS, device, keys.prefix_end(device)))
    await house.ask(device, RemoveData(points=[], attributes=None, commands=[first, second], logs=[]))
    await session.acknowledge(session.given[1].id)
    assert await house.commands(device) == []
    session.close()
    assert (await connect(house, device)).given == []
