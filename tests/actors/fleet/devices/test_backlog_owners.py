"""The backlog lane between owners: turns and room are those of an owner, not of an application."""

from __future__ import annotations

from trio.testing import wait_all_tasks_blocked

from tests.actors.fleet.devices.test_backlog import come, running_lane


async def test_owners_take_turns_whatever_the_number_of_their_applications() -> None:
    async with running_lane() as lane:
        lane.owners = {b"c": b"a", b"d": b"a", b"e": b"a"}
        await come(lane, "a0", "a1", "c1.1", "c1.2", "d1", "b1.1", "e1", "b1.2")
        assert await lane.all_leave() == ["a0", "a1", "b1.1", "c1.1", "b1.2", "d1", "e1", "c1.2"]


async def test_an_application_that_is_held_does_not_hold_others_of_its_owner() -> None:
    async with running_lane() as lane:
        lane.owners = {b"c": b"a"}
        lane.held.add(b"a")
        await come(lane, "b0", "a1", "c1", "b1", "c2")
        assert await lane.all_leave() == ["b0", "c1", "b1", "c2"]
        assert lane.lane.waiting_bytes == 10


async def test_who_fills_the_room_is_refused_in_each_application_and_no_other_owner() -> None:
    async with running_lane() as lane:
        lane.owners = {b"c": b"a"}
        await come(lane, "a0")
        for name, size_bytes in (("a1", 470), ("c1", 400), ("b1", 500), ("c2", 10)):
            lane.come(name, size_bytes=size_bytes)
            await wait_all_tasks_blocked()
        assert lane.refused.keys() == {"c1", "c2"}
        assert str(lane.refused["c1"]).startswith("470 bytes of backlogs of this owner wait already.")
        for name in ("a1", "b1"):
            await lane.cancel(name)
        await come(lane, "c3")
        assert (lane.lane.waiting, lane.lane.waiting_bytes) == (1, 10)
