"""What an MQTT client remembers over its connections, and what it ought to be sent.

A message is for a client if the client's session and subscription were there for sure when it was published, and
nothing became of them meanwhile; then the client gets it, once the publisher has its acknowledgement. Otherwise the
message is `excused`: the client may get it.

Owns the sessions, the messages and their possibilities. Does not own connections (`mqtt_connection.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.simulation.life import Life
from tests.simulation.model import Book, Broken, Change
from tests.simulation.world import World
from trunkline.http.mqtt.packets import V3_1_1, V5

TOPICS: Final = ("t/1", "t/2")
FILTERS: Final = ("t/1", "t/2", "t/+")


@dataclass
class Message:
    """A message of a client, until it is over. It `is_released` once its PUBREC has come."""

    name: str
    topic: str
    qos: int
    publisher: str
    serial: int
    packet_id: int = 0
    is_released: bool = False
    was_sent: bool = False
    may_be_late: bool = False
    """It was sent again, and may have been refused the first time; then those that were sent after it come first."""
    failed: int = 0
    """So many commits had failed when it was sent last."""
    life: Life | None = None
    """In which it was sent last."""
    change: Change = field(default_factory=lambda: Change([]))
    listeners: bool = False
    """Somebody is subscribed for sure."""

    def again(self, world: World) -> None:
        """It is about to be sent again, or its release."""
        world.reached["a message with QoS 2 was sent again"] += self.qos == 2
        world.reached["a release was sent again"] += self.is_released
        after_cut = self.is_released and self.life is not world.life
        world.reached["a release was sent again after a power cut"] += after_cut
        if not self.is_released:
            self.change.again()
            self.may_be_late |= world.failed_commits > self.failed or world.quota is not None


class MqttClient:
    """A client by its id. `session` are the possibilities whether the server has its session."""

    def __init__(self, id: str, version: int) -> None:
        self.id = id
        self.version = version
        self.session: set[bool] = {False}
        self.filters: dict[str, int] = {}
        """The subscriptions that are there for sure, with their QoS."""
        self.unsure: set[str] = set()
        self.inbox = Book(f"messages to {id}")
        self.excused: set[str] = set()
        self.got: dict[str, int] = {}
        """How often each message has come, and was not lost."""
        self.arrived: dict[str, int] = {}
        """The QoS with which each message has come first, also of those that the client has lost then."""
        self.received: set[int] = set()
        """Packet ids of messages with QoS 2 to the client, until they are released."""
        self.has_forgotten = False
        """Whether it has thrown its session away, which the server may still have: then it must begin anew."""
        self.unanswered: list[Message] = []
        """Those that the client has published, in their order, until they are over."""
        self.packet_id = 0
        self.once: set[str] = set()
        """Messages that come exactly once: QoS 2 at both ends."""

    def next_id(self) -> int:
        """A packet id that no message has."""
        taken = {each.packet_id for each in self.unanswered}
        self.packet_id = next(id for id in range(self.packet_id + 1, 65_536) if id not in taken)
        return self.packet_id

    def qos_for(self, topic: str) -> int | None:
        """The QoS with which it has the messages of a topic for sure; None if that is not sure."""
        chosen = [each for each in FILTERS if each in (topic, "t/+")]
        if self.session != {True} or any(each in self.unsure for each in chosen):
            return None
        return max((self.filters[each] for each in chosen if each in self.filters), default=0)

    def session_lost(self, world: World) -> None:
        """The server has nothing of it any more, and neither has the client."""
        self.excused |= {str(name) for name in self.inbox.things} - set(self.got)
        self.filters.clear()
        self.unsure.clear()
        self.received.clear()
        for message in self.unanswered:
            world.unanswered.append(message.change)
        self.unanswered.clear()


class Mqtt:
    """All clients, and all messages that were published and may still come."""

    def __init__(self) -> None:
        self.clients: dict[str, MqttClient] = {}
        self.messages: dict[str, Message] = {}
        self.open: dict[str, Message] = {}
        """Those of which it is not known yet whether they are stored."""
        self.wills: list[Message] = []
        """Those that are published by the time at which everything has come to rest."""
        self.serial = 0

    def client(self, number: int) -> MqttClient:
        id = f"client-{number}"
        if id not in self.clients:
            self.clients[id] = MqttClient(id, V5 if number % 2 else V3_1_1)
        return self.clients[id]

    def new(self, world: World, client: MqttClient, chance: Random) -> Message:
        """A message that nobody has seen."""
        self.serial += 1
        name = f"m{world.unique()}"
        message = Message(name, chance.choice(TOPICS), chance.choice((0, 1, 1, 2, 2)), client.id, self.serial)
        self.messages[name] = message
        return message

    def published(self, message: Message) -> None:
        """It is sent, or may be published by the server, from now on."""
        targets: list[tuple[Book, Any, Any]] = []
        for client in self.clients.values():
            qos = client.qos_for(message.topic)
            if not message.qos or qos is None:
                client.excused.add(message.name)
            elif qos:
                targets.append((client.inbox, message.name, message.name))
                if qos == 2 == message.qos:
                    client.once.add(message.name)
        message.listeners = bool(targets)
        message.change = Change(targets)
        if message.qos:
            self.open[message.name] = message

    def changes(self, client: MqttClient) -> None:
        """Something becomes of the session or the subscriptions of a client: what is under way it may get or not."""
        client.excused |= set(self.open)
        for name in self.open:
            client.once.discard(name)

    def is_excused(self, message: Message) -> bool:
        """Whether somebody may get it or not."""
        return any(message.name in each.excused for each in self.clients.values())

    def over(self, message: Message) -> None:
        """Its fate is known."""
        self.open.pop(message.name, None)

    def arrives(self, client: MqttClient, name: str, qos: int) -> None:
        """A message reaches a client, which may lose it."""
        if name in self.messages and name not in client.arrived:
            self._check_order(client, self.messages[name], client.arrived)
            client.arrived[name] = qos

    def came(self, client: MqttClient, name: str, topic: str, qos: int, new: set[str] | None) -> None:
        """A client has got a message, which `arrives`. `new` are those of its connection that were not sent before, if
        this is one."""
        message = self.messages.get(name)
        if message is None or message.topic != topic:
            raise Broken(f"{client.id} got {name} of {topic}, which nobody has sent")
        may_come = name in client.inbox.things or name in client.excused or name in self.open
        if not may_come and message.qos:
            raise Broken(f"{client.id} got {name} of {topic}, and is not subscribed to it")
        if qos > message.qos:
            raise Broken(f"{client.id} got {name} with QoS {qos}; it was sent with QoS {message.qos}")
        if new is not None and message.qos == 2:
            if name in new:
                raise Broken(f"{client.id} got {name}, which was published once with QoS 2, as two messages")
            new.add(name)
        client.got[name] = client.got.get(name, 0) + 1
        if client.got[name] > 1 and name in client.once:
            raise Broken(f"{client.id} got {name} twice, with QoS 2")
        if client.got[name] == 1:
            # What was lost comes again behind those that the client has taken meanwhile: it loses one QoS at a time.
            kept = [other for other in client.got if client.arrived[other] == client.arrived[name]]
            self._check_order(client, message, kept)

    def _check_order(self, client: MqttClient, message: Message, before: Iterable[str]) -> None:
        """Messages of one publisher and topic come in the order in which they were sent first: none of those that have
        come `before` was sent later."""
        if not message.qos or not message.was_sent or message.may_be_late:
            return
        for name in before:
            other = self.messages[name]
            if (
                other.was_sent
                and other.serial > message.serial
                and (other.publisher, other.topic, other.qos)
                == (message.publisher, message.topic, message.qos)
                and not {name, message.name} & client.excused
            ):
                raise Broken(f"{client.id} got {name} before {message.name}, which was sent before it")

    def missing(self, client: MqttClient) -> list[str]:
        """What a client has not got, and must have."""
        sure = client.inbox.sure()
        return sorted(name for name in sure if name not in client.got and name not in client.excused)
