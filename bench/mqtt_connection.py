"""One MQTT client of a load: the login, and packets as they are, without a task.

Owns the connection and where packets begin and end. Does not own what is sent or what an answer means; a subclass
implements ``connected``, ``took`` and ``took_all``.
"""

from __future__ import annotations

from trunkline.bench.errors import ConnectionBroken
from trunkline.bench.load_connection import LoadConnection
from trunkline.bench.mqtt_packets import CONNACK, DISCONNECT, REFUSED_FROM, length_at, reason_of
from trunkline.bench.reactor import Reactor
from trunkline.bench.transport import Origin


class MqttConnection(LoadConnection):
    """A client that sends ``connect`` as soon as its connection is open."""

    __slots__ = ("_connect", "_rest", "live")

    def __init__(self, reactor: Reactor, origin: Origin, connect: bytes) -> None:
        super().__init__(reactor, origin)
        self._connect = connect
        self._rest = b""
        self.live = False
        """Whether the server has accepted the client."""

    # Callbacks for a subclass.

    def connected(self) -> None:
        """The server has accepted the client."""

    def took(self, first: int, body: bytes) -> None:
        """The server has sent a packet that begins with the byte ``first``."""

    def took_all(self) -> None:
        """All packets of a read were handed over."""

    # Callbacks of the connection.

    def opened(self) -> None:
        self._rest = b""
        self.send(self._connect)

    def close(self) -> None:
        self.live = False
        super().close()

    def received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        at, end = 0, len(data)
        while end - at >= 2 and self.is_open:
            length, start = data[at + 1], at + 2
            if length >= 0x80:
                length, start = length_at(data, at + 1)
            stop = start + length
            if not start or stop > end:
                break
            first = data[at]
            if self.live and first != DISCONNECT:
                self.took(first, data[start:stop])
            else:
                self._begin_or_end(first, data[start:stop])
            at = stop
        self._rest = data[at:]
        if self.live:
            self.took_all()

    def _begin_or_end(self, first: int, body: bytes) -> None:
        if first == CONNACK and body[1] < REFUSED_FROM:
            self.live = True
            self.connected()
        elif first == CONNACK:
            self.fail(
                ConnectionBroken(
                    f"The server refused an MQTT client with {reason_of(body, 1)}.", maybe_done=False
                )
            )
        else:
            self.fail(
                ConnectionBroken(
                    f"The server disconnected an MQTT client with {reason_of(body, 0)}.", maybe_done=True
                )
            )
