"""One connection of an MQTT client, from its CONNECT to its end.

Owns the packets of the connection, and what may end it. Does not own what the client remembers (`mqtt_client.py`).
The file is long because a connection has both sides of each exchange.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any, Final

import trio

from tests.simulation.model import Broken
from tests.simulation.mqtt_client import FILTERS, Message, Mqtt, MqttClient
from tests.simulation.site import Site
from tests.simulation.wires import CUTS, Lost
from tests.simulation.world import World
from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import writer
from trunkline.http.mqtt.packets import V5
from trunkline.http.mqtt.reader import PacketReader

KEEP_ALIVE_S: Final = 30
_PING_S: Final = 20.0
_ANSWER_S: Final = 60.0
_EXPIRY: Final = {"session_expiry_interval": 500_000}
_FAILED: Final = frozenset(
    {p.UNSPECIFIED_ERROR, p.QUOTA_EXCEEDED, p.SERVER_BUSY, p.IMPLEMENTATION_SPECIFIC_ERROR}
)


class MqttConnection:
    """A connection. It `is_welcome` from the CONNACK to its end."""

    def __init__(self, world: World, client: MqttClient, chance: Random, *, healthy: bool = False) -> None:
        self.world = world
        self.life = world.life
        self.client = client
        self.mqtt: Mqtt = world.of(Mqtt)
        self.wire = world.life.network.mqtt.connect()
        self.is_welcome = False
        self.is_over = False
        self.was_welcome = False
        self.owes: set[int] = set()  # it loses messages with these QoS until the client comes back
        self.is_superseded = False  # another connection of the client has come, or was there
        self.is_left_behind = False  # the client uses a newer one, and waits for the end of this
        self.before: list[MqttConnection] = []  # older ones: the client waits until they are done
        self.will: Message | None = None
        self._chance = chance
        self._healthy = healthy
        self._clean = (chance.random() < 0.1 and not healthy) or client.has_forgotten
        self._has_left = self._said_goodbye = False
        self._under_way: dict[Any, Any] = {}
        self._failed = world.failed_commits
        self._slept_s = world.virtual.slept_s
        self._began_s = world.virtual.now_s
        self._reader = PacketReader(1 << 20, client_version=client.version)
        self._sends = trio.Lock()
        self._code: int | None = None
        self._new: set[str] = set()  # what came that was not sent before
        self.title = f"MQTT of {client.id}"

    @property
    def waits_for(self) -> list[Any]:
        return list(self._under_way.values())

    async def live(self) -> None:
        """Connect, and take what comes until the connection ends."""
        wire, chance = self.wire, self._chance
        if not self._healthy and chance.random() < 0.5:
            pipe = chance.choice((wire.to_server, wire.to_client))
            pipe.cut_after(chance.choice((20, 150, 600, 2_000)) + chance.randrange(60), chance.choice(CUTS))
        try:
            with suppress(Lost):
                await self._exchange()
        finally:
            self._end()
            self._resolve_will()
        if self.life.over:
            return
        if wire.was_cut:
            self.world.reached["an MQTT connection was cut"] += 1
        elif not self._has_left:
            self._check_end()

    def leave_behind(self) -> None:
        """The client uses a newer connection from now on."""
        self.is_superseded = self.is_left_behind = True
        self.is_welcome = False
        self._forget_answers()

    async def _exchange(self) -> None:
        with trio.move_on_after(_ANSWER_S):
            while not all(each.wire.socket.is_closed for each in self.before):  # noqa: ASYNC110 - it has no event
                await trio.sleep(0.05)
        await self._send_connect()
        waited_s = 0.0
        while True:
            data: bytes | None = None
            slept_s = self.world.virtual.slept_s
            with trio.move_on_after(_PING_S):
                data = await self.wire.receive()
            if self.life.over:
                return
            if data is None:
                waited_s += _PING_S if self.world.virtual.slept_s == slept_s else 0
                if waited_s > _ANSWER_S:
                    self._give_up()
                    return
                if self.was_welcome and not self._has_left:
                    await self.wire.send(writer.PINGREQ)
                continue
            waited_s = 0.0
            if not data:
                return
            for packet in self._reader.feed(data):
                if not self.is_left_behind:
                    await self._take(packet)
                elif isinstance(packet, p.Disconnect):
                    self._code = packet.code

    @property
    def _was_away(self) -> bool:
        """Whether a process that serves the connection was away."""
        return self.life.was_away(self.wire, self._began_s, with_home=True)

    def _give_up(self) -> None:
        wire = self.wire
        slept = self.world.virtual.slept_s > self._slept_s
        if not (wire.was_cut or wire.has_stalled or slept or self._has_left or self._was_away):
            raise Broken(f"{self.title}: nothing came for {_ANSWER_S:.0f} seconds")
        self._has_left = True
        wire.abort()

    # Connecting.

    async def _send_connect(self) -> None:
        client, chance, v5 = self.client, self._chance, self.client.version == V5
        self.mqtt.changes(client)
        self._before = set(client.session)
        client.session = self._before | ({True, False} if self._clean else {True})
        if self._clean:
            client.has_forgotten = True
            client.session_lost(self.world)
            client.unsure.update(FILTERS)
        will = None
        if chance.random() < 0.7:
            self.will = self.mqtt.new(self.world, client, chance)
            self.will.qos = max(1, self.will.qos)
            self.mqtt.open[self.will.name] = self.will
            will = p.Will(self.will.topic, self.will.name.encode(), self.will.qos)
        properties = {**_EXPIRY, "receive_maximum": chance.choice((1, 3, 100))} if v5 else {}
        connect = p.Connect(
            client.version,
            client.id,
            self._clean,
            KEEP_ALIVE_S,
            will,
            f"token/{self.world.of(Site).id}",
            self.world.token.encode(),
            properties,
        )
        self._begin("connect", connect)
        await self.wire.send(writer.connect(connect))

    async def _welcomed(self, packet: p.ConnAck) -> None:
        client, world = self.client, self.world
        self._done("connect")
        world.note(f"{self.title}: CONNACK {packet.code} {packet.session_present}")
        if packet.code:
            self._code = packet.code
            return
        async with self._sends:
            if self._clean and packet.session_present:
                raise Broken(f"{self.title}: the session is there after a clean start")
            if not self._clean and packet.session_present not in self._before:
                found = packet.session_present
                raise Broken(f"{self.title}: session present is {found}, it can only be {self._before}")
            client.has_forgotten = False
            if not packet.session_present:
                client.session_lost(world)
            client.session = {not self._clean or client.version == V5}
            self.is_welcome = self.was_welcome = True
            for message in list(client.unanswered):
                message.again(world)
                await self._send_message(message)
        if client.session == {False}:
            await self.leave(goodbye=True)

    # What the client does.

    async def publish(self, chance: Random) -> None:
        """Publish a message."""
        async with self._sends:
            if self.is_welcome and not self._has_left and len(self.client.unanswered) < 6:
                message = self.mqtt.new(self.world, self.client, chance)
                self.mqtt.published(message)
                if message.qos:
                    message.packet_id = self.client.next_id()
                    self.client.unanswered.append(message)
                with suppress(Lost):
                    await self._send_message(message)

    async def _send_message(self, message: Message) -> None:
        message.life, message.failed = self.life, self.world.failed_commits
        if message.qos:
            self._begin(message.packet_id, message)
        if message.is_released:
            await self.wire.send(writer.ack(self.client.version, p.PUBREL, message.packet_id))
            return
        packet = p.Publish(
            message.topic,
            message.name.encode(),
            message.qos,
            dup=message.was_sent,
            packet_id=message.packet_id,
        )
        message.was_sent = bool(message.qos)
        await self.wire.send(writer.publish(self.client.version, packet))

    async def subscribe(self, chance: Random) -> None:
        """Subscribe to a filter, or seldom unsubscribe; one after the other."""
        client = self.client
        if not self.is_welcome or self._has_left or any(type(each) is tuple for each in self._under_way):
            return
        filter, qos = chance.choice(FILTERS), chance.choice((1, 2, 2))
        self.mqtt.changes(client)
        client.filters.pop(filter, None)
        client.unsure.add(filter)
        packet_id = client.next_id()
        with suppress(Lost):
            if chance.random() < 0.2:
                self._begin(("un", packet_id), filter)
                await self.wire.send(writer.unsubscribe(client.version, p.Unsubscribe(packet_id, [filter])))
            else:
                self._begin(("sub", packet_id), filter)
                await self.wire.send(
                    writer.subscribe(client.version, p.Subscribe(packet_id, [p.Filter(filter, qos)]))
                )

    async def leave(self, *, goodbye: bool) -> None:
        """End the connection, with a DISCONNECT or without."""
        if not goodbye:
            self._has_left = True
            self.wire.abort()
            return
        if not self._has_left:
            self._has_left = self._said_goodbye = True
            with suppress(Lost):
                await self.wire.send(writer.disconnect(self.client.version))

    # What comes.

    async def _take(self, packet: p.Packet) -> None:
        match packet:
            case p.ConnAck():
                await self._welcomed(packet)
            case p.Publish():
                await self._came(packet)
            case p.Ack():
                await self._acknowledged(packet)
            case p.SubAck():
                self._subscribed(packet)
            case p.UnsubAck():
                filter = self._done(("un", packet.packet_id))
                if not packet.codes or packet.codes[0] < p.UNSPECIFIED_ERROR:
                    self.client.unsure.discard(filter)
            case p.Disconnect():
                self._code = packet.code

    def _subscribed(self, packet: p.SubAck) -> None:
        client = self.client
        filter, (code,) = self._done(("sub", packet.packet_id)), packet.codes
        self.world.note(f"{self.title}: SUBACK {filter} {code}")
        if code < p.UNSPECIFIED_ERROR:
            client.unsure.discard(filter)
            client.filters[filter] = code
        elif not self._may_fail:
            raise Broken(f"{self.title}: the subscription to {filter} is refused with {code}")

    async def _came(self, packet: p.Publish) -> None:
        client, name = self.client, packet.payload.decode()
        self.world.note(f"{self.title}: {name} with QoS {packet.qos}{' again' if packet.dup else ''}")
        self.world.reached["a message came again"] += packet.dup
        self.mqtt.arrives(client, name, packet.qos)
        if packet.qos and self._loses(packet.qos):
            return
        if packet.qos < 2 or packet.packet_id not in client.received:
            self.mqtt.came(client, name, packet.topic, packet.qos, None if packet.dup else self._new)
        if packet.qos == 2:
            client.received.add(packet.packet_id)
        if packet.qos:
            kind = p.PUBACK if packet.qos == 1 else p.PUBREC
            await self.wire.send(writer.ack(client.version, kind, packet.packet_id))

    def _loses(self, qos: int) -> bool:
        if not self._healthy and self._chance.random() < 0.05:
            self.owes.add(qos)
        return qos in self.owes

    async def _acknowledged(self, packet: p.Ack) -> None:
        client, id = self.client, packet.packet_id
        if packet.type == p.PUBREL:
            client.received.discard(id)
            if not self._loses(2):
                await self.wire.send(writer.ack(client.version, p.PUBCOMP, id))
            return
        message = self._under_way.get(id)
        if not isinstance(message, Message):
            raise Broken(f"{self.title}: {packet} acknowledges nothing")
        failed = packet.code >= p.UNSPECIFIED_ERROR
        self.world.note(f"{self.title}: {p.NAMES[packet.type]} {message.name} {packet.code}")
        awaited = p.PUBACK if message.qos == 1 else p.PUBCOMP if message.is_released else p.PUBREC
        if packet.type != awaited and not (message.is_released and packet.type == p.PUBREC):
            raise Broken(f"{self.title}: {packet} has come for {message.name}, which awaits another")
        if packet.type == p.PUBCOMP or failed or message.qos == 1:
            self._done(id)
            client.unanswered.remove(message)
        if failed and packet.type != p.PUBCOMP:
            self._refused(message, packet.code)
        elif packet.type != p.PUBCOMP and not message.is_released:
            lacks = message.listeners and packet.code == p.NO_MATCHING_SUBSCRIBERS
            if lacks and not self.mqtt.is_excused(message):
                raise Broken(f"{self.title}: {message.name} is said to have no subscribers")
            message.change.stored()
            self.mqtt.over(message)
        if packet.type == p.PUBREC and not failed:
            message.is_released = True
            await self.wire.send(writer.ack(client.version, p.PUBREL, id))

    @property
    def _may_fail(self) -> bool:
        """Whether something could not be stored, or no machine could be sure of it, since the connection began."""
        failed = self.world.failed_commits > self._failed or self.world.quota is not None
        return failed or self.life.was_unsure(self._began_s)

    def _refused(self, message: Message, code: int) -> None:
        if code not in _FAILED or not self._may_fail:
            raise Broken(f"{self.title}: {message.name} is refused with {code} without a reason")
        self.world.reached["a message was refused for a failed commit"] += 1
        (message.change.refused if message.qos == 2 else message.change.over)()
        self.mqtt.over(message)

    # Answers that are waited for.

    def _begin(self, key: Any, what: Any) -> None:
        if key not in self._under_way:
            self._under_way[key] = what
            self.world.open_calls += 1

    def _done(self, key: Any) -> Any:
        if key not in self._under_way:
            raise Broken(f"{self.title}: an answer came to {key}, which was not asked")
        self.world.open_calls -= 1
        return self._under_way.pop(key)

    # The end.

    def _end(self) -> None:
        self.is_over, self.is_welcome = True, False
        self._forget_answers()
        self.wire.close()

    def _forget_answers(self) -> None:
        """Nobody waits for answers any more."""
        world = self.world
        if self.life is world.life:
            world.open_calls -= len(self._under_way)
        for what in self._under_way.values():
            if isinstance(what, Message):
                world.unanswered.append(what.change)
        self._under_way.clear()

    def _resolve_will(self) -> None:
        """The will is published if the connection has ended without a goodbye."""
        if self.will is None:
            return
        self.mqtt.published(self.will)
        self.world.unanswered.append(self.will.change)
        if self.is_superseded or not self.was_welcome or self._said_goodbye:
            return  # it may be published or not
        self.world.reached["a will was to be published"] += 1
        self.will.change.stored()  # later, where it could not be stored at once
        known = self.mqtt.over if self.life.over else self.mqtt.wills.append  # a start is before its clients
        known(self.will)

    def _check_end(self) -> None:
        """The server has ended the connection: there must be a reason."""
        failed = self.world.failed_commits > self._failed or self.world.quota is not None
        self.world.note(f"{self.title}: ended {self._code}")
        stalled = self.wire.has_stalled or self.world.virtual.slept_s > self._slept_s
        was_moved = self.life.home_was_moved(self._began_s)
        # A client that waits for messages with QoS 0 answers none, and pings only where none comes.
        was_silent = trio.current_time() - self.wire.sent_s >= 1.5 * KEEP_ALIVE_S
        reasons: dict[int | None, bool] = {
            None: failed or stalled or self.is_superseded or self._was_away,
            p.KEEP_ALIVE_TIMEOUT: stalled or was_silent,
            p.SESSION_TAKEN_OVER: self.is_superseded,
            **dict.fromkeys((*_FAILED, p.SERVER_UNAVAILABLE, 3), failed or was_moved),
            p.SERVER_SHUTTING_DOWN: was_moved,
        }
        if not reasons.get(self._code):
            raise Broken(f"{self.title}: the server has ended it with {self._code}")
        self.world.reached["an MQTT connection was taken over"] += self._code == p.SESSION_TAKEN_OVER
