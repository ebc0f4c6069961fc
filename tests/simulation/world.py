"""The world of a run: a server that lives several times on one disk, and what its clients do to it.

A seed is a list of steps for each life. Each step has random numbers of its own, so a run with some of them left out
does the others in the same way: that is how a failing seed is made short (`shrinking.py`).

Each seed has its own selection of clients and of what they do often, and its own number of lives: what is rare when
everybody does everything is frequent in some seeds (swarm testing: Groce and others, ISSTA 2012).

Owns the order of things: lives, steps, calls, and the looks at everything when nothing is under way. Does not own what
clients do (`devices.py` and the other parts), nor what is right (`model.py`). The file is long because all of a run is
one class, which every part of the clients uses.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import trio

from tests.password_hashes import hash_cheaply
from tests.simulation import coverage, damage, determinism, machine, machines
from tests.simulation.determinism import VirtualTime
from tests.simulation.disk import PowerCut
from tests.simulation.life import Answer, Life
from tests.simulation.limits import LIMITS, WINDOW_S
from tests.simulation.model import Broken, Change
from tests.simulation.network import Network
from tests.simulation.part import NEWER_FROM, TIMED_FROM, Part
from tests.store.simulated_log import Kept
from trunkline.limits.settings import Settings

SHAPES: Final = ((2, 60), (3, 40), (4, 30), (6, 20))
"""Lives of a run, and steps of each."""
PART_CHANCE: Final = 0.65
"""How probable it is that a part of the clients is in a run."""
FACTORS: Final = (0.2, 1.0, 1.0, 1.0, 3.0)
"""By what the weight of an action is multiplied in a run."""
SETTLE_S: Final = 300.0
"""After so long without a new call everything must have come to rest; otherwise something waits for ever."""
LONG_S: Final = 4000.0
LONG_DIVIDED_S: Final = 400.0
"""A time in which nobody comes. Several processes take a second of processor time for an hour of it, and those parts
that last longer (`Part.divided`) are not there.
"""
OFF_S: Final = 600.0
"""So long after a power cut the next life begins: longer than the end of a life takes."""
QUOTAS: Final = (1_400_000, 1_700_000, 2_200_000)
"""Of every fourth seed: a run stores a megabyte."""
QUOTAS_DIVIDED: Final = (1 << 20, 1_200_000, 1_400_000)
"""The same where each partition has a store, in which there is less. The first is the smallest there can be."""
MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where the files are: a sync of the disk below would only cost time."""
WAS_DONE: Final = "The call was done"
_IS_UNKNOWN: Final = "is not known"
OVER_WIRES: Final = 0.4
"""The share of calls that are made as bytes on a connection, of those whose clients may leave."""
_LEAVES_AFTER_S: Final = (0.0, 0.0005, 0.02, 0.4)


class Step(NamedTuple):
    """A step of a life."""

    life: int
    number: int


class Outcome(NamedTuple):
    """What a run has shown: what happened, line by line, and how often rare things happened."""

    trace: list[str]
    reached: Counter[str]
    virtual_s: float

    @property
    def digest(self) -> str:
        """The history in short: equal where two runs did the same."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:32]


def plan(seed: int) -> list[Step]:
    """All steps of a run."""
    shapes = SHAPES if seed < machine.DIVIDED_FROM else machine.SHAPES
    lives, steps = Random(f"{seed} shape").choice(shapes)
    return [Step(life, number) for life in range(lives) for number in range(steps)]


class World:
    """One run. `parts` are the clients, in the order of their preparation; what they know is in `knowledge`."""

    def __init__(self, seed: int, parts: tuple[Part, ...], steps: list[Step] | None = None) -> None:
        self.seed = seed
        self.steps = plan(seed) if steps is None else steps
        self.trace: list[str] = []
        self.reached: Counter[str] = Counter()
        self.knowledge: dict[type, Any] = {}
        self.unanswered: list[Change] = []
        self.restore_days = Random(f"{seed} restore").choice((0, 93))
        """For how long a deleted device can be restored: not at all, or longer than a run."""
        self.partitions = machine.partitions_of(seed)
        self.machines = machines.machines_of(seed)
        self.log = Kept()
        """What the log of the machines has, which outlives a life."""
        self.home = 0
        """The partition of the application in which nearly everything is done."""
        self.placed: dict[str, int] = {}
        """The partitions of applications, as far as they are known."""
        self.claims: dict[int, float] = {}
        """By partition, when a name that is unique in the server was claimed there for the last time."""
        self.has_several = is_divided = self.partitions > 1 or self.machines > 1
        """Whether there are several processes, of which some may be away."""
        self._ends_damaged = self.machines == 1 and Random(f"{seed} damage").random() < 0.2
        self._said: damage.Said = {}
        self._older = b""
        self.strays: Callable[[str, Any], list[Any]] = lambda _path, _body: []
        """Given a path and an answer, what it shows that nobody has ever sent."""
        self._is_recent = Random(f"{seed} recent").random() < 0.5
        """Whether states, which are named by such numbers, are of the time at which they are sent."""
        quotas = QUOTAS_DIVIDED if self.partitions > 1 else QUOTAS
        has_quota = self.machines == 1 and seed % 4 == 0 and (not is_divided or seed >= TIMED_FROM)
        self.quota = Random(f"{seed} quota").choice(quotas) if has_quota else None
        self.is_ending = False
        self.failed_commits = self.open_calls = self.number = 0
        self.number_at_failure = 0
        """The latest number of `unique` when a commit failed."""
        self.token = ""
        self._cut_s = 0.0
        self.virtual: VirtualTime
        self.life: Life
        self.callers: trio.Nursery
        self._path: Path
        choice = Random(f"{seed} swarm")
        may_act = [part for part in parts if part.may_act(seed, self.partitions, self.machines)]
        self._parts = [part for part in may_act if choice.random() < PART_CHANCE or part.always]
        self._weights = {
            action: weight * choice.choice(FACTORS)
            for part in self._parts
            for action, weight in part.actions.items()
        }

    def run(self) -> Outcome:
        """Run all lives. Raises `Broken` where a promise is broken."""
        hash_cheaply()
        try:
            with tempfile.TemporaryDirectory(prefix="trunkline-simulation-", dir=MEMORY) as path:
                self._path = Path(path)
                determinism.run(str(self.seed), self._main)
        except BaseException as fault:
            fault.add_note("\n".join(self.trace[-25:]))
            raise
        return Outcome(self.trace, self.reached, self.virtual.now_s)

    def of(self, type: type) -> Any:
        """What a part of the clients knows."""
        if type not in self.knowledge:
            self.knowledge[type] = type()
        return self.knowledge[type]

    def note(self, line: str) -> None:
        self.trace.append(f"{self.virtual.now_s:.6f} {line}")

    def unique(self) -> int:
        """A number that nobody else has, larger than all before. In some runs it is about the time of the run in ms."""
        self.number = max(self.number + 1, int(self.virtual.now_s * 1000) if self._is_recent else 0)
        return self.number

    # Lives.

    async def _main(self, virtual: VirtualTime) -> None:
        self.virtual = virtual
        lives = sorted({step.life for step in self.steps} | {0})
        for index, number in enumerate(lives):
            if index:
                virtual.begin_again(f"{self.seed} life {number}", self._cut_s + OFF_S)
            await self._live(
                number, self._path / str(index), self._path / str(index + 1), last=number == lives[-1]
            )
        if self._ends_damaged:
            virtual.begin_again(f"{self.seed} damaged", virtual.now_s + OFF_S)
            await damage.live(self, self._said, self._path / str(index), self._path / "damaged", self._older)

    async def _live(self, number: int, here: Path, there: Path, *, last: bool) -> None:
        chance = Random(f"{self.seed} life {number}")
        disk = machine.disks_of(self, here, chance, first=number == 0)
        if last and self._ends_damaged:
            damaged = disk.machine[damage.partition_of(self)]
            damaged.older_at = Random(f"{self.seed} older").choice((3, 20, 60, 150))
        network = Network(Random(f"{self.seed} network {number}"), self.reached)
        network.has_newer = self.seed >= NEWER_FROM
        try:
            async with (
                machine.started(self, str(number), disk, network, chance) as self.life,
                trio.open_nursery() as self.callers,
            ):
                await self._begin(first=number == 0)
                for step in self.steps:
                    if step.life == number:
                        self.note(f"step {step.life}.{step.number}")
                        await self._step(Random(f"{self.seed} {step.life} {step.number}"))
                if last:
                    self.is_ending = True
                    await self.settle()
                    if self._ends_damaged:
                        self._said = await damage.said_before(self)
                        self._older = damaged.older
                    self.callers.cancel_scope.cancel()
                else:
                    await self._lose_power(chance)
        except* PowerCut:
            pass
        for server in self.life.servers:
            self.reached.update(coverage.of_life(server.system))
        if self.life.over:
            disk.image_to(there)

    def settings(self, here: Path) -> Settings:
        """Of a server on this data directory."""
        limits = replace(LIMITS, device_restore_days=self.restore_days)
        return Settings(
            data_dir=str(here),
            limits=limits,
            token_ttl_s=10**9,
            store_size_max_bytes=self.quota,
            http2_prior_knowledge=self.seed >= NEWER_FROM,
        )

    async def _begin(self, *, first: bool) -> None:
        """In a later life: what was under way is whole or not there, and all else is as it was."""
        self.open_calls = 0
        if first:
            with self.nobody_leaves() if self.has_several else nullcontext():
                await self.life.is_calm()
                for part in self._parts:
                    await part.prepare(self)
        await self._look()

    async def _lose_power(self, chance: Random) -> None:
        """End this life, if no step has, at a commit or between two."""
        if chance.random() < 0.3:
            await self.settle()
        if chance.random() < 0.4:
            self.life.disk.cut_now()
            raise PowerCut
        self.life.any_disk(chance).cut_soon(chance.choice((1, 1, 2, 6)))
        with trio.move_on_after(SETTLE_S):
            while True:
                await self.act(chance)
                await trio.sleep(chance.choice((0, 0, 0.01, 11)))
        self.life.disk.cut_now()  # who is left has nothing to store
        raise PowerCut

    def cut(self, how: str) -> None:
        self.life.over = True
        self._cut_s = self.virtual.now_s
        self.reached[f"power cut: {how}"] += 1
        for server in self.life.running:
            self.reached.update(coverage.at_cut(server.system))
        self.note(f"power cut ({how}) with {self.open_calls} calls under way")

    def commit_failed(self) -> None:
        self.failed_commits += 1
        self.number_at_failure = self.number
        self.note("a commit failed")

    # Steps.

    async def _step(self, chance: Random) -> None:
        for _ in range(chance.choice((1, 1, 2, 3, 6))):
            await self.act(chance)
        match chance.randrange(14):
            case 0:
                await self.settle()
            case 1:
                long_s = LONG_DIVIDED_S if self.has_several else LONG_S
                await trio.sleep(chance.choice((5, 5, 5, 5, 30, 30, 30, 30, 70, 70, 70, long_s)))
            case 2 | 3 | 4:
                await trio.sleep(chance.choice((0.001, 0.1, 0.5, 1, WINDOW_S)))
            case _:
                for _ in range(chance.randrange(1, 6)):
                    await trio.lowlevel.checkpoint()

    async def act(self, chance: Random) -> None:
        (action,) = chance.choices(list(self._weights), list(self._weights.values()))
        self.open_calls += 1
        self.callers.start_soon(
            self._perform, partial(action, self, Random(chance.getrandbits(64))), self.life
        )

    async def _perform(self, action: Callable[[], Awaitable[None]], life: Life) -> None:
        try:
            if not life.over:
                await action()
        finally:
            if life is self.life:
                self.open_calls -= 1

    async def settle(self) -> None:
        """Wait until everybody is answered and nothing is under way; then look at everything."""
        for disk in self.life.disk.machine:
            disk.next_fault = None
        with trio.move_on_after(SETTLE_S) as waiting:
            comes_back = True  # a device may
            while comes_back:
                while self.open_calls or not self.life.is_quiet:  # noqa: ASYNC110 - a moment of all of them
                    await trio.sleep(0.05)
                await trio.sleep(0.1)
                comes_back = self.open_calls > 0 or not self.life.is_quiet
        if waiting.cancelled_caught:
            raise Broken(f"{self.open_calls} calls have no answer after {SETTLE_S:.0f} seconds")
        await self._look()
        self.note("settled")

    async def _look(self) -> None:
        for change in self.unanswered:
            change.over()
        for disk in self.life.disk.machine:
            disk.kill_soon(0)  # nobody dies meanwhile
        with self.nobody_leaves():
            await self.life.is_calm()
            for part in self._parts:
                await part.look(self)
        for change in self.unanswered:
            change.check_whole()
        self.unanswered.clear()

    @contextmanager
    def nobody_leaves(self) -> Iterator[None]:
        self._patient, self.life.network.may_stall = True, False
        try:
            yield
        finally:
            self._patient, self.life.network.may_stall = False, True

    _patient = False

    # Calls.

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        chance: Random | None = None,
        needs: Iterable[int] = (),
    ) -> Answer | None:
        """Make a call. None if nobody knows what became of it: the client has left, a process is away, or the power.

        With `chance` the client may leave before the answer. A fault of the server must have a reason. `needs` are
        partitions without which it cannot be answered, beside that of its application.
        """
        life, failed, began_s = self.life, self.failed_commits, self.virtual.now_s
        slept_s = self.virtual.slept_s
        is_patient = self._patient
        answer: Answer | None = None
        machine.know_place(self, path)
        make: Any = life.call
        if chance is not None and not self._patient and chance.random() < OVER_WIRES:
            make = partial(life.call_over_wire, chance=chance)
        with trio.CancelScope() as scope:
            if chance is not None and not self._patient and chance.random() < 0.08:
                scope.deadline = trio.current_time() + chance.choice(_LEAVES_AFTER_S)
            bearer = self.token if token is None else token
            answer = await make(method, path, body, token=bearer, headers=headers)
        if life.over and is_patient:
            await trio.sleep_forever()  # whoever looks at everything is cancelled by the power cut
        if life.over:
            return None
        if is_patient and (answer is None or answer.status in machine.AWAY):
            raise Broken(f"{method} {path} has no answer, and all processes are there: {answer}")
        if answer is None:
            self.reached["a client left"] += 1
            self.note(f"{method} {path}: left")
            return None
        hashed = hashlib.sha256(answer.raw).hexdigest()[:8]
        self.note(f"{method} {path}: {answer.status} {hashed}")
        if answer.status in machine.AWAY and life.processes:
            slept_s = self.virtual.slept_s - slept_s
            machine.check_away(self, f"{method} {path}", path, answer, began_s, needs, slept_s)
            return None
        if answer.status == 500 and self.machines > 1 and _IS_UNKNOWN in answer.body["message"]:
            if self.failed_commits == failed:
                raise Broken(f"{method} {path} is 500, and no commit has failed: {answer.body}")
            self.reached["nobody knew whether a call was stored"] += 1
            return None
        if answer.status == 507 and self.quota is not None:
            self.reached["the quota was full"] += 1
            self.number_at_failure = self.number
        elif answer.status >= 500:
            if self.failed_commits == failed or answer.status not in (500, 507):
                raise Broken(f"{method} {path} is {answer.status} without a reason: {answer.body}")
            self.reached[f"{answer.status} for a failed commit"] += 1
        return answer

    async def change(
        self, change: Change, method: str, path: str, body: Any = None, **more: Any
    ) -> Answer | None:
        """Make a call that changes something, and let the model know what became of it."""
        answer = None
        try:
            answer = await self.call(method, path, body, **more)
        finally:
            if answer is None:  # also where the caller is cancelled, because the power was cut
                self.unanswered.append(change)
        if answer is not None:
            was_done = answer.status == 500 and answer.body["message"].startswith(WAS_DONE)
            (change.stored if answer.status < 300 or was_done else change.refused)()
        return answer
