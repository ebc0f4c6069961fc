"""An application that leaves a system and comes back goes on as after a restart, and others notice nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import (
    button,
    create_flow,
    kept_runs,
    press,
    runs_end,
    trigger,
    waiting_triggers,
)
from tests.actors.fleet.devices import link_session
from tests.actors.house import House, at, running_house
from tests.actors.moves import come, leave, move, other_house
from tests.actors.workflows.triggers.test_timers import moved_to, timed, timer
from tests.actors.workflows.triggers.test_timers import told as fired
from tests.patience import PATIENCE_S
from trunkline.actors import catalogue, moving
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import NotFound, Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.topics.broker import Broker
from trunkline.actors.data.topics.publication import ConnectClient, Publication
from trunkline.actors.fleet.devices.commands.link_session import LinkEnd
from trunkline.actors.fleet.devices.commands.links import Links
from trunkline.actors.platform.applications.messages import (
    ApplicationPatch,
    DeleteApplication,
    PatchApplication,
)
from trunkline.actors.presentation.experience.counts import RequestCounts
from trunkline.actors.workflows.triggers.timers import Timers

# Calls.


async def test_calls_are_refused_while_it_is_away_and_another_application_is_answered(house: House) -> None:
    other = await other_house(house)
    device, elsewhere = await house.device(), await other.device()
    await house.report(device, {"data": {"a": 1}})
    await leave(house)
    parents = {ref for box in house.system.mailboxes() for ref in (box.ref.parent, box.ref.id)}
    assert house.application not in parents
    owner = Ref("application", ROOT, house.application)
    with pytest.raises(Overloaded, match="is being moved to another partition; repeat the call in a second"):
        await house.report(device, {"data": {"a": 2}})
    with pytest.raises(Overloaded):
        await house.system.ask(owner, PatchApplication(body=msgspec.convert({"name": "n"}, ApplicationPatch)))
    with pytest.raises(Overloaded):
        house.listen(device)
    await other.report(elsewhere, {"data": {"a": 3}})
    assert [each["data"] for each in await house.states(device)] == [{"a": 1}]
    await come(house)
    await house.report(device, {"data": {"a": 2}})
    assert [each["data"]["a"] for each in await house.states(device)] == [1, 2]
    assert [each["data"]["a"] for each in await other.states(elsewhere)] == [3]
    house.system.streams.close(house.listen(device))


@pytest.mark.slow
async def test_a_thousand_devices_leave_and_come_under_calls_and_nothing_acknowledged_is_lost(
    tmp_path: Path,
) -> None:
    async with running_house(tmp_path / "d") as house:
        other = await other_house(house)
        devices = [await house.device(name=f"{number}") for number in range(1000)]
        elsewhere = [await other.device() for _ in range(20)]
        acknowledged: dict[bytes, list[int]] = {each: [] for each in (*devices, *elsewhere)}
        refused, back = set[bytes](), trio.Event()
        rounds = 6

        async def call(at: House, device: bytes) -> None:
            for number in range(rounds):
                while True:
                    try:
                        await at.report(device, {"data": {"a": number}})
                    except Overloaded:
                        refused.add(device)
                        await back.wait()
                    else:
                        break
                acknowledged[device].append(number)

        with trio.fail_after(4 * PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for device in devices:
                    nursery.start_soon(call, house, device)
                for device in elsewhere:
                    nursery.start_soon(call, other, device)
                while not any(acknowledged.values()):
                    await trio.lowlevel.checkpoint()
                await leave(house)
                counts = [len(await house.states(device)) for device in devices]
                assert counts == [len(acknowledged[device]) for device in devices]
                await come(house)
                back.set()
        assert len(refused) > 500
        assert not refused.intersection(elsewhere)
        for device in devices:
            assert [each["data"]["a"] for each in await house.states(device)] == list(range(rounds))
        for device in elsewhere:
            assert [each["data"]["a"] for each in await other.states(device)] == list(range(rounds))


async def test_an_application_that_was_deleted_leaves_and_comes(house: House) -> None:
    await house.system.ask(Ref(APPLICATION.name, ROOT, house.application), DeleteApplication())
    await move(house)
    with pytest.raises(NotFound):
        await house.system.ask(Ref(APPLICATION.name, ROOT, house.application), DeleteApplication())


async def test_it_may_leave_and_come_again_and_again(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await timed(house, timer(seconds=10))
        for number in range(1, 4):
            await move(house)
            await moved_to(house, number * 10_000)
        assert fired(house, flow) == [("t", at(10_000), 0), ("t", at(20_000), 0), ("t", at(30_000), 0)]


async def test_a_step_is_repeated_where_the_server_has_too_much_to_do(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    come_timers, refusals = Timers.come, [Overloaded("later")]

    async def refuse(self: Timers, application: bytes) -> None:
        if refusals:
            raise refusals.pop()
        await come_timers(self, application)

    monkeypatch.setattr(moving, "_PAUSE_S", 0.001)
    monkeypatch.setattr(Timers, "come", refuse)
    await move(house)
    assert not refusals
    assert not house.system.moves.away


class Broken(Exception):
    """What a step of a test raises."""


@pytest.mark.parametrize("step", ["leave", "load", "recover", "come"])
async def test_an_application_is_taken_back_whichever_step_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    parts = [part for feature in catalogue.FEATURES for part in feature.moved]
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        nodes = [node("w", "DelayNode", {"delay": 0.01}, ["d"]), node("d", "DebugNode")]
        flow = await create_flow(house, [button(["w"])], nodes)
        for number, part in enumerate(parts):
            work = getattr(part, step)

            async def fail(self: Any, application: bytes, work: Any = work) -> None:
                await work(self, application)
                raise Broken

            await press(house, flow)
            await trio.testing.wait_all_tasks_blocked()
            with monkeypatch.context() as broken:
                broken.setattr(part, step, fail)
                with pytest.raises(Broken):
                    await move(house)
            await come(house)
            await house.report(device, {"data": {"a": number}})
            await runs_end(house)
            house.clock.pass_s(1)
        assert len(kept_runs(house, flow)) == len(parts)
        assert len(await house.states(device)) == len(parts)
        assert waiting_triggers(house) == []


# Connections.


async def test_a_link_is_ended_and_the_device_can_have_one_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        other = await other_house(house)
        elsewhere = await other.device()
        session, there = (
            await link_session.connect(house, device),
            await link_session.connect(other, elsewhere),
        )

        def end(why: LinkEnd) -> None:
            session.ended.append(why)
            session.close(why.value)

        monkeypatch.setattr(session, "end", end)
        await leave(house)
        assert (session.ended, there.ended) == ([LinkEnd.MOVED], [])
        assert house.system.component(Links).of(device) is None
        with pytest.raises(Overloaded):
            link_session.begin(house, device)
        await come(house)
        again = await link_session.connect(house, device)
        await house.command(device, "go")
        assert again.names == ["go"]
        shown = [
            each["disconnectReason"]
            for each in await link_session.log_of(house, device)
            if "disconnectReason" in each
        ]
        assert shown == [LinkEnd.MOVED.value]


async def test_a_will_is_published_after_it_has_come_and_not_before(house: House) -> None:
    will = Publication("gone", b"bye")
    client = Ref("publisher", house.application, b"mortal".ljust(12, b"."))
    message = ConnectClient(
        will=will, retain_will=False, origin=None, login=None, delay_s=0, is_resumed=False
    )
    await house.system.ask(client, message)
    flow = await create_flow(house, [trigger("mqttTopic", ["d"], "gone")], [node("d", "DebugNode")])
    await leave(house)
    await trio.sleep(0.01)
    assert waiting_triggers(house) == []
    await come(house)
    await runs_end(house)
    assert len(kept_runs(house, flow)) == 1
    await move(house)
    await runs_end(house)
    assert len(kept_runs(house, flow)) == 1
    assert len(house.system.component(Broker)) == 0


async def test_requests_that_were_counted_are_stored_before_it_leaves(house: House) -> None:
    counts = house.system.component(RequestCounts)
    counts.add(house.application, bytes(12), 200, "here", "v")
    await leave(house)
    assert not counts._counted
    await come(house)


# What is listed.

ALONE = {
    "ScriptPool": "its processes belong to no application; what they compute is ended with the runs",
    "BacklogLane": "calls wait in it, which are refused when their turn comes; it has budgets in memory, as throttles",
}
"""Components that work in the background and have nothing that is moved."""


def test_every_component_that_works_in_the_background_is_moved_or_says_why_not() -> None:
    moved = {part for feature in catalogue.FEATURES for part in feature.moved}
    for feature in catalogue.FEATURES:
        for task in (*feature.first_tasks, *feature.tasks, *feature.stops):
            assert (task in moved) is not (task.__name__ in ALONE), task


async def test_every_component_that_can_be_moved_is_listed_once(house: House) -> None:
    listed = [part for feature in catalogue.FEATURES for part in feature.moved]
    parts = {type(each) for each in house.system._components.values() if isinstance(each, Moved)}
    assert len(listed) == len(set(listed))
    assert set(listed) == parts
