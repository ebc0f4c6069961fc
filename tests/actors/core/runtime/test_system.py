"""The promises of an ask: durable, ordered, bounded, answered exactly once, whatever happens meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
import structlog.testing
import trio
import trio.testing

from tests.actors.probes import (
    Add,
    AddSlowly,
    AddThrottled,
    Begin,
    End,
    Fail,
    FailSlowly,
    Peek,
    PeekSlowly,
    Tally,
    tally,
    tally_key,
    workshop,
)
from tests.patience import PATIENCE_S
from trunkline.actors.core.runtime.system import System
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
from trunkline.store import keys

KIB = 1024


# Durable.


async def test_nobody_is_answered_before_the_commit(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        seen: list[object] = []
        call = shop.start(ref, Add(by=5))
        shop.disk.watchers.append(lambda: seen.append((call.outcome, shop.stored(ref))))
        assert await call.result() == 5
        assert seen == [(None, (0, []))]
        assert shop.stored(ref) == (5, [5])


async def test_turns_do_not_wait_for_each_others_commits(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        refs = await shop.begin(1, 2, 3)
        syncs = shop.disk.syncs
        calls = [shop.start(ref, Add(by=1)) for ref in refs * 20]
        sums = [await call.result() for call in calls]
        assert shop.disk.syncs == syncs + 1
        assert sorted(sums) == sorted([*range(1, 21)] * 3)
        assert [shop.stored(ref) for ref in refs] == [(20, [1] * 20)] * 3


async def test_an_answer_waits_for_the_writes_that_it_rests_on(tmp_path: Path) -> None:
    """Else somebody would be told of what a failing disk takes back."""
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        for fails in (False, True):
            with trio.CancelScope() as scope:
                scope.cancel()
                await shop.ask(ref, Add(by=7))  # the turn is taken, and the caller leaves at once
            syncs = shop.disk.syncs
            if fails:
                shop.disk.fill_up()
                with pytest.raises(StorageFull):
                    await shop.ask(ref, Peek())
            else:
                assert await shop.ask(ref, Peek()) == 7
            assert shop.disk.syncs == syncs + 1
        assert await shop.ask(ref, Peek()) == 7


@pytest.mark.parametrize(("way", "told"), [("fill_up", StorageFull), ("break_down", Crashed)])
async def test_a_failed_commit_takes_all_actors_back_to_the_disk(
    tmp_path: Path, way: str, told: type[DomainError]
) -> None:
    async with workshop(tmp_path) as shop:
        first, second = await shop.begin(1, 2)
        await shop.ask(first, Add(by=1))
        Tally.effects_run.clear()
        getattr(shop.disk, way)()
        born = tally(3)
        calls = [
            shop.start(first, Add(by=10)),
            shop.start(first, Add(by=20)),
            shop.start(second, Add(by=30)),
            shop.start(born, Begin()),
        ]
        for call in calls:
            outcome = await call.result()
            assert type(outcome) is told
            assert "nothing of this call was stored" in outcome.message
        assert Tally.effects_run == []
        assert [shop.stored(ref) for ref in (first, second, born)] == [(1, [1]), (0, []), None]
        # Whoever comes next meets what is on disk.
        assert await shop.ask(first, Peek()) == 1
        assert await shop.ask(second, Add(by=3)) == 3
        with pytest.raises(NotFound):
            await shop.ask(born, Peek())
        assert shop.stored(second) == (3, [3])


async def test_at_the_quota_writes_are_refused_reads_and_deletions_go_on(tmp_path: Path) -> None:
    async with workshop(tmp_path, map_size_bytes=128 * KIB, store_size_max_bytes=512 * KIB) as shop:
        refs = []
        for number in range(1, 10_000):
            ref = tally(number)
            if isinstance(await shop.outcome(ref, Begin()), StorageFull):
                break
            refs.append(ref)
            await shop.outcome(ref, Add(by=2**4000))
        # Every one that was acknowledged is as it was told, in memory and on disk.
        for ref in refs:
            stored = shop.stored(ref)
            assert stored is not None
            assert await shop.ask(ref, Peek()) == stored[0]
        assert len(refs) > 100
        assert isinstance(await shop.outcome(refs[0], Add(by=2**4000)), StorageFull)
        for ref in refs[: len(refs) // 2]:
            await shop.ask(ref, End())
        assert shop.stored(refs[0]) is None


async def test_a_full_journal_refuses_at_once_and_nothing_is_remembered(tmp_path: Path) -> None:
    async with workshop(tmp_path, journal_batches_max=3) as shop:
        (ref,) = await shop.begin(1)
        calls = [shop.start(ref, Add(by=1)) for _ in range(5)]
        outcomes = [await call.result() for call in calls]
        refused = [outcome for outcome in outcomes if isinstance(outcome, Overloaded)]
        assert len(refused) == 2
        assert refused[0].retry_after_s == 1.0
        assert await shop.ask(ref, Add(by=0)) == 3
        assert shop.stored(ref) == (3, [1, 1, 1, 0])


async def test_effects_run_after_the_commit_in_the_order_of_turns(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        first, second = await shop.begin(1, 2)
        Tally.effects_run.clear()
        shop.disk.watchers.append(lambda: Tally.effects_run.append(0))
        for number, ref in enumerate([first, second, first, second], 1):
            with trio.CancelScope() as scope:
                scope.cancel()
                await shop.ask(ref, Add(by=number))
        await shop.ask(first, Add(by=5))
        assert Tally.effects_run[0] == 0
        assert [effect for effect in Tally.effects_run if effect] == [1, 2, 3, 4, 5]


# Ordered.


async def test_messages_are_handled_in_the_order_of_arrival(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        gate = trio.Event()
        arrived: list[int] = []

        async def send(number: int) -> None:
            arrived.append(number)
            slow = number % 7 == 0
            message = AddSlowly(by=number, gate=gate) if slow else Add(by=number)
            await shop.ask(ref, message)

        async with trio.open_nursery() as callers:
            for number in range(1, 100):
                callers.start_soon(send, number)
            await trio.testing.wait_all_tasks_blocked()
            gate.set()
        assert shop.stored(ref) == (sum(arrived), arrived)


async def test_a_busy_actor_holds_up_nobody_else(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        busy, other = await shop.begin(1, 2)
        gate = trio.Event()
        slow = shop.start(busy, AddSlowly(by=1, gate=gate))
        await trio.testing.wait_all_tasks_blocked()
        queued = shop.start(busy, Add(by=10))
        assert await shop.ask(other, Add(by=5)) == 5
        assert (slow.outcome, queued.outcome) == (None, None)
        gate.set()
        assert (await slow.result(), await queued.result()) == (1, 11)


# Bounded.


async def test_a_full_mailbox_refuses_at_once(tmp_path: Path) -> None:
    limits = Limits().override({"mailbox_length_max": 4})
    async with workshop(tmp_path, limits=limits) as shop:
        (ref,) = await shop.begin(1)
        gate = trio.Event()
        calls = [shop.start(ref, AddSlowly(by=1, gate=gate)) for _ in range(4)]
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Overloaded, match="4 messages waiting, which is its limit") as refusal:
            await shop.ask(ref, Add(by=100))
        assert refusal.value.retry_after_s == 1.0
        statistics = shop.system.statistics(ref)
        assert statistics is not None
        assert (statistics.mailbox_depth, statistics.refused) == (4, 1)
        gate.set()
        assert sorted([await call.result() for call in calls]) == [1, 2, 3, 4]
        assert await shop.ask(ref, Add(by=100)) == 104


async def test_callers_who_left_still_fill_the_queue(tmp_path: Path) -> None:
    """Else somebody who asks and leaves, over and over, could fill the memory behind one slow turn."""
    limits = Limits().override({"mailbox_length_max": 4})
    async with workshop(tmp_path, limits=limits) as shop:
        (ref,) = await shop.begin(1)
        gate = trio.Event()
        slow = shop.start(ref, AddSlowly(by=1, gate=gate))
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(3):
            with trio.move_on_after(0):
                await shop.ask(ref, Add(by=1))
        with pytest.raises(Overloaded):
            await shop.ask(ref, Add(by=100))
        gate.set()
        await slow.result()
        assert await shop.ask(ref, Peek()) == 4


async def test_waiting_for_the_commit_fills_the_mailbox_too(tmp_path: Path) -> None:
    limits = Limits().override({"mailbox_length_max": 4})
    async with workshop(tmp_path, limits=limits) as shop:
        (ref,) = await shop.begin(1)
        outcomes = [await call.result() for call in [shop.start(ref, Add(by=1)) for _ in range(6)]]
        assert sorted(outcome for outcome in outcomes if isinstance(outcome, int)) == [1, 2, 3, 4]
        assert [type(outcome) for outcome in outcomes if not isinstance(outcome, int)] == [Overloaded] * 2


async def test_a_throttle_counts_calls_and_not_their_fate(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        for number in range(1, 30):
            answer = await shop.system.ask(ref, AddThrottled(by=1))
            assert answer.verdict is not None
            assert (answer.verdict.limit, answer.verdict.remaining) == (30, 30 - number)
        shop.disk.fill_up()
        with pytest.raises(StorageFull):
            await shop.ask(ref, AddThrottled(by=1))
        with pytest.raises(TooManyRequests) as refusal:
            await shop.ask(ref, AddThrottled(by=1))
        assert refusal.value.retry_after_s == pytest.approx(15)
        await trio.sleep(refusal.value.retry_after_s)
        assert await shop.ask(ref, AddThrottled(by=1)) == 30


# Answered once, whatever happens.


async def test_everybody_behind_a_crash_is_answered(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        gate = trio.Event()
        with structlog.testing.capture_logs() as logs:
            crashing = shop.start(ref, FailSlowly(error=RuntimeError("a bug"), gate=gate))
            await trio.testing.wait_all_tasks_blocked()
            messages = [Add(by=1), Fail(error=RuntimeError("another")), Fail(error=Invalid("no")), Add(by=2)]
            behind = []
            for message in messages:
                behind.append(shop.start(ref, message))
                await trio.testing.wait_all_tasks_blocked()
            gate.set()
            outcomes = [await call.result() for call in [crashing, *behind]]
        assert [type(outcome) for outcome in outcomes] == [Crashed, int, Crashed, Invalid, int]
        assert shop.stored(ref) == (3, [1, 2])
        assert [entry["event"] for entry in logs] == ["actor restarted"] * 2


async def test_everybody_behind_a_deletion_is_answered(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        gate = trio.Event()
        calls = []
        for message in (AddSlowly(by=1, gate=gate), End(), Add(by=2), AddSlowly(by=3, gate=gate), Begin()):
            calls.append(shop.start(ref, message))
            await trio.testing.wait_all_tasks_blocked()
        calls.append(shop.start(ref, Add(by=4)))
        await trio.testing.wait_all_tasks_blocked()
        gate.set()
        outcomes = [await call.result() for call in calls]
        assert [outcome if isinstance(outcome, int) else type(outcome) for outcome in outcomes] == [
            1,
            type(None),
            NotFound,
            NotFound,
            type(None),
            4,
        ]
        assert shop.stored(ref) == (4, [4])
        assert await shop.ask(ref, Add(by=1)) == 5


async def test_everybody_is_answered_when_the_system_stops(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        busy, other, idle = await shop.begin(1, 2, 3)
        gate = trio.Event()
        calls = [shop.start(busy, AddSlowly(by=1, gate=gate))]
        await trio.testing.wait_all_tasks_blocked()
        calls += [shop.start(busy, message) for message in (Add(by=1), AddSlowly(by=1), Peek())]
        await trio.testing.wait_all_tasks_blocked()
        committing = shop.start(other, Add(by=5))
        shop.disk.watchers.append(shop.stop_system)
        outcomes = [await call.result() for call in calls]
        assert [type(outcome) for outcome in outcomes] == [Overloaded] * 4
        assert await committing.result() == 5
        assert [shop.stored(ref) for ref in (busy, other)] == [(0, []), (5, [5])]
        # Later ones are refused at the door, whether their actor is in memory or not.
        for ref in (busy, other, idle):
            with pytest.raises(Overloaded, match="stopping"):
                await shop.ask(ref, Add(by=1))
            with pytest.raises(Overloaded, match="stopping"):
                await shop.system.ask_all([ref], Add(by=1))


async def test_a_turn_that_ends_while_it_stops_refuses_those_behind_it(tmp_path: Path) -> None:
    """In that step of the loop the end of the turn and that of the system come in any order."""
    for number in range(30):
        async with workshop(tmp_path / str(number)) as shop:
            (ref,) = await shop.begin(1)
            gate = trio.Event()
            first = shop.start(ref, PeekSlowly(gate=gate))
            await trio.testing.wait_all_tasks_blocked()
            behind = [shop.start(ref, message) for message in (Add(by=1), Add(by=1))]
            await trio.testing.wait_all_tasks_blocked()
            gate.set()
            shop.stop_system()
            assert await first.result() == 0
            outcomes = [await call.result() for call in behind]
            assert {type(outcome) for outcome in outcomes} <= {int, Overloaded}
            done = sum(isinstance(outcome, int) for outcome in outcomes)
            assert shop.stored(ref) == (done, [1] * done)


async def test_who_comes_while_it_stops_is_answered_too(tmp_path: Path) -> None:
    """In that step of the loop the committer, the turns and the caller run in any order."""
    told = set()
    for number in range(30):
        async with workshop(tmp_path / str(number)) as shop:
            (ref,) = await shop.begin(1)
            shop.stop_system()
            await trio.lowlevel.checkpoint()
            with trio.fail_after(PATIENCE_S):
                outcome = await shop.outcome(ref, Add(by=5))
            told.add(type(outcome))
            assert shop.stored(ref) == ((5, [5]) if outcome == 5 else (0, []))
    assert told <= {int, Overloaded}


async def test_what_waits_at_the_end_is_committed(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        with trio.CancelScope() as scope:
            scope.cancel()
            await shop.ask(ref, Add(by=5))
        shop.system.drain()
        assert shop.stored(ref) == (5, [5])


# Seams.


async def test_chance_comes_from_the_seam(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        ids = [
            System(shop.system.store, Limits(), shop.system.clock, (), random_bytes=bytes).ids.new(5000)
            for _ in range(2)
        ]
        assert ids == [bytes.fromhex("00000005" + "0000000000" + "000001")] * 2


async def test_a_reader_beside_the_loop_sees_what_was_acknowledged(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        await shop.ask(ref, Add(by=5))
        raw = await shop.system.read(lambda snapshot: snapshot.get(keys.META, tally_key(ref)))
        assert raw is not None


async def test_the_age_of_the_oldest_message_is_known(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        gate = trio.Event()
        slow = shop.start(ref, PeekSlowly(gate=gate))
        await trio.sleep(2)
        shop.start(ref, Peek())
        await trio.sleep(1)
        statistics = shop.system.statistics(ref)
        assert statistics is not None
        assert statistics.oldest_message_age_s == pytest.approx(3)
        assert statistics.mailbox_depth == 2
        gate.set()
        await slow.result()
        assert shop.system.statistics(tally(9)) is None
