"""The world of a simulation: a whole actor system with a virtual clock, failing commits and crashes.

What is asked of it, `simulation.py` says; what it ought to hold, `expected.py`. Disk and actors are real. A
crash copies the store's file as it is and goes on with the copy, so what was not committed by then is lost.

What the model of plain dicts knows of each operation is settled at the sync of its commit. So an answer is
wrong if it comes before that, a refusal is wrong if the commit held the operation, and what is stored must
be the model and nothing else.
"""

from __future__ import annotations

import errno
import random
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import structlog
import trio
import trio._core._run as trio_run
import trio.testing

from tests.actors.expected import Expected
from tests.actors.ledger import LEDGERS, Ledger, Operation
from tests.actors.probes import Begin, Tally
from trunkline.actors import boot
from trunkline.actors.core.runtime.answer import Answer
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.subscription import Ending, Subscription
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
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.actor.actor import Device as DeviceActor
from trunkline.actors.fleet.devices.record.kind import restorable_since_ms
from trunkline.actors.maintenance import sweep as purge
from trunkline.actors.platform.applications.actor import Application
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.store.env import Store
from trunkline.store.flusher import Flusher

START_MS = 1_714_564_800_000
CALLS, WINDOW_S = 4, 3.0
_RATE = {"calls": CALLS, "window_s": WINDOW_S}
LIMITS = Limits().override(
    {
        "send_state": _RATE,
        "send_command": _RATE,
        "set_connection_status": _RATE,
        "verify_email": _RATE,
        "mailbox_length_max": 6,
        "actors_active_max": 9,
        "actor_idle_s": 20,
        "stream_buffer_length_max": 5,
    }
)


class Virtual:
    """Both clocks, driven by Trio's virtual one."""

    def wall_ms(self) -> int:
        return START_MS + int(trio.current_time() * 1000)

    def monotonic_s(self) -> float:
        return trio.current_time()


class Reader:
    """Somebody at a command stream, sometimes slow."""

    def __init__(self, subscription: Subscription, ref: Ref, since: int) -> None:
        self.subscription = subscription
        self.ref = ref
        self.since = since
        self.heard: list[str] = []

    def take(self, events: list[tuple[int, bytes]]) -> None:
        self.heard += [msgspec.json.decode(event)["name"] for _, event in events]


class World:
    """One run. `trace` tells what happened, line by line; equal seeds give equal traces."""

    ACTIONS: ClassVar[tuple[Callable[[Any], Awaitable[None]], ...]]
    WEIGHTS: ClassVar[tuple[float, ...]]

    def __init__(self, seed: int, *, lives: int = 4, steps: int = 40) -> None:
        self.chance = random.Random(seed)
        self.seed = seed
        self.lives = lives
        self.steps = steps
        self.trace: list[str] = []
        self.expected = Expected()
        self.in_flight: list[Operation] = []
        self.windows: dict[tuple[Ref, str], list[float]] = {}
        self.keys: list[tuple[Ref, bytes]] = []
        self.readers: list[Reader] = []
        self.number = 0
        self.life = 0
        self.open_calls = 0
        self.failing: list[int] = []
        self.crash: Callable[[], None] | None = None
        self.system: System
        self.callers: trio.Nursery

    def run(self) -> list[str]:
        """Run all lives. Raises AssertionError where a promise is broken."""
        before = trio_run._ALLOW_DETERMINISTIC_SCHEDULING, trio_run._r.getstate()
        # As Hypothesis has it for tests on Trio.
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
        trio_run._r.seed(self.seed)
        Tally.broken.clear()
        Ledger.hand_over = self._hand_over
        silent = structlog.testing.ReturnLogger()
        logs = structlog.get_config()
        structlog.configure(processors=[], logger_factory=lambda *_: silent)
        try:
            with tempfile.TemporaryDirectory() as path:
                clock = trio.testing.MockClock(autojump_threshold=0)
                trio.run(self._main, Path(path), clock=clock)
        except BaseException as fault:
            last = "\n".join(self.trace[-15:])
            fault.add_note(
                f"Replay it with REPLAY_SEED={self.seed} pytest tests/actors/test_replay.py\n{last}"
            )
            raise
        finally:
            structlog.configure(**logs)
            trio_run._ALLOW_DETERMINISTIC_SCHEDULING = before[0]  # type: ignore[misc]
            trio_run._r.setstate(before[1])
        return self.trace

    # Lives.

    async def _main(self, path: Path) -> None:
        for number in range(self.lives):
            here, there = path / str(number), path / str(number + 1)
            with Store.open(
                here,
                map_size_bytes=2**26,
                sync_delay_s=partial(self._sync, self.life),
                monotonic_s=trio.current_time,
            ) as store:
                self.expected.check(store)
                await self._live(store, there)

    async def _live(self, store: Store, there: Path) -> None:
        self.system = System(
            store, LIMITS, Virtual(), (Ledger, Application, DeviceActor), random_bytes=self.chance.randbytes
        )
        boot.add_parts(self.system, Settings())
        self.windows.clear()
        self.readers.clear()
        self.open_calls = 0
        self.crash = None
        life = self.life
        async with trio.open_nursery() as running:
            await running.start(self.system.run)
            for ref in LEDGERS:
                if ref not in self.expected.added:
                    await self.system.ask(ref, Begin())
                    self.expected.added[ref] = []
            async with trio.open_nursery() as self.callers:
                flusher = self.system.component(Flusher)
                flusher.now_s = trio.current_time
                for _ in range(self.steps):
                    await self._step()
                crash = partial(self._lose_power, store.directory.path, there)
                match self.chance.randrange(3):
                    case 0:
                        await self._settle()
                        await self._sweep_to_the_end()
                        await flusher.flush_all()
                        self.expected.check_gone(store)
                        crash()
                    case 1:
                        # Somewhere between two steps of the loop; the commit may be done and nobody told.
                        await self._step(busy=True)
                        crash()
                    case _:
                        # In the middle of a commit: written, not synced.
                        self.crash = crash
                        while self.life == life:
                            await self._step(busy=True)
                self.callers.cancel_scope.cancel()
            running.cancel_scope.cancel()

    def _lose_power(self, path: Path, there: Path) -> None:
        """Go on with what is on disk now. Whoever is answered after this is answered by a ghost."""
        shutil.copytree(path / "store", there / "store")
        for name in ("secret", "encryption-keys"):
            shutil.copy2(path / name, there / name)
        self._note(f"lost power with {len(self.in_flight)} in flight")
        for op in self.in_flight:
            op.fate = "lost"
        self.in_flight.clear()
        self.life += 1

    async def _settle(self) -> None:
        """Wait until everybody is answered and everything is committed; then look at it all."""
        self.failing.clear()
        while self.open_calls or self.system.journal.pending_batches:  # noqa: ASYNC110 - a moment of all
            await trio.sleep(0.1)
        assert not self.in_flight
        self.expected.check(self.system.store)
        for reader in self.readers:
            subscription = reader.subscription
            due = self.expected.commands_since(reader.ref, reader.since)
            heard = reader.heard + [msgspec.json.decode(event)["name"] for _, event in subscription._buffer]
            if reader.ref in self.expected.devices:
                assert heard == due[: len(heard)]
                assert subscription.ending is Ending.SLOW or heard == due
                assert (subscription.ending is Ending.GONE) is self.expected.devices[reader.ref].deleted or (
                    subscription.ending is Ending.SLOW
                )
        self._note(f"settled: {sum(len(device.points) for device in self.expected.devices.values())} points")

    async def _sweep_to_the_end(self) -> None:
        while await self._sweep():
            pass

    async def _sweep(self) -> bool:
        """A slice of the sweeper, without its worker thread."""
        oldest_ms = restorable_since_ms(self.system.clock.wall_ms(), LIMITS)
        with self.system.store.snapshot() as snapshot:
            batch = purge.next_slice(snapshot, oldest_ms)
        if batch:
            await self.system.journal.submit(batch).wait()
        return bool(batch)

    # Commits.

    def _sync(self, life: int) -> float:
        """Called right before each sync: settles the fate of all that is in the group."""
        if self.crash is not None and life == self.life:
            self.crash()
        if life != self.life:
            return 0.0
        group, self.in_flight = self.in_flight, []
        if self.failing:
            for op in group:
                op.fate = "failed"
            self._note(f"commit of {len(group)} fails")
            raise OSError(self.failing.pop(), "told to fail")
        for op in group:
            op.fate = "stored"
            op.apply()
        return 0.0

    def _hand_over(self, op: Operation) -> None:
        if op.life == self.life:
            self.in_flight.append(op)

    # Steps.

    async def _step(self, *, busy: bool = False) -> None:
        """Let some callers ask, and then some time pass; `busy`: hardly any."""
        chance = self.chance
        for _ in range(chance.choice((1, 1, 2, 4, 8))):
            action = chance.choices(self.ACTIONS, self.WEIGHTS)[0]
            self.open_calls += 1
            self.callers.start_soon(self._call, partial(action, self), self.life)
        if chance.random() < 0.06:
            self.failing.append(chance.choice((errno.ENOSPC, errno.EIO)))
        match 12 if busy else chance.randrange(12):
            case 0:
                await self._settle()
            case 1:
                await trio.sleep(chance.choice((5, 30, 4000)))
            case 2 | 3 | 4:
                await trio.sleep(chance.choice((0.001, 0.1, 0.5, 1, WINDOW_S)))
            case _:
                for _ in range(chance.randrange(1, 6)):
                    await trio.lowlevel.checkpoint()

    async def _call(self, action: Callable[[], Awaitable[None]], life: int) -> None:
        """One caller, who may leave before the answer."""
        with trio.CancelScope() as scope:
            patience = self.chance.random()
            if patience < 0.1:
                scope.cancel()
            elif patience < 0.2:
                scope.deadline = trio.current_time() + self.chance.choice((0.0, 0.4))
            if self.life == life:
                await action()
        if self.life == life:
            self.open_calls -= 1

    def _note(self, line: str) -> None:
        self.trace.append(f"{trio.current_time():.3f} {line}")

    async def _ask(
        self,
        ref: Ref,
        message: Message,
        apply: Callable[[], Any],
        *,
        invalid: bool = False,
        birth: bool = False,
    ) -> Answer | None:
        """Ask, and hold what comes back against what is known. None where it was refused."""
        life, system = self.life, self.system
        op = Operation(life, apply)
        there = birth or self._seen(ref)
        fading = self._is_fading(ref)
        count, fits = self._spend(ref, message.throttle)
        box = system.statistics(ref)
        full = box is not None and box.mailbox_depth >= LIMITS.mailbox_length_max
        crowded = box is None and system.active >= LIMITS.actors_active_max
        self.in_flight.append(op)
        try:
            answer = await system.ask(ref, message)
        except DomainError as refusal:
            if self.life == life:
                self._note(f"{type(message).__name__} {ref.id.hex()[-6:]}: {type(refusal).__name__}")
                unborn = type(refusal) is NotFound and box is None
                if message.throttle and fits and (type(refusal) is Overloaded or unborn):
                    self.windows[ref, message.throttle].pop()
                right = {
                    TooManyRequests: not fits,
                    NotFound: fading or not there,
                    Overloaded: full or crowded,
                    Invalid: invalid,
                }
                self._judge(op, refusal, right)
            return None
        if self.life != life:
            return None
        self._note(f"{type(message).__name__} {ref.id.hex()[-6:]}: done")
        assert op.fate == "stored"
        assert there
        assert not invalid
        if message.throttle is not None:
            assert fits
            assert answer.verdict is not None
            assert answer.verdict.remaining == CALLS - count - 1
        return answer

    def _judge(self, op: Operation, refusal: DomainError, right: dict[type[DomainError], bool]) -> None:
        """A refusal is right before the commit for its own reason, and after it only where that failed."""
        kind = type(refusal)
        if op.fate is None:
            if op in self.in_flight:
                self.in_flight.remove(op)
            assert right.get(kind, False), f"{kind.__name__}: {refusal.message}"
        else:
            assert op.fate == "failed"
            assert kind in (StorageFull, Crashed)

    def _spend(self, ref: Ref, bucket: str | None) -> tuple[int, bool]:
        """How many calls the window holds, and whether one more fits, which is then counted."""
        if bucket is None:
            return 0, True
        calls, now_s = self.windows.setdefault((ref, bucket), []), trio.current_time()
        count = sum(now_s - at_s < WINDOW_S for at_s in calls)
        if count < CALLS:
            calls.append(now_s)
        return count, count < CALLS

    def _seen(self, ref: Ref) -> bool:
        """Whether an actor is there for whoever asks now: as committed, and then as all that is in flight says."""
        if self.expected.has(ref):
            return not any(
                isinstance(op.apply, partial)
                and op.apply.func in (self.expected.delete_application, self.expected.delete_device)
                and ref in op.apply.args
                for op in self.in_flight
            )
        return any(
            isinstance(op.apply, partial)
            and op.apply.func in (self.expected.create_application, self.expected.create_device)
            and ref == op.apply.args[0]
            for op in self.in_flight
        )

    def _is_fading(self, ref: Ref) -> bool:
        """Whether its application is being deleted: until the commit, what is in memory still answers."""
        application = Ref("application", ROOT, ref.parent)
        return application in self.expected.applications and not self._seen(application)
