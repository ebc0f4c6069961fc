"""Retained messages over MQTT: many topics are given one each, and new subscribers read all of them back.

A topic is its number, which is also its message. Every message that was acknowledged has to arrive once at every
subscriber, marked as retained.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from trunkline.bench.errors import ConnectionBroken, TimedOut, WireError
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.ledger import Audit
from trunkline.bench.mqtt_connection import MqttConnection
from trunkline.bench.mqtt_packets import (
    PUBACK,
    PUBLISH,
    REFUSED_FROM,
    RETAIN,
    SUBACK,
    ack,
    publish,
    reason_of,
    subscribe,
    topic_of,
)
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.result import Delay, Figure, Latency, Stage
from trunkline.bench.run import Run, Scenario
from trunkline.bench.scenarios.mqtt import AccessKey, mqtt_origin
from trunkline.bench.session import Session
from trunkline.bench.stage import Plan, load_reactor

TIMEOUT_S = 120.0
UNDER_WAY_MAX = 512
"""Messages that the publisher keeps under way: a quarter of the writes that may wait in a server."""
_TOPICS = "bench/retained/"
_SEEN_MAX = 255


class MqttRetainedScenario(Scenario):
    """One client publishes ``messages`` retained messages with QoS 1, then ``connections`` clients subscribe to all."""

    name = "mqtt retained"
    title = "Retained messages over MQTT"
    writes = False

    def __init__(self, *, messages: int, mqtt_port: int) -> None:
        self.messages = messages
        self.mqtt_port = mqtt_port
        self.acknowledged = bytearray(messages)
        self.seen: list[bytearray] = []
        """Of each subscriber: how often each message has arrived."""
        self.strange = 0
        """Arrivals of what was never published, or of what is not retained."""

    def connections(self, plan: Plan) -> int:
        return plan.connections

    def settings(self) -> dict[str, object]:
        return {"retained messages": self.messages}

    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        application_id = await session.create_application(f"bench {self.name}")
        self.key = await AccessKey.create(session, application_id)
        self.origin = mqtt_origin(session, self.mqtt_port)

    async def perform(self, run: Run) -> None:
        self.seen = [bytearray(self.messages) for _ in range(run.plan.connections)]
        await self._stage(run, "publishing", "stored", self.messages, self._publishers)
        await self._stage(run, "reading", "delivered", self.messages * len(self.seen), self._subscribers)

    def _publishers(self, reactor: Reactor, done: Callable[[], None]) -> list[_Client]:
        return [_Publisher(self, reactor, done, self.key.connect("publisher"))]

    def _subscribers(self, reactor: Reactor, done: Callable[[], None]) -> list[_Client]:
        return [
            _Subscriber(self, reactor, done, self.key.connect(f"subscriber-{number}"), seen)
            for number, seen in enumerate(self.seen)
        ]

    async def _stage(
        self,
        run: Run,
        name: str,
        what: str,
        count: int,
        make: Callable[[Reactor, Callable[[], None]], list[_Client]],
    ) -> None:
        run.bar.begin(name)
        stage = await run.in_thread(partial(self._measured, run, name, what, count, make))
        run.add(stage)
        run.bar.end(f"{stage.elapsed_s:.2f} s")

    def _measured(
        self,
        run: Run,
        name: str,
        what: str,
        count: int,
        make: Callable[[Reactor, Callable[[], None]], list[_Client]],
    ) -> Stage:
        monitor, began_s = run.monitor, clock()
        before, cpu_s = monitor.usage() if monitor else None, time.thread_time()
        with load_reactor() as reactor:
            clients: list[_Client] = []
            until_done = LatencyRecorder()

            def done() -> None:
                until_done.record(clock() - began_s)
                if all(each.is_done for each in clients):
                    reactor.stop()

            clients.extend(make(reactor, done))
            try:
                for client in clients:
                    client.open()
                is_over = reactor.run(began_s + TIMEOUT_S)
            finally:
                for client in clients:
                    client.close()
            problem = next((each.problem for each in clients if each.problem is not None), None)
            if problem is not None or not is_over:
                raise problem or TimedOut(f"After {TIMEOUT_S:g} s {name} was not over.", maybe_done=True)
        elapsed_s, after = clock() - began_s, monitor.usage() if monitor else None
        return Stage(
            name=name,
            elapsed_s=elapsed_s,
            delays=[Delay(name=f"until a client had all {what}", latency=Latency.of(until_done))],
            figures=[Figure(name=f"messages {what}", value=count / elapsed_s, unit="a second")],
            generator_cpu=(time.thread_time() - cpu_s) / elapsed_s,
            server_cpu=(after.cpu_s - before.cpu_s) / elapsed_s if before and after else None,
        )

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        found.unexpected += self.strange
        for at, seen in enumerate(self.seen):
            found.acknowledged += sum(self.acknowledged)
            found.read += sum(map(bool, seen))
            for number, times in enumerate(seen):
                if self.acknowledged[number] and not times:
                    found.missing += 1
                    found.note(
                        f"missing: subscriber {at}: the retained message of topic {number} never arrived"
                    )
                elif times > 1:
                    found.unexpected += 1
                    found.note(f"unexpected: subscriber {at}: that of topic {number} arrived {times} times")


class _Client(MqttConnection):
    """A client of a stage."""

    __slots__ = ("_answers", "_done", "_scenario", "is_done", "problem")

    def __init__(
        self, scenario: MqttRetainedScenario, reactor: Reactor, done: Callable[[], None], connect: bytes
    ) -> None:
        super().__init__(reactor, scenario.origin, connect)
        self._scenario = scenario
        self._done = done
        self._answers: list[bytes] = []
        self.is_done = False
        self.problem: WireError | None = None

    def finish(self) -> None:
        """All is done that the client has to do."""
        self.is_done = True
        self._done()

    def took_all(self) -> None:
        if self._answers:
            answers, self._answers = self._answers, []
            self.send(b"".join(answers))

    def broken(self, problem: WireError) -> None:
        self.problem = problem
        self.reactor.stop()


class _Publisher(_Client):
    """It publishes one message to each topic."""

    __slots__ = ("_begun", "_settled")

    def __init__(
        self, scenario: MqttRetainedScenario, reactor: Reactor, done: Callable[[], None], connect: bytes
    ) -> None:
        super().__init__(scenario, reactor, done, connect)
        self._begun = self._settled = 0

    def connected(self) -> None:
        self._fill()

    def _fill(self) -> None:
        most = min(self._scenario.messages, self._settled + UNDER_WAY_MAX)
        packets = [
            publish(topic_of(f"{_TOPICS}{number}"), 1, number % 65_535 + 1, b"%d" % number, retain=True)
            for number in range(self._begun, most)
        ]
        self._begun = max(self._begun, most)
        self._answers += packets

    def took(self, first: int, body: bytes) -> None:
        if first != PUBACK:
            return
        if len(body) > 2 and body[2] >= REFUSED_FROM:
            problem = f"The server refused a retained message with {reason_of(body, 2)}."
            self.fail(ConnectionBroken(problem, maybe_done=False))
            return
        # The server acknowledges in the order in which the messages came.
        self._scenario.acknowledged[self._settled] = 1
        self._settled += 1
        if self._settled == self._scenario.messages:
            self.finish()

    def took_all(self) -> None:
        self._fill()
        super().took_all()


class _Subscriber(_Client):
    """It subscribes to all topics, and counts what arrives."""

    __slots__ = ("_missing", "_seen")

    def __init__(
        self,
        scenario: MqttRetainedScenario,
        reactor: Reactor,
        done: Callable[[], None],
        connect: bytes,
        seen: bytearray,
    ) -> None:
        super().__init__(scenario, reactor, done, connect)
        self._seen = seen
        self._missing = sum(scenario.acknowledged)

    def connected(self) -> None:
        self.send(subscribe(f"{_TOPICS}+", 1))

    def took(self, first: int, body: bytes) -> None:
        if first == SUBACK and body[-1] >= REFUSED_FROM:
            problem = f"The server refused a subscription with {body[-1]:#04x}."
            self.fail(ConnectionBroken(problem, maybe_done=False))
        elif first & 0xF0 == PUBLISH:
            at = 2 + int.from_bytes(body[:2])
            if first & 0x06:
                self._answers.append(ack(PUBACK, body[at : at + 2]))
                at += 2
            self._arrived(body[at + 1 + body[at] :], is_retained=bool(first & RETAIN))

    def _arrived(self, payload: bytes, *, is_retained: bool) -> None:
        number = int(payload) if payload.isdigit() else -1
        if not is_retained or not 0 <= number < len(self._seen):
            self._scenario.strange += 1
            return
        self._missing -= not self._seen[number]
        self._seen[number] = min(_SEEN_MAX, self._seen[number] + 1)
        if not self._missing and not self.is_done:
            self.finish()
