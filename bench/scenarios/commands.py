"""Command fan-out: commands to many open streams, and how long each takes to arrive.

Every device has its command stream open. A call sends one command to ``per_call`` devices; 1 uses the route of the
single device, more the route for many devices. Two delays are reported: from sending the call to the arrival at a
stream, and from the call's acknowledgement to the arrival (0 if the command arrived first).
"""

from __future__ import annotations

from functools import partial
from itertools import islice

import msgspec

from trunkline.bench.command_ledger import COMMAND, Arrivals, CommandLedger, audit_history
from trunkline.bench.errors import BenchError, ConnectFailed
from trunkline.bench.event_stream import Event
from trunkline.bench.fleet import Fleet, with_body
from trunkline.bench.framing import Response
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.ledger import ACKNOWLEDGED, REFUSED, Audit
from trunkline.bench.load import CONNECTING_MAX, OPENING_TIMEOUT_S, Caller, Tally
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.result import Delay, Figure, Latency
from trunkline.bench.run import Run, Scenario
from trunkline.bench.session import Session
from trunkline.bench.stage import LoadObserver, Plan
from trunkline.bench.stream_connection import StreamConnection

DEVICES_PER_CALL_MAX = 1000
"""Devices: the API's bound for addressing by id."""

CALLS_IN_FLIGHT = 4
"""Concurrent calls to the same group of devices: with one, the server would wait for its disk and for the client."""

ARRIVAL_TIMEOUT_S = 10.0
"""Seconds after the last acknowledgement: a command that has not arrived by then is missing."""


class CommandsScenario(Scenario):
    """Commands to ``devices`` open streams; each must arrive once and be in the history."""

    name = "commands"
    title = "Command fan-out"

    def __init__(self, *, devices: int, per_call: int) -> None:
        if not 1 <= per_call <= DEVICES_PER_CALL_MAX:
            raise BenchError(f"--per-call takes between 1 and {DEVICES_PER_CALL_MAX:,} devices.")
        self.devices = devices
        self.per_call = min(per_call, devices)

    def connections(self, plan: Plan) -> int:
        return plan.connections + self.devices

    def settings(self) -> dict[str, object]:
        return {"streams": self.devices, "devices a call": self.per_call}

    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        self.session = session
        self.fleet = await Fleet.create(session, bar, self.name, self.devices)
        ids, step = self.fleet.device_ids, self.per_call
        self.ledgers = [CommandLedger(ids[first : first + step]) for first in range(0, len(ids), step)]
        self.arrivals = [Arrivals(one, ledger) for ledger in self.ledgers for one in ledger.device_ids]

    async def perform(self, run: Run) -> None:
        await run.load("commands", self._callers, make_observer=partial(CommandStreams, self))

    def _callers(self, rehearsal: bool) -> list[Caller]:
        tally = Tally("commands", "deliveries")
        ledgers = [CommandLedger(ledger.device_ids) for ledger in self.ledgers] if rehearsal else self.ledgers
        copies = 1 if self.per_call == 1 else CALLS_IN_FLIGHT
        return [CommandPost(tally, self.fleet, ledger) for _ in range(copies) for ledger in ledgers]

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        bar.begin("reading commands back")
        for one in self.arrivals:
            one.audit(found)
        await audit_history(session, self.fleet.application_id, self.ledgers, found)
        bar.end(f"{found.read:,} in the histories")


class CommandPost(Caller):
    """Sends the next command to the devices of one ledger."""

    __slots__ = ("_addressed", "_head", "_ledger", "_number")

    def __init__(self, tally: Tally, fleet: Fleet, ledger: CommandLedger) -> None:
        super().__init__(tally)
        self._ledger = ledger
        self._number = 0
        self._addressed = b""
        if len(ledger.device_ids) == 1:
            self._head = fleet.post(fleet.path(ledger.device_ids[0], "/command"))
        else:
            self._head = fleet.post(f"/applications/{fleet.application_id}/devices/command")
            self._addressed = b',"deviceIds":%b' % msgspec.json.encode(ledger.device_ids)

    def request(self) -> bytes:
        self._number = self._ledger.begin(clock())
        body = b'{"name":"%b","payload":{"sequence":%d}%b}' % (
            COMMAND.encode(),
            self._number,
            self._addressed,
        )
        return with_body(self._head, body)

    def acknowledged(self, response: Response) -> int:
        self._ledger.outcomes[self._number] = ACKNOWLEDGED
        self._ledger.acknowledged_s[self._number] = clock()
        return len(self._ledger.device_ids)

    def refused(self) -> None:
        self._ledger.outcomes[self._number] = REFUSED


class CommandStreams(LoadObserver):
    """The open command streams: they record arrivals and measure the delays."""

    def __init__(self, scenario: CommandsScenario, reactor: Reactor) -> None:
        self._reactor = reactor
        self._arrivals = scenario.arrivals
        origin, fleet = scenario.session.origin, scenario.fleet
        self._lines = [
            StreamConnection(
                reactor,
                origin,
                fleet.get(fleet.path(one.device_id, "/commandStream")),
                on_event=partial(self._take, one),
                on_open=self._opened,
            )
            for one in self._arrivals
        ]
        self.reset()

    def open(self) -> None:
        """Open all streams; raises ConnectFailed if that takes too long."""
        self._waiting = iter(self._lines)
        self._opening = True
        for line in islice(self._waiting, CONNECTING_MAX):
            line.start()
        if not self._reactor.run(clock() + OPENING_TIMEOUT_S):
            live = sum(line.live for line in self._lines)
            raise ConnectFailed(f"Of {len(self._lines):,} streams only {live:,} could be opened.")
        # From now on the reactor belongs to the load: a stream that is opened again must not stop it.
        self._opening = False

    def settle(self) -> None:
        """Wait until everything acknowledged has arrived, for ARRIVAL_TIMEOUT_S at most."""
        give_up_s = clock() + ARRIVAL_TIMEOUT_S
        while clock() < give_up_s and any(True for one in self._arrivals for _ in one.missing()):
            self._reactor.run(clock() + 0.05)

    def reset(self) -> None:
        self._from_sending = LatencyRecorder()
        self._from_acknowledgement = LatencyRecorder()

    def delays(self) -> list[Delay]:
        return [
            Delay(name="from sending to arrival", latency=Latency.of(self._from_sending)),
            Delay(name="from acknowledgement to arrival", latency=Latency.of(self._from_acknowledgement)),
        ]

    def figures(self, elapsed_s: float) -> list[Figure]:
        found = [Figure(name="arrivals", value=self._from_sending.count / elapsed_s, unit="a second")]
        if again := sum(line.reopened for line in self._lines):
            found.append(Figure(name="streams opened again", value=again))
        return found

    def close(self) -> None:
        for line in self._lines:
            line.end()

    def _opened(self) -> None:
        following = next(self._waiting, None)
        if following is not None:
            following.start()
        elif self._opening and all(line.live for line in self._lines):
            self._reactor.stop()

    def _take(self, arrivals: Arrivals, event: Event) -> None:
        number = arrivals.take(event.data)
        if number is None:
            return
        now_s, ledger = clock(), arrivals.ledger
        self._from_sending.record(now_s - ledger.sent_s[number])
        acknowledged_s = ledger.acknowledged_s[number]
        self._from_acknowledgement.record(now_s - acknowledged_s if acknowledged_s else 0.0)
