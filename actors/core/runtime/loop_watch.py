"""The watchdog of the event loop: how long each turn holds it, and which turns were the worst.

Owns the histogram of turns, the list of the worst and the log lines of those over the limit, and tells threads whether
the loop is busy, and calls how much of a pass they have taken (`core/runtime/precedence.py`). Takes samples of what the
loop works on (`busy_hour.py`). Does not own what is worked on (`core/runtime/work.py`), and ends nothing: a turn cannot
be interrupted, only made shorter.

A turn is one step of a task from one wait to the next, or one callback of a task that serves many (`lap`). All tenants
wait while it lasts. Besides what its own code computes it has pauses: the garbage collector, other threads that have
the interpreter or the processor, and the disk. So a turn over the limit is told with the processor time of the loop
itself, with how much of that was the collector's, and with the cause as far as it is known.

On a machine that is shared with other programs many turns are only pauses of some milliseconds. Nobody can mend them,
so they are counted and listed but not logged: the log has the turns in which the loop computed, and long pauses.

A sample is due after one to three milliseconds in which the loop works, at random, so that nothing that it does
regularly is found more often than it takes.

What it costs: two readings of a clock and some additions for each pass of the loop and each step in it, about 1 us
together. The processor time is a system call, so it is read at most once a millisecond, and that is how inexact it is.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

import structlog
import trio

from trunkline.actors.core.runtime.busy_hour import SAMPLE_NS, BusyHour
from trunkline.actors.core.runtime.precedence import LOOP
from trunkline.actors.core.runtime.work import KINDS, Work, current_work, noted
from trunkline.limits.log_lines import LogLines
from trunkline.limits.table import Limits

TURN_TIMES_S: Final = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""The bounds of the histogram; a bucket above them has the rest."""
WORST_MAX: Final = 32
COMPUTED_SHARE: Final = 0.5
"""A turn in which the loop computed for this part of the limit is logged."""
LONG_PAUSE_LIMITS: Final = 10
"""A turn of so many times the limit is logged also where the loop did not compute."""
WORST_KEPT_MS: Final = 24 * 3_600_000
"""A turn is no longer among the worst after a day."""

_BOUNDS_NS: Final = [round(bound_s * 1e9) for bound_s in TURN_TIMES_S]
_SHORT_NS: Final = _BOUNDS_NS[0]
_CPU_EVERY_NS: Final = 1_000_000
_OTHER: Final = Work("other", "")

_log = structlog.get_logger("trunkline.loop")


class LongTurn(NamedTuple):
    """A turn over the limit, in milliseconds. `cpu_ms` is the loop's own processor time; `gc_ms` is part of it."""

    at_ms: int
    ms: float
    cpu_ms: float
    gc_ms: float
    kind: str
    name: str
    detail: str
    application_id: str | None
    owner_id: str | None
    bearer: str | None
    cause: str
    """What took most of the time, as far as that is known."""


class LoopWatch(trio.abc.Instrument):
    """Measures the turns of the loop that it is added to, in the loop's thread.

    `owner_of` returns the owner of an application.
    """

    def __init__(
        self,
        limits: Limits,
        wall_ms: Callable[[], int],
        owner_of: Callable[[bytes], str | None] = lambda _application: None,
    ) -> None:
        self.collected_s: Callable[[], float] = lambda: 0.0
        """The time of the garbage collector so far."""
        self.turns = 0
        self.total_ns = 0
        """The time of all turns, up to the latest pass of the loop."""
        self.longest_ns = 0
        self.long_turns = dict.fromkeys(KINDS, 0)
        """Turns over the limit, by the kind of the work."""
        self._longer = [0] * (len(_BOUNDS_NS) + 1)
        self._worst: list[LongTurn] = []
        self._limit_ns = round(limits.loop_turn_ms_max * 1e6)
        self._gate_ns = min(_SHORT_NS, self._limit_ns)
        self._lines = LogLines(limits.logged_turns_per_minute_max)
        self._wall_ms = wall_ms
        self._owner_of = owner_of
        self._began_ns = self._pass_began_ns = time.perf_counter_ns()
        self._marked_ns = self._cpu_ns = 0
        self._gc_s = 0.0
        self._random = Random(0).random  # noqa: S311 - nobody has to guess it
        self._sample_ns = self._began_ns
        """When the next sample is due. While the loop waits, it is put off."""
        self.hour = BusyHour(self._began_ns)

    def begin(self) -> None:
        """What the loop does from now on is measured; the turn of the caller began here."""
        self._began_ns = self._pass_began_ns = self._sample_ns = time.perf_counter_ns()
        self.hour.begin(self._began_ns)

    # Called by the loop.

    def before_io_wait(self, timeout: float) -> None:
        self.total_ns += self._began_ns - self._pass_began_ns
        if timeout > 0:
            LOOP.busy = False

    def after_io_wait(self, timeout: float) -> None:
        LOOP.busy = True
        LOOP.calls_ns = 0
        now_ns = time.perf_counter_ns()
        if timeout > 0:
            self._sample_ns += now_ns - self._began_ns
        self._began_ns = self._pass_began_ns = now_ns
        if now_ns - self._marked_ns > _CPU_EVERY_NS:
            self._mark(now_ns)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        now_ns = time.perf_counter_ns()
        took_ns = now_ns - self._began_ns
        self._began_ns = now_ns
        self.turns += 1
        work = task.context.get(current_work)
        if work is not None and work.kind == "call":
            LOOP.calls_ns += took_ns
            LOOP.tasks_ns += took_ns
        if now_ns >= self._sample_ns:
            self._sample(noted.work or work, now_ns)
        if took_ns > self._gate_ns:
            self._longer_turn(took_ns, now_ns, task)
        noted.work = None

    def lap(self) -> None:
        """The end of one of several callbacks in a step: what follows is another turn."""
        now_ns = time.perf_counter_ns()
        took_ns = now_ns - self._began_ns
        self._began_ns = now_ns
        self.turns += 1
        LOOP.calls_ns += took_ns
        if now_ns >= self._sample_ns:
            self._sample(noted.work, now_ns)
        if took_ns > self._gate_ns:
            self._longer_turn(took_ns, now_ns, None)
        noted.work = None

    # What was measured.

    @property
    def counts(self) -> list[int]:
        """The number of turns in each bucket of `TURN_TIMES_S`, and in the one above."""
        longer = self._longer[1:]
        return [self.turns - sum(longer), *longer]

    def worst(self) -> list[LongTurn]:
        """The worst turns of the last day, the longest first."""
        self._forget_old()
        return sorted(self._worst, key=lambda turn: -turn.ms)

    def _sample(self, work: Work | None, now_ns: int) -> None:
        """Count the samples that were due in a turn, and choose when the next one is."""
        samples = 1 + (now_ns - self._sample_ns) // SAMPLE_NS
        self._sample_ns += int((samples - 0.5 + self._random()) * SAMPLE_NS)
        self.hour.count(work, samples, now_ns)

    # Turns that are not short.

    def _mark(self, now_ns: int) -> None:
        self._marked_ns = now_ns
        self._cpu_ns = time.thread_time_ns()
        self._gc_s = self.collected_s()

    def _longer_turn(self, took_ns: int, now_ns: int, task: trio.lowlevel.Task | None) -> None:
        self._longer[bisect_left(_BOUNDS_NS, took_ns)] += 1
        self.longest_ns = max(self.longest_ns, took_ns)
        marked_ns, cpu_at_mark_ns, gc_at_mark_s = self._marked_ns, self._cpu_ns, self._gc_s
        self._mark(now_ns)  # so that what this turn has waited for is not taken for waits of the next
        if took_ns <= self._limit_ns:
            return
        waited_ns = (now_ns - marked_ns) - (self._cpu_ns - cpu_at_mark_ns)
        cpu_ns = min(took_ns, max(0, took_ns - waited_ns))
        collected_ns = 1e9 * (self._gc_s - gc_at_mark_s)
        work = noted.work or (None if task is None else task.context.get(current_work)) or _OTHER
        self.long_turns[work.kind] += 1
        self._note(
            LongTurn(
                self._wall_ms(),
                round(took_ns / 1e6, 3),
                round(cpu_ns / 1e6, 3),
                round(min(cpu_ns, collected_ns) / 1e6, 3),
                work.kind,
                work.name or _name_of(task),
                "" if work.detail is None else work.detail(),
                None if work.application is None else work.application.hex(),
                None if work.application is None else self._owner_of(work.application),
                work.bearer,
                _cause(took_ns, cpu_ns, collected_ns),
            )
        )

    def _note(self, turn: LongTurn) -> None:
        """Keep a turn if it is one of the worst, and log it if it says something and the bound allows."""
        worst = self._worst
        worst.append(turn)
        if len(worst) > WORST_MAX:
            self._forget_old()
        if len(worst) > WORST_MAX:
            worst.remove(min(worst, key=lambda each: each.ms))
        limit_ms = self._limit_ns / 1e6
        if turn.cpu_ms < COMPUTED_SHARE * limit_ms and turn.ms < LONG_PAUSE_LIMITS * limit_ms:
            return
        left_out = self._lines.take(time.monotonic())
        if left_out is None:
            return
        told = {name: value for name, value in turn._asdict().items() if value not in (None, "")}
        del told["at_ms"]
        _log.warning("a turn of the event loop was long", **told, **left_out)

    def _forget_old(self) -> None:
        oldest_ms = self._wall_ms() - WORST_KEPT_MS
        self._worst[:] = [turn for turn in self._worst if turn.at_ms >= oldest_ms]


def _cause(took_ns: int, cpu_ns: int, collected_ns: float) -> str:
    """What took most of a turn. A collection in another thread keeps the interpreter from the loop too."""
    if 2 * collected_ns >= took_ns:
        return "the garbage collector"
    if 2 * cpu_ns >= took_ns:
        return "computing"
    return "waiting for the disk, another thread or another program"


def _name_of(task: trio.lowlevel.Task | None) -> str:
    """The name of a task, shorter: its class and function."""
    return "a callback" if task is None else ".".join(task.name.split(".")[-2:])
