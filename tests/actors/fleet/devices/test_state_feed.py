"""The feed of states: what becomes of the streams of others where one state cannot be told."""

from __future__ import annotations

import json
from pathlib import Path

import trio

from tests.actors.house import House, running_house
from tests.patience import PATIENCE_S
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref, application_streams
from trunkline.actors.core.runtime.subscription import Ending, Subscription
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.actor.state_feed import STATE_TOPIC, Selection, StateFeed
from trunkline.actors.fleet.devices.record.messages import Listen, StateStream
from trunkline.actors.platform.applications.messages import ApplicationPost, CreateApplication


class Faulty(Selection):
    """A selection that has a bug with a device."""

    def __init__(self, query: StateStream, device: bytes) -> None:
        super().__init__(query)
        self._device = device

    def has(self, device: bytes, doc: Doc) -> bool:
        if device == self._device:
            raise RuntimeError("a bug")
        return super().has(device, doc)


def follow(house: House, selection: Selection) -> Subscription:
    """Open a stream of an application."""
    ref = application_streams(house.application)
    subscription = house.system.subscribe(ref, selection.topic, Listen())
    house.system.component(StateFeed).select(house.application, selection)
    return subscription


async def values(subscription: Subscription) -> list[int]:
    with trio.fail_after(PATIENCE_S):
        return [json.loads(event)["data"]["a"] for _, event in await subscription.receive()]


async def test_a_fault_in_one_state_ends_the_streams_of_its_device_and_application_only(
    tmp_path: Path,
) -> None:
    async with running_house(tmp_path / "data") as house:
        system = house.system
        ref = Ref("application", ROOT, system.ids.new(house.clock.wall_ms()))
        await system.ask(ref, CreateApplication(body=ApplicationPost(name="other"), user=bytes(12)))
        other = House(system, house.clock, ref.id)
        faulty, beside, victim = await house.device(), await house.device(), await other.device()
        of_faulty, of_beside, of_victim = (
            house.listen(faulty, STATE_TOPIC),
            house.listen(beside, STATE_TOPIC),
            other.listen(victim, STATE_TOPIC),
        )
        with_fault = follow(house, Faulty(StateStream(), faulty))
        of_other = follow(other, Selection(StateStream()))
        commits = system.journal.statistics.commits
        async with trio.open_nursery() as nursery:
            nursery.start_soon(house.report, faulty, {"data": {"a": 1}}, {"data": {"a": 2}})
            nursery.start_soon(house.report, beside, {"data": {"a": 3}})
            nursery.start_soon(other.report, victim, {"data": {"a": 4}})
        assert system.journal.statistics.commits == commits + 1
        assert await values(of_victim) == await values(of_other) == [4]
        assert await values(of_beside) == [3]
        # The client comes back with the id of the last state that it got, and so lacks none.
        assert await values(of_faulty) == [1]
        assert [each.ending for each in (of_faulty, with_fault)] == [Ending.GONE] * 2
        assert [each.ending for each in (of_beside, of_victim, of_other)] == [None] * 3
