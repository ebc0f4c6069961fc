"""What an MQTT client is sent: messages of topics, and commands of devices, in order.

Owns packet ids, how much may be under way, what waits until the client has acknowledged or taken what was sent before,
and the bound on that. Does not own who gets a message (`actors/data/topics/broker.py`), nor the session.

Messages with QoS 0 that the client does not take are dropped above the bound and counted; with QoS 1 and 2 the
connection is ended, because the session has no memory that outlives it. Above a rate of the API, messages with QoS 0
are dropped and counted as well; with QoS 1 and 2 they wait, and all that come behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from trunkline.actors.data.topics.publication import Publication
from trunkline.http.mqtt.packets import NAMES, NONE, PROTOCOL_ERROR, PUBACK, PUBCOMP, PUBREC, V5, Malformed
from trunkline.http.mqtt.writer import EncodedPublish, encoded_publish, publish_bytes

if TYPE_CHECKING:
    from trunkline.http.mqtt.service import MqttService
    from trunkline.limits.table import Limits

_PACKET_IDS: Final = 65_535
_ALIASED_BYTES_MAX: Final = 4_096
"""Larger payloads are sent with their topic, which hardly counts there; so a message has few forms, or is small."""


class Outgoing(NamedTuple):
    """A message that waits to be sent. `acknowledged` is called when the client has it, if somebody waits for that;
    `given_up`, if there is one, in its place where the client can never have it. `counts`: it counts in the rates; a
    command counts in its own throttle, and a retained message was asked for."""

    publication: Publication
    qos: int
    ids: tuple[int, ...]
    retain: bool
    acknowledged: Callable[[], None] | None
    counts: bool = True
    given_up: Callable[[], None] | None = None


class _UnderWay(NamedTuple):
    """A message that the client was sent: the packet that it has to answer with, what is called when it has the
    message, and when a PUBREC has come for it."""

    awaits: int
    acknowledged: Callable[[], None] | None = None
    received: Callable[[], None] | None = None


class Recipient(Protocol):
    """The connection of a client that is sent messages."""

    service: MqttService
    limits: Limits
    version: int

    @property
    def client_takes(self) -> bool:
        """Whether the client has taken all that it was sent before."""

    def send(self, data: bytes) -> None:
        """Send bytes, if the connection is open."""

    def wait_s(self, topic: str) -> float:
        """Count a message to the client in the rates of a topic: 0, or how long it has to wait."""

    def flush_later(self, after_s: float) -> None:
        """Have `OutgoingMessages.flush` called after a time."""


class OutgoingMessages:
    """The messages to one client.

    `in_flight_max` is how many messages with QoS 1 and 2 may be under way, `packet_bytes_max` the largest packet that
    the client takes, `aliases_max` how many aliases of topics. The first topics get them.
    """

    __slots__ = (
        "_aliases",
        "_aliases_max",
        "_in_flight_max",
        "_is_paced",
        "_next_id",
        "_session",
        "_under_way",
        "_waiting",
        "_waiting_bytes",
        "packet_bytes_max",
        "sent",
    )

    def __init__(
        self, session: Recipient, *, in_flight_max: int, packet_bytes_max: int, aliases_max: int
    ) -> None:
        self.sent = 0
        self._session = session
        self._in_flight_max = in_flight_max
        self.packet_bytes_max = packet_bytes_max
        self._aliases: dict[str, int] = {}
        """The topics that the client knows by a number."""
        self._aliases_max = aliases_max
        self._next_id = 1
        self._under_way: dict[int, _UnderWay] = {}
        """By packet id; with QoS 2 until PUBCOMP."""
        self._waiting: list[Outgoing] = []  # an empty deque takes ten times the memory
        self._waiting_bytes = 0
        self._is_paced = False
        """Whether the last message that was to be sent was above a rate."""

    def let_go(self, gone: Recipient) -> None:
        """The session is over; this is in its place."""
        self._session = gone

    @property
    def has_room(self) -> bool:
        """Whether one more message with QoS 1 would be sent at once."""
        return not self._waiting and len(self._under_way) < self._in_flight_max and self._session.client_takes

    @property
    def under_way(self) -> int:
        """Messages that the client has not acknowledged."""
        return len(self._under_way)

    @property
    def waiting(self) -> int:
        """Messages that were not sent yet."""
        return len(self._waiting)

    def add(self, message: Outgoing) -> bool:
        """Send a message, or let it wait. False if too many wait already, which ends the connection."""
        if not self._waiting and self._may_send(message.qos) and self._is_within_rates(message):
            self._transmit(message)
        elif not message.qos and message.counts and self._is_paced:
            self._session.service.note_dropped()
        elif not self._waiting or (
            len(self._waiting) < self._session.limits.mqtt_waiting_messages_max
            and self._waiting_bytes < self._session.limits.mqtt_buffer_bytes_max
        ):
            self._waiting.append(message)
            self._waiting_bytes += len(message.publication.payload)
        elif message.qos:
            return False
        else:
            self._session.service.note_dropped()
        return True

    def flush(self) -> None:
        """Send what waits, as far as the client takes it. For when it has acknowledged or taken something."""
        waiting = self._waiting
        while waiting and self._may_send(waiting[0].qos) and self._is_within_rates(waiting[0]):
            message = waiting.pop(0)
            self._waiting_bytes -= len(message.publication.payload)
            self._transmit(message)

    def acknowledge(self, packet: int, packet_id: int) -> bool:
        """PUBACK or PUBCOMP, or a PUBREC that refuses: the message is done. False if none is under way with this id.

        Raises `Malformed` if the message awaits another packet.
        """
        found = self._under_way.get(packet_id)
        if found is None:
            return False
        if found.awaits != packet:
            raise _unexpected(found.awaits, packet, packet_id)
        del self._under_way[packet_id]
        if found.acknowledged is not None:
            found.acknowledged()
        self.flush()
        return True

    def receive(self, packet_id: int) -> bool:
        """PUBREC. True if the message may be released at once: nobody has to store before that it has come.

        Raises `Malformed` if the message awaits another packet. One that is released may be received again.
        """
        found = self._under_way.get(packet_id)
        if found is None:
            return True
        if found.awaits == PUBACK:
            raise _unexpected(PUBACK, PUBREC, packet_id)
        if found.awaits == PUBREC:
            self._under_way[packet_id] = found._replace(awaits=PUBCOMP)
        if found.received is None:
            return True
        found.received()
        return False

    def is_under_way(self, packet_id: int) -> bool:
        """Whether a message with this id is under way."""
        return packet_id in self._under_way

    # Messages with packet ids of their own.

    def send_as(
        self, packet_id: int, message: Outgoing, received: Callable[[], None] | None, *, dup: bool
    ) -> bool:
        """Send a message with QoS 1 or 2 and a packet id that was chosen for it. False if it may not be sent now."""
        if not self.has_room or packet_id in self._under_way or not self._is_within_rates(message):
            return False
        form = self._sendable(message, is_begun=dup)
        if form is not None:
            self.sent += 1
            awaits = PUBACK if message.qos == 1 else PUBREC
            self._under_way[packet_id] = _UnderWay(awaits, message.acknowledged, received)
            self._session.send(form.packet(packet_id, dup=dup))
        return True

    def release_as(self, packet_id: int, packet: bytes, acknowledged: Callable[[], None]) -> bool:
        """Send the PUBREL of a message that an earlier connection has brought. False if it may not be sent now."""
        if not self.has_room or packet_id in self._under_way:
            return False
        self._under_way[packet_id] = _UnderWay(PUBCOMP, acknowledged)
        self._session.send(packet)
        return True

    def _is_within_rates(self, message: Outgoing) -> bool:
        """Count a message that is sent now. False if it has to wait, for which `flush` is called later."""
        session = self._session
        if not message.counts or not session.service.client_limits.counts_messages:
            return True
        wait_s = session.wait_s(message.publication.topic)
        self._is_paced = wait_s > 0
        if wait_s:
            session.flush_later(wait_s)
        return not wait_s

    def _may_send(self, qos: int) -> bool:
        return self._session.client_takes and (not qos or len(self._under_way) < self._in_flight_max)

    def _transmit(self, message: Outgoing) -> None:
        form = self._sendable(message)
        if form is None:
            return
        self.sent += 1
        if not message.qos:
            self._session.send(form.packet())
            if message.acknowledged is not None:
                message.acknowledged()
            return
        packet_id = self._free_id()
        awaits = PUBACK if message.qos == 1 else PUBREC
        self._under_way[packet_id] = _UnderWay(awaits, message.acknowledged)
        self._session.send(form.packet(packet_id))

    def _sendable(self, message: Outgoing, *, is_begun: bool = False) -> EncodedPublish | None:
        """The bytes of a message; None if it has expired or is too large for the client, which is then done with it.

        What `is_begun` was sent before, and expires no more (MQTT-4.3.3-7).
        """
        publication = message.publication
        expires_ms = publication.expires_ms
        if expires_ms is None or is_begun or self._session.service.system.clock.wall_ms() < expires_ms:
            if self._aliases_max and len(publication.payload) <= _ALIASED_BYTES_MAX:
                form = self._aliased(message)
                if form is not None:
                    return form
            form = self._form(publication, message.qos, message.ids, retain=message.retain)
            if publish_bytes(form, message.qos) <= self.packet_bytes_max:
                return form
        self._session.service.note_dropped()
        done = message.given_up or message.acknowledged
        if done is not None:
            done()
        return None

    def _aliased(self, message: Outgoing) -> EncodedPublish | None:
        """The bytes of a message with an alias; None if its topic has none, or the packet would be too large."""
        publication = message.publication
        topic = publication.topic
        alias = self._aliases.get(topic)
        is_known = alias is not None
        if alias is None:
            if len(self._aliases) >= self._aliases_max:
                return None
            alias = len(self._aliases) + 1
        form = self._form(
            publication,
            message.qos,
            message.ids,
            retain=message.retain,
            alias=alias,
            topic="" if is_known else topic,
        )
        if publish_bytes(form, message.qos) > self.packet_bytes_max:
            return None
        self._aliases[topic] = alias
        return form

    def _form(
        self,
        publication: Publication,
        qos: int,
        ids: tuple[int, ...],
        *,
        retain: bool,
        alias: int = 0,
        topic: str | None = None,
    ) -> EncodedPublish:
        """The bytes without the packet id: made once for all clients with the same options."""
        version = self._session.version
        is_v5 = version == V5
        key = (is_v5, qos, retain, ids if is_v5 else (), alias, topic)
        form: EncodedPublish | None = publication.forms.get(key)
        if form is not None and publication.expires_ms is None:
            return form
        properties: dict[str, Any] = {}
        if is_v5:
            properties = dict(publication.properties)
            if alias:
                properties["topic_alias"] = alias
            if ids:
                properties["subscription_identifier"] = list(ids)
            if publication.expires_ms is not None:
                left_ms = publication.expires_ms - self._session.service.system.clock.wall_ms()
                properties["message_expiry_interval"] = max(1, -(-left_ms // 1000))
        form = publication.forms[key] = encoded_publish(
            version,
            publication.topic if topic is None else topic,
            publication.payload,
            qos,
            retain=retain,
            properties=properties or NONE,
        )
        return form

    def _free_id(self) -> int:
        """A packet id that no message under way has; fewer are under way than there are ids."""
        while self._next_id in self._under_way:
            self._next_id = self._next_id % _PACKET_IDS + 1
        packet_id = self._next_id
        self._next_id = packet_id % _PACKET_IDS + 1
        return packet_id


def _unexpected(awaited: int, packet: int, packet_id: int) -> Malformed:
    return Malformed(
        PROTOCOL_ERROR,
        f"{NAMES[packet]} has come for the packet identifier {packet_id}, which awaits {NAMES[awaited]}",
    )
