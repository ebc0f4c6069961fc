"""The backlog lane: who has the turn when, what is refused, and what a backlog changes of a device."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import create_flow, kept_runs, runs_end, trigger
from tests.actors.fleet.devices.test_inactivity import moved_to, told
from tests.actors.house import START_MS, House, ManualClock, at, running_house
from tests.patience import PATIENCE_S
from trunkline.actors import boot
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import (
    DomainError,
    Invalid,
    Overloaded,
    PayloadTooLarge,
    TooManyRequests,
)
from trunkline.actors.fleet.devices.actor.state_feed import STATE_TOPIC
from trunkline.actors.fleet.devices.record.messages import SendBacklog, StateOrStates
from trunkline.actors.fleet.devices.state.backlog import BacklogLane, holds_backlog
from trunkline.actors.workflows.triggers.queue import Queued, TriggerQueue
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.limits.window import Verdict
from trunkline.store.batch import Batch
from trunkline.store.codec import encode_numbered

LIMITS = Limits().override(
    {
        "backlog_states": {"calls": 40, "window_s": 10},
        "backlog_batch_states_max": 10,
        "backlog_waiting_calls_max": 3,
        "backlog_waiting_bytes_max": 1000,
        "body_bytes_max": 1000,
    }
)


class Lane:
    """A lane, and calls that enter it and keep their turns until they are told to leave."""

    def __init__(self, nursery: trio.Nursery, limits: Limits) -> None:
        self.clock = ManualClock()
        self.held: set[bytes] = set()
        self.owners: dict[bytes, bytes] = {}
        self.lane = BacklogLane(
            limits,
            self.clock,
            lambda application: application in self.held,
            lambda application: self.owners.get(application, application),
        )
        self.on: list[str] = []
        self.order: list[str] = []
        self.refused: dict[str, DomainError] = {}
        self.verdicts: dict[str, Verdict | None] = {}
        self._nursery = nursery
        self._leave: dict[str, trio.Event] = {}
        self._scopes: dict[str, trio.CancelScope] = {}

    def come(self, name: str, states: int = 10, size_bytes: int = 10) -> None:
        """`a1.2` is the second call of the device 1 of the application a."""
        self._leave[name], self._scopes[name] = trio.Event(), trio.CancelScope()
        self._nursery.start_soon(self._drive, name, states, size_bytes)

    async def leave(self, *names: str) -> None:
        for name in names:
            self._leave[name].set()
        await wait_all_tasks_blocked()

    async def cancel(self, name: str) -> None:
        self._scopes[name].cancel()
        await wait_all_tasks_blocked()

    async def all_leave(self) -> list[str]:
        """Let everyone leave who has a turn, until nobody waits who may have one; return the order of the turns."""
        while self.on:
            await self.leave(*self.on)
        return self.order

    async def _drive(self, name: str, states: int, size_bytes: int) -> None:
        device = Ref("device", name[0].encode(), name[:2].encode())
        with self._scopes[name]:
            try:
                async with self.lane.turn(device, states, size_bytes) as self.verdicts[name]:
                    self.on.append(name)
                    self.order.append(name)
                    try:
                        await self._leave[name].wait()
                    finally:
                        self.on.remove(name)
            except DomainError as refusal:
                self.refused[name] = refusal


@asynccontextmanager
async def running_lane(limits: Limits = LIMITS) -> AsyncIterator[Lane]:
    """A lane that gives out turns."""
    async with trio.open_nursery() as nursery:
        lane = Lane(nursery, limits)
        nursery.start_soon(lane.lane.run)
        yield lane
        nursery.cancel_scope.cancel()


async def come(lane: Lane, *names: str, states: int = 10) -> None:
    """Calls come one after the other, while somebody has the turn."""
    for name in names:
        lane.come(name, states)
        await wait_all_tasks_blocked()


async def test_a_batch_has_so_many_states_and_the_next_waits_for_its_answers() -> None:
    async with running_lane() as lane:
        await come(lane, "a1", states=4)
        await come(lane, "a2", "a3", "a4", states=5)
        assert lane.on == ["a1"], "who comes later is in the next batch"
        await lane.leave("a1")
        assert sorted(lane.on) == ["a2", "a3"]
        await lane.leave("a2")
        assert lane.on == ["a3"]
        await lane.leave("a3")
        assert lane.on == ["a4"]
        assert (lane.lane.waiting, lane.lane.waiting_bytes, lane.lane.states) == (0, 0, 19)


async def test_applications_take_turns_and_devices_within_them() -> None:
    async with running_lane() as lane:
        await come(lane, "a0", "a1.1", "a1.2", "a1.3", "a2.1", "a3.1", "b1.1", "b1.2")
        order = await lane.all_leave()
    assert order == ["a0", "a1.1", "b1.1", "a2.1", "b1.2", "a3.1"], "the budget of a is used up"


async def test_small_calls_do_not_starve_those_that_need_a_whole_batch() -> None:
    async with running_lane(dataclasses.replace(LIMITS, backlog_states=None)) as lane:
        await come(lane, "a0", states=10)
        for name in ("a1.1", "a2.1", "a1.2", "b1.1", "b2.1", "b1.2"):
            await come(lane, name, states=6)
        assert await lane.all_leave() == ["a0", "a1.1", "b1.1", "a2.1", "b2.1", "a1.2", "b1.2"]
        assert lane.verdicts["a0"] is None


async def test_a_used_up_budget_holds_one_application_and_not_the_other() -> None:
    async with running_lane() as lane:
        await come(lane, "a1", "a2", "a3", "a4", "a5", "a6", "b1")
        assert await lane.all_leave() == ["a1", "a2", "b1", "a3", "a4"]
        verdict = lane.verdicts["a4"]
        assert verdict is not None
        assert (verdict.limit, verdict.remaining, verdict.window_s) == (40, 0, 10.0)
        lane.clock.pass_s(10)
        await come(lane, "b2")
        assert await lane.all_leave() == ["a1", "a2", "b1", "a3", "a4", "a5", "b2", "a6"]


async def test_what_holds_an_application_is_looked_at_again(autojump_clock: trio.testing.MockClock) -> None:
    async with running_lane() as lane:
        lane.held.add(b"a")
        await come(lane, "a1", "b1")
        assert await lane.all_leave() == ["b1"]
        lane.held.clear()
        await trio.sleep(0.1)
        assert await lane.all_leave() == ["b1", "a1"]


async def test_a_turn_that_does_not_come_in_time_is_told_when_to_come_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running_lane() as lane:
        await come(lane, "a1", "a2", "a3", "a4", "a5")
        await lane.all_leave()
        await trio.sleep(LIMITS.backlog_wait_s + 1)
        assert lane.order == ["a1", "a2", "a3", "a4"]
        refusal = lane.refused["a5"]
        assert isinstance(refusal, TooManyRequests)
        assert (refusal.bucket, refusal.retry_after_s) == ("backlog_states", 2.5)
        assert "behind others. Nothing of this call was stored. Try again in 3 seconds." in refusal.message
        assert (lane.lane.waiting, lane.lane.waiting_bytes, lane.lane.refused) == (0, 0, 1)


async def test_a_call_that_takes_long_does_not_hold_the_lane(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running_lane() as lane:
        await come(lane, "a1", "a2")
        assert lane.on == ["a1"]
        await trio.sleep(1.1)
        assert lane.on == ["a1", "a2"]


async def test_what_finds_no_room_is_refused_at_once() -> None:
    async with running_lane() as lane:
        await come(lane, "a0", "a1.1", "a1.2", "a1.3", "a1.4")
        refusal = lane.refused["a1.4"]
        assert isinstance(refusal, Overloaded)
        assert refusal.message.startswith("3 calls with a backlog of this device wait already. Nothing of")
        assert refusal.retry_after_s == 7.5, "what 30 states need at 4 a second"
        for name, size_bytes in (("a2", 470), ("a3", 1), ("b1", 250), ("b2", 1)):
            lane.come(name, size_bytes=size_bytes)
            await wait_all_tasks_blocked()
        assert lane.refused.keys() == {"a1.4", "a3", "b2"}, "each may use as much as all leave free"
        with pytest.raises(PayloadTooLarge, match="11 states in one call; send at most 10 of a backlog"):
            async with lane.lane.turn(Ref("device", b"a", b"a9"), 11, 1):
                raise AssertionError


async def test_who_leaves_while_waiting_or_working_frees_the_place() -> None:
    async with running_lane() as lane:
        await come(lane, "a1", "a2", "a3", "b1")
        await lane.cancel("a2")
        await lane.cancel("b1")
        assert (lane.on, lane.lane.waiting) == (["a1"], 1)
        await lane.cancel("a1")
        assert lane.on == ["a3"]


async def test_a_stopping_server_refuses_who_waits_and_who_comes() -> None:
    async with running_lane() as lane:
        await come(lane, "a1", "a2")
        lane.lane.stop()
        await come(lane, "a3")
        assert lane.on == ["a1"], "who has the turn keeps it"
        assert [str(lane.refused[name]) for name in ("a2", "a3")] == [
            "The server is stopping; nothing of this call was stored."
        ] * 2


# What a backlog changes of a device.


async def bring(house: House, device: bytes, *states: dict[str, Any]) -> None:
    """Send a backlog as the API would."""
    body = msgspec.convert(list(states), StateOrStates)
    async with house.system.component(BacklogLane).turn(house.ref(device), len(states), 1):
        await house.ask(device, SendBacklog(body=body))


def past(offset_ms: int, **data: Any) -> dict[str, Any]:
    return {"time": START_MS + offset_ms, "data": data}


async def test_a_backlog_fills_the_past_and_changes_nothing_newer(house: House) -> None:
    device = await house.device()
    await house.report(device, past(-10, a=5))
    stream = house.listen(device, STATE_TOPIC)
    await bring(house, device, past(-3000, a=1, b=1), past(-2000, a=2), past(-1000, b=3))
    await house.report(device, past(-5, a=6))
    everything = await house.states(device)
    assert [state["time"] for state in everything] == [
        at(offset) for offset in (-3000, -2000, -1000, -10, -5)
    ]
    assert await house.composite(device) == {"a": (at(-5), 6), "b": (at(-1000), 3)}
    assert await house.payloads(device) == {"deviceState": 5}
    heard = [msgspec.json.decode(event)["data"] for _, event in await stream.receive()]
    assert heard == [{"a": 6}], "streams tell what is new"
    house.forget()
    assert await house.composite(device) == {"a": (at(-5), 6), "b": (at(-1000), 3)}
    await house.flush()
    assert await house.states(device) == everything


async def test_each_state_of_a_backlog_has_its_time_or_nothing_is_stored(house: House) -> None:
    device = await house.device()
    with pytest.raises(Invalid, match=r"^\[1\]\.time: is missing; a state of a backlog needs the time"):
        await bring(house, device, past(-2, a=1), {"data": {"a": 1}})
    with pytest.raises(Invalid, match=r"^\[1\]\.data\.c: "):
        await bring(house, device, past(-2, a=1), past(-1, c=1))
    assert await house.states(device) == []


async def test_the_throttle_of_live_states_does_not_count_a_backlog(tmp_path: Path) -> None:
    async with running_house(tmp_path, limits=Limits()) as house:
        device = await house.device()
        for number in range(40):
            await bring(house, device, past(-number - 1, a=number))
        for number in range(30):
            await house.report(device, past(number, a=number))
        with pytest.raises(TooManyRequests, match="30 calls of send_state"):
            await house.report(device, past(30, a=30))
        await bring(house, device, past(-100, a=1))


async def test_a_live_state_waits_for_two_batches_at_most(tmp_path: Path) -> None:
    """That which has its turn, and that which may be committed with the live state."""
    limits = Limits.off().override({"backlog_batch_states_max": 10})
    async with running_house(tmp_path, limits=limits) as house:
        lane, live = house.system.component(BacklogLane), await house.device()
        devices = [await house.device() for _ in range(40)]
        backlog = [past(-number, a=number) for number in range(1, 11)]
        async with trio.open_nursery() as nursery:
            for device in devices:
                nursery.start_soon(bring, house, device, *backlog)
            await wait_until(lambda: lane.states > 0)
            reported = 0
            while lane.waiting:
                reported += 1
                before = lane.states
                await house.report(live, {"data": {"a": 1}})
                assert lane.states - before <= 20
        assert (lane.states, reported >= 19) == (400, True)
        assert [len(await house.states(device)) for device in devices] == [10] * 40


async def wait_until(is_so: Callable[[], bool]) -> None:
    with trio.fail_after(PATIENCE_S):
        while not is_so():
            await trio.lowlevel.checkpoint()


async def test_a_backlog_triggers_workflows_with_the_times_of_its_states(house: House) -> None:
    device = await house.device()
    triggers = [trigger("deviceId", ["d"], device.hex(), config={"maxAge": 1.5})]
    flow = await create_flow(house, triggers, [node("d", "DebugNode")])
    await bring(house, device, past(-2000, a=1), past(-1000, a=2))
    await runs_end(house)
    payloads = [run.debug[0][3] for run in kept_runs(house, flow)]
    assert [(payload["time"], payload["data"]) for payload in payloads] == [(at(-1000), {"a": 2})]


async def test_a_backlog_is_no_sign_of_life(house: House) -> None:
    device = await house.device()
    silent = trigger(
        "deviceIdInactivity", ["d"], device.hex(), config={"seconds": 30}, meta={"uiId": "silent"}
    )
    flow = await create_flow(house, [silent], [node("d", "DebugNode")])
    await house.report(device, {"data": {"a": 1}})
    house.clock.pass_s(20)
    await bring(house, device, past(15_000, a=2))
    house.forget()
    await moved_to(house, 30_000)
    ((_, _, last, _),) = told(house, flow)
    assert last == at(0)
    await bring(house, device, past(16_000, a=2), past(17_000, a=3))
    await moved_to(house, 90_000)
    assert len(kept_runs(house, flow)) == 1, "nor does it end the silence"
    assert await house.composite(device) == {"a": (at(17_000), 3)}


def test_backlogs_wait_while_half_of_the_memory_for_reports_is_used(tmp_path: Path) -> None:
    limits = Limits(arrival_window_bytes=10_000, arrivals_bytes_max=60_000)
    with boot.opened(Settings(data_dir=str(tmp_path), limits=limits), ManualClock()) as system:
        held = []
        for _ in range(3):
            held.append(holds_backlog(system, b"a" * 12))
            batch = Batch()
            batch.report(b"d" * 12, START_MS, encode_numbered({1: "x" * 20_000}))
            system.journal.submit(batch)
            system.journal.flush()
        assert held == [False, False, True]


def test_backlogs_wait_while_a_queue_of_their_workflows_is_half_full(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path), limits=Limits(flow_queue_length_max=4))
    with boot.opened(settings, ManualClock()) as system:
        queue, application = system.component(TriggerQueue), b"a" * 12
        held = []
        for number in range(4):
            held.append(holds_backlog(system, application))
            queue.add([Queued(number, b"k", application, b"f" * 12, str(number), b"")])
        assert held == [False, False, False, True]
        assert not holds_backlog(system, b"b" * 12)
        for _ in range(2):
            entry = queue.take()
            assert entry is not None
            queue.done(entry)
        assert not holds_backlog(system, application)
