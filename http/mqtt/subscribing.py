"""What an MQTT client subscribes to: topics of the application, with their retained messages, and commands of devices.

Owns which filters are granted, what of the retained messages was sent, and how commands reach the client. Does not own
who gets a message (`actors/data/topics/broker.py`), nor which commands wait (`actors/fleet/devices/commands/links.py`).
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from trunkline.actors.core.values.errors import DomainError, Invalid
from trunkline.actors.data.topics.broker import Broker
from trunkline.actors.data.topics.filters import check_form
from trunkline.actors.data.topics.publication import Publication
from trunkline.actors.data.topics.retained import retained_of
from trunkline.actors.data.topics.session_actor import ChangeSubscriptions
from trunkline.actors.data.topics.session_records import (
    FILTER_BYTES_MAX,
    SHARED,
    Options,
    group_id,
    split_shared,
)
from trunkline.actors.fleet.devices.commands.command_messages import (
    AcknowledgeCommand,
    GiveUpCommand,
    LinkCommand,
)
from trunkline.actors.fleet.devices.commands.links import Links
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.device_topics import command_payload, command_topic, commands_of, is_reserved
from trunkline.http.mqtt.login import Client
from trunkline.http.mqtt.outgoing import Outgoing
from trunkline.http.mqtt.packets import Filter, Subscribe, Unsubscribe
from trunkline.http.mqtt.publishing import check_peripheral
from trunkline.http.mqtt.refusals import SHOWN_CHARS_MAX, Refusal, code_of
from trunkline.http.mqtt.writer import suback, unsuback

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trunkline.http.mqtt.connection import MqttConnection

_RETAINED_AT_ONCE: Final = 64
"""Retained messages that are read and sent in one turn: a fraction of a millisecond."""
_NOT_RETAINED: Final = 2
"""The retain handling with which no retained messages are sent."""


class _Commands(NamedTuple):
    """A subscription to commands. `device` is the id of the device as the filter has it, in any case, None for each;
    `number` is the identifier of the subscription, 0 for none."""

    prefix: str
    device: str | None
    qos: int
    number: int

    def topic_of(self, device: bytes) -> str | None:
        """The topic in which it gets the commands of a device, None if it does not."""
        if self.device is None:
            return command_topic(self.prefix, device.hex())
        return command_topic(self.prefix, self.device) if bytes.fromhex(self.device) == device else None

    def selects(self, topic: str) -> bool:
        """Whether its filter matches the topic of a command."""
        prefix, device, _ = topic.split("/")
        return prefix == self.prefix and self.device in (None, device)


class _Retained:
    """Retained messages that are to be sent for a subscription, from a key on."""

    __slots__ = ("after", "filter", "options")

    def __init__(self, filter: str, options: Options) -> None:
        self.filter = filter
        self.options = options
        self.after = b""


_SENTENCES: Final = {
    packets.TOPIC_FILTER_INVALID: "This is not a filter that a subscription may have",
    packets.NOT_AUTHORIZED: "The login does not allow this subscription",
    packets.QUOTA_EXCEEDED: "The client has as many subscriptions as it may",
}
"""What is said of a refused subscription, by its code."""


class Subscribing:
    """The subscriptions of one client."""

    __slots__ = (
        "_client",
        "_commands",
        "_filters",
        "_retained",
        "_session",
        "_shared",
        "_skipped",
        "_wanted",
        "last_refusal",
        "refused",
    )

    def __init__(self, session: MqttConnection, client: Client) -> None:
        self._session = session
        self._client = client
        self._filters: dict[str, None] = {}
        self._shared: dict[bytes, Options] = {}
        """The shared subscriptions with QoS 1 and 2, by the ids of their queues."""
        self._commands: dict[str, _Commands] = {}
        self._retained: list[_Retained] = []
        self._wanted: list[_Retained] = []
        """What is to be sent when the subscriptions are in effect."""
        self._skipped: dict[bytes, None] = {}
        """Peripherals with commands that were not sent, as the client is not subscribed to them."""
        self.refused = 0
        """Subscriptions that the client did not get, and commands that it cannot take."""
        self.last_refusal: Refusal | None = None
        """Why it did not get the last of them."""

    def __len__(self) -> int:
        return len(self._filters) + len(self._commands)

    @property
    def takes_commands(self) -> bool:
        """Whether the client is subscribed to commands."""
        return bool(self._commands)

    def subscribe(self, packet: Subscribe) -> None:
        """Handle a SUBSCRIBE: answer for each filter, then send what is retained and what waits."""
        session = self._session
        ids: Sequence[int] = packet.properties.get("subscription_identifier", ())
        number = ids[0] if ids else 0
        codes = [self._subscribe(each, number) for each in packet.filters]
        for each, code in zip(packet.filters, codes, strict=True):
            if code in _SENTENCES:
                self._note(each.filter, code)
        answer = suback(session.version, packet.packet_id, codes)
        added = {
            each.filter: Options(code, each.no_local, each.retain_as_published, number)
            for each, code in zip(packet.filters, codes, strict=True)
            if code < packets.UNSPECIFIED_ERROR
        }
        self._answer(answer, added, ())
        if session.session is None:
            self._send_retained()
        session.pump()

    def _note(self, filter: str, code: int) -> None:
        """Count a subscription that was refused."""
        self._refuse(code, f"{_SENTENCES[code]}: {filter}")

    def _refuse(self, code: int, sentence: str) -> None:
        """Count what the client does not get, for the list of clients."""
        self.refused += 1
        now_ms = self._session.service.system.clock.wall_ms()
        self.last_refusal = Refusal(code, sentence[:SHOWN_CHARS_MAX], now_ms)

    def unsubscribe(self, packet: Unsubscribe) -> None:
        """Handle an UNSUBSCRIBE."""
        session, codes, removed = self._session, [], []
        for filter in packet.filters:
            if filter in self._filters or filter in self._commands:
                self._drop(filter)
                removed.append(filter)
                codes.append(packets.SUCCESS)
            else:
                codes.append(packets.NO_SUBSCRIPTION_EXISTED)
        self._answer(unsuback(session.version, packet.packet_id, codes), {}, removed)

    def resume(self, filters: Mapping[str, Options]) -> list[str]:
        """Subscribe again to what the session is subscribed to. Returns what the client may not have any more."""
        lost = []
        for filter, options in filters.items():
            asked = Filter(filter, options.qos, options.no_local, options.retain_as_published, _NOT_RETAINED)
            if self._subscribe(asked, options.id) >= packets.UNSPECIFIED_ERROR:
                lost.append(filter)
        return lost

    def _answer(self, packet: bytes, added: Mapping[str, Options], removed: Sequence[str]) -> None:
        """Send a SUBACK or UNSUBACK: if the session outlives the connection, when the change is on disk."""
        session = self._session
        if len(packet) > session.outgoing.packet_bytes_max:
            raise packets.Malformed(
                packets.PACKET_TOO_LARGE,
                f"the answer has {len(packet)} bytes, more than the client takes; send fewer filters at once",
            )
        if session.session is None or not (added or removed):
            session.acknowledgements.at_once(packet)
            return
        message = ChangeSubscriptions(session=session.session, added=added, removed=tuple(removed))
        session.change_session(message, lambda: packet, self._changed)

    def _changed(self) -> None:
        self._send_retained()
        self.pump()

    def _send_retained(self) -> None:
        """The subscriptions are in effect, so what is published comes: send what is retained for them."""
        self._retained.extend(self._wanted)
        self._wanted.clear()

    def close(self) -> None:
        """The connection is over."""
        for filter in list(self._filters):
            self._drop(filter)
        self._commands.clear()
        self._retained.clear()

    def check_again(self, client: Client) -> None:
        """What the client may do has changed: what it may not subscribe to any more ends."""
        self._client = client
        lost = [each for each in self._filters if not client.may_subscribe(split_shared(each)[1])]
        for filter in lost:
            self._drop(filter)
        if lost and self._session.session is not None:
            self._answer(b"", {}, lost)

    def _drop(self, filter: str) -> None:
        if self._commands.pop(filter, None) is None:
            self._filters.pop(filter, None)
            group = group_id(filter)
            if group is not None:
                self._shared.pop(group, None)
            broker = self._session.service.system.component(Broker)
            broker.unsubscribe(self._client.application, self._session, filter)

    def _subscribe(self, asked: Filter, number: int) -> int:
        """Subscribe to a filter. Returns the granted QoS, or the code of the refusal."""
        filter, client = asked.filter, self._client
        is_shared = filter.startswith(SHARED)
        try:
            group, plain = split_shared(filter)
            if is_shared:
                check_form(group, "the name of the group")
                if "/" in group or "+" in group or "#" in group:
                    raise Invalid("the name of the group has a wildcard.")
            check_form(plain, "filter")
            if len(filter.encode()) > FILTER_BYTES_MAX:
                raise Invalid("the filter is too long.")
        except Invalid:
            return packets.TOPIC_FILTER_INVALID
        if is_shared and asked.no_local:
            raise packets.Malformed(packets.PROTOCOL_ERROR, "a shared subscription has no_local")
        is_known = filter in self._filters or filter in self._commands
        if not is_known and len(self) >= self._session.limits.mqtt_subscriptions_max:
            return packets.QUOTA_EXCEEDED
        if is_reserved(plain):
            return packets.NOT_AUTHORIZED if is_shared else self._subscribe_to_commands(asked, number)
        if plain.startswith("$") or not client.may_subscribe(plain):
            return packets.NOT_AUTHORIZED
        options = Options(asked.qos, asked.no_local, asked.retain_as_published, number)
        is_new = self._session.service.system.component(Broker).subscribe(
            client.application, self._session, filter, options
        )
        self._filters[filter] = None
        group_of = group_id(filter)
        if group_of is not None and asked.qos:
            self._shared[group_of] = options
        if not is_shared and (asked.retain_handling == 0 or (asked.retain_handling == 1 and is_new)):
            self._wanted.append(_Retained(plain, options))
        return asked.qos

    def take_shared(self) -> None:
        """Take what waits for shared subscriptions, if the session outlives the connection and has nothing to do."""
        queue = self._session.queue
        if queue is not None:
            for group, options in self._shared.items():
                queue.take(group, options)

    # Retained messages.

    def pump(self) -> None:
        """Send retained messages as long as the client takes them."""
        session, retained = self._session, self._retained
        system, outgoing = session.service.system, session.outgoing
        while retained and outgoing.has_room:
            first = retained[0]
            with system.store.snapshot() as snapshot:
                found = list(
                    islice(
                        retained_of(
                            snapshot,
                            self._client.application,
                            first.filter,
                            system.clock.wall_ms(),
                            first.after,
                        ),
                        _RETAINED_AT_ONCE,
                    )
                )
            try:
                system.check_current()
            except DomainError as refusal:
                session.disconnect(code_of(refusal), refusal.message)
                return
            if len(found) < _RETAINED_AT_ONCE:
                retained.pop(0)
            options = first.options
            ids = (options.id,) if options.id else ()
            for key, publication in found:
                first.after = key
                qos = min(options.qos, publication.qos)
                session.send_message(Outgoing(publication, qos, ids, True, None, counts=False))
                if not session.is_open:
                    return

    # Commands.

    def _subscribe_to_commands(self, asked: Filter, number: int) -> int:
        client, session = self._client, self._session
        commands = commands_of(asked.filter)
        if commands is None or client.device is None:
            return packets.NOT_AUTHORIZED
        prefix, named = commands
        device = None if named is None else bytes.fromhex(named)
        if device is not None and device != client.device:
            try:
                check_peripheral(session, client, device)
            except DomainError as reason:
                refusal = session.service.system.checked(reason)
                if refusal is not reason:
                    raise refusal from None
                return packets.NOT_AUTHORIZED
        qos = min(asked.qos, 1)
        self._commands[asked.filter] = _Commands(prefix, named, qos, number)
        again = [each for each in self._skipped if device in (None, each)]
        for each in again:
            del self._skipped[each]
        session.offer_again(again)
        return qos

    def deliver_commands(self, commands: Sequence[LinkCommand]) -> None:
        """Send commands, of the client's device or a peripheral of it."""
        session, own = self._session, self._client.device
        assert own is not None
        for command in commands:
            device = command.device or own
            topic, qos, ids = self._wanted_command(device)
            if topic is None:
                self._skipped[device] = None
                continue
            publication = Publication(topic, command_payload(command), qos)
            gateway = None if device == own else own
            arrived = partial(self._settle, device, AcknowledgeCommand(id=command.id, gateway=gateway))
            given_up = partial(
                self._give_up, device, GiveUpCommand(id=command.id, gateway=gateway), publication
            )
            session.send_message(
                Outgoing(publication, qos, ids, False, arrived, counts=False, given_up=given_up)
            )

    def _wanted_command(self, device: bytes) -> tuple[str | None, int, tuple[int, ...]]:
        """The topic in which the client gets the commands of a device, None if it does not; the QoS, which is the
        highest of its subscriptions to them, and the identifiers of those that select the topic."""
        topic, most = None, -1
        for each in self._commands.values():
            if each.qos > most:
                found = each.topic_of(device)
                if found is not None:
                    topic, most = found, each.qos
        if topic is None:
            return None, 0, ()
        ids = (each.number for each in self._commands.values() if each.number and each.selects(topic))
        return topic, most, tuple(ids)

    def _give_up(self, device: bytes, message: GiveUpCommand, publication: Publication) -> None:
        """The client takes no packet that is as large as a command: it expires."""
        sentence = (
            f"A command in {publication.topic} with a payload of {len(publication.payload)} bytes has expired: the "
            f"client takes packets of {self._session.outgoing.packet_bytes_max} bytes at most"
        )
        self._refuse(packets.PACKET_TOO_LARGE, sentence)
        self._settle(device, message)

    def _settle(self, device: bytes, message: AcknowledgeCommand | GiveUpCommand) -> None:
        """A command waits no longer: the client has it, as it has said with QoS 1, or QoS 0 tells nobody; or it is
        given up."""
        links = self._session.service.system.component(Links)
        links.settle(self._client.application, device, message)
