"""One message to many actors: to all of them in one batch, or to none, whatever the reason."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.actors.probes import (
    Add,
    AddSlowly,
    AddThrottled,
    AddUnless,
    Call,
    End,
    Peek,
    Tally,
    tally,
    workshop,
)
from trunkline.actors.core.runtime import shared_batch
from trunkline.actors.core.runtime.shared_batch import LOADED_AT_ONCE_MAX
from trunkline.actors.core.values.errors import (
    Crashed,
    DomainError,
    Invalid,
    NotFound,
    Overloaded,
    StorageFull,
    TooManyRequests,
)
from trunkline.limits.table import Limits


async def test_all_are_written_in_one_batch(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(1, 2, 3)
        batches = shop.system.journal.statistics.batches
        Tally.effects_run.clear()
        await shop.system.ask_all([*refs, refs[0]], Add(by=5))
        assert shop.system.journal.statistics.batches == batches + 1
        assert [shop.stored(ref) for ref in refs] == [(5, [5])] * 3
        assert Tally.effects_run == [5, 5, 5]
        assert [await shop.ask(ref, Peek()) for ref in refs] == [5, 5, 5]


@pytest.mark.parametrize(
    "reason", ["unknown", "throttled", "full", "busy", "refused", "bug", "load", "journal", "quota"]
)
async def test_all_or_none(tmp_path: Path, reason: str) -> None:
    limits = Limits().override({"mailbox_length_max": 3})
    bound = 40 if reason == "journal" else 4096
    async with workshop(tmp_path, limits=limits, journal_bytes_max=bound * 64) as shop:
        refs = await shop.begin(1, 2, 3)
        message: Add | AddThrottled | AddUnless = AddThrottled(by=1)
        gate = trio.Event()
        calls: list[Call] = []
        told: type[DomainError] = Overloaded
        spent = 0
        match reason:
            case "unknown":
                refs.append(tally(99))
                told = NotFound
            case "throttled":
                for _ in range(30):
                    await shop.ask(refs[2], message)
                told, spent = TooManyRequests, 30
            case "full" | "busy":
                count = 3 if reason == "full" else 1
                calls = [shop.start(refs[2], AddSlowly(by=0, gate=gate)) for _ in range(count)]
                await trio.testing.wait_all_tasks_blocked()
            case "refused":
                message, told = AddUnless(by=1000, who=refs[2].id, error=Invalid("no")), Invalid
            case "bug":
                message, told = AddUnless(by=1000, who=refs[1].id, error=RuntimeError("a bug")), Crashed
            case "load":
                shop.system.forget_children(refs[2].parent)
                Tally.broken.add(refs[2].id)
                told = Crashed
            case "journal":
                message = Add(by=2**20_000)
            case "quota":
                shop.disk.fill_up()
                told = StorageFull
        with pytest.raises(told):
            await shop.system.ask_all(refs, message)
        Tally.broken.clear()
        gate.set()
        for call in calls:
            assert await call.result() == 0
        expected = [(0, []), (0, []), (spent, [1] * spent)]
        for ref, (total, _) in zip(refs, expected, strict=False):
            assert await shop.ask(ref, Peek()) == total
        await shop.ask(refs[0], Add(by=0))
        assert shop.stored(refs[0]) == (0, [0])
        for ref in refs[:3]:
            statistics = shop.system.statistics(ref)
            assert statistics is not None
            assert statistics.mailbox_depth == 0
        if reason in ("unknown", "throttled", "full", "busy", "load"):
            # A call that was sent to nobody spends nobody's window.
            answer = await shop.system.ask(refs[0], AddThrottled(by=1))
            assert answer.verdict is not None
            assert answer.verdict.remaining == 29


async def test_the_reason_names_the_actor(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(1, 2)
        with pytest.raises(NotFound) as refusal:
            await shop.system.ask_all([*refs, tally(99)], Add(by=1))
        assert refusal.value.message.startswith(f"Nothing was sent: tally {tally(99).id.hex()}: There is no")


async def test_all_hold_their_place_while_the_others_are_loaded(tmp_path: Path) -> None:
    """At the bound of actors the last to be loaded must not drop the first, or its window would be forgotten."""
    limits = Limits().override({"actors_active_max": 3})
    async with workshop(tmp_path, limits=limits) as shop:
        await shop.begin(1, 2, 3, 4)
        with pytest.raises(Overloaded):
            await shop.system.ask_all([tally(number) for number in (1, 2, 3, 4)], AddThrottled(by=1))
        await shop.system.ask_all([tally(number) for number in (1, 2, 3)], AddThrottled(by=1))
        answer = await shop.system.ask(tally(1), AddThrottled(by=1))
        assert answer.verdict is not None
        assert answer.verdict.remaining == 28
        assert shop.stored(tally(1)) == (2, [1, 1])


async def test_one_that_is_just_being_deleted_is_not_there(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(1, 2)
        with trio.CancelScope() as scope:
            scope.cancel()
            await shop.ask(refs[1], End())
        with pytest.raises(NotFound):
            await shop.system.ask_all(refs, AddThrottled(by=1))
        answer = await shop.system.ask(refs[0], AddThrottled(by=1))
        assert answer.verdict is not None
        assert (answer.value, answer.verdict.remaining) == (1, 29)


async def test_the_event_loop_has_its_turn_while_many_are_loaded(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(*range(40))
        shop.system.forget_children(refs[0].parent)
        loaded = [shop.system.activations]
        async with trio.open_nursery() as nursery:

            async def look() -> None:
                while True:
                    await trio.lowlevel.checkpoint()
                    loaded.append(shop.system.activations)

            nursery.start_soon(look)
            while len(loaded) < 2:
                await trio.lowlevel.checkpoint()
            await shop.system.ask_all(refs, Add(by=5))
            nursery.cancel_scope.cancel()
        steps = [after - before for before, after in pairwise(loaded)]
        assert sum(steps) == 40
        assert max(steps) <= 2 * LOADED_AT_ONCE_MAX, "tasks of one pass run in any order"
        assert [shop.stored(ref) for ref in refs] == [(5, [5])] * 40


async def test_one_that_is_deleted_while_others_are_loaded_is_not_there(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(*range(40))
        shop.system.forget_children(refs[0].parent)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(shop.ask, refs[0], End())
            with pytest.raises(NotFound):
                await shop.system.ask_all(refs, Add(by=5))
        assert [shop.stored(ref) for ref in refs[1:]] == [(0, [])] * 39


async def test_a_call_that_ends_between_the_parts_holds_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(*range(40))
        for after in (1, 10, 30):
            shop.system.forget_children(refs[0].parent)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(shop.system.ask_all, refs, Add(by=5))
                for _ in range(after):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            statistics = shop.system.statistics(refs[0])
            assert statistics is None or statistics.mailbox_depth == 0
            assert [await shop.ask(ref, Peek()) for ref in refs] == [0] * 40
            monkeypatch.setattr(shared_batch, "PART_S", -1.0)
        assert [shop.stored(ref) for ref in refs] == [(0, [])] * 40


async def test_the_event_loop_has_its_turn_between_the_turns_of_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may have turns meanwhile: nobody sees a turn before all are submitted, and each counts once."""
    monkeypatch.setattr(shared_batch, "PART_S", -1.0)
    monkeypatch.setattr(shared_batch, "LOST_AT_ONCE_MAX", 2)
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(*range(40))
        seen: list[list[int]] = []
        async with trio.open_nursery() as nursery:

            async def meddle() -> None:
                for round in range(1, 30):
                    await trio.lowlevel.checkpoint()
                    seen.append([await shop.ask(ref, Peek()) for ref in refs[:3]])
                    for ref in refs[round : round + 10]:
                        await shop.ask(ref, Add(by=1))

            nursery.start_soon(meddle)
            nursery.start_soon(shop.system.ask_all, refs, Add(by=500))
            nursery.start_soon(shop.system.ask_all, refs, Add(by=500))
            nursery.start_soon(shop.system.ask_each, [(ref, Add(by=500)) for ref in refs])
        assert len({tuple(total // 500 for total in totals) for totals in seen}) > 1
        assert all(len({total // 500 for total in totals}) == 1 for totals in seen), "all or none"
        for ref in refs:
            stored = shop.stored(ref)
            assert stored is not None
            total, added = stored
            assert (total, added.count(500)) == (sum(added), 3)
            assert await shop.ask(ref, Peek()) == total


async def test_one_that_is_deleted_between_the_turns_of_many_ends_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_batch, "PART_S", -1.0)
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(*range(40))
        async with trio.open_nursery() as nursery:

            async def end() -> None:
                for _ in range(60):
                    await trio.lowlevel.checkpoint()
                await shop.ask(refs[0], End())

            nursery.start_soon(end)
            with pytest.raises(NotFound):
                await shop.system.ask_all(refs, AddThrottled(by=5))
        assert [shop.stored(ref) for ref in refs[1:]] == [(0, [])] * 39
        answer = await shop.system.ask(refs[1], AddThrottled(by=1))
        assert answer.verdict is not None
        assert answer.verdict.remaining == 29


@pytest.mark.parametrize("after", [50, 100])
async def test_a_window_that_is_exhausted_meanwhile_spends_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """While the turns are taken, and while their writes are put together."""
    monkeypatch.setattr(shared_batch, "PART_S", -1.0)
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(*range(40))
        async with trio.open_nursery() as nursery:

            async def exhaust() -> None:
                for _ in range(after):
                    await trio.lowlevel.checkpoint()
                for _ in range(30):
                    shop.system.begin(refs[39], AddThrottled(by=1))

            nursery.start_soon(exhaust)
            with pytest.raises(TooManyRequests):
                await shop.system.ask_all(refs, AddThrottled(by=5))
        assert [shop.stored(ref) for ref in refs[:39]] == [(0, [])] * 39
        answer = await shop.system.ask(refs[1], AddThrottled(by=1))
        assert answer.verdict is not None
        assert answer.verdict.remaining == 29


async def test_what_can_never_be_stored_is_refused_before_all_have_handled_it(tmp_path: Path) -> None:
    handled = []

    class Counted(int):
        def __radd__(self, total: int) -> int:
            handled.append(total)
            return total + int(self)

    async with workshop(tmp_path, journal_bytes_max=4096) as shop:
        refs = await shop.begin(*range(40))
        with pytest.raises(Overloaded, match="larger than the journal"):
            await shop.system.ask_all(refs, Add(by=Counted(2**8_000)))
        assert 0 < len(handled) < 8
        assert [await shop.ask(ref, Peek()) for ref in refs] == [0] * 40
