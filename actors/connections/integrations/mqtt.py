"""A session with an MQTT broker, version 3.1.1 or 5.

Owns the bytes, and leaves the protocol to paho-mqtt, which reads and writes packets, answers them, and keeps the
session alive. It is given a socket that lies in memory, and every packet whole, so nothing blocks and no packet is too
large. Messages are subscribed with QoS 1 and acknowledged when they are on disk, so each is handled at least once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import trio
from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from trunkline.actors.connections.integrations.session import Arrived, Failed, Unsent

_KEEP_ALIVE_S: Final = 30
_READ_BYTES: Final = 65_536
_PACKETS_PER_TURN: Final = 32
"""Some of 50 us each; then it is the turn of others."""
_IN_FLIGHT_MAX: Final = 100
"""Messages on their way, in each direction, that are not acknowledged."""
_TURN_MAX: Final = 256
"""Messages that are handed over at once: some milliseconds of work."""
_PUBLISH: Final = 3
_REFUSED_MIN: Final = 128
"""The smallest code by which a broker refuses."""
_CLOSE_S: Final = 1


class Account(msgspec.Struct, frozen=True):
    """Who we are for the broker, and how the session begins."""

    client_id: str
    username: str | None
    password: str | None
    clean: bool
    version: str
    topics: list[str]


class MqttSession:
    """An open session. Made by `open_mqtt`."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        account: Account,
        *,
        bytes_max: int,
        timeout_s: float,
        now_ms: Callable[[], int],
    ) -> None:
        self.connected: dict[str, Any] = {"type": "connect", "topics": account.topics}
        self.heard_ms = now_ms()
        self._now_ms = now_ms
        self._timeout_s = timeout_s
        self._stream = stream
        self._frames = _Frames(bytes_max)
        self._wire = _Wire()
        self._client = _client_of(account, self._wire)
        self._topics = account.topics
        self._arrived: list[Arrived] = []
        self._sent: dict[int, _Sent] = {}
        self._refused = ""
        self._is_logged_in = False
        self._is_ready = False
        self._sending = trio.Lock()
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_message = self._on_message
        self._client.on_publish = self._on_publish
        self._client.on_disconnect = self._on_disconnect
        self._begin(account, bytes_max)

    def _begin(self, account: Account, bytes_max: int) -> None:
        if account.version == "5":
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.ReceiveMaximum = _IN_FLIGHT_MAX
            properties.MaximumPacketSize = bytes_max
            if not account.clean:
                properties.SessionExpiryInterval = 0xFFFFFFFF
            self._client.connect(
                "broker", keepalive=_KEEP_ALIVE_S, clean_start=account.clean, properties=properties
            )
        else:
            self._client.connect("broker", keepalive=_KEEP_ALIVE_S)

    # The session.

    async def open(self, nursery: trio.Nursery) -> None:
        """Log in, subscribe, and keep the session alive in the nursery. Raises `Failed`.

        Messages of an earlier session end it early: a broker may confirm the topics only when these are acknowledged.
        """
        while not (self._is_ready or (self._is_logged_in and self._arrived)):
            await self._read()
        nursery.start_soon(self._keep_alive)

    async def receive(self) -> list[Arrived]:
        while not self._arrived:
            await self._read()
        arrived, self._arrived = self._arrived[:_TURN_MAX], self._arrived[_TURN_MAX:]
        return arrived

    async def acknowledge(self, arrived: list[Arrived]) -> None:
        for each in arrived:
            if each.number:
                self._client.ack(each.number, 1)
        await self._flush()

    async def publish(self, topic: str, message: str) -> None:
        if len(self._sent) >= _IN_FLIGHT_MAX:
            raise Unsent(
                f"{_IN_FLIGHT_MAX} messages wait for the broker, which is the limit; try again later."
            )
        try:
            mid = self._client.publish(topic, message, qos=1).mid
        except ValueError as error:
            raise Unsent(f"{error}.") from None
        sent = self._sent[mid] = _Sent()
        with trio.move_on_after(self._timeout_s):
            try:
                await self._flush()
                await sent.over.wait()
            except Failed as failed:
                sent.refusal = str(failed)
            finally:
                del self._sent[mid]
        if sent.refusal is not None:
            raise Unsent(f"{sent.refusal}.")

    async def send(self, content: bytes, *, is_text: bool) -> None:  # noqa: ARG002
        raise Unsent("this integration is an MQTT broker; publish to a topic with MqttMessageNode.")

    async def close(self) -> None:
        for sent in self._sent.values():
            sent.end("the connection has ended before the broker took the message")
        with trio.move_on_after(_CLOSE_S, shield=True):
            self._client.disconnect()
            try:
                await self._flush()
            except Failed:
                return
            finally:
                await trio.aclose_forcefully(self._stream)

    # Bytes.

    async def _read(self) -> None:
        """Wait for bytes, and let paho handle the packets that are complete."""
        await self._flush()
        try:
            data = await self._stream.receive_some(_READ_BYTES)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            data = b""
        if not data:
            raise Failed("Connection Lost")
        self.heard_ms = self._now_ms()
        try:
            for number, packet in enumerate(self._frames.feed(data), 1):
                if number % _PACKETS_PER_TURN == 0:
                    await trio.lowlevel.checkpoint()
                self._wire.inbox += packet
                while self._wire.inbox and not self._wire.is_closed:
                    self._client.loop_read()
        except Failed:
            raise
        except Exception as error:  # noqa: BLE001 - what paho makes of a packet that is none
            raise Failed(f"The broker sent what is not valid MQTT ({type(error).__name__})") from None
        if self._wire.is_closed:
            raise Failed(self._refused or "The broker sent what is not valid MQTT")
        await self._flush()

    async def _flush(self) -> None:
        """Send what paho has written."""
        async with self._sending:
            self._client.loop_write()
            while self._wire.outbox:
                data = bytes(self._wire.outbox)
                self._wire.outbox.clear()
                try:
                    await self._stream.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    raise Failed("Connection Lost") from None
                except trio.Cancelled:  # what comes next would follow a part of a packet
                    await trio.aclose_forcefully(self._stream)
                    raise

    async def _keep_alive(self) -> None:
        """Send pings; end the connection if there is no answer, so that `receive` fails."""
        while not self._wire.is_closed:
            await trio.sleep(_KEEP_ALIVE_S / 4)
            self._client.loop_misc()
            try:
                await self._flush()
            except Failed:
                return
        await trio.aclose_forcefully(self._stream)

    # What paho tells.

    def _on_connect(
        self, client: paho.Client, _data: Any, _flags: Any, reason: ReasonCode, _properties: Any
    ) -> None:
        self._is_logged_in = not reason.is_failure
        if reason.is_failure:
            self._refused = str(reason)
            self._wire.close()
        elif not self._topics:
            self._is_ready = True
        elif client.protocol == MQTTProtocolVersion.MQTTv5:
            # What workflows publish does not come back to them.
            client.subscribe(
                [
                    (topic, SubscribeOptions(qos=1, noLocal=not topic.startswith("$share/")))
                    for topic in self._topics
                ]
            )
        else:
            client.subscribe([(topic, 1) for topic in self._topics])

    def _on_subscribe(
        self, _client: Any, _data: Any, _mid: int, reasons: list[ReasonCode], _properties: Any
    ) -> None:
        refused = [
            topic
            for topic, reason in zip(self._topics, reasons, strict=False)
            if reason.value >= _REFUSED_MIN
        ]
        if refused:
            self._refused = f"The broker refuses the topic {refused[0]}"
            self._wire.close()
        self._is_ready = not refused

    def _on_message(self, _client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        topic, text = message.topic, message.payload.decode("utf-8", "replace")
        data = {"type": "message", "message": text, "topic": topic}
        self._arrived.append(Arrived(data, topic, text, message.mid if message.qos else 0))

    def _on_publish(self, _client: Any, _data: Any, mid: int, reason: ReasonCode, _properties: Any) -> None:
        sent = self._sent.get(mid)
        if sent is not None:
            sent.end(f"the broker refuses the message ({reason})" if reason.is_failure else None)

    def _on_disconnect(
        self, _client: Any, _data: Any, _flags: Any, reason: ReasonCode, _properties: Any
    ) -> None:
        self._refused = self._refused or str(reason)
        self._wire.close()


class _Sent:
    """A message on its way. `refusal` says why it was not taken, None if it was."""

    __slots__ = ("over", "refusal")

    def __init__(self) -> None:
        self.over = trio.Event()
        self.refusal: str | None = "the broker did not take the message in time"

    def end(self, refusal: str | None) -> None:
        if not self.over.is_set():
            self.refusal = refusal
            self.over.set()


class _Wire:
    """The socket of paho: what was received, and what is to be sent."""

    def __init__(self) -> None:
        self.inbox = bytearray()
        self.outbox = bytearray()
        self.is_closed = False

    def recv(self, buffer_size: int) -> bytes:
        if not self.inbox:
            raise BlockingIOError
        data = bytes(self.inbox[:buffer_size])
        del self.inbox[:buffer_size]
        return data

    def send(self, buffer: bytes | bytearray) -> int:
        self.outbox += buffer
        return len(buffer)

    def close(self) -> None:
        self.is_closed = True

    def fileno(self) -> int:
        return -1

    def setblocking(self, flag: bool) -> None:
        pass


class _Client(paho.Client):
    """paho with a socket that lies in memory."""

    def __init__(self, wire: _Wire, **kwargs: Any) -> None:
        super().__init__(CallbackAPIVersion.VERSION2, reconnect_on_failure=False, manual_ack=True, **kwargs)
        self._in_memory = wire

    def _create_socket(self) -> _Wire:
        return self._in_memory


class _Frames:
    """Cuts the bytes of a broker into packets. Refuses those that are too large, or that paho would have to keep."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._rest = bytearray()

    def feed(self, data: bytes | bytearray) -> Iterator[bytes]:
        """Yield each complete packet. Raises `Failed`."""
        self._rest += data
        while size := self._size():
            if size > self._bytes_max:
                raise Failed(f"The broker sent a packet of more than {self._bytes_max} bytes")
            if len(self._rest) < size:
                return
            packet = bytes(self._rest[:size])
            del self._rest[:size]
            if packet[0] >> 4 == _PUBLISH and packet[0] & 0b110 == 0b100:
                raise Failed("The broker sent a message with QoS 2, which was not subscribed")
            yield packet

    def _size(self) -> int:
        """The bytes of the next packet; 0 while its length has not arrived."""
        length = 0
        for index in range(1, 5):
            if index >= len(self._rest):
                return 0
            byte = self._rest[index]
            length |= (byte & 127) << 7 * (index - 1)
            if byte < 128:
                return length + index + 1
        raise Failed("The broker sent a packet without an end")


def _client_of(account: Account, wire: _Wire) -> _Client:
    is_5 = account.version == "5"
    client = _Client(
        wire,
        client_id=account.client_id,
        clean_session=None if is_5 else account.clean,
        protocol=MQTTProtocolVersion.MQTTv5 if is_5 else MQTTProtocolVersion.MQTTv311,
    )
    client.max_inflight_messages_set(_IN_FLIGHT_MAX)
    if account.username is not None or account.password is not None:
        client.username_pw_set(account.username or "", account.password)
    return client


async def open_mqtt(
    nursery: trio.Nursery,
    stream: trio.abc.Stream,
    account: Account,
    *,
    bytes_max: int,
    timeout_s: float,
    now_ms: Callable[[], int],
) -> MqttSession:
    """Open a session on a stream; the nursery keeps it alive. Raises `Failed`. The caller sets a deadline."""
    session = MqttSession(stream, account, bytes_max=bytes_max, timeout_s=timeout_s, now_ms=now_ms)
    await session.open(nursery)
    return session
