"""The `state` scenario: how many state posts a second a server acknowledges, and whether it kept them all.

Owns the load: every connection posts single states, one at a time, round-robin over devices that are its
alone, so that each device's states have times of their own in ascending order. The rate is told only after
the audit in ``ledger`` has read everything back and found nothing acknowledged missing or different.

The loop is closed (the next post waits for the last answer), so latencies are those at this many
connections, not at a given arrival rate.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import trio

from trunkline.bench.client import REQUEST_TIMEOUT_S, Connection
from trunkline.bench.errors import BenchError, ConnectFailed, WireError
from trunkline.bench.framing import Response
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.ledger import ACKNOWLEDGED, ATTRIBUTES, REFUSED, Audit, DeviceBook, audit, body_of
from trunkline.bench.session import Session, device_path, refusal, retry_after_s

POSTS_MAX = 50_000_000
"""Posts: a load ends here at the latest; the books then take half a gigabyte."""

DEVICES_MAX = 1_000_000
"""Devices: each takes a request head of about 400 bytes here."""

BREAK_PAUSE_S = 0.1
"""Seconds: before a broken connection is made again."""

REFUSED_PAUSE_S = 1.0
"""Seconds: for a device whose post was refused without a Retry-After."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a load measured; ``refused`` are certainly not stored, ``failed`` answers promise nothing."""

    devices: int
    connections: int
    sent: int
    acknowledged: int
    unknown: int
    refused: dict[str, int]
    failed: dict[str, int]
    breaks: int
    elapsed_s: float
    p50_s: float
    p99_s: float
    max_s: float
    client_cpu_share: float

    @property
    def rate(self) -> float:
        """Acknowledged posts a second."""
        return self.acknowledged / self.elapsed_s if self.elapsed_s > 0 else 0.0


class _Target:
    """One device under load: its book, the request head, and when it may be posted to again."""

    __slots__ = ("book", "head", "ready_s")

    def __init__(self, device_id: str, head: bytes) -> None:
        self.book = DeviceBook(device_id)
        self.head = head
        self.ready_s = 0.0


class StateLoad:
    """One load: ``prepare``, ``drive`` (repeatedly if wanted), then ``audit`` before any figure is told."""

    def __init__(self, session: Session, *, devices: int, connections: int) -> None:
        if not 1 <= devices <= DEVICES_MAX:
            raise BenchError(f"--devices must be between 1 and {DEVICES_MAX}.")
        if connections < 1:
            raise BenchError("--connections must be at least 1.")
        self.session = session
        self.devices = devices
        # A device belongs to one connection only: else its states would race each other.
        self.connections = min(connections, devices)
        self.application_id = ""
        self.latency = LatencyRecorder()
        self.refused: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.first_refusal = ""
        self.sent = 0
        self.acknowledged = 0
        self.breaks = 0
        self.elapsed_s = 0.0
        self.cpu_s = 0.0
        self._targets: list[_Target] = []

    @property
    def books(self) -> list[DeviceBook]:
        """The books of all devices."""
        return [target.book for target in self._targets]

    async def prepare(self, name: str) -> None:
        """Create the application and its devices."""
        self.application_id = await self.session.create_application(name, "Made by trunkline bench state.")
        wanted = [{"name": f"bench-{n:06d}", "attributes": ATTRIBUTES} for n in range(self.devices)]
        ids = await self.session.create_devices(self.application_id, wanted)
        encoder = Connection(self.session.origin, token=self.session.token)
        self._targets = [
            _Target(one, encoder.encode_head("POST", device_path(self.application_id, one, "/state")))
            for one in ids
        ]

    async def drive(self, duration_s: float, *, on_tick: Callable[[StateLoad], None] | None = None) -> None:
        """Post for ``duration_s``, letting the last posts end; connections open before the clock runs."""
        open_connections = [Connection(self.session.origin) for _ in range(self.connections)]
        try:
            async with trio.open_nursery() as nursery:
                for connection in open_connections:
                    nursery.start_soon(connection.connect)
            cpu_s, started_s = time.process_time(), trio.current_time()
            async with trio.open_nursery() as nursery:
                ticker = trio.CancelScope()
                if on_tick is not None:
                    nursery.start_soon(self._tick, on_tick, ticker)
                async with trio.open_nursery() as posters:
                    for index, connection in enumerate(open_connections):
                        own = self._targets[index :: self.connections]
                        posters.start_soon(self._post_all, connection, own, started_s + duration_s)
                ticker.cancel()
            self.elapsed_s += trio.current_time() - started_s
            self.cpu_s += time.process_time() - cpu_s
        finally:
            for connection in open_connections:
                connection.close()

    async def audit(self) -> Audit:
        """Read everything back and compare it."""
        return await audit(self.session, self.application_id, self.books)

    def figures(self) -> Figures:
        """The measurement so far."""
        return Figures(
            devices=self.devices,
            connections=self.connections,
            sent=self.sent,
            acknowledged=self.acknowledged,
            unknown=self.sent - self.acknowledged - sum(self.refused.values()),
            refused=dict(self.refused),
            failed=dict(self.failed),
            breaks=self.breaks,
            elapsed_s=self.elapsed_s,
            p50_s=self.latency.percentile(50),
            p99_s=self.latency.percentile(99),
            max_s=self.latency.max_s,
            client_cpu_share=self.cpu_s / self.elapsed_s if self.elapsed_s > 0 else 0.0,
        )

    async def _tick(self, on_tick: Callable[[StateLoad], None], scope: trio.CancelScope) -> None:
        with scope:
            while True:
                await trio.sleep(0.5)
                on_tick(self)

    async def _post_all(self, connection: Connection, own: list[_Target], end_s: float) -> None:
        """Post until ``end_s``; a post without an answer in REQUEST_TIMEOUT_S is given up as unknown."""
        turn = 0
        while trio.current_time() < end_s and self.sent < POSTS_MAX:
            # One scope for many posts, its deadline moved once a second: a scope for each would cost 6 us.
            with trio.CancelScope() as scope:
                turn = await self._post_some(connection, own, end_s, turn, scope)
            if scope.cancelled_caught:
                self.breaks += 1

    async def _post_some(
        self, connection: Connection, own: list[_Target], end_s: float, turn: int, scope: trio.CancelScope
    ) -> int:
        clock = trio.current_time
        renew_s = 0.0
        while (now_s := clock()) < end_s and self.sent < POSTS_MAX:
            if now_s >= renew_s:
                renew_s = now_s + 1.0
                scope.deadline = now_s + REQUEST_TIMEOUT_S
            target = own[turn % len(own)]
            turn += 1
            if target.ready_s > now_s:
                earliest_s = min(one.ready_s for one in own)
                if earliest_s > now_s:
                    scope.deadline = min(earliest_s, end_s) + REQUEST_TIMEOUT_S
                    await trio.sleep(min(earliest_s, end_s) - now_s)
                continue
            number, time_ms = target.book.begin(time.time_ns() // 1_000_000)
            body = body_of(number, time_ms)
            self.sent += 1
            sent_s = clock()
            try:
                response = await connection.exchange(target.head + b"%d\r\n\r\n" % len(body) + body)
            except WireError as problem:
                if isinstance(problem, ConnectFailed):
                    self._refuse(target, number, "not sent: no connection")
                else:
                    self.breaks += 1
                await trio.sleep(BREAK_PAUSE_S)
                continue
            answered_s = clock()
            if 200 <= response.status < 300:
                target.book.fates[number] = ACKNOWLEDGED
                self.acknowledged += 1
                self.latency.record(answered_s - sent_s)
            else:
                self._take_refusal(target, number, response, answered_s)
        return turn

    def _take_refusal(self, target: _Target, number: int, response: Response, now_s: float) -> None:
        pause_s = retry_after_s(response)
        target.ready_s = now_s + (REFUSED_PAUSE_S if pause_s is None else pause_s)
        error = refusal(response)
        self.first_refusal = self.first_refusal or str(error)
        if response.status >= 500 and response.status not in (503, 507):
            self.failed[f"{error.status} {error.type}"] += 1
        else:
            self._refuse(target, number, f"{error.status} {error.type}")

    def _refuse(self, target: _Target, number: int, reason: str) -> None:
        target.book.fates[number] = REFUSED
        self.refused[reason] += 1
