"""One connection of an MQTT client: from its first byte to its end.

Owns the order of packets, the keep alive, the end of the login, and how the connection ends. Does not own the bytes of
packets (`reader.py`, `writer.py`), what is between CONNECT and CONNACK (`handshake.py`), what is published
(`publishing.py`) and subscribed (`subscribing.py`), nor the connection itself (`wire/byte_connection.py`).

The module is long because a connection has one state, and all of it is here.
"""

from __future__ import annotations

import math
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, Literal

import structlog
import trio

from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.work import Work, noted
from trunkline.actors.core.values.errors import DomainError, Overloaded
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.topics.broker import Broker, ClientEnd
from trunkline.actors.data.topics.publication import DisconnectClient, Publication
from trunkline.actors.data.topics.queues import Queued
from trunkline.actors.data.topics.session_actor import (
    CloseSession,
    MqttSessionActor,
    OpenedSession,
)
from trunkline.actors.fleet.devices.commands.command_messages import LinkCommand
from trunkline.actors.fleet.devices.commands.link_session import LinkEnd
from trunkline.actors.fleet.devices.commands.links import Link, Links
from trunkline.http.mqtt import packets
from trunkline.http.mqtt.acknowledgements import Acknowledgements
from trunkline.http.mqtt.gone import GoneClient
from trunkline.http.mqtt.handshake import Handshake
from trunkline.http.mqtt.login import Client, still_allowed
from trunkline.http.mqtt.outgoing import Outgoing, OutgoingMessages
from trunkline.http.mqtt.packets import (
    V5,
    Ack,
    Connect,
    Disconnect,
    Malformed,
    Packet,
    PingReq,
    Publish,
    Subscribe,
    Unsubscribe,
)
from trunkline.http.mqtt.publishing import Publishing, TooFast
from trunkline.http.mqtt.reader import PacketReader
from trunkline.http.mqtt.reason_codes import said_in
from trunkline.http.mqtt.refusals import Refusal, code_of
from trunkline.http.mqtt.session_queue import SessionQueue
from trunkline.http.mqtt.subscribing import Subscribing
from trunkline.http.mqtt.writer import PINGRESP, ack, connack, disconnect

if TYPE_CHECKING:
    from trunkline.http.mqtt.service import MqttService
    from trunkline.http.wire.byte_session import Bytes, Peer

_REASON_BYTES_MAX: Final = 1_024
"""A client is not told a sentence that is longer, as one that quotes a long topic."""
_REASON_ROOM: Final = 16
"""At most so many bytes are around a sentence in a packet."""
_GRACE: Final = 1.5
"""A client that is silent for so many times its keep alive is disconnected (MQTT 5, 3.1.2.10)."""
_SILENT: Final = "nothing came for 1.5 times the keep alive"
_LOGIN_OVER: Final = "the token or the certificate has expired; connect with a new one"
_NOTHING_HELD: Final[deque[Packet]] = deque(maxlen=0)
"""What connections share that have no packets to handle: an empty deque takes 600 bytes."""
VERSIONS: Final = {packets.V3_1: "3.1", packets.V3_1_1: "3.1.1", V5: "5.0"}
"""How versions of the protocol are named to people."""
_ORDINARY_ENDS: Final = frozenset({packets.SERVER_SHUTTING_DOWN, packets.SESSION_TAKEN_OVER})
"""Reason codes of ends that nobody has to look for."""
_log = structlog.get_logger("trunkline.mqtt")


@lru_cache(maxsize=1_024)
def _work_of(application: bytes | None) -> Work:
    return Work("link", "mqtt", application)


class MqttSession:
    """The session of a connection (`wire/byte_connection.py`), a client of the broker
    (`actors/data/topics/broker.py`), and the link of a device (`actors/fleet/devices/commands/links.py`)."""

    __slots__ = (
        "_broken",
        "_connection",
        "_from_client",
        "_handshake",
        "_held",
        "_is_connected",
        "_keep_alive_s",
        "_link",
        "_new_expiry_s",
        "_owner",
        "_peer",
        "_publishes_will",
        "_publishing",
        "_reader",
        "_reason_bytes_max",
        "_silence",
        "_subscribing",
        "_token_ends_s",
        "_work",
        "acknowledgements",
        "client",
        "client_id",
        "connected_ms",
        "has_will",
        "is_open",
        "key",
        "limits",
        "outgoing",
        "queue",
        "service",
        "session",
        "version",
    )

    def __init__(self, service: MqttService, peer: Peer) -> None:
        self.service = service
        self.limits = service.system.limits
        self.version = packets.V3_1_1
        self._reason_bytes_max = 0
        self.key = b""
        self.session: bytes | None = None
        self.queue: SessionQueue | None = None
        self.client: Client | None = None
        self.is_open = True
        self.connected_ms = 0
        """When the client was let in."""
        self.acknowledgements = Acknowledgements(self)
        self.outgoing = self._outgoing_for({})
        self._peer = peer
        self._connection: Bytes | None = None
        self._reader: PacketReader | None = PacketReader(self.limits.mqtt_packet_bytes_max)
        self.client_id = ""
        """The id that the client gave itself, or that it was given."""
        self._keep_alive_s = 0
        self._handshake: Handshake | None = None
        """From the CONNECT to its CONNACK."""
        self._held = _NOTHING_HELD
        """Packets that have come, and were not handled yet."""
        self._broken: Malformed | None = None
        """What ends the connection behind the packets before it."""
        self._is_connected = False
        self._publishing: Publishing | None = None
        self._subscribing: Subscribing | None = None
        self._link: Link | None = None
        self._owner: bytes | None = None
        self._silence = b""
        """The last packet to a client that is silent for too long, once it is known."""
        self._token_ends_s = math.inf
        self._new_expiry_s: int | None = None
        self.has_will = False
        self._publishes_will = True
        self._from_client = 0
        self._work = _work_of(None)

    # The connection.

    def opened(self, connection: Bytes) -> None:
        self._connection = connection
        self.service.sessions.add(self)

    def received(self, data: bytes) -> None:
        noted.work = self._work
        reader = self._reader
        if reader is None:
            return
        try:
            self._hold(reader.feed(data))
        except Malformed as problem:
            self._hold(problem.packets)
            self._broken, self._reader = problem, None
            if self._handshake is None and not self._is_connected:
                self.version = reader.version
        self._go_on()

    def _hold(self, come: Sequence[Packet]) -> None:
        if self._held:
            self._held.extend(come)
        elif come:
            self._held = deque(come)

    def go_on(self) -> None:
        """Handle what was held back because the server had too much to store."""
        noted.work = self._work
        self._go_on()
        self.received_all()

    def received_all(self) -> None:
        if self.queue is not None:
            self.queue.flush()
        self.acknowledgements.wait()
        self._set_end()

    def flushed(self) -> None:
        self.outgoing.flush()
        self.pump()

    def pump(self) -> None:
        """The client may have room: send what waits for it."""
        if self.queue is not None:
            self.queue.pump()
        if self._subscribing is not None:
            self._subscribing.pump()
            self._subscribing.take_shared()
        self.pump_commands()

    def drain(self) -> None:
        self.disconnect(packets.SERVER_SHUTTING_DOWN, "the server is stopping; connect again later")

    def closed(self, reason: str) -> None:
        self.is_open = False
        self._reader = self._handshake = None
        self.service.forget(self)
        self.acknowledgements.wait()
        self.acknowledgements.drop()
        self._held.clear()
        client, self._connection = self.client, None
        if client is not None:
            self._leave(client, reason)
        # Its parts may be at work: they have ended the connection.
        trio.lowlevel.current_trio_token().run_sync_soon(self._let_go)

    def _let_go(self) -> None:
        """Let its parts and it not refer to each other, or all would wait for the garbage collector."""
        gone = GoneClient(self.service, self.limits, self.version)
        self.acknowledgements.let_go(gone)
        self.outgoing.let_go(gone)
        self._link = self._publishing = self._subscribing = self.queue = None

    def _leave(self, client: Client, reason: str) -> None:
        """Tell all who know the client."""
        system = self.service.system
        self._unwatch(client)
        if self._subscribing is not None:
            self._subscribing.close()
        system.component(Broker).disconnect(client.application, self)
        if self._link is not None:
            system.component(Links).close(self._link, f"MQTT {VERSIONS[self.version]}: {reason}")
        if self._owner is not None:
            system.lasting.leave(self._owner)
        if self.has_will and not (self._publishes_will and client.application in system.moves.away):
            ref = Ref("publisher", client.application, client.key)
            self.service.tell(ref, DisconnectClient(publish_will=self._publishes_will))
        if self.queue is not None:
            self.queue.flush()
            ref = Ref(MqttSessionActor.kind, client.application, client.key)
            id, sent_below = self.queue.id, self.queue.sent_below
            self.service.tell(
                ref, CloseSession(session=id, expiry_s=self._new_expiry_s, sent_below=sent_below)
            )

    def send(self, data: bytes) -> None:
        """Send bytes, if the connection is open."""
        if self._connection is not None:
            self._connection.send(data)

    def reason(self, sentence: str) -> packets.Properties:
        """The property with a sentence, if the client wants it and takes a packet with it."""
        size_bytes = len(sentence.encode())
        return {"reason_string": sentence} if size_bytes <= self._reason_bytes_max else packets.NONE

    def disconnect(self, code: int, reason: str, server: str | None = None) -> None:
        """End the connection, and say why where the version has a packet for that. The client shall use `server`."""
        if not self.is_open or self._connection is None:
            return
        if self.client is not None and code not in _ORDINARY_ENDS:
            self.note_end(self.client, code, reason)
        farewell = self._farewell(code, reason, server)
        if len(farewell) <= self.outgoing.packet_bytes_max:
            self.send(farewell)
        self._connection.close(reason)

    def note_end(self, client: Client, code: int, reason: str) -> None:
        service = self.service
        now_s = service.system.clock.monotonic_s()
        service.ends.note(client.application, self.client_id, self.address, code, reason, now_s)

    def _farewell(self, code: int, reason: str, server: str | None = None) -> bytes:
        """The last packet of the server."""
        if self._is_connected:
            if self.version != V5:
                return b""
            return disconnect(V5, said_in(packets.DISCONNECT, code), self.reason(reason))
        if self._handshake is None and code != packets.UNSUPPORTED_PROTOCOL_VERSION:
            return b""
        reference = {} if server is None else {"server_reference": server}
        properties = {**self.reason(reason), **reference}
        return connack(self.version, said_in(packets.CONNACK, code), properties=properties)

    # Packets.

    def _go_on(self) -> None:
        """Handle the packets that have come, as far as that may be now. While some are held, nothing is read."""
        held, service = self._held, self.service
        while held and self.is_open:
            if self._is_connected:
                if service.is_overloaded:
                    service.wait(self)
                    break
                if type(held[0]) is Subscribe and self._waits_for_own():
                    break
                self._handle_connected(held.popleft())
            elif self._handshake is None:
                self._begin(held.popleft())  # type: ignore[arg-type] # the reader takes no other packet first
            else:
                break
        if self._connection is None:
            return
        if held:
            self._connection.pause()
            return
        self._held = _NOTHING_HELD
        if self._broken is not None:
            self.disconnect(self._broken.code, self._broken.sentence)
        else:
            self._connection.resume()

    def _waits_for_own(self) -> bool:
        """Whether what the client has published before a SUBSCRIBE is not on disk yet. It would come as a new message,
        and not as a retained one."""
        assert self._publishing is not None
        turn = self._publishing.under_way
        if turn is not None:
            self.acknowledgements.wait()
            self.service.system.when_stored(turn, self._own_stored)
        return turn is not None

    def _own_stored(self, _failure: DomainError | None) -> None:
        if self.is_open:
            self.go_on()

    def _handle_connected(self, packet: Packet) -> None:
        assert self._publishing is not None
        assert self._subscribing is not None
        self._from_client += 1
        kind = type(packet)
        try:
            if kind is Publish:
                self._publishing.publish(packet)  # type: ignore[arg-type]
            elif kind is Ack:
                self._acknowledged(packet)  # type: ignore[arg-type]
            elif kind is PingReq:
                self.send(PINGRESP)
            elif kind is Subscribe:
                self._subscribing.subscribe(packet)  # type: ignore[arg-type]
            elif kind is Unsubscribe:
                self._subscribing.unsubscribe(packet)  # type: ignore[arg-type]
            elif kind is Disconnect:
                self._said_goodbye(packet)  # type: ignore[arg-type]
            else:
                self.disconnect(packets.PROTOCOL_ERROR, f"{kind.__name__.upper()} does not belong here")
        except TooFast as excess:
            self._ban(str(excess))
        except DomainError as refusal:
            self.disconnect(code_of(refusal), refusal.message)
        except Malformed as problem:
            self.disconnect(problem.code, problem.sentence)

    def _acknowledged(self, packet: Ack) -> None:
        """PUBACK, PUBREC, PUBREL or PUBCOMP of the client."""
        assert self._publishing is not None
        outgoing = self.outgoing
        if packet.type == packets.PUBREL:
            self._publishing.release(packet.packet_id)
            return
        if packet.type == packets.PUBREC and packet.code < packets.UNSPECIFIED_ERROR:
            is_known = outgoing.is_under_way(packet.packet_id)
            if outgoing.receive(packet.packet_id):
                code = packets.SUCCESS if is_known else packets.PACKET_IDENTIFIER_NOT_FOUND
                self.acknowledgements.at_once(ack(self.version, packets.PUBREL, packet.packet_id, code))
            return
        if outgoing.acknowledge(packet.type, packet.packet_id):
            self.pump()

    def _said_goodbye(self, packet: Disconnect) -> None:
        expiry_s = packet.properties.get("session_expiry_interval")
        if expiry_s is not None:
            if self.session is None and expiry_s:
                self.disconnect(
                    packets.PROTOCOL_ERROR, "a session that ends with its connection cannot last longer"
                )
                return
            self._new_expiry_s = min(expiry_s, self.limits.mqtt_session_s_max)
        self._publishes_will = packet.code == packets.DISCONNECT_WITH_WILL_MESSAGE
        if self._connection is not None:
            self._connection.close("the client has disconnected")

    def _ban(self, reason: str) -> None:
        client, service = self.client, self.service
        assert client is not None
        ban_s = service.client_limits.ban(client.application, client.key, service.system.clock.monotonic_s())
        self.disconnect(packets.MESSAGE_RATE_TOO_HIGH, f"{reason}; connect again in {ban_s:g} s")

    # CONNECT.

    def _begin(self, connect: Connect) -> None:
        """Handle a CONNECT. What follows waits until its CONNACK."""
        self.version, self._keep_alive_s = connect.version, connect.keep_alive_s
        self.client_id = connect.client_id or f"auto-{secrets.token_hex(12)}"
        given = connect.properties
        if given.get("request_problem_information", True):
            largest = given.get("maximum_packet_size", _REASON_BYTES_MAX + _REASON_ROOM)
            self._reason_bytes_max = min(_REASON_BYTES_MAX, largest - _REASON_ROOM)
        self.outgoing = self._outgoing_for(given)
        self._handshake = Handshake(self, connect, self._peer)
        self._handshake.begin()

    # For the handshake.

    def let_in(self, client: Client) -> None:
        system, application = self.service.system, client.application
        system.moves.check(application)
        if client.device is None:
            owner = system.component(Owners).of(application)
            system.lasting.take_at_once(owner)
            self._owner = owner
        self.client, self.key = client, client.key
        self.connected_ms = system.clock.wall_ms()
        self._work = _work_of(application)
        self._publishing, self._subscribing = Publishing(self, client), Subscribing(self, client)
        system.component(Broker).connect(application, self)
        self._watch(client)

    def go_on_with(self, ref: Ref, opened: OpenedSession) -> list[str]:
        assert self._subscribing is not None
        record = opened.record
        self.session, self.queue = record.id, SessionQueue(self, ref, record)
        return self._subscribing.resume(record.filters) if opened.is_present else []

    def open_link(self, client: Client, device: bytes, stored: Callable[[DomainError | None], None]) -> None:
        self._link, _ = self.service.system.component(Links).open(
            client.application,
            device,
            DeviceLink(self),
            stored,
            address=self.address,
            origin=client.origin,
        )

    def welcome(self, answer: bytes, received: set[int]) -> None:
        assert self._connection is not None
        assert self._publishing is not None
        self._is_connected, self._handshake = True, None
        if received:
            self._publishing.resume(received)
        self._connection.established()
        self.send(answer)
        self.service.connected += 1
        self.pump()
        self.go_on()

    def _outgoing_for(self, given: packets.Properties) -> OutgoingMessages:
        limits = self.limits
        return OutgoingMessages(
            self,
            in_flight_max=min(given.get("receive_maximum", 65_535), limits.mqtt_in_flight_messages_max),
            packet_bytes_max=given.get("maximum_packet_size", 1 << 28),
            aliases_max=min(given.get("topic_alias_maximum", 0), limits.mqtt_topic_aliases_max),
        )

    def wait_s(self, topic: str) -> float:
        """Count a message to the client in the rates of a topic: 0, or how long it has to wait."""
        client, service = self.client, self.service
        assert client is not None
        now_s = service.system.clock.monotonic_s()
        return service.client_limits.wait_s(client.application, client.key, topic, now_s)

    def flush_later(self, after_s: float) -> None:
        """Send on what waits after a time."""
        self.service.flush_later(self, after_s)

    @property
    def client_takes(self) -> bool:
        """Whether the client has taken all that it was sent before."""
        return self._connection is not None and self._connection.has_room

    # The will, and what ends the login.

    def _set_end(self) -> None:
        """Say when the connection ends unless something comes: after 1.5 times the keep alive, or with its token."""
        connection = self._connection
        if not self._is_connected or connection is None:
            return
        silent_at_s = math.inf
        if self._keep_alive_s:
            silent_at_s = trio.current_time() + _GRACE * self._keep_alive_s
        if silent_at_s < self._token_ends_s:
            if not self._silence:
                self._silence = self._farewell(packets.KEEP_ALIVE_TIMEOUT, _SILENT)
            connection.close_at(silent_at_s, _SILENT, self._silence)
        elif self._token_ends_s < math.inf:
            last = self._farewell(packets.NOT_AUTHORIZED, _LOGIN_OVER)
            connection.close_at(self._token_ends_s, _LOGIN_OVER, last)

    def _watch(self, client: Client) -> None:
        """End the connection when the login does."""
        system, principal = self.service.system, client.principal
        system.revocations.hold(principal)
        principal.watchers[self._check_again] = None
        if principal.expires_ms is not None:
            left_ms = principal.expires_ms - system.clock.wall_ms()
            self._token_ends_s = trio.current_time() + max(0, left_ms) / 1000

    def _unwatch(self, client: Client) -> None:
        client.principal.watchers.pop(self._check_again, None)
        self.service.system.revocations.release(client.principal)

    def _check_again(self) -> None:
        """Something has changed that the login depends on."""
        client = self.client
        if client is None or not self.is_open:
            return
        found = still_allowed(client)
        if isinstance(found, Overloaded):  # nobody can say just now whether the login is over
            self.disconnect(code_of(found), found.message)
            return
        if isinstance(found, DomainError):
            self._publishes_will = False
            self.disconnect(packets.NOT_AUTHORIZED, found.message)
            return
        self._unwatch(client)
        self.client = found
        self._watch(found)
        assert self._publishing is not None
        assert self._subscribing is not None
        self._publishing.check_again(found)
        self._subscribing.check_again(found)

    # For the broker.

    def deliver(self, publication: Publication, qos: int, ids: tuple[int, ...], *, retain: bool) -> None:
        """A client that goes on with its session is subscribed before its CONNACK, and misses what is not kept."""
        if self._is_connected:
            self.send_message(Outgoing(publication, qos, ids, retain, None))

    def send_message(self, message: Outgoing) -> None:
        """Send a message, or let it wait; too many that wait end the connection."""
        if self.is_open and not self.outgoing.add(message):
            self.disconnect(packets.QUOTA_EXCEEDED, "too many messages wait that the client has not taken")

    def change_session(
        self, message: Message, answer: Callable[[], bytes], then: Callable[[], None] | None = None
    ) -> None:
        """Take a turn of the session that outlives the connection, answer when its writes are on disk, and call `then`;
        if they cannot be stored, the connection ends. Raises `DomainError` if the turn is refused."""
        client = self.client
        assert client is not None
        turn = self.service.system.begin(Ref(MqttSessionActor.kind, client.application, client.key), message)
        assert turn is not None, "a session has no turn that waits"
        self.acknowledgements.after(turn, partial(self._changed, answer), then)

    def _changed(self, answer: Callable[[], bytes], failure: DomainError | None) -> bytes:
        if failure is None:
            return answer()
        self.disconnect(code_of(failure), failure.message)
        return b""

    def may_receive(self, topic: str) -> bool:
        """Whether the client may still have messages of a topic, which were queued when it was allowed to."""
        return self.client is not None and self.client.may_subscribe(topic)

    def offer(self, queued: Queued, publication: Publication) -> None:
        if self.queue is not None and self._is_connected:
            self.queue.offer(queued, publication)

    def take_shared(self) -> None:
        if self._is_connected and self._subscribing is not None:
            self._subscribing.take_shared()

    def has_room(self) -> bool:
        return self._is_connected and self.outgoing.has_room

    def end(self, why: ClientEnd | LinkEnd) -> None:
        code = packets.ADMINISTRATIVE_ACTION
        if why in (ClientEnd.TAKEN_OVER, LinkEnd.SUPERSEDED):
            code = packets.SESSION_TAKEN_OVER
        elif why is LinkEnd.FAILED:
            code = packets.UNSPECIFIED_ERROR
        elif why in (ClientEnd.MOVED, LinkEnd.MOVED):
            code = packets.SERVER_SHUTTING_DOWN
        self.disconnect(code, why.value)

    # For those who ask who is connected.

    @property
    def address(self) -> str | None:
        """The network address of the client."""
        return None if self._peer.address is None else self._peer.address[0]

    @property
    def transport(self) -> Literal["tcp", "tls", "websocket"]:
        """What carries the bytes."""
        if self._peer.websocket:
            return "websocket"
        return "tls" if self._peer.tls else "tcp"

    @property
    def refused(self) -> int:
        """Messages and subscriptions of the client that were refused."""
        return sum(each.refused for each in (self._publishing, self._subscribing) if each is not None)

    @property
    def last_refusal(self) -> Refusal | None:
        """Why the last of them was."""
        found = [each.last_refusal for each in (self._publishing, self._subscribing) if each is not None]
        return max((each for each in found if each is not None), key=lambda each: each.time_ms, default=None)

    # For the link.

    @property
    def takes_commands(self) -> bool:
        """Whether the client is subscribed to commands and has room for one."""
        return self._subscribing is not None and self._subscribing.takes_commands and self.has_room()

    def deliver_commands(self, commands: Sequence[LinkCommand]) -> None:
        """Send commands of the client's device or its peripherals."""
        assert self._subscribing is not None
        self._subscribing.deliver_commands(commands)

    @property
    def counts(self) -> tuple[int, int]:
        """The packets from the client, and the messages to it."""
        return self._from_client, self.outgoing.sent

    def pump_commands(self) -> None:
        """The client may have room for commands that wait."""
        if self._link is not None and self.takes_commands:
            self.service.system.component(Links).pump(self._link)

    def offer_again(self, devices: Sequence[bytes]) -> None:
        """The client has subscribed to the commands of these devices, some of which it was not sent."""
        link = self._link
        if link is not None:
            for device in devices:
                link.lose(device)
                link.behind[device] = None


class DeviceLink:
    """The link of a client that is a device (`actors/fleet/devices/commands/links.py`)."""

    __slots__ = ("_session",)

    def __init__(self, session: MqttSession) -> None:
        self._session = session

    def deliver(self, commands: Sequence[LinkCommand]) -> None:
        self._session.deliver_commands(commands)

    def has_room(self) -> bool:
        return self._session.takes_commands

    def end(self, why: LinkEnd) -> None:
        self._session.end(why)

    def counts(self) -> tuple[int, int]:
        return self._session.counts
