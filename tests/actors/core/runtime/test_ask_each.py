"""Messages to several actors in one batch: each may refuse its own, and a last message joins the batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from tests.actors.probes import (
    Add,
    AddSlowly,
    AddUnless,
    Begin,
    Call,
    End,
    Peek,
    Tally,
    WriteDown,
    tally,
    workshop,
)
from trunkline.actors.core.values.errors import (
    Crashed,
    DomainError,
    Invalid,
    NotFound,
    Overloaded,
    StorageFull,
)
from trunkline.limits.table import Limits


async def test_a_refusal_concerns_only_its_actor(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(1, 2, 3, 4)
        batches = shop.system.journal.statistics.batches
        Tally.effects_run.clear()
        seen: list[Any] = []

        def last(answers: list[Any]) -> Any:
            seen.extend(answers)
            return refs[3], Add(by=len(answers))

        bad: Any = AddUnless(by=7, who=refs[1].id, error=Invalid("no"))
        bug: Any = AddUnless(by=7, who=refs[2].id, error=RuntimeError("a bug"))
        asks = [
            (refs[0], Add(by=5)),
            (refs[1], bad),
            (refs[2], bug),
            (tally(99), Add(by=1)),
            (tally(5), Begin()),
        ]
        answers = await shop.system.ask_each(asks, last)
        assert answers == [*seen, 5]
        assert answers[0] == 5
        assert [type(each) for each in answers[1:4]] == [Invalid, Crashed, NotFound]
        assert shop.system.journal.statistics.batches == batches + 1
        assert [shop.stored(ref) for ref in refs] == [(5, [5]), (0, []), (0, []), (5, [5])]
        assert await shop.ask(tally(5), Peek()) == 0
        assert [await shop.ask(ref, Peek()) for ref in refs] == [5, 0, 0, 5]
        assert Tally.effects_run == [5, 5]


@pytest.mark.parametrize("reason", ["busy", "journal", "quota", "last", "bug in last"])
async def test_what_would_pass_with_time_undoes_everything(tmp_path: Path, reason: str) -> None:
    bound = 40 if reason == "journal" else 4096
    limits = Limits().override({"mailbox_length_max": 3})
    async with workshop(tmp_path, limits=limits, journal_bytes_max=bound * 64) as shop:
        refs = await shop.begin(1, 2)
        gate = trio.Event()
        message = Add(by=3)
        told: type[Exception] = Overloaded
        last: Callable[[list[Any]], Any] | None = None
        calls: list[Call] = []
        match reason:
            case "busy":
                calls.append(shop.start(refs[1], AddSlowly(by=0, gate=gate)))
                await trio.testing.wait_all_tasks_blocked()
            case "journal":
                message = Add(by=2**20_000)
            case "quota":
                told = StorageFull
                shop.disk.fill_up()
            case "last":
                told = NotFound

                def last(_: list[Any]) -> Any:
                    return tally(99), Add(by=1)

            case "bug in last":
                told = ZeroDivisionError

                def last(_: list[Any]) -> Any:
                    raise ZeroDivisionError

        asks = [(tally(7), Begin()), (refs[0], message), (refs[1], message)]
        with pytest.raises(told):
            await shop.system.ask_each(asks, last)
        gate.set()
        for call in calls:
            await call.result()
        assert [await shop.ask(ref, Peek()) for ref in refs] == [0, 0]
        with pytest.raises(NotFound):
            await shop.ask(tally(7), Peek())
        for ref in refs:
            statistics = shop.system.statistics(ref)
            assert statistics is not None
            assert statistics.mailbox_depth == 0


async def test_actors_may_be_deleted_and_created_again(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(1, 2)
        await shop.ask(refs[0], Add(by=4))
        await shop.system.ask_each([(ref, End()) for ref in refs])
        answers = await shop.system.ask_each([(refs[0], Begin()), (refs[1], Add(by=1))])
        assert isinstance(answers[1], DomainError)
        assert await shop.ask(refs[0], Peek()) == 0


async def test_actors_leave_the_memory_that_only_this_call_needed(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(1, 2, 3)
        shop.system.forget_children(refs[0].parent)
        await shop.ask(refs[0], Add(by=1))
        await shop.system.ask_each([(ref, Add(by=2)) for ref in refs[:2]], lambda _: (refs[2], Add(by=3)))
        assert [shop.system.statistics(ref) is not None for ref in refs] == [True, False, False]
        assert [await shop.ask(ref, Peek()) for ref in refs] == [3, 2, 3]


async def test_two_actors_that_write_one_key_differently_store_nothing(tmp_path: Path) -> None:
    """They have not read each other's writes, so one of them would be lost."""
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(1, 2)
        asks = [(ref, WriteDown()) for ref in refs]
        await shop.system.ask_each(asks)
        assert shop.stored(tally(0)) == (0, []), "equal values are no conflict"
        await shop.ask(refs[1], Add(by=3))
        with pytest.raises(RuntimeError, match="one after the other"):
            await shop.system.ask_each(asks)
        assert [shop.stored(ref) for ref in (tally(0), *refs)] == [(0, []), (0, []), (3, [3])]
        assert [await shop.ask(ref, Peek()) for ref in refs] == [0, 3]
        await shop.system.ask_in_order(asks)
        assert shop.stored(tally(0)) == (3, [])
