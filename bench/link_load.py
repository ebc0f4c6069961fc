"""A load of frames with states over links: each keeps some frames under way, and sends the next as they are stored.

Owns when frames are sent, and their outcome. Does not own the bytes (`link_states`) or the WebSocket
(`link_connection`).
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Sequence
from functools import partial

from trunkline.bench.client_load import ClientLoad
from trunkline.bench.errors import ConnectFailed, WireError
from trunkline.bench.fleet import Fleet
from trunkline.bench.ledger import ACKNOWLEDGED, REFUSED, StateLedger
from trunkline.bench.link_connection import LinkConnection, masked
from trunkline.bench.link_frames import FromServer, Refusal, Stored, Welcome
from trunkline.bench.link_states import Form, frame_of
from trunkline.bench.load import (
    BREAK_PAUSE_S,
    CONNECTING_MAX,
    OPENING_TIMEOUT_S,
    REFUSED_PAUSE_S,
    Tally,
)
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.transport import Origin

FRAMES_MAX = 1024
"""Frames under way over all links: half of the writes that may wait in a server before it refuses more."""

STATES_MAX = 262_144
"""States under way over all links: what the server holds for them must not grow with the size of a frame."""

SESSION_BITS = 53


class LinkLoad(ClientLoad):
    """Frames of ``size`` states over a link for each of ``ledgers``."""

    def __init__(
        self,
        reactor: Reactor,
        origin: Origin,
        fleet: Fleet,
        ledgers: Sequence[StateLedger],
        tally: Tally,
        form: Form,
        size: int,
    ) -> None:
        super().__init__(reactor, tally)
        self.form: Form = form
        self.size = size
        self.frames_max = max(1, min(FRAMES_MAX, STATES_MAX // size) // len(ledgers))
        self._links = [
            _Link(self, origin, fleet.link(ledger.device_id), ledger, fleet.first_ms) for ledger in ledgers
        ]
        self._unopened = deque(self._links)
        self._problem: WireError | None = None

    @property
    def clients(self) -> Sequence[_Link]:
        return self._links

    senders = clients

    def open(self) -> None:
        """Open all links; raises ConnectFailed if that takes too long."""
        for _ in range(min(CONNECTING_MAX, len(self._links))):
            self._unopened.popleft().open()
        if not self.reactor.run(clock() + OPENING_TIMEOUT_S):
            live = sum(link.live for link in self._links)
            raise ConnectFailed(
                f"Of {len(self._links):,} links {live:,} could be opened. {self._problem or ''}".strip()
            )
        self.tick_later()

    # Callbacks of the links.

    def welcomed(self) -> None:
        """A link is open."""
        if self._unopened:
            self._unopened.popleft().open()
        elif not self.running and all(link.live for link in self._links):
            self.reactor.stop()

    def disconnected(self, link: _Link, problem: WireError) -> None:
        """A link broke; it is opened again after a pause."""
        self._problem = problem
        self.reconnects += 1
        self.reactor.call_at(clock() + BREAK_PAUSE_S, partial(self._reopen, link))

    def _reopen(self, link: _Link) -> None:
        if not self._closing:
            link.open()


class _Link(LinkConnection):
    """The link of one device. After it broke it begins a new session: what was under way stays unknown."""

    __slots__ = ("_first_ms", "_frames_max", "_ledger", "_load", "_n", "_paused_until_s", "_under_way")

    def __init__(
        self, load: LinkLoad, origin: Origin, request: bytes, ledger: StateLedger, first_ms: int
    ) -> None:
        super().__init__(load.reactor, origin, request, secrets.randbits(SESSION_BITS))
        self._load = load
        self._ledger = ledger
        self._first_ms = first_ms
        self._frames_max = load.frames_max
        self._n = 0
        self._paused_until_s = 0.0
        self._under_way: deque[tuple[int, int, float]] = deque()
        """The number of each frame, that of its first state, and when it was sent."""

    def welcomed(self, welcome: Welcome) -> None:
        self._frames_max = min(self._load.frames_max, welcome.window)
        self._load.welcomed()
        self.fill()

    def fill(self) -> None:
        """Send as many frames as may be under way."""
        load, under_way = self._load, self._under_way
        if not load.running or not self.live or clock() < self._paused_until_s:
            return
        frames: list[bytes] = []
        while len(under_way) < self._frames_max:
            number = self._ledger.begin(load.size)
            self._n += 1
            under_way.append((self._n, number, clock()))
            frames.append(masked(frame_of(load.form, self._n, number, load.size, self._first_ms)))
        load.tally.sent += len(frames)
        load.under_way += len(frames)
        if frames:
            self.send(b"".join(frames))

    def answered(self, frame: FromServer) -> None:
        if isinstance(frame, Stored):
            self._stored(frame.n)
        elif isinstance(frame, Refusal):
            self._refused(frame)
        self.fill()

    def _stored(self, n: int) -> None:
        load, under_way, now_s = self._load, self._under_way, clock()
        tally, count = load.tally, 0
        while under_way and under_way[0][0] <= n:
            _, number, sent_s = under_way.popleft()
            self._ledger.settle(number, load.size, ACKNOWLEDGED)
            tally.latency.record(now_s - sent_s)
            count += 1
        tally.acknowledged += count
        tally.units += count * load.size
        load.settled(count)

    def _refused(self, frame: Refusal) -> None:
        tally = self._load.tally
        found = next((one for one in self._under_way if one[0] == frame.n), None)
        if found is not None:
            self._under_way.remove(found)
            self._ledger.settle(found[1], self._load.size, REFUSED)
            tally.refused[frame.type] += 1
            tally.first_refusal = tally.first_refusal or frame.message
            self._load.settled(1)
        pause_s = REFUSED_PAUSE_S if frame.retry_ms is None else frame.retry_ms / 1000
        self._paused_until_s = clock() + pause_s
        self.reactor.call_at(self._paused_until_s, self.fill)

    def broken(self, problem: WireError) -> None:
        lost = len(self._under_way)
        self._under_way.clear()
        self._load.tally.breaks += 1
        self._load.settled(lost)
        self._load.disconnected(self, problem)
