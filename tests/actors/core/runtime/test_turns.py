"""What is left of a turn that fails: nothing of the call, everything of everybody else."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import structlog.testing
import trio
import trio.testing

from tests.actors.probes import (
    TOPIC,
    Add,
    AddSlowly,
    AddThrottled,
    AskYourself,
    Begin,
    End,
    Fail,
    FailAtFlush,
    FailSlowly,
    Peek,
    PeekSlowly,
    Tally,
    Workshop,
    tally,
    workshop,
)
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.subscription import Ending
from trunkline.actors.core.runtime.work import Work, current_work
from trunkline.actors.core.values.errors import Crashed, Invalid, NotFound, Overloaded, StorageFull
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.platform.applications.messages import (
    ApplicationPost,
    CreateApplication,
    DeleteApplication,
)

# Refused.


@pytest.mark.parametrize("slowly", [False, True])
async def test_a_turn_that_is_refused_late_leaves_nothing(tmp_path: Path, slowly: bool) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        await shop.ask(ref, Add(by=5))
        Tally.effects_run.clear()
        with pytest.raises(Invalid, match="no"):
            await shop.ask(ref, failing(Invalid("no"), slowly))
        assert Tally.effects_run == []
        assert await shop.ask(ref, Add(by=1)) == 6
        assert shop.stored(ref) == (6, [5, 1])


async def test_nothing_is_kept_of_an_actor_that_was_not_born(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        with pytest.raises(NotFound, match=f"There is no tally {tally(2).id.hex()} here"):
            await shop.ask(tally(2), Add(by=1))
        with pytest.raises(Invalid):
            await shop.ask(ref, Begin())
        assert [box.ref for box in shop.system.mailboxes()] == [ref]


class Stillborn(Tally):
    """It is never born, at once or after a while."""

    kind = "stillborn"
    creation_messages = frozenset({Begin, AddSlowly})

    def on_begin(self, _message: Begin) -> None:
        self.exists = True
        raise Invalid("not today")

    async def on_add_slowly(self, message: AddSlowly) -> int:
        await trio.lowlevel.checkpoint()
        self.on_begin(Begin())
        return message.by


@pytest.mark.parametrize("message", [Begin(), AddSlowly(by=1)])
async def test_a_refused_birth_leaves_no_mailbox(tmp_path: Path, message: Message) -> None:
    async with workshop(tmp_path, kinds=(Stillborn,)) as shop:
        with pytest.raises(Invalid, match="not today"):
            await shop.ask(Ref("stillborn", ROOT, bytes(12)), message)
        assert shop.system.active == 0
        assert shop.system.refused == 1


# Crashed.


@pytest.mark.parametrize("where", ["handler", "long handler", "flush", "load"])
async def test_a_bug_answers_one_caller_and_touches_nobody_else(tmp_path: Path, where: str) -> None:
    async with workshop(tmp_path) as shop:
        ref, other = await shop.begin(1, 2)
        for _ in range(3):
            await shop.ask(ref, AddThrottled(by=1))
        subscription = shop.system.subscribe(ref, TOPIC, Peek())
        others_memory = next(box for box in shop.system.mailboxes() if box.ref == other).actor
        Tally.effects_run.clear()
        message: Message = failing(RuntimeError("a bug"), slowly=where == "long handler")
        if where == "flush":
            message = FailAtFlush()
        elif where == "load":
            Tally.broken.add(ref.id)
            await shop.outcome(ref, Fail(error=Invalid("so that it must be loaded")))
        with structlog.testing.capture_logs() as logs:
            outcome = await shop.outcome(ref, message)
        Tally.broken.clear()
        assert isinstance(outcome, Crashed)
        assert "nothing of the call was stored" in outcome.message
        assert "a bug" not in outcome.message
        assert [(entry["event"], entry["id"]) for entry in logs] == [("actor restarted", ref.id.hex())]
        assert Tally.effects_run == []
        # The figures, the window and the stream stay; the memory comes anew from the disk.
        statistics = shop.system.statistics(ref)
        assert statistics is not None
        assert (statistics.restarts, statistics.last_error) == (1, "RuntimeError")
        assert (shop.system.restarts, statistics.handled) == (1, 4)
        answer = await shop.system.ask(ref, AddThrottled(by=1))
        assert answer.verdict is not None
        assert (answer.value, answer.verdict.remaining) == (4, 26)
        assert await subscription.receive() == [(4, b"4")]
        assert next(box for box in shop.system.mailboxes() if box.ref == other).actor is others_memory


async def test_a_crash_after_writes_that_wait_loses_none_of_them(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        with trio.CancelScope() as scope:
            scope.cancel()
            await shop.ask(ref, Add(by=5))
        assert isinstance(await shop.outcome(ref, Fail(error=RuntimeError())), Crashed)
        assert await shop.ask(ref, Add(by=1)) == 6
        assert shop.stored(ref) == (6, [5, 1])


async def test_an_actor_that_can_not_be_loaded_hurts_only_who_asks_it(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (other,) = await shop.begin(2)
        Tally.broken.add(tally(1).id)
        for message in (Peek(), Begin(), AddSlowly(by=1)):
            assert isinstance(await shop.outcome(tally(1), message), Crashed)
        assert await shop.ask(other, Add(by=1)) == 1
        assert shop.system.active == 1


class Bell(Tally):
    """Its effects: one that is counted, and then a bug."""

    kind = "bell"

    def on_peek(self, message: Peek) -> int:
        self.after_commit(partial(self.effects_run.append, 7))
        self.after_commit(lambda: [].clear(1))  # type: ignore[call-arg]
        return super().on_peek(message)

    def on_add(self, message: Add) -> int:
        self.on_peek(Peek())
        return super().on_add(message)


@pytest.mark.parametrize("message", [Peek(), Add(by=1)])
async def test_an_effect_that_fails_hurts_nobody(tmp_path: Path, message: Message) -> None:
    async with workshop(tmp_path, kinds=(Bell,)) as shop:
        ref = Ref("bell", ROOT, bytes(12))
        await shop.ask(ref, Begin())
        with structlog.testing.capture_logs() as logs:
            assert await shop.ask(ref, message) == len(Tally.effects_run) // 2
        assert Tally.effects_run == ([7] if isinstance(message, Peek) else [7, 1])
        assert [entry["log_level"] for entry in logs] == ["error"]
        assert shop.system.restarts == 0


# Long turns.


@pytest.mark.parametrize("writes", [False, True])
async def test_a_long_turn_that_saw_what_was_never_stored_is_refused(tmp_path: Path, writes: bool) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        outcomes: list[object] = []
        for _ in range(30):
            before = await shop.ask(ref, Peek())
            gate = trio.Event()
            shop.disk.fill_up()
            shop.nursery.start_soon(open_when_all_wait, gate)
            with trio.CancelScope() as scope:
                scope.cancel()
                await shop.ask(ref, Add(by=1000))
            # Its turn begins in the same step of the loop as the commit fails, before or after it.
            message = AddSlowly(by=1, gate=gate) if writes else PeekSlowly(gate=gate)
            outcomes.append(await shop.outcome(ref, message))
            assert isinstance(outcomes[-1], StorageFull) or outcomes[-1] == before + writes
            assert await shop.ask(ref, Peek()) < 1000
        assert {type(outcome) for outcome in outcomes} == {StorageFull, int}
        added = sum(1 for outcome in outcomes if isinstance(outcome, int)) if writes else 0
        assert shop.stored(ref) == (added, [1] * added)


async def open_when_all_wait(gate: trio.Event) -> None:
    await trio.testing.wait_all_tasks_blocked()
    gate.set()


async def test_a_long_turn_does_not_fail_because_of_others_writes(tmp_path: Path) -> None:
    """At a full disk people must be able to log in, which is a long turn without a write."""
    async with workshop(tmp_path) as shop:
        ref, other = await shop.begin(1, 2)
        gate = trio.Event()
        call = shop.start(ref, PeekSlowly(gate=gate))
        await trio.testing.wait_all_tasks_blocked()
        shop.disk.fill_up()
        assert isinstance(await shop.outcome(other, Add(by=1)), StorageFull)
        gate.set()
        assert await call.result() == 0


async def test_a_turn_that_never_ends_is_given_up(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        started = trio.current_time()
        with structlog.testing.capture_logs() as logs:
            call = shop.start(ref, AddSlowly(by=1000, gate=trio.Event()))
            await trio.testing.wait_all_tasks_blocked()
            behind = shop.start(ref, Add(by=1))
            assert isinstance(await call.result(), Overloaded)
            assert await behind.result() == 1
            assert trio.current_time() - started == pytest.approx(shop.system.limits.request_timeout_s)
            assert isinstance(await shop.outcome(ref, AskYourself()), Overloaded)
        assert [entry["event"] for entry in logs] == ["turn given up"] * 2
        assert await shop.ask(ref, Peek()) == 1


async def test_a_long_turn_cut_off_at_the_end_leaves_nothing(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        shop.start(ref, FailSlowly(error=RuntimeError(), gate=trio.Event()))
        await trio.testing.wait_all_tasks_blocked()
        box = next(iter(shop.system.mailboxes()))
        shop.stop_system()
        await trio.testing.wait_all_tasks_blocked()
        assert box.actor is None
        assert shop.stored(ref) == (0, [])


# Deleted.


async def test_streams_of_the_deleted_end_with_the_commit_and_not_before(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        subscription = shop.system.subscribe(ref, TOPIC, Peek())
        shop.disk.fill_up()
        assert isinstance(await shop.outcome(ref, End()), StorageFull)
        assert subscription.ending is None
        await shop.ask(ref, Add(by=5))
        assert await subscription.receive() == [(1, b"5")]
        endings: list[Ending | None] = []
        shop.disk.watchers.append(lambda: endings.append(subscription.ending))
        await shop.ask(ref, End())
        assert [*endings, subscription.ending] == [None, Ending.GONE]
        assert shop.system.active == 0
        with pytest.raises(NotFound):
            shop.system.subscribe(ref, TOPIC, Peek())


async def test_between_deletion_and_commit_it_is_gone_already(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        await shop.ask(ref, Add(by=5))
        for message in (End(), Begin()):
            with trio.CancelScope() as scope:
                scope.cancel()
                await shop.ask(ref, message)
            if isinstance(message, End):
                with pytest.raises(NotFound):
                    await shop.ask(ref, Add(by=1))
                with pytest.raises(NotFound):
                    shop.system.subscribe(ref, TOPIC, Peek())
        subscription = shop.system.subscribe(ref, TOPIC, Peek())
        assert await shop.ask(ref, Add(by=1)) == 1  # born again, it does not remember
        assert subscription.ending is None
        assert shop.stored(ref) == (1, [1])


async def application(shop: Workshop) -> Ref:
    ref = Ref("application", ROOT, shop.system.ids.new(shop.system.clock.wall_ms()))
    await shop.ask(ref, CreateApplication(user=ROOT, body=ApplicationPost(name="house")))
    return ref


async def test_with_an_application_all_that_it_holds_is_gone(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        house, neighbour = await application(shop), await application(shop)
        idle, busy, asleep = (tally(number, house.id) for number in (1, 2, 3))
        outside = tally(4, neighbour.id)
        for ref in (idle, busy, asleep, outside):
            await shop.ask(ref, Begin())
        streams = [shop.system.subscribe(ref, TOPIC, Peek()) for ref in (idle, busy, outside)]
        gate = trio.Event()
        slow = shop.start(busy, AddSlowly(by=1, gate=gate))
        await trio.testing.wait_all_tasks_blocked()
        await shop.ask(house, DeleteApplication())
        assert [stream.ending for stream in streams] == [Ending.GONE, Ending.GONE, None]
        gate.set()
        assert isinstance(await slow.result(), NotFound)
        # Their records are still there until they are swept; nobody may write beside the sweep.
        for ref in (idle, busy, asleep):
            for message in (Add(by=1), AddSlowly(by=1)):
                assert isinstance(await shop.outcome(ref, message), NotFound)
            assert shop.stored(ref) == (0, [])
        assert await shop.ask(outside, Add(by=1)) == 1


async def test_a_deletion_that_fails_leaves_window_and_streams(tmp_path: Path) -> None:
    """Found by a simulation: who asked before the deletion was on disk was forgotten with its throttle."""
    async with workshop(tmp_path) as shop:
        house = await application(shop)
        ref = tally(1, house.id)
        await shop.ask(ref, Begin())
        await shop.ask(ref, AddThrottled(by=1))
        stream = shop.system.subscribe(ref, TOPIC, Peek())
        shop.disk.fill_up()
        with trio.CancelScope() as scope:
            scope.cancel()
            await shop.ask(house, DeleteApplication())
        await shop.outcome(ref, Fail(error=Invalid("so that it must be loaded")))
        assert isinstance(await shop.outcome(ref, Add(by=1)), NotFound)
        await trio.testing.wait_all_tasks_blocked()
        answer = await shop.system.ask(ref, AddThrottled(by=1))
        assert answer.verdict is not None
        assert (answer.value, answer.verdict.remaining) == (2, 28)
        assert stream.ending is None


def failing(error: Exception, slowly: bool) -> Message:
    """A message that mutates, stages and then raises, at once or after a wait."""
    if not slowly:
        return Fail(error=error)
    gate = trio.Event()
    gate.set()
    return FailSlowly(error=error, gate=gate)


async def test_each_message_that_waits_is_handled_in_the_context_of_its_caller(tmp_path: Path) -> None:
    """So it is charged to its caller, not to the one who came when the actor was idle."""
    charged: list[str] = []
    opened = trio.Event()

    class Gate:
        async def wait(self) -> None:
            await opened.wait()
            work = current_work.get()
            assert work is not None
            charged.append(work.name)

    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        for name in ("first", "second", "third"):
            current_work.set(Work("other", name))
            shop.start(ref, AddSlowly(by=1, gate=Gate()))
            await trio.testing.wait_all_tasks_blocked()
        current_work.set(None)
        opened.set()
        await trio.testing.wait_all_tasks_blocked()
        assert charged == ["first", "second", "third"]
