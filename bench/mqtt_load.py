"""A load of MQTT clients: each that publishes keeps some messages under way, and sends the next as they are done.

Owns when messages are sent and when the load ends. Does not own their content and outcome (`mqtt_states`,
`mqtt_topic`) or the packets (`mqtt_packets`). A load needs all of its clients: if one is refused or disconnected, it
ends with that error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from trunkline.bench.client_load import ClientLoad
from trunkline.bench.errors import ConnectFailed, WireError
from trunkline.bench.load import (
    CONNECTING_MAX,
    OPENING_TIMEOUT_S,
    Tally,
)
from trunkline.bench.mqtt_connection import MqttConnection
from trunkline.bench.mqtt_packets import (
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    REFUSED_FROM,
    ack,
    publish,
    reason_of,
)
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.transport import Origin

PACKET_IDS = 65_535


class MqttLoad(ClientLoad):
    """Messages of ``publishers``; the other clients only take what they get."""

    def __init__(self, reactor: Reactor, tally: Tally) -> None:
        super().__init__(reactor, tally)
        self.publishers: Sequence[Publisher] = ()
        self.others: Sequence[MqttConnection] = ()
        self._ready = 0
        self._waiting: Iterator[MqttConnection] = iter(())
        self.problem: WireError | None = None
        """Why a client was refused or disconnected."""

    @property
    def senders(self) -> Sequence[Publisher]:
        return self.publishers

    @property
    def waits(self) -> bool:
        return self.problem is None and super().waits

    @property
    def clients(self) -> list[MqttConnection]:
        """All clients, those that publish last: the others get all that they publish."""
        return [*self.others, *self.publishers]

    def open(self, together: int = CONNECTING_MAX) -> None:
        """Connect all clients, ``together`` of them at once; raises ConnectFailed if that fails or takes too long."""
        clients = self.clients
        self._waiting = iter(clients)
        for client in islice(self._waiting, together):
            client.open()
        if not self.reactor.run(clock() + OPENING_TIMEOUT_S) or self.problem is not None:
            raise ConnectFailed(
                f"Of {len(clients):,} MQTT clients {self._ready:,} could be connected. {self.problem or ''}".strip()
            )
        self.tick_later()

    def run(self, duration_s: float, on_tick: Callable[[], None] | None = None) -> float:
        """The same; raises the WireError of a client that was refused or disconnected."""
        took_s = super().run(duration_s, on_tick)
        if self.problem is not None:
            raise self.problem
        return took_s

    # Callbacks of the clients.

    def ready(self) -> None:
        """A client is connected, and subscribed if it shall be."""
        self._ready += 1
        following = next(self._waiting, None)
        if following is not None:
            following.open()
        elif self._ready == len(self.publishers) + len(self.others):
            self.reactor.stop()

    def broken(self, problem: WireError) -> None:
        """A client was refused or disconnected."""
        self.problem = self.problem or problem
        self.reactor.stop()


class Publisher(MqttConnection, ABC):
    """A client that keeps ``window`` messages to one topic under way.

    With QoS 0 nothing is acknowledged: a PINGREQ follows each half of the window, and its PINGRESP says that the server
    has taken what came before.
    """

    __slots__ = (
        "_answers",
        "_batch",
        "_id",
        "_load",
        "_pings",
        "_qos",
        "_sent",
        "_topic",
        "_window",
        "under_way",
    )

    def __init__(
        self, load: MqttLoad, origin: Origin, connect: bytes, topic: bytes, qos: int, window: int
    ) -> None:
        super().__init__(load.reactor, origin, connect)
        self._load = load
        self._topic = topic
        self._qos = qos
        self._window = window
        self._batch = 1 if qos else max(1, window // 2)
        self._id = 0
        self._sent: dict[int, tuple[int, float]] = {}
        """By packet id: the number of each message, and when it was sent."""
        self._pings: deque[list[tuple[int, float]]] = deque()
        """What was sent with QoS 0 before each PINGREQ."""
        self._answers: list[bytes] = []
        self.under_way = 0

    # For a subclass.

    @abstractmethod
    def begin(self, sent_s: float) -> tuple[int, bytes]:
        """The number and the payload of the next message."""

    @abstractmethod
    def acknowledged(self, number: int, sent_s: float) -> None:
        """A message is acknowledged. The subclass calls ``done`` when it is not under way any more."""

    @abstractmethod
    def refused(self, number: int) -> None:
        """The server has not taken a message, which is not under way any more."""

    def done(self) -> None:
        """A message is not under way any more."""
        self.under_way -= 1
        self._load.settled(1)

    # Sending.

    def fill(self) -> None:
        """Send as many messages as may be under way."""
        load, qos = self._load, self._qos
        while load.running and self.live and self._window - self.under_way >= self._batch:
            count = self._batch if not qos else self._window - self.under_way
            packets: list[bytes] = []
            begun: list[tuple[int, float]] = []
            for _ in range(count):
                sent_s = clock()
                number, payload = self.begin(sent_s)
                self._id = self._id % PACKET_IDS + 1
                if qos:
                    self._sent[self._id] = (number, sent_s)
                else:
                    begun.append((number, sent_s))
                packets.append(publish(self._topic, qos, self._id, payload))
            if not qos:
                packets.append(PINGREQ)
                self._pings.append(begun)
            self.under_way += count
            load.under_way += count
            load.tally.sent += count
            self.send(b"".join(packets))

    # Callbacks of the connection.

    def connected(self) -> None:
        self._load.ready()

    def took(self, first: int, body: bytes) -> None:
        if first == PINGRESP:
            for number, sent_s in self._pings.popleft():
                self.acknowledged(number, sent_s)
            return
        packet_id = body[0] << 8 | body[1]
        if len(body) > 2 and body[2] >= REFUSED_FROM:
            self._refused(packet_id, reason_of(body, 2))
        elif first == PUBREC:
            self._answers.append(ack(PUBREL, body[:2]))
        elif first in (PUBACK, PUBCOMP):
            number, sent_s = self._sent.pop(packet_id)
            self.acknowledged(number, sent_s)

    def took_all(self) -> None:
        if self._answers:
            answers, self._answers = self._answers, []
            self.send(b"".join(answers))
        self.fill()

    def broken(self, problem: WireError) -> None:
        self._load.broken(problem)

    def _refused(self, packet_id: int, reason: str) -> None:
        tally = self._load.tally
        number, _ = self._sent.pop(packet_id)
        tally.refused[reason.partition(":")[0]] += 1
        tally.first_refusal = tally.first_refusal or reason
        self.refused(number)
        self.done()
