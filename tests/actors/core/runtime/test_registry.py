"""Who is in memory: activated on demand, gone when idle, bounded, and nothing forgotten on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from tests.actors.probes import (
    TOPIC,
    Add,
    AddSlowly,
    AddThrottled,
    Begin,
    Peek,
    tally,
    workshop,
)
from trunkline.actors.core.runtime import registry
from trunkline.actors.core.values.errors import NotFound, Overloaded
from trunkline.limits.table import Limits

Clock = trio.testing.MockClock


async def test_an_idle_actor_leaves_and_comes_back_as_it_was(tmp_path: Path, autojump_clock: Clock) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        await shop.ask(ref, Add(by=5))
        await trio.sleep(59)
        assert shop.system.active == 1
        await trio.sleep(10)
        assert (shop.system.active, shop.system.deactivations) == (0, 1)
        activations = shop.system.activations
        assert await shop.ask(ref, Add(by=1)) == 6
        assert shop.system.activations == activations + 1


async def test_a_used_actor_stays(tmp_path: Path, autojump_clock: Clock) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        activations = shop.system.activations
        for _ in range(20):
            await trio.sleep(50)
            await shop.ask(ref, Peek())
        assert shop.system.activations == activations


async def test_idling_drops_no_stream(tmp_path: Path, autojump_clock: Clock) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        subscription = shop.system.subscribe(ref, TOPIC, Peek())
        await trio.sleep(1000)
        assert shop.system.active == 1
        await shop.ask(ref, Add(by=5))
        assert await subscription.receive() == [(1, b"5")]
        shop.system.streams.close(subscription)
        await trio.sleep(100)
        assert shop.system.active == 0


async def test_who_waits_is_not_idle(tmp_path: Path, autojump_clock: Clock) -> None:
    limits = Limits().override({"request_timeout_s": 10_000})
    async with workshop(tmp_path, limits=limits) as shop:
        (ref,) = await shop.begin(1)
        call = shop.start(ref, AddSlowly(by=1, seconds=1000))
        await trio.sleep(500)
        assert shop.system.active == 1
        assert await call.result() == 1


async def test_at_the_bound_idle_ones_make_room(tmp_path: Path, autojump_clock: Clock) -> None:
    limits = Limits().override({"actors_active_max": 3})
    async with workshop(tmp_path, limits=limits) as shop:
        refs = await shop.begin(*range(1, 21))
        assert shop.system.active <= 3
        for number, ref in enumerate(refs):
            assert await shop.ask(ref, Add(by=number)) == number


async def test_at_the_bound_nobody_is_forgotten_who_counts(tmp_path: Path, autojump_clock: Clock) -> None:
    limits = Limits().override({"actors_active_max": 2})
    async with workshop(tmp_path, limits=limits) as shop:
        await shop.begin(1, 2, 3)
        await shop.ask(tally(1), AddThrottled(by=1))
        subscription = shop.system.subscribe(tally(2), TOPIC, Peek())
        with pytest.raises(Overloaded, match="2 actors are active, which is the limit") as refusal:
            await shop.ask(tally(3), Peek())
        assert refusal.value.retry_after_s == limits.actor_sweep_s
        assert {box.ref for box in shop.system.mailboxes()} == {tally(1), tally(2)}
        await trio.sleep(15)  # the window of the first is empty now
        assert await shop.ask(tally(3), Peek()) == 0
        assert {box.ref for box in shop.system.mailboxes()} == {tally(2), tally(3)}
        assert subscription.ending is None


async def test_unknown_actors_drive_nobody_out(tmp_path: Path, autojump_clock: Clock) -> None:
    limits = Limits().override({"actors_active_max": 2})
    async with workshop(tmp_path, limits=limits) as shop:
        refs = await shop.begin(1, 2)
        activations = shop.system.activations
        for number in range(100, 200):
            with pytest.raises(NotFound):
                await shop.ask(tally(number), Peek())
        assert [box.ref for box in shop.system.mailboxes()] == refs
        assert shop.system.activations == activations + 100


async def test_looking_for_room_costs_a_slice_and_gets_everywhere(
    tmp_path: Path, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "SLICE_LENGTH", 2)
    limits = Limits().override({"actors_active_max": 6})
    async with workshop(tmp_path, limits=limits) as shop:
        await shop.begin(1, 2, 3, 4, 5, 6)
        for number in (1, 2, 3, 4, 5):
            shop.system.subscribe(tally(number), TOPIC, Peek())
        tries = 0
        while isinstance(await shop.outcome(tally(7), Begin()), Overloaded):
            tries += 1
            assert tries < 5
        assert tries == 2  # the only idle one stood in the third slice
        assert tally(6) not in {box.ref for box in shop.system.mailboxes()}


async def test_the_sweep_gives_way_between_slices(
    tmp_path: Path, autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "SLICE_LENGTH", 10)

    class Witness(trio.abc.Instrument):
        def after_task_step(self, task: trio.lowlevel.Task) -> None:
            seen.append(shop.system.active)

    async with workshop(tmp_path) as shop:
        await shop.begin(*range(1, 36))
        seen: list[int] = []
        trio.lowlevel.add_instrument(Witness())
        await trio.sleep(70)
        assert sorted(set(seen), reverse=True) == [35, 25, 15, 5, 0]
