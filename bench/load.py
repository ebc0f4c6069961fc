"""A load: many connections that make calls, each call measured from the moment it was meant to start.

Owns which call goes out when, over which connection, and what became of it. Does not own what a call is: a
scenario gives ``Work``, and gets each answer back.

Closed loop: an answer lets the next call out. Open loop: calls are meant to start at fixed times, whatever
the server does; one that finds no free connection waits here, and its latency counts from the time at which
it was meant to start. Without that, a server that stalls would be measured only by the few calls that were
under way (coordinated omission).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial

from trunkline.bench.client import REQUEST_TIMEOUT_S
from trunkline.bench.errors import BenchError, ConnectFailed, ProtocolViolation, TimedOut, WireError
from trunkline.bench.exchange import Framing, HttpFraming
from trunkline.bench.framing import Response
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.line import Line
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.session import refusal, retry_after_s
from trunkline.bench.transport import Origin

CONNECTIONS_MAX = 50_000
"""Connections: about 28,000 leave one address for one server's port; a fleet of them has others."""

CONNECTING_MAX = 256
"""Connections: opened at the same time, so that the kernel's queue of the server holds them all."""

OPENING_TIMEOUT_S = 60.0
"""Seconds: until all connections stand, before anything is measured."""

LAST_ANSWERS_S = 10.0
"""Seconds: waited for the answers under way when a load ends; those that come later count as unknown."""

REFUSED_PAUSE_S = 1.0
"""Seconds: for a work that was refused without a Retry-After."""

BREAK_PAUSE_S = 0.1
"""Seconds: before a broken connection is made again."""

WATCH_PERIOD_S = 0.5
"""Seconds: between two looks at calls that wait too long; also between two ticks of progress."""


class Tally:
    """What became of the calls of one kind. ``units`` counts what they carry, such as the states of an array."""

    def __init__(self, name: str, unit: str = "calls") -> None:
        self.name = name
        self.unit = unit
        self.reset()

    def reset(self) -> None:
        """Begin anew: what came before was warming up."""
        self.sent = 0
        self.acknowledged = 0
        self.units = 0
        self.refused: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.first_refusal = ""
        self.breaks = 0
        self.latency = LatencyRecorder()
        self.service = LatencyRecorder()

    @property
    def unknown(self) -> int:
        """Calls whose answer promises nothing, or never came."""
        return self.sent - self.acknowledged - sum(self.refused.values())


class Work(ABC):
    """Something to call for again and again; a load never has two calls of one work under way."""

    __slots__ = ("tally",)

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    @abstractmethod
    def request(self) -> bytes:
        """The bytes of the next call."""

    def acknowledged(self, response: Response) -> int:
        """Take the answer of the last call; the number of units that it acknowledged."""
        return 1

    def refused(self) -> None:  # noqa: B027 - most works need not know
        """Learn that the last call was certainly not carried out."""


class CallLine(Line):
    """A connection that carries one call at a time."""

    __slots__ = ("framing", "greetings", "intended_s", "load", "sent_s", "work")

    def __init__(self, load: Load) -> None:
        super().__init__(load.reactor, load.origin)
        self.load = load
        self.work: Work | None = None
        self.intended_s = self.sent_s = 0.0
        self.greetings = 0

    def opened(self) -> None:
        self.framing = self.load.framing()
        self.greetings = self.framing.greetings
        if self.framing.greeting:
            self.send(self.framing.greeting)
        if not self.greetings:
            self.load.joined(self)

    def received(self, data: bytes) -> None:
        try:
            answers = self.framing.feed(data)
        except ProtocolViolation as problem:
            self.fail(problem)
            return
        for response in answers:
            if self.greetings:
                self.greetings -= 1
                if not self.greetings:
                    self.load.joined(self)
            elif self.work is not None:
                self.load.answered(self, self.work, response)

    def broken(self, problem: WireError) -> None:
        self.load.broke(self, problem)


class Load:
    """Calls for ``works`` over ``connections`` lines: as fast as answers come, or at ``rate`` calls a second."""

    def __init__(
        self,
        reactor: Reactor,
        origin: Origin,
        works: Sequence[Work],
        *,
        connections: int,
        rate: float | None = None,
        framing: Callable[[], Framing] = HttpFraming,
    ) -> None:
        if not 1 <= connections <= CONNECTIONS_MAX:
            raise BenchError(f"A load takes between 1 and {CONNECTIONS_MAX} connections.")
        if rate is not None and rate <= 0:
            raise BenchError("A rate is more than 0 calls a second.")
        self.reactor = reactor
        self.origin = origin
        self.framing = framing
        self.unsent = 0
        self.reconnects = 0
        self._interval_s = 0.0 if rate is None else 1 / rate
        self.tallies = list(dict.fromkeys(work.tally for work in works))
        self._ready = deque(works)
        self._lines = [CallLine(self) for _ in range(connections)]
        self._idle: deque[CallLine] = deque()
        self._unopened = deque(self._lines)
        self._under_way = 0
        self._running = False
        self._closing = False
        self._began_s = self._due_s = 0.0
        self._starts = 0
        self._alarm_set = False
        self._on_tick: Callable[[], None] = _nothing
        self._problem: WireError | None = None

    # Before, during, after.

    def open(self) -> None:
        """Open all connections; raises ConnectFailed where that takes too long."""
        for _ in range(CONNECTING_MAX):
            self._open_next()
        self._watch()
        if not self.reactor.run(clock() + OPENING_TIMEOUT_S):
            opened = len(self._idle)
            reason = f" {self._problem}" if self._problem else ""
            raise ConnectFailed(f"Of {len(self._lines):,} connections {opened:,} could be opened.{reason}")

    def run(self, duration_s: float, on_tick: Callable[[], None] | None = None) -> float:
        """Call for ``duration_s``, then wait for the answers under way; the seconds that it took."""
        started_s = clock()
        end_s = started_s + duration_s
        self._running = True
        self._on_tick = on_tick or _nothing
        self._began_s = self._due_s = started_s
        self._starts = 0
        self._start_due()
        self.reactor.run(end_s)
        self._running = False
        if self._interval_s:
            self._tell_unsent(end_s)
        if self._under_way:
            self.reactor.run(end_s + LAST_ANSWERS_S)
        return clock() - started_s

    def reset(self) -> None:
        """Forget what was counted so far."""
        self.unsent = self.reconnects = 0
        for tally in self.tallies:
            tally.reset()

    def close(self) -> None:
        """Close all connections; calls under way stay unknown."""
        self._closing = True
        for line in self._lines:
            line.close()

    # What lines tell.

    def joined(self, line: CallLine) -> None:
        """A line can be used."""
        self._idle.append(line)
        if self._unopened:
            self._open_next()
        elif not self._running and len(self._idle) == len(self._lines):
            self.reactor.stop()
        self._start_due()

    def answered(self, line: CallLine, work: Work, response: Response) -> None:
        """A call has its answer."""
        now_s = clock()
        tally = work.tally
        line.work = None
        self._under_way -= 1
        if response.status < 300:
            tally.acknowledged += 1
            tally.units += work.acknowledged(response)
            tally.latency.record(now_s - line.intended_s)
            if self._interval_s:
                tally.service.record(now_s - line.sent_s)
            self._ready.append(work)
        else:
            self._take_refusal(work, response, now_s)
        self._idle.append(line)
        if self._running:
            self._start_due()
        elif not self._under_way:
            self.reactor.stop()

    def broke(self, line: CallLine, problem: WireError) -> None:
        """A line is closed, with or without a call under way; it is opened again after a pause."""
        self._problem = problem
        if line.work is not None:
            line.work.tally.breaks += 1
            self._ready.append(line.work)
            line.work = None
            self._under_way -= 1
            if not self._running and not self._under_way:
                self.reactor.stop()
        elif line in self._idle:
            self._idle.remove(line)
        self.reconnects += 1
        self.reactor.call_at(clock() + BREAK_PAUSE_S, partial(self._reopen, line))

    # Starting calls.

    def _start_due(self) -> None:
        """Start what is due, as far as there are free lines and works that may be called for."""
        if not self._running:
            return
        ready, idle, interval_s = self._ready, self._idle, self._interval_s
        while ready and idle and self._due_s <= clock():
            line, work = idle.popleft(), ready.popleft()
            raw = line.framing.outgoing(work.request())
            line.work = work
            line.sent_s = clock()
            line.intended_s = self._due_s if interval_s else line.sent_s
            self._next_due()
            self._under_way += 1
            work.tally.sent += 1
            line.send(raw)
        if interval_s and ready and idle and not self._alarm_set:
            self._alarm_set = True
            self.reactor.call_at(self._due_s, self._alarm)

    def _alarm(self) -> None:
        self._alarm_set = False
        self._start_due()

    def _tell_unsent(self, end_s: float) -> None:
        """Count the starts that were due and found no free line, each with the time that it had waited by the end."""
        while self._due_s < end_s:
            self.unsent += 1
            self.tallies[0].latency.record(end_s - self._due_s)
            self._next_due()

    def _next_due(self) -> None:
        # Counted and not added up, so that a long run does not drift.
        self._starts += 1
        self._due_s = self._began_s + self._starts * self._interval_s

    def _take_refusal(self, work: Work, response: Response, now_s: float) -> None:
        tally, error = work.tally, refusal(response)
        reason = f"{error.status} {error.type}"
        tally.first_refusal = tally.first_refusal or str(error)
        if response.status >= 500 and response.status not in (503, 507):
            tally.failed[reason] += 1
        else:
            tally.refused[reason] += 1
            work.refused()
        pause_s = retry_after_s(response)
        self.reactor.call_at(
            now_s + (REFUSED_PAUSE_S if pause_s is None else pause_s), partial(self._wake, work)
        )

    def _wake(self, work: Work) -> None:
        self._ready.append(work)
        self._start_due()

    # Keeping the lines open.

    def _open_next(self) -> None:
        if self._unopened:
            self._unopened.popleft().open()

    def _reopen(self, line: CallLine) -> None:
        if not self._closing:
            line.open()

    def _watch(self) -> None:
        """Look after calls that wait too long, and tell that time passes."""
        if self._closing:
            return
        if self._running:
            self._on_tick()
        late_s = clock() - REQUEST_TIMEOUT_S
        for line in self._lines:
            if line.work is not None and line.sent_s < late_s:
                line.fail(TimedOut(f"No answer in {REQUEST_TIMEOUT_S:g} s.", maybe_done=True))
        self.reactor.call_at(clock() + WATCH_PERIOD_S, self._watch)


def _nothing() -> None:
    pass
