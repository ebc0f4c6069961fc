"""Commands: their order, when the streams hear of them, and what a stream that comes back is given."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio

from tests.actors.house import START_MS, House, at
from trunkline.actors.core.values.errors import Crashed, Invalid
from trunkline.actors.fleet.devices.actor.state_feed import STATE_TOPIC
from trunkline.actors.fleet.devices.record import read_messages
from trunkline.store import keys

DAY_MS = 86_400_000


async def test_commands_keep_their_order_when_the_clock_is_set_back(house: House) -> None:
    device = await house.device()
    stream, previous = house.listen(device), 0
    for number, wall_ms in enumerate([0, 5000, 5000, -3_600_000, 4999, 6000, -86_400_000, 0]):
        house.clock.set_wall(START_MS + wall_ms)
        if number == 4:
            house.forget()
            stream = house.listen(device)
        await house.command(device, f"c{number}")
        ((position, event),) = await stream.receive()
        assert msgspec.json.decode(event)["name"] == f"c{number}"
        assert msgspec.json.decode(event)["time"] == at(wall_ms), "the time shown is that of the wall clock"
        assert position > previous
        previous = position
    assert [command["name"] for command in await house.commands(device)] == [f"c{n}" for n in range(8)]


async def test_a_command_has_the_time_that_its_sender_gives(house: House) -> None:
    device = await house.device()
    await house.command(device, "go", time=START_MS - 500, payload={"on": True})
    await house.command(device, "stop", time={"$date": at(1000)}, payload=None)
    await house.command(device, "wait")
    assert await house.commands(device) == [
        {"name": "go", "time": at(-500), "payload": {"on": True}},
        {"name": "stop", "time": at(1000), "payload": None},
        {"name": "wait", "time": at(0)},
    ]
    with pytest.raises(Invalid, match=r"^time: .*more than a day ahead"):
        await house.command(device, "late", time=START_MS + DAY_MS + 1)


async def test_a_command_is_on_an_open_stream_in_the_turn_of_its_commit(house: House) -> None:
    """One turn of the loop is one pass of the scheduler. The commit and the stream's wake-up share one."""
    device = await house.device()
    stream = house.listen(device)
    turns = Turns()
    synced_in: list[int] = []
    seen: list[tuple[int, int]] = []

    def sync() -> float:
        synced_in.append(turns.count)
        return 0.0

    async def read_stream() -> None:
        for _ in range(3):
            events = await stream.receive()
            with house.system.store.snapshot() as snapshot:
                stored = snapshot.count(keys.COMMANDS, device, keys.prefix_end(device))
            seen.append((turns.count, stored))
            assert len(events) == 1

    house.system.journal._sync_delay_s = sync
    trio.lowlevel.add_instrument(turns)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read_stream)
            for number in range(3):
                await house.command(device, f"c{number}")
    finally:
        trio.lowlevel.remove_instrument(turns)
    assert [stored for _, stored in seen] == [1, 2, 3], "what a stream shows is on disk"
    delays = [turn - synced for (turn, _), synced in zip(seen, synced_in, strict=True)]
    assert delays == [1, 1, 1], "the reader runs in the very next pass after the commit"


class Turns(trio.abc.Instrument):
    """Counts the passes of the scheduler."""

    def __init__(self) -> None:
        self.count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


async def test_a_stream_that_opens_between_turn_and_commit_hears_of_the_command(house: House) -> None:
    """It is in no log that the stream could have read, and must not fall between the two."""
    device = await house.device()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.command, device, "between")
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert house.system.journal.pending_batches == 1, "the turn is over, the commit is not"
        stream = house.listen(device)
        assert (await replay(house, device, 0, limit=10)).events == []
    ((_, event),) = await stream.receive()
    assert msgspec.json.decode(event)["name"] == "between"


async def test_a_state_stream_that_opens_between_turn_and_commit_hears_of_the_state(house: House) -> None:
    """Who opens the stream and then reads the composite state sees every state in one of them."""
    device = await house.device()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.report, device, {"data": {"a": 1}})
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert house.system.journal.pending_batches == 1, "the turn is over, the commit is not"
        stream = house.listen(device, STATE_TOPIC)
        assert await house.composite(device) == {}
    ((_, event),) = await stream.receive()
    assert msgspec.json.decode(event)["data"] == {"a": 1}


async def test_nobody_hears_of_a_command_that_could_not_be_stored(house: House) -> None:
    device = await house.device()
    stream = house.listen(device)

    def broken() -> float:
        raise OSError("the disk is gone")

    house.system.journal._sync_delay_s = broken
    with pytest.raises(Crashed):
        await house.command(device, "lost")
    with pytest.raises(Crashed):
        await house.report(device, {"data": {"a": 1}})
    house.system.journal._sync_delay_s = None
    await house.command(device, "kept")
    ((_, event),) = await stream.receive()
    assert msgspec.json.decode(event)["name"] == "kept"
    assert [command["name"] for command in await house.commands(device)] == ["kept"]
    assert (await house.composite(device), await house.payloads(device)) == ({}, {"deviceCommand": 1})


async def test_a_state_stream_hears_each_report_as_it_was_sent(house: House) -> None:
    device = await house.device()
    stream = house.listen(device, STATE_TOPIC)
    await house.report(device, {"data": {"a": "1"}, "time": START_MS, "meta": 5}, {"data": {"b": 2}})
    events = [msgspec.json.decode(event) for _, event in await stream.receive()]
    assert events == [
        {"time": at(0), "data": {"a": 1}, "meta": 5},
        {"time": at(0), "data": {"b": 2}},
    ]


@pytest.mark.parametrize("counts", [(1,), (3, 5), (1, 1, 1)])
async def test_replay_gives_what_came_after_a_position_page_by_page(house: House, counts: Any) -> None:
    device = await house.device()
    other = await house.device()
    stream = house.listen(device)
    for number in range(9):
        await house.command(device, f"c{number}")
        await house.command(other, "other")
        house.clock.pass_s(0.001)
    positions = [position for position, _ in await stream.receive()]
    for skipped in range(9):
        names: list[str] = []
        position, more = positions[skipped], True
        while more:
            missed = await replay(house, device, position, limit=counts[len(names) % len(counts)])
            names += [msgspec.json.decode(event)["name"] for _, event in missed.events]
            position, more = missed.events[-1][0] if missed.events else position, missed.more
        assert names == [f"c{number}" for number in range(skipped + 1, 9)]
    assert (await replay(house, device, 0, limit=1000)).more is False
    assert (await replay(house, device, positions[-1] + 1, limit=1000)).events == []


async def test_a_page_of_replay_is_bounded_in_bytes(house: House) -> None:
    device = await house.device()
    for _ in range(5):
        await house.command(device, "big", payload="x" * 1000)
    missed = await replay(house, device, 0, limit=1000, bytes_max=1500)
    assert (len(missed.events), missed.more) == (2, True)
    missed = await replay(house, device, 0, limit=1000, bytes_max=1)
    assert (len(missed.events), missed.more) == (1, True), "one always goes, or nothing ever would"


async def replay(house: House, device: bytes, position: int, *, limit: int, bytes_max: int = 1 << 20) -> Any:
    return await house.read(
        read_messages.ReplayCommands(
            application=house.application,
            device=device,
            position=position,
            limit=limit,
            bytes_max=bytes_max,
            now_ms=house.clock.wall_ms(),
        )
    )
