"""Runs a program on Trio so that a seed decides everything: the order of tasks, time, random numbers and threads.

- Time is virtual. Trio's clock jumps to the next deadline as soon as every task waits. The clocks of the machine that
  code reads beside it (`time.monotonic`, `time.perf_counter_ns` and so on) follow it, and each look at them costs a
  little time, so that what is bounded by its processor time ends somewhere in the middle, at the same place each time.
- Trio shuffles the tasks that can run; its random numbers are seeded. Tasks are cancelled in the order of their begin,
  which in Trio follows from their addresses.
- Random bytes of the operating system come from the seed: ids, secrets, nonces.
- Work for threads is done in the event loop, after a seeded wait.

Not repeated from a seed: private keys that are made in C (RSA, elliptic curves), and child processes.
"""

from __future__ import annotations

import math
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog
import trio
import trio._core._run as trio_run
import trio.testing

START_MS: Final = 1_714_564_800_000
"""2024-05-01T12:00:00Z, when each run begins."""
LOOK_NS: Final = (200, 2_000, 20_000, 200_000)
"""What a look at a clock may cost: a run has one of these."""
_WAITS_S: Final = (0.0, 0.0, 0.001, 0.02)
"""How long work may wait for its thread."""
_LOOK_AGAIN_S: Final = 0.001


class VirtualTime:
    """All clocks of the machine. `skew_ms` is what the wall clock was set forward, or back if it is negative."""

    def __init__(self, look_ns: int, chance: random.Random) -> None:
        self._chance = chance
        self.clock = trio.testing.MockClock(autojump_threshold=0)
        self._base_s = self.clock.current_time()
        self._look_ns = look_ns
        self._looks_ns = 0
        self.skew_ms = 0
        self.slept_s = 0.0
        """How long the whole process has waited in all."""
        self.threads_may_run: Callable[[], bool] = lambda: True
        """Whether work for threads may be done now: a thread may block where the event loop must not."""

    @property
    def now_s(self) -> float:
        """Seconds since the begin of the run, without the looks."""
        return self.clock.current_time() - self._base_s

    def wall_ms(self) -> int:
        return START_MS + self.skew_ms + int(self.now_s * 1000)

    def monotonic_s(self) -> float:
        return self.clock.current_time()

    def sleep(self, seconds: float) -> None:
        """The whole process waits: the loop does nothing meanwhile."""
        self.slept_s += max(0.0, seconds)
        self.clock.jump(max(0.0, seconds))

    def begin_again(self, seed: str, at_s: float) -> None:
        """Begin another life of the machine, at a time of this run that has not come yet.

        In which order Trio cancels tasks follows from their addresses. So whatever was done while a life was ended must
        not decide what comes after it.
        """
        self.clock.jump(at_s - self.now_s)
        self._looks_ns = 0
        self._chance.seed(f"machine {seed}")
        trio_run._r.seed(self._chance.getrandbits(64))

    def _work_ns(self) -> int:
        self._looks_ns += self._look_ns
        return int(self.clock.current_time() * 1e9) + self._looks_ns

    def functions(self) -> dict[str, Callable[[], float]]:
        """What stands for the functions of `time`."""
        return {
            "monotonic": lambda: self._work_ns() / 1e9,
            "monotonic_ns": self._work_ns,
            "perf_counter": lambda: self._work_ns() / 1e9,
            "perf_counter_ns": self._work_ns,
            "thread_time_ns": self._work_ns,
            "time": lambda: self.wall_ms() / 1000,
            "time_ns": lambda: self.wall_ms() * 1_000_000,
        }


class _Replaced:
    """Attributes of modules that were replaced, to be put back."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        self._before.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def put_back(self) -> None:
        for owner, name, value in reversed(self._before):
            setattr(owner, name, value)


def run(seed: str, program: Callable[[VirtualTime], Awaitable[None]]) -> None:
    """Run `program`, and raise what it raises. All modules that it uses must be imported already."""
    with _seeded(seed) as virtual:
        trio.run(program, virtual, clock=virtual.clock)


@contextmanager
def _seeded(seed: str) -> Iterator[VirtualTime]:
    chance = random.Random(f"machine {seed}")
    replaced, order = _Replaced(), trio_run._r.getstate()
    silent, logs = structlog.testing.ReturnLogger(), structlog.get_config()
    structlog.configure(processors=[], logger_factory=lambda *_: silent)
    try:
        trio_run._r.seed(chance.getrandbits(64))
        replaced.set(trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        replaced.set(trio_run.CancelStatus, "recalculate", _recalculate)
        replaced.set(trio.testing.MockClock, "current_time", lambda clock: clock._virtual_base)
        replaced.set(trio.testing.MockClock, "_autojump", _jump)
        virtual = VirtualTime(chance.choice(LOOK_NS), chance)
        _replace_clocks(replaced, virtual)
        replaced.set(os, "urandom", chance.randbytes)
        replaced.set(random, "_urandom", chance.randbytes)
        replaced.set(trio.to_thread, "run_sync", _Threads(chance, virtual).run_sync)
        replaced.set(trio.from_thread, "check_cancelled", lambda: None)
        yield virtual
    finally:
        replaced.put_back()
        trio_run._r.setstate(order)
        structlog.configure(**logs)


def _jump(clock: Any) -> None:
    """What `MockClock._autojump` does, without the other facts that it gathers."""
    seconds = trio_run.GLOBAL_RUN_CONTEXT.runner.deadlines.next_deadline() - clock._virtual_base
    if 0 < seconds < math.inf:
        clock._virtual_base += seconds


def _recalculate(status: Any) -> None:
    """What `CancelStatus.recalculate` does, with the tasks in their order."""
    now = status._scope.cancel_called or status.parent_cancellation_is_visible_to_us
    if now == status.effectively_cancelled:
        return
    todo, cancelled = [status], []
    while todo:
        each = todo.pop()
        by_parent = each.parent_cancellation_is_visible_to_us
        new = each._scope.cancel_called or by_parent
        if new != each.effectively_cancelled:
            if by_parent and each._scope._cancel_reason is None:
                each._scope._cancel_reason = each._parent._scope._cancel_reason
            each.effectively_cancelled = new
            if new:
                cancelled.extend(each._tasks)
            todo.extend(each._children)
    for task in sorted(cancelled, key=lambda task: task._counter):
        task._attempt_delivery_of_any_pending_cancel()


def _replace_clocks(replaced: _Replaced, virtual: VirtualTime) -> None:
    """Also in the modules that have imported a function by its name."""
    ours = [module for name, module in sys.modules.items() if name.startswith("trunkline.")]
    functions: dict[str, Any] = {**virtual.functions(), "sleep": virtual.sleep}
    for name, function in functions.items():
        real = getattr(time, name)
        for module in ours:
            if getattr(module, name, None) is real:
                replaced.set(module, name, function)
        replaced.set(time, name, function)


class _Threads:
    """`trio.to_thread` without threads."""

    def __init__(self, chance: random.Random, virtual: VirtualTime) -> None:
        self._chance = chance
        self._virtual = virtual

    async def run_sync(
        self,
        work: Callable[..., Any],
        *arguments: Any,
        thread_name: str | None = None,
        abandon_on_cancel: bool = False,
        limiter: Any = None,
    ) -> Any:
        """Do the work after a while, at a place of the limiter."""
        await trio.lowlevel.checkpoint_if_cancelled()
        places = trio.to_thread.current_default_thread_limiter() if limiter is None else limiter
        who = object()
        await places.acquire_on_behalf_of(who)
        try:
            with trio.CancelScope(shield=not abandon_on_cancel):
                await trio.sleep(self._chance.choice(_WAITS_S))
                while not self._virtual.threads_may_run():  # noqa: ASYNC110 - what it looks at has no event
                    await trio.sleep(_LOOK_AGAIN_S)
            return work(*arguments)
        finally:
            places.release_on_behalf_of(who)
