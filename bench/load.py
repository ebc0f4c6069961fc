"""A load: many connections that make calls, each call measured from its intended start.

Owns when each call is sent, over which connection, and its outcome. Does not own the content of a call: a
scenario provides ``Caller`` objects and gets each answer back.

Closed loop: each answer starts the next call. Open loop: calls are meant to start at fixed times, whatever the
server does; a call without a free connection waits, and its latency is measured from its intended start.
Otherwise a server that stalls would be measured only by the few calls in flight (coordinated omission).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle

from trunkline.bench.client import REQUEST_TIMEOUT_S
from trunkline.bench.errors import BenchError, ConnectFailed, ProtocolViolation, TimedOut, WireError
from trunkline.bench.framing import Response
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.load_connection import LoadConnection
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.session import refusal, retry_after_s
from trunkline.bench.transport import Origin
from trunkline.bench.wire_protocol import HttpProtocol, WireProtocol

CONNECTIONS_MAX = 50_000
"""Connections: one client address has about 28,000 ports for one port of a server; more need more addresses."""

CONNECTING_MAX = 256
"""Connections that are opened at the same time: few enough for the server's listen queue."""

OPENING_TIMEOUT_S = 60.0
"""Seconds: for opening all connections, before anything is measured."""

LAST_ANSWERS_S = 10.0
"""Seconds: a load waits this long for its last answers; later ones count as unknown."""

REFUSED_PAUSE_S = 1.0
"""Seconds: for a caller that was refused without a Retry-After."""

BREAK_PAUSE_S = 0.1
"""Seconds: before a broken connection is opened again."""

CHECK_PERIOD_S = 0.5
"""Seconds: between two checks for calls that time out; also between two ticks of progress."""


class Tally:
    """The outcomes of the calls of one kind. ``units`` counts what they carry, such as the states of an array."""

    def __init__(self, name: str, unit: str = "calls") -> None:
        self.name = name
        self.unit = unit
        self.units = self._units_before = 0
        self.reset()

    def reset(self) -> None:
        """Set everything to zero, after the warm-up."""
        self._units_before += self.units
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
    def units_in_all(self) -> int:
        """The acknowledged units, those of the warm-up included."""
        return self._units_before + self.units

    @property
    def unknown(self) -> int:
        """Calls without an answer, or with one that does not say whether they were executed."""
        return self.sent - self.acknowledged - sum(self.refused.values())


class Caller(ABC):
    """A source of calls; a load never has two calls of one caller in flight."""

    __slots__ = ("tally",)

    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    @abstractmethod
    def request(self) -> bytes:
        """The bytes of the next call."""

    def acknowledged(self, response: Response) -> int:
        """Handle the answer of the last call; return the number of units that it acknowledged."""
        return 1

    def refused(self) -> None:  # noqa: B027 - most callers need not know
        """The last call was certainly not executed."""


class CallConnection(LoadConnection):
    """A connection that carries one call at a time."""

    __slots__ = ("caller", "greetings", "intended_s", "load", "protocol", "sent_s")

    def __init__(self, load: Load) -> None:
        super().__init__(load.reactor, load.origin)
        self.load = load
        self.caller: Caller | None = None
        self.intended_s = self.sent_s = 0.0
        self.greetings = 0

    def opened(self) -> None:
        self.protocol = self.load.protocol()
        self.greetings = self.protocol.greetings
        if self.protocol.greeting:
            self.send(self.protocol.greeting)
        if not self.greetings:
            self.load.connected(self)

    def received(self, data: bytes) -> None:
        try:
            answers = self.protocol.feed(data)
        except ProtocolViolation as problem:
            self.fail(problem)
            return
        for response in answers:
            if self.greetings:
                self.greetings -= 1
                if not self.greetings:
                    self.load.connected(self)
            elif self.caller is not None:
                self.load.answered(self, self.caller, response)

    def broken(self, problem: WireError) -> None:
        self.load.disconnected(self, problem)


class Load:
    """Calls of ``callers`` over some connections: as fast as answers come, or at ``rate`` calls a second."""

    def __init__(
        self,
        reactor: Reactor,
        origin: Origin,
        callers: Sequence[Caller],
        *,
        connections: int,
        rate: float | None = None,
        protocol: Callable[[], WireProtocol] = HttpProtocol,
    ) -> None:
        if not 1 <= connections <= CONNECTIONS_MAX:
            raise BenchError(f"A load takes between 1 and {CONNECTIONS_MAX} connections.")
        if rate is not None and rate <= 0:
            raise BenchError("A rate is more than 0 calls a second.")
        self.reactor = reactor
        self.origin = origin
        self.protocol = protocol
        self.unsent = 0
        self.reconnects = 0
        self._interval_s = 0.0 if rate is None else 1 / rate
        self.tallies = list(dict.fromkeys(caller.tally for caller in callers))
        self._callers = tuple(callers)
        self._ready = deque(callers)
        self._connections = [CallConnection(self) for _ in range(connections)]
        self._idle: deque[CallConnection] = deque()
        self._unopened = deque(self._connections)
        self._in_flight = 0
        self._running = False
        self._closing = False
        self._began_s = self._due_s = 0.0
        self._starts = 0
        self._due_timer_set = False
        self._on_tick: Callable[[], None] = _nothing
        self._problem: WireError | None = None

    # The phases of a load.

    def open(self) -> None:
        """Open all connections; raises ConnectFailed if that takes too long."""
        for _ in range(CONNECTING_MAX):
            self._open_next()
        self._check_timeouts()
        if not self.reactor.run(clock() + OPENING_TIMEOUT_S):
            opened = len(self._idle)
            reason = f" {self._problem}" if self._problem else ""
            raise ConnectFailed(
                f"Of {len(self._connections):,} connections {opened:,} could be opened.{reason}"
            )

    def run(self, duration_s: float, on_tick: Callable[[], None] | None = None) -> float:
        """Make calls for ``duration_s``, then wait for the last answers; return the seconds that it took."""
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
            self._count_unsent(end_s)
        if self._in_flight:
            self.reactor.run(end_s + LAST_ANSWERS_S)
        return clock() - started_s

    def reset(self) -> None:
        """Set all counts to zero."""
        self.unsent = self.reconnects = 0
        for tally in self.tallies:
            tally.reset()

    def close(self) -> None:
        """Close all connections; calls in flight stay unknown."""
        self._closing = True
        for connection in self._connections:
            connection.close()

    # Callbacks of the connections.

    def connected(self, connection: CallConnection) -> None:
        """A connection is ready for calls."""
        self._idle.append(connection)
        if self._unopened:
            self._open_next()
        elif not self._running and len(self._idle) == len(self._connections):
            self.reactor.stop()
        self._start_due()

    def answered(self, connection: CallConnection, caller: Caller, response: Response) -> None:
        """A call was answered."""
        now_s = clock()
        tally = caller.tally
        connection.caller = None
        self._in_flight -= 1
        if response.status < 300:
            tally.acknowledged += 1
            tally.units += caller.acknowledged(response)
            tally.latency.record(now_s - connection.intended_s)
            if self._interval_s:
                tally.service.record(now_s - connection.sent_s)
            self._ready.append(caller)
        else:
            self._record_refusal(caller, response, now_s)
        self._idle.append(connection)
        if self._running:
            self._start_due()
        elif not self._in_flight:
            self.reactor.stop()

    def disconnected(self, connection: CallConnection, problem: WireError) -> None:
        """A connection was closed, with or without a call in flight; it is opened again after a pause."""
        self._problem = problem
        if connection.caller is not None:
            connection.caller.tally.breaks += 1
            self._ready.append(connection.caller)
            connection.caller = None
            self._in_flight -= 1
            if not self._running and not self._in_flight:
                self.reactor.stop()
        elif connection in self._idle:
            self._idle.remove(connection)
        self.reconnects += 1
        self.reactor.call_at(clock() + BREAK_PAUSE_S, partial(self._reopen, connection))

    # Starting calls.

    def _start_due(self) -> None:
        """Start the due calls, as far as there are idle connections and ready callers."""
        if not self._running:
            return
        ready, idle, interval_s = self._ready, self._idle, self._interval_s
        while ready and idle and self._due_s <= clock():
            self._begin(idle.popleft(), ready.popleft())
        if interval_s and ready and idle and not self._due_timer_set:
            self._due_timer_set = True
            self.reactor.call_at(self._due_s, self._on_due_timer)

    def _begin(self, connection: CallConnection, caller: Caller) -> None:
        """Send the next call of a caller."""
        raw = connection.protocol.encode(caller.request())
        connection.caller = caller
        connection.sent_s = clock()
        connection.intended_s = self._due_s if self._interval_s else connection.sent_s
        self._next_due()
        self._in_flight += 1
        caller.tally.sent += 1
        connection.send(raw)

    def _on_due_timer(self) -> None:
        self._due_timer_set = False
        self._start_due()

    def _count_unsent(self, end_s: float) -> None:
        """Count the due calls that found no free connection, each with its waiting time until the end as latency.

        They are counted for the callers whose turn it would have been: first those that are ready, then the others.
        """
        turns = cycle(dict.fromkeys([*self._ready, *self._callers]))
        while self._due_s < end_s:
            self.unsent += 1
            next(turns).tally.latency.record(end_s - self._due_s)
            self._next_due()

    def _next_due(self) -> None:
        # Computed from the count, because adding up intervals would drift in a long run.
        self._starts += 1
        self._due_s = self._began_s + self._starts * self._interval_s

    def _record_refusal(self, caller: Caller, response: Response, now_s: float) -> None:
        tally, error = caller.tally, refusal(response)
        reason = f"{error.status} {error.type}"
        tally.first_refusal = tally.first_refusal or str(error)
        if response.status >= 500 and response.status not in (503, 507):
            tally.failed[reason] += 1
        else:
            tally.refused[reason] += 1
            caller.refused()
        pause_s = retry_after_s(response)
        self.reactor.call_at(
            now_s + (REFUSED_PAUSE_S if pause_s is None else pause_s), partial(self._resume, caller)
        )

    def _resume(self, caller: Caller) -> None:
        self._ready.append(caller)
        self._start_due()

    # Keeping the connections open.

    def _open_next(self) -> None:
        if self._unopened:
            self._unopened.popleft().open()

    def _reopen(self, connection: CallConnection) -> None:
        if not self._closing:
            connection.open()

    def _check_timeouts(self) -> None:
        """Fail the connections whose call takes too long, and call ``on_tick``."""
        if self._closing:
            return
        if self._running:
            self._on_tick()
        late_s = clock() - REQUEST_TIMEOUT_S
        for connection in self._connections:
            if connection.caller is not None and connection.sent_s < late_s:
                connection.fail(TimedOut(f"No answer in {REQUEST_TIMEOUT_S:g} s.", maybe_done=True))
        self.reactor.call_at(clock() + CHECK_PERIOD_S, self._check_timeouts)


def _nothing() -> None:
    pass
