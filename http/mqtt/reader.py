"""The packets in the bytes of a connection, as they come.

Owns the fixed header, where a packet begins and ends, what is kept of one that has not come whole, and the PUBLISH,
which comes more often than all others. Does not own the bodies of the others (`bodies.py`), nor any I/O.

The loop knows the packets of which a busy connection consists by their first byte, and makes them without a call:
acknowledgements without properties. All else takes the general way.
"""

from __future__ import annotations

from typing import Final

from trunkline.http.mqtt import bodies, properties
from trunkline.http.mqtt.fields import INTEGER_BYTES_MAX, Fields, check_topic_name, no_packet_id, text_of
from trunkline.http.mqtt.packets import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    MALFORMED_PACKET,
    NAMES,
    NONE,
    PACKET_TOO_LARGE,
    PROTOCOL_ERROR,
    PUBLISH,
    PUBREL,
    SUBSCRIBE,
    UNSUBSCRIBE,
    V3_1,
    V5,
    Ack,
    Malformed,
    Packet,
    Publish,
)

HEAD_BYTES_MAX: Final = 1 + INTEGER_BYTES_MAX
_ACK_HEADS: Final = {0x40: 4, 0x50: 5, 0x62: 6, 0x70: 7}
"""The types of acknowledgements by their first bytes."""
_PUBLISH_FLAGS: Final = tuple((flags >> 1 & 3, bool(flags & 1), bool(flags & 8)) for flags in range(16))
"""QoS, retain and DUP by the flags of a PUBLISH."""


class PacketReader:
    """Reads the packets of one connection, for a server; for a client of `client_version` if that is given.

    `version` is that of the CONNECT, 0 before it. It is known as early as possible, also of a CONNECT that is refused,
    whose sender is answered in this version; where it stays 0, the sender speaks no MQTT.
    `packet_bytes_max` bounds a packet with its header, and so what is kept. It may be changed between two calls.
    """

    __slots__ = (
        "_from_server",
        "_opened",
        "_raw_topic",
        "_rest",
        "_topic",
        "_wanted",
        "packet_bytes_max",
        "version",
    )

    def __init__(self, packet_bytes_max: int, *, client_version: int = 0) -> None:
        self.packet_bytes_max = packet_bytes_max
        self.version = client_version
        self._from_server = client_version != 0
        self._opened = False
        # What has come of a packet that is not whole, and how many bytes are needed to read on.
        self._rest: bytes | bytearray = b""
        self._wanted = 0
        # The topic of the last PUBLISH, which is often that of the next.
        self._raw_topic = b""
        self._topic = ""

    def feed(self, data: bytes) -> list[Packet]:
        """The packets that are whole with these bytes.

        Raises `Malformed` with the packets before what is wrong. The reader is at its end then.
        """
        rest = self._rest
        if rest:
            rest += data
            if len(rest) < self._wanted:
                return []
            data = bytes(rest)
            self._rest = b""
        packets: list[Packet] = []
        try:
            at = self._read(data, packets)
        except Malformed as wrong:
            wrong.packets = packets
            raise
        if at < len(data):
            self._rest = bytearray(data[at:])
        return packets

    def _read(self, data: bytes, packets: list[Packet]) -> int:
        """Read the packets that are whole: where the first stands that is not."""
        at, end = 0, len(data)
        opened = self._opened
        while at < end:
            first = data[at]
            start = at + 2
            length = data[at + 1] if start <= end else 0x80
            if length >= 0x80:
                length, start = self._length(data, at, end)
            stop = start + length
            if not start or stop > end or stop - at > self.packet_bytes_max:
                self._check_unread(first, start and stop - at)
                return at
            if first & 0xF0 == 0x30 and opened:
                packets.append(self._publish(first, data, start, stop))
            elif length == 2 and first in _ACK_HEADS and opened:
                packet_id = data[start] << 8 | data[start + 1]
                if not packet_id:
                    raise no_packet_id(NAMES[first >> 4])
                packets.append(Ack(_ACK_HEADS[first], packet_id))
            else:
                self._check_first(first)
                packets.append(self._other(first >> 4, data, start, stop))
                opened = self._opened = True
            at = stop
        return at

    def _length(self, data: bytes, at: int, end: int) -> tuple[int, int]:
        """The remaining length of more than one byte, and where the body begins: 0 where that has not come yet."""
        length = 0
        for place in range(INTEGER_BYTES_MAX):
            index = at + 1 + place
            if index == end:
                return 0, 0
            byte = data[index]
            length |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                if not byte and place and self.version == V5:
                    raise Malformed(MALFORMED_PACKET, "a remaining length has more bytes than it needs")
                return length, index + 1
        raise Malformed(MALFORMED_PACKET, f"a remaining length has more than {INTEGER_BYTES_MAX} bytes")

    def _check_unread(self, first: int, size: int) -> None:
        """Of a packet that is not whole or too large: refuse it by its head already, or note how much it needs.

        `size` is 0 where it is not known yet.
        """
        self._check_first(first)
        if size > self.packet_bytes_max:
            problem = f"{NAMES[first >> 4]} has {size} bytes; at most {self.packet_bytes_max} are allowed"
            raise Malformed(PACKET_TOO_LARGE, problem)
        self._wanted = size

    def _check_first(self, first: int) -> None:
        """Refuse a packet that cannot come now, cannot come from this peer, or has other flags than its type has."""
        packet, flags = first >> 4, first & 0x0F
        name = NAMES[packet]
        if packet == PUBLISH and self._opened:
            _check_publish_flags(flags)
            return
        if not packet or (packet == AUTH and self.version not in (0, V5)):
            raise Malformed(MALFORMED_PACKET, f"packets of type {packet} do not exist")
        right = 2 if packet in (PUBREL, SUBSCRIBE, UNSUBSCRIBE) else 0
        may_come = self._opened or packet in (CONNECT, CONNACK, AUTH)
        if (
            flags != right and may_come and self.version != V3_1
        ):  # 3.1 does not use them: they may be anything.
            raise Malformed(MALFORMED_PACKET, f"the flags of {name} are {flags:#x}; they must be {right:#x}")
        if self._from_server:
            if not self._opened and packet not in (CONNACK, AUTH):
                raise Malformed(
                    PROTOCOL_ERROR, f"the first packet of the server is {name}; it must be CONNACK"
                )
            if packet not in bodies.FROM_SERVERS or (packet == DISCONNECT and self.version != V5):
                raise Malformed(PROTOCOL_ERROR, f"a server cannot send {name}")
        elif not self._opened and packet != CONNECT:
            raise Malformed(PROTOCOL_ERROR, f"the first packet of the client is {name}; it must be CONNECT")
        elif self._opened and packet == CONNECT:
            raise Malformed(PROTOCOL_ERROR, "the client has sent a second CONNECT")
        elif packet not in bodies.FROM_CLIENTS:
            raise Malformed(PROTOCOL_ERROR, f"a client cannot send {name}")

    def _other(self, packet: int, data: bytes, start: int, stop: int) -> Packet:
        """A packet that is not a PUBLISH."""
        fields = Fields(data, start, stop, packet, self.version, self._from_server)
        table = bodies.FROM_SERVERS if self._from_server else bodies.FROM_CLIENTS
        try:
            return table[packet](fields)
        finally:
            self.version = fields.version

    def _publish(self, first: int, data: bytes, start: int, stop: int) -> Publish:
        """A PUBLISH."""
        topic_at = start + 2
        if topic_at > stop:
            raise _too_short()
        end = topic_at + (data[start] << 8 | data[start + 1])
        raw = data[topic_at:end]
        qos, retain, dup = _PUBLISH_FLAGS[first & 0x0F]
        five = self.version == V5
        packet_id = 0
        if qos or dup:
            _check_publish_flags(first & 0x0F)
            if end + 2 > stop:
                raise _too_short()
            packet_id = data[end] << 8 | data[end + 1]
            end += 2
            if not packet_id:
                raise no_packet_id("PUBLISH")
        if end + five > stop:
            raise _too_short()
        if raw != self._raw_topic:
            self._topic = self._topic_of(raw)
            self._raw_topic = raw
        own = NONE
        if five:
            if data[end]:
                fields = Fields(data, end, stop, PUBLISH, V5, self._from_server)
                own = properties.read(fields, PUBLISH)
                end = fields.at
            else:
                end += 1
        if not raw and "topic_alias" not in own:
            raise Malformed(PROTOCOL_ERROR, "PUBLISH has no topic" + (" and no topic alias" if five else ""))
        return Publish(self._topic, data[end:stop], qos, retain, dup, packet_id, own)

    def _topic_of(self, raw: bytes) -> str:
        topic = text_of(raw, "topic name", "PUBLISH")
        check_topic_name(topic, "topic name", "PUBLISH")
        return topic


def _check_publish_flags(flags: int) -> None:
    if flags & 6 == 6:
        raise Malformed(MALFORMED_PACKET, "PUBLISH has QoS 3; it must be 0, 1 or 2")
    if flags & 14 == 8:
        raise Malformed(MALFORMED_PACKET, "PUBLISH has the flag DUP with QoS 0; it must be 0 there")


def _too_short() -> Malformed:
    return Malformed(MALFORMED_PACKET, "PUBLISH ends before its last field does")
