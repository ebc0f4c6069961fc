"""An application that is paused: its actors leave the memory when all is on disk, and refuse until it is resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from tests.actors.probes import TOPIC, Add, AddSlowly, Begin, Peek, Workshop, tally, workshop
from trunkline.actors.core.runtime import system
from trunkline.actors.core.runtime.held_back import HeldBack
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.subscription import Ending
from trunkline.actors.core.runtime.works import Works
from trunkline.actors.core.values.errors import DomainError, Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.applications.messages import ApplicationPost, CreateApplication

HERE, THERE = bytes([1]) * 12, bytes([2]) * 12


async def begin(shop: Workshop, parent: bytes, count: int = 1) -> list[Ref]:
    """Tallies of a new application."""
    owner = Ref("application", ROOT, parent)
    await shop.ask(owner, CreateApplication(body=ApplicationPost(name="a"), user=bytes(12)))
    shop.system.release(owner)
    refs = [tally(number, parent) for number in range(1, count + 1)]
    for ref in refs:
        await shop.ask(ref, Begin())
    return refs


async def test_a_paused_application_refuses_and_others_go_on(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,), (other,) = await begin(shop, HERE), await begin(shop, THERE)
        stream = shop.system.subscribe(ref, TOPIC, Peek())
        await shop.system.pause(HERE)
        assert [box.ref for box in shop.system.mailboxes()] == [other]
        assert stream.ending is Ending.DRAINING
        for refuse in (shop.ask(ref, Add(by=1)), shop.system.ask_all([other, ref], Add(by=1))):
            with pytest.raises(
                Overloaded, match="moved to another partition; repeat the call in a second"
            ) as it:
                await refuse
            assert it.value.retry_after_s == 1
        with pytest.raises(Overloaded):
            await shop.system.ask_each([(other, Add(by=1)), (ref, Add(by=1))])
        with pytest.raises(Overloaded):
            shop.system.subscribe(ref, TOPIC, Peek())
        assert await shop.ask(other, Add(by=5)) == 5
        assert ref not in {box.ref for box in shop.system.mailboxes()}
        shop.system.resume(HERE)
        assert await shop.ask(ref, Add(by=2)) == 2


async def test_what_was_answered_before_and_what_waits_for_its_commit_is_on_disk(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        refs = await begin(shop, HERE, 20)
        told: list[DomainError | None] = []
        for ref in refs:
            turn = shop.system.begin(ref, Add(by=7))
            assert turn is not None
            shop.system.when_stored(turn, told.append)
        await shop.system.pause(HERE)
        assert [shop.stored(ref) for ref in refs] == [(7, [7])] * 20
        assert told == [None] * 20


async def test_a_turn_that_waits_is_finished_and_what_is_behind_it_is_refused(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await begin(shop, HERE)
        gate = trio.Event()
        slow = shop.start(ref, AddSlowly(by=3, gate=gate))
        await trio.testing.wait_all_tasks_blocked()
        behind = [shop.start(ref, Add(by=100)), shop.start(ref, AddSlowly(by=100))]
        await trio.testing.wait_all_tasks_blocked()
        paused = trio.Event()

        async def pause() -> None:
            await shop.system.pause(HERE)
            paused.set()

        shop.nursery.start_soon(pause)
        for call in behind:
            assert isinstance(await call.result(), Overloaded)
        await trio.testing.wait_all_tasks_blocked()
        assert not paused.is_set()
        assert isinstance(await shop.outcome(ref, Peek()), Overloaded)
        gate.set()
        await paused.wait()
        assert await slow.result() == 3
        assert shop.stored(ref) == (3, [3])
        assert shop.system.mailbox(ref) is None


async def test_a_turn_that_waits_for_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "LAST_TURN_S", 0.01)
    async with workshop(tmp_path) as shop:
        (ref,) = await begin(shop, HERE)
        slow = shop.start(ref, AddSlowly(by=3, gate=trio.Event()))
        await trio.testing.wait_all_tasks_blocked()
        await shop.system.pause(HERE)
        assert isinstance(await slow.result(), Overloaded)
        assert shop.stored(ref) == (0, [])
        shop.system.resume(HERE)
        assert await shop.ask(ref, AddSlowly(by=4)) == 4


async def test_a_call_to_many_that_is_under_way_is_stored_before_or_refused_as_a_whole(
    tmp_path: Path,
) -> None:
    async with workshop(tmp_path) as shop:
        refs = await begin(shop, HERE, 30)
        total, refused = 0, 0
        for turns in range(60):
            for box in list(shop.system.mailboxes()):
                shop.system.release(box.ref)
            outcomes: list[DomainError | None] = []

            async def ask(outcomes: list[DomainError | None]) -> None:
                try:
                    await shop.system.ask_all(refs, Add(by=1))
                except DomainError as refusal:
                    outcomes.append(refusal)
                else:
                    outcomes.append(None)

            shop.nursery.start_soon(ask, outcomes)
            for _ in range(turns):
                await trio.lowlevel.checkpoint()
            await shop.system.pause(HERE)
            stored = [shop.stored(ref) for ref in refs]
            await trio.testing.wait_all_tasks_blocked()
            (outcome,) = outcomes
            assert outcome is None or isinstance(outcome, Overloaded)
            total, refused = total + (outcome is None), refused + (outcome is not None)
            assert [shop.stored(ref) for ref in refs] == stored == [(total, [1] * total)] * 30
            shop.system.resume(HERE)
            shop.system.moves.away.clear()
        assert total > 0
        assert refused > 5


async def test_work_for_one_application_is_ended_and_none_begins_while_it_is_away() -> None:
    away: set[bytes] = set()
    works, ended = Works(away), list[str]()

    async def work(name: str, application: bytes) -> None:
        with works.of(application):
            try:
                await trio.sleep_forever()
            finally:
                ended.append(name)

    async with trio.open_nursery() as nursery:
        for name, application in (("a", HERE), ("b", HERE), ("c", THERE)):
            nursery.start_soon(work, name, application)
        await trio.testing.wait_all_tasks_blocked()
        away.add(HERE)
        await works.end(HERE)
        assert sorted(ended) == ["a", "b"]
        await work("d", HERE)
        assert ended[2:] == ["d"]
        await works.end(HERE)
        nursery.cancel_scope.cancel()


def test_what_is_held_back_is_ignored_first_and_waits_then() -> None:
    held = HeldBack[int]()
    assert not held
    assert not held.takes(HERE, 1)
    held.ignore(HERE)
    assert held.takes(HERE, 2)
    held.keep(HERE)
    assert held.takes(HERE, 3)
    assert not held.takes(THERE, 4)
    assert held.release(HERE) == [3]
    assert not held.takes(HERE, 5)
    assert held.release(HERE) == []
