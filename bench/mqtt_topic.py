"""The messages of one topic of an application: who has published them, and at whom they have arrived.

Owns the outcome of every message, every arrival, and the audit of both. A message is its number. It is under way until
it is acknowledged and has arrived at every subscriber.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trunkline.bench.errors import ConnectionBroken, WireError
from trunkline.bench.ledger import ACKNOWLEDGED, REFUSED, UNKNOWN, Audit
from trunkline.bench.mqtt_connection import MqttConnection
from trunkline.bench.mqtt_load import MqttLoad, Publisher
from trunkline.bench.mqtt_packets import (
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    REFUSED_FROM,
    SUBACK,
    ack,
    subscribe,
    topic_of,
)
from trunkline.bench.reactor import clock
from trunkline.bench.transport import Origin

WINDOW_MAX = 64
"""Messages under way of one publisher."""

MESSAGES_MAX = 512
"""Messages under way over all publishers: fewer than may wait in a server for a subscriber that is slow."""

DELIVERIES_MAX = 32_768
"""Messages under way, times subscribers."""

_SEEN_MAX = 255


def window_of(publishers: int, subscribers: int) -> int:
    """How many messages each publisher keeps under way."""
    return max(1, min(WINDOW_MAX, MESSAGES_MAX // publishers, DELIVERIES_MAX // (publishers * subscribers)))


class TopicLedger:
    """The messages of one topic with a QoS."""

    def __init__(self, topic: str, qos: int, subscribers: int) -> None:
        self.topic = topic
        self.qos = qos
        self.outcomes = bytearray()
        self.seen = [bytearray() for _ in range(subscribers)]
        """Of each subscriber: how often each message has arrived."""
        self.strange = 0
        """Arrivals of what was never published."""
        self._under_way: dict[int, list[Any]] = {}

    def begin(self, publisher: TopicPublisher, sent_s: float) -> int:
        """Add a message with the outcome UNKNOWN; return its number."""
        number = len(self.outcomes)
        self.outcomes.append(UNKNOWN)
        for seen in self.seen:
            seen.append(0)
        self._under_way[number] = [1 + len(self.seen), publisher, sent_s]
        return number

    def acknowledge(self, number: int) -> None:
        """A message was acknowledged."""
        self.outcomes[number] = ACKNOWLEDGED
        self._step(number)

    def refuse(self, number: int) -> None:
        """A message was refused."""
        self.outcomes[number] = REFUSED
        del self._under_way[number]

    def arrive(self, seen: bytearray, payload: bytes) -> None:
        """A message has arrived at a subscriber."""
        number = int(payload) if payload.isdigit() else -1
        if not 0 <= number < len(seen):
            self.strange += 1
            return
        before = seen[number]
        seen[number] = min(_SEEN_MAX, before + 1)
        if not before:
            self._step(number)

    def _step(self, number: int) -> None:
        entry = self._under_way.get(number)
        if entry is None:
            return
        entry[0] -= 1
        if not entry[0]:
            del self._under_way[number]
            entry[1].arrived(entry[2], len(self.seen))

    def audit(self, found: Audit) -> None:
        """Compare what arrived at each subscriber with what was acknowledged. Nobody was connected twice."""
        outcomes = np.frombuffer(bytes(self.outcomes), np.uint8)
        acknowledged = outcomes == ACKNOWLEDGED
        found.unexpected += self.strange
        for at, one in enumerate(self.seen):
            seen = np.frombuffer(bytes(one), np.uint8)
            missing = np.flatnonzero(acknowledged & (seen == 0))
            again = np.flatnonzero((seen > 1) | ((outcomes == REFUSED) & (seen > 0)))
            found.acknowledged += int(acknowledged.sum())
            found.unknown += int((outcomes == UNKNOWN).sum())
            found.unknown_found += int(((outcomes == UNKNOWN) & (seen > 0)).sum())
            found.read += int((seen > 0).sum())
            found.missing += len(missing)
            found.unexpected += len(again)
            for number in missing[:1]:
                found.note(
                    f"missing: {self.topic}: subscriber {at}: message {number} was acknowledged and never arrived"
                )
            for number in again[:1]:
                found.note(
                    f"unexpected: {self.topic}: subscriber {at}: message {number} arrived {seen[number]} times"
                )


class TopicPublisher(Publisher):
    """A client that publishes to the topic."""

    __slots__ = ("_ledger",)

    def __init__(
        self, load: MqttLoad, origin: Origin, connect: bytes, ledger: TopicLedger, window: int
    ) -> None:
        super().__init__(load, origin, connect, topic_of(ledger.topic), ledger.qos, window)
        self._ledger = ledger

    def begin(self, sent_s: float) -> tuple[int, bytes]:
        number = self._ledger.begin(self, sent_s)
        return number, b"%d" % number

    def acknowledged(self, number: int, sent_s: float) -> None:
        self._ledger.acknowledge(number)

    def refused(self, number: int) -> None:
        self._ledger.refuse(number)

    def arrived(self, sent_s: float, subscribers: int) -> None:
        """A message of this client is acknowledged and has arrived at every subscriber."""
        tally = self._load.tally
        tally.acknowledged += 1
        tally.units += subscribers
        tally.latency.record(clock() - sent_s)
        self.done()
        self.fill()


class TopicSubscriber(MqttConnection):
    """A client that is subscribed to the topic, and acknowledges what it gets."""

    __slots__ = ("_answers", "_head", "_ledger", "_load", "_seen")

    def __init__(
        self, load: MqttLoad, origin: Origin, connect: bytes, ledger: TopicLedger, seen: bytearray
    ) -> None:
        super().__init__(load.reactor, origin, connect)
        self._load = load
        self._ledger = ledger
        self._seen = seen
        self._head = len(topic_of(ledger.topic))
        self._answers: list[bytes] = []

    def connected(self) -> None:
        self.send(subscribe(self._ledger.topic, self._ledger.qos))

    def took(self, first: int, body: bytes) -> None:
        if first & 0xF0 == PUBLISH:
            qos, at = first >> 1 & 3, self._head
            if qos:
                self._answers.append(ack(PUBACK if qos == 1 else PUBREC, body[at : at + 2]))
                at += 2
            self._ledger.arrive(self._seen, body[at + 1 + body[at] :])
        elif first == PUBREL:
            self._answers.append(ack(PUBCOMP, body[:2]))
        elif first == SUBACK and body[-1] < REFUSED_FROM:
            self._load.ready()
        elif first == SUBACK:
            problem = f"The server refused a subscription with {body[-1]:#04x}."
            self.fail(ConnectionBroken(problem, maybe_done=False))

    def took_all(self) -> None:
        if self._answers:
            answers, self._answers = self._answers, []
            self.send(b"".join(answers))

    def broken(self, problem: WireError) -> None:
        self._load.broken(problem)
