"""What an MQTT client publishes: states to devices, everything else to the topics of the application.

Owns who may publish what, the packet ids of QoS 2, and topic aliases. Does not own what a device does with a state, nor
who gets a message. A message takes its turn when it is received; its acknowledgement follows the commit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from trunkline.actors.access import authority
from trunkline.actors.core.runtime.mailbox import FULL
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import (
    Crashed,
    DomainError,
    Forbidden,
    Invalid,
    Overloaded,
)
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.data.topics.publication import NO_PROPERTIES, Publication, PublishFromClient
from trunkline.actors.data.topics.queues import mark_received
from trunkline.actors.data.topics.session_actor import ReleasePacket
from trunkline.actors.fleet.devices.record.messages import SendState
from trunkline.actors.fleet.devices.state.link_messages import SendColumns
from trunkline.actors.fleet.devices.state.traffic import Traffic
from trunkline.http.calls.json_body import is_long_work
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.device_topics import (
    REPORTS,
    STATE,
    DeviceTopic,
    columns_in,
    device_topic,
    is_reserved,
    states_of,
)
from trunkline.http.mqtt.login import Client
from trunkline.http.mqtt.packets import V5, Publish
from trunkline.http.mqtt.refusals import SHOWN_CHARS_MAX, Refusal, ack_code_of, code_of, may_succeed_later
from trunkline.http.mqtt.writer import ack

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import PendingAnswer
    from trunkline.http.mqtt.connection import MqttConnection

_CRASHED: Final = "The server failed to handle this message; the fault is logged."
_UNBOUNDED: Final = 1 << 30
"""A client of 3.1.1 is not told how many messages it may send at once."""
PASSED_ON: Final = (
    "payload_format_indicator",
    "content_type",
    "response_topic",
    "correlation_data",
    "user_property",
)
"""The properties of a message that its receivers get too."""
_log = structlog.get_logger("trunkline.mqtt")


class TooFast(Exception):
    """The client is over a limit of its own, which ends the connection. Its text says which."""


class Publishing:
    """The messages of one client."""

    __slots__ = (
        "_aliases",
        "_client",
        "_in_flight_max",
        "_last",
        "_own",
        "_own_topic",
        "_received",
        "_session",
        "_unanswered",
        "last_refusal",
        "refused",
    )

    def __init__(self, session: MqttConnection, client: Client) -> None:
        self._session = session
        self._client = client
        self._aliases: dict[int, str] = {}
        self._received: dict[int, None] = {}
        """Packet ids of QoS 2 that are not released: their messages are stored once."""
        self._last: PendingAnswer | None = None
        """The turn of the last message."""
        limits = session.limits
        self._in_flight_max = limits.mqtt_in_flight_messages_max if session.version == V5 else _UNBOUNDED
        self._unanswered = 0
        """Messages with QoS 1 that were not answered yet."""
        self._own_topic = ""
        """The topic in which the device of this client last published its own state. That it may, does not change."""
        self._own: Ref | None = None
        """The device, once there is such a topic."""
        self.refused = 0
        """Messages that were not stored."""
        self.last_refusal: Refusal | None = None
        """Why the last of them was not."""

    def publish(self, packet: Publish) -> None:
        """Handle a PUBLISH. Raises `TooFast`, and `Malformed` where the protocol ends the connection."""
        session = self._session
        topic = self._topic_of(packet)
        if packet.qos == 2 and packet.packet_id in self._received:
            session.acknowledgements.at_once(ack(session.version, packets.PUBREC, packet.packet_id))
            return
        if packet.qos and self._unanswered + len(self._received) >= self._in_flight_max:
            raise packets.Malformed(
                packets.RECEIVE_MAXIMUM_EXCEEDED,
                f"more than {self._in_flight_max} messages with QoS 1 and 2 were sent before one was acknowledged",
            )
        self._check_rate(topic)
        try:
            turn = self._begin(topic, packet)
        except DomainError as refusal:
            self._refuse(topic, packet, refusal)
            return
        except Exception as bug:  # noqa: BLE001 - the other messages never notice
            _log.error("message failed", exc_info=bug)
            self._refuse(topic, packet, Crashed(_CRASHED))
            return
        self._last = turn
        if packet.qos == 2:
            self._received[packet.packet_id] = None
        elif packet.qos:
            self._unanswered += 1
        if packet.qos:
            session.acknowledgements.after(turn, partial(self._answer, topic, packet, turn))

    @property
    def under_way(self) -> PendingAnswer | None:
        """The turn of the last message, if that is not on disk yet."""
        last = self._last
        return None if last is None or last.group is None or last.group.done else last

    def check_again(self, client: Client) -> None:
        """What the client may do has changed."""
        self._client = client

    def release(self, packet_id: int) -> None:
        """Handle a PUBREL: the id is free for another message. Raises `DomainError` if that cannot be stored now."""
        session = self._session
        code = packets.SUCCESS if packet_id in self._received else packets.PACKET_IDENTIFIER_NOT_FOUND
        self._received.pop(packet_id, None)
        answer = ack(session.version, packets.PUBCOMP, packet_id, code)
        if session.session is None or code:
            session.acknowledgements.at_once(answer)
            return
        session.change_session(ReleasePacket(session=session.session, packet_id=packet_id), lambda: answer)

    def resume(self, received: set[int]) -> None:
        """Go on with a session: these packet ids with QoS 2 were received and not released."""
        self._received = dict.fromkeys(received)

    # Which topic.

    def _topic_of(self, packet: Publish) -> str:
        """The topic, which an alias may stand for."""
        alias = packet.properties.get("topic_alias") if packet.properties else None
        if alias is None:
            return packet.topic
        if alias > self._session.limits.mqtt_topic_aliases_max:
            raise packets.Malformed(
                packets.TOPIC_ALIAS_INVALID,
                f"topic alias {alias} is above the maximum of {self._session.limits.mqtt_topic_aliases_max}",
            )
        if packet.topic:
            self._aliases[alias] = packet.topic
            return packet.topic
        topic = self._aliases.get(alias)
        if topic is None:
            raise packets.Malformed(
                packets.PROTOCOL_ERROR, f"topic alias {alias} was not given a topic before"
            )
        return topic

    def _check_rate(self, topic: str) -> None:
        client, service = self._client, self._session.service
        if not service.client_limits.counts_messages:
            return
        reason = service.client_limits.sends(
            client.application, client.key, topic, service.system.clock.monotonic_s()
        )
        if reason is not None:
            raise TooFast(reason)

    # Turns.

    def _begin(self, topic: str, packet: Publish) -> PendingAnswer:
        """Take the turn of a message. Raises `DomainError`."""
        system, client = self._session.service.system, self._client
        system.check_load()
        ref = self._own if topic == self._own_topic else None
        message: Any
        if ref is not None or is_reserved(topic):
            about = STATE
            if ref is None:
                ref, about = self._device_of(device_topic(topic), topic)
            message = _report(about, packet, client.origin)
        else:
            if not client.may_publish(topic):
                raise Forbidden(f"The access key does not allow to publish to {topic}.")
            ref = Ref("publisher", client.application, client.key)
            message = PublishFromClient(
                publication=self._publication(topic, packet),
                retain=packet.retain,
                origin=client.origin,
                always_delivers=self._session.version != V5 or not packet.qos,
            )
        stamp = None
        if packet.qos == 2 and self._session.session is not None:
            stamp = mark_received(self._session.session, packet.packet_id)
        turn = system.begin(ref, message, stamp)
        if turn is None:
            raise Overloaded("The device is busy with a long call. Send the message again.", reason=FULL)
        return turn

    def _publication(self, topic: str, packet: Publish) -> Publication:
        given, client = packet.properties, self._client
        if not given:
            return Publication(topic, packet.payload, packet.qos, publisher=client.key)
        properties = {name: given[name] for name in PASSED_ON if name in given}
        expiry_s, expires_ms = given.get("message_expiry_interval"), None
        if expiry_s is not None:
            expires_ms = self._session.service.system.clock.wall_ms() + 1000 * expiry_s
        return Publication(
            topic, packet.payload, packet.qos, properties or NO_PROPERTIES, expires_ms, client.key
        )

    def _device_of(self, topic: DeviceTopic | None, text: str) -> tuple[Ref, str]:
        """The device whose states are published, and in which form. Raises `DomainError`."""
        client = self._client
        if topic is None or topic.about not in REPORTS:
            raise Forbidden(
                f"{text} is reserved; devices publish to losant/DEVICE_ID/state, trunkline/DEVICE_ID/rows and "
                "trunkline/DEVICE_ID/columns."
            )
        if client.device is None:
            raise Forbidden(f"{text}: this client is not a device; its client id must be the id of one.")
        ref = Ref("device", client.application, topic.device)
        if topic.device != client.device:
            check_peripheral(self._session, client, topic.device)
        elif topic.about == STATE:
            self._own_topic, self._own = text, ref
        return ref, topic.about

    # Answers.

    def _answer(self, topic: str, packet: Publish, turn: PendingAnswer, failure: DomainError | None) -> bytes:
        """The PUBACK or PUBREC after the commit."""
        if packet.qos == 1:
            self._unanswered -= 1
        if failure is not None:
            if packet.qos == 2:
                self._received.pop(packet.packet_id, None)
            return self._refusal(topic, packet, failure)
        type = packets.PUBACK if packet.qos == 1 else packets.PUBREC
        code = packets.NO_MATCHING_SUBSCRIBERS if turn.value is False else packets.SUCCESS
        return ack(self._session.version, type, packet.packet_id, code)

    def _refuse(self, topic: str, packet: Publish, reason: DomainError) -> None:
        refusal = self._session.service.system.checked(reason)
        answer = self._refusal(topic, packet, refusal)
        if packet.qos:
            self._session.acknowledgements.at_once(answer)

    def _refusal(self, topic: str, packet: Publish, refusal: DomainError) -> bytes:
        """Note what is refused; the packet that says so, if the client has one for that.

        Version 3.1.1 has no way to refuse a message: what can never be stored is acknowledged, so that it is not sent
        for ever; where it could be stored later, the client is disconnected without an acknowledgement. So is any
        client where nobody knows whether the message is stored: it sends it again.
        """
        session = self._session
        self._note(topic, refusal)
        if not packet.qos:
            return b""
        if refusal.is_unknown:
            session.disconnect(code_of(refusal), refusal.message)
            return b""
        type = packets.PUBACK if packet.qos == 1 else packets.PUBREC
        if session.version == V5:
            code = ack_code_of(refusal)
            if isinstance(refusal, Invalid) and not is_reserved(topic):
                code = packets.TOPIC_NAME_INVALID
            return ack(V5, type, packet.packet_id, code, session.reason(refusal.message))
        if may_succeed_later(refusal):
            session.disconnect(code_of(refusal), refusal.message)
            return b""
        if packet.qos == 2:
            self._received[packet.packet_id] = None
        return ack(session.version, type, packet.packet_id)

    def _note(self, topic: str, refusal: DomainError) -> None:
        """Count what was refused, for the list of clients and the overview of the application."""
        client = self._client
        self.refused += 1
        now_ms = self._session.service.system.clock.wall_ms()
        self.last_refusal = Refusal(code_of(refusal), refusal.message[:SHOWN_CHARS_MAX], now_ms)
        self._session.service.refused += 1
        about = device_topic(topic)
        device = client.device if about is None else about.device
        operation = "mqtt.publish" if about is None else "device.sendState"
        self._session.service.system.component(Traffic).refuse(client.application, device, operation, refusal)


def _report(about: str, packet: Publish, origin: Origin | None) -> SendState | SendColumns:
    """The states in a message. Raises `Invalid`."""
    payload = packet.payload
    if about != STATE:
        return SendColumns(body=columns_in(about, payload), origin=origin)
    content_type = packet.properties.get("content_type", "") if packet.properties else ""
    if is_long_work(payload):
        raise Invalid("The payload has more values than one message may; send arrays with fewer states.")
    return SendState(body=states_of(payload, content_type), origin=origin)


def check_peripheral(session: MqttConnection, client: Client, device: bytes) -> None:
    """Raise `DomainError` unless a device is a peripheral of the client, which is a gateway."""
    assert client.device is not None
    with session.service.system.store.snapshot() as snapshot:
        authority.check_peripheral(snapshot, client.application, client.device, device, "connection")
