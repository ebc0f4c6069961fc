"""An MQTT client of a device: it publishes with QoS 1 and gets commands, as a small program on a device would.

Owns one connection, from its login to its end, without a task: who has it publishes, and lets it read for a while. Does
not own connecting again, nor the bytes of packets (``mqtt_packets``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from trunkline.bench.errors import ConnectFailed, ConnectionBroken, ProtocolViolation, TimedOut
from trunkline.bench.mqtt_packets import (
    CONNACK,
    DISCONNECT,
    PUBACK,
    PUBLISH,
    REFUSED_FROM,
    SUBACK,
    ack,
    connect,
    length_at,
    publish,
    reason_of,
    subscribe,
    topic_of,
)

ANSWER_TIMEOUT_S = 10.0
"""Seconds: a server that has not answered for so long is considered dead."""
_RECEIVED_BYTES = 65_536
_PACKET_BYTES_MAX = 1024 * 1024


class MqttClient:
    """An open connection. ``on_stored`` is called for each message that the server has stored, ``on_refused`` with the
    reason for each that it has not, and ``on_message`` with the payload of each that comes."""

    def __init__(
        self,
        stream: trio.SocketStream,
        on_stored: Callable[[], object],
        on_refused: Callable[[str], object],
        on_message: Callable[[bytes], object],
    ) -> None:
        self._stream = stream
        self._on_stored = on_stored
        self._on_refused = on_refused
        self._on_message = on_message
        self._rest = b""
        self._packet_id = 0
        self._waiting: dict[bytes, float] = {}
        """When each message was sent that is not answered, by its packet id."""

    async def publish(self, topic: str, payload: bytes) -> None:
        """Send a message with QoS 1. Raises WireError."""
        self._packet_id = self._packet_id % 65_535 + 1
        self._waiting[self._packet_id.to_bytes(2)] = trio.current_time()
        await self._send(publish(topic_of(topic), 1, self._packet_id, payload))

    async def read_until(self, deadline_s: float) -> None:
        """Handle what comes until then, on Trio's clock. Raises WireError."""
        while True:
            packet = None
            with trio.move_on_at(deadline_s):
                packet = await self._next()
            if packet is None:
                break
            await self._take(*packet)
        sent_s = next(iter(self._waiting.values()), None)
        if sent_s is not None and trio.current_time() - sent_s > ANSWER_TIMEOUT_S:
            raise TimedOut(
                f"The server has not answered an MQTT message for {ANSWER_TIMEOUT_S:g} s.", maybe_done=True
            )

    async def log_in(self, client_id: str, user_name: str, password: str, topic: str) -> None:
        """Log in, and subscribe to a topic. Raises WireError."""
        await self._send(connect(client_id, user_name, password))
        first, body = await self._next()
        if first != CONNACK or body[1] >= REFUSED_FROM:
            raise ConnectionBroken(
                f"The server refused an MQTT client with {reason_of(body, 1)}.", maybe_done=False
            )
        await self._send(subscribe(topic, 1))

    async def _take(self, first: int, body: bytes) -> None:
        """Handle a packet of the server."""
        if first == PUBACK:
            self._waiting.pop(body[:2], None)
            if len(body) > 2 and body[2] >= REFUSED_FROM:
                self._on_refused(reason_of(body, 2))
            else:
                self._on_stored()
        elif first & 0xF0 == PUBLISH:
            at = 2 + int.from_bytes(body[:2])
            packet_id, at = (body[at : at + 2], at + 2) if first & 0x06 else (b"", at)
            size, start = length_at(body, at)
            self._on_message(body[start + size :])
            if packet_id:
                await self._send(ack(PUBACK, packet_id))
        elif first == DISCONNECT:
            raise ConnectionBroken(
                f"The server disconnected an MQTT client with {reason_of(body, 0)}.", maybe_done=True
            )
        elif first == SUBACK and body[-1] >= REFUSED_FROM:
            raise ConnectionBroken(
                f"The server refused a subscription with {body[-1]:#04x}.", maybe_done=True
            )

    async def _next(self) -> tuple[int, bytes]:
        """The next packet: its first byte and its body. A call that is cancelled loses nothing."""
        while True:
            data = self._rest
            length, start = length_at(data, 1) if len(data) > 1 else (0, 0)
            if length > _PACKET_BYTES_MAX:
                raise ProtocolViolation(f"A packet has more than {_PACKET_BYTES_MAX} bytes.")
            if start and len(data) >= start + length:
                self._rest = data[start + length :]
                return data[0], data[start : start + length]
            try:
                piece = await self._stream.receive_some(_RECEIVED_BYTES)
            except (trio.BrokenResourceError, OSError) as problem:
                raise _broken() from problem
            if not piece:
                raise _broken()
            self._rest += piece

    async def _send(self, data: bytes) -> None:
        try:
            with trio.fail_after(ANSWER_TIMEOUT_S):
                await self._stream.send_all(data)
        except trio.TooSlowError:
            raise TimedOut("The server does not read what an MQTT client sends.", maybe_done=True) from None
        except (trio.BrokenResourceError, OSError) as problem:
            raise _broken() from problem


def _broken() -> ConnectionBroken:
    return ConnectionBroken("The server closed an MQTT connection.", maybe_done=True)


@asynccontextmanager
async def open_mqtt(
    address: tuple[str, int],
    client_id: str,
    credentials: tuple[str, str],
    topic: str,
    *,
    on_stored: Callable[[], object],
    on_refused: Callable[[str], object],
    on_message: Callable[[bytes], object],
) -> AsyncIterator[MqttClient]:
    """A client that has logged in with a key and its secret, and subscribed to a topic. Raises WireError."""
    try:
        with trio.fail_after(ANSWER_TIMEOUT_S):
            stream = await trio.open_tcp_stream(*address)
    except (OSError, trio.TooSlowError) as problem:
        raise ConnectFailed(f"No MQTT connection to {address[0]} port {address[1]}: {problem}.") from problem
    async with stream:
        client = MqttClient(stream, on_stored, on_refused, on_message)
        try:
            with trio.fail_after(ANSWER_TIMEOUT_S):
                await client.log_in(client_id, *credentials, topic)
        except trio.TooSlowError:
            raise TimedOut("The server has not answered an MQTT login.", maybe_done=False) from None
        yield client
