"""The fields of which the body of a packet consists, read one after another.

Owns the types of data of section 1.5 of the specification of 5.0, which are those of 3.1.1 as well: integers, texts,
binary data, and that none reaches beyond the end of its packet. Does not own which fields a packet has (`bodies.py`).
"""

from __future__ import annotations

import re
from typing import Final

from trunkline.http.mqtt.packets import MALFORMED_PACKET, NAMES, PROTOCOL_ERROR, Malformed

FIELD_BYTES_MAX: Final = 65_535
"""A text, or binary data: its length has two bytes."""
INTEGER_BYTES_MAX: Final = 4
"""A variable byte integer, as the remaining length is."""
INTEGER_MAX: Final = 2**28 - 1
_CONTROL: Final = re.compile("[\x01-\x1f\x7f-\x9f]")
"""Control characters, which a receiver may refuse (MQTT 5, 1.5.4): others might refuse what would reach them."""


class Fields:
    """The body of one packet, and how far it is read."""

    __slots__ = ("at", "data", "from_server", "name", "packet", "stop", "version")

    def __init__(self, data: bytes, at: int, stop: int, packet: int, version: int, from_server: bool) -> None:
        self.data = data
        self.at = at
        self.stop = stop
        self.packet = packet
        self.name = NAMES[packet]
        """What is read, for sentences."""
        self.version = version
        self.from_server = from_server

    def _too_short(self, what: str) -> Malformed:
        return Malformed(MALFORMED_PACKET, f"{self.name} ends before its {what} does")

    def byte(self, what: str) -> int:
        at = self.at
        if at >= self.stop:
            raise self._too_short(what)
        self.at = at + 1
        return self.data[at]

    def two_bytes(self, what: str) -> int:
        at = self.at
        if at + 2 > self.stop:
            raise self._too_short(what)
        self.at = at + 2
        return self.data[at] << 8 | self.data[at + 1]

    def four_bytes(self, what: str) -> int:
        at = self.at
        if at + 4 > self.stop:
            raise self._too_short(what)
        self.at = at + 4
        return int.from_bytes(self.data[at : at + 4], "big")

    def integer(self, what: str) -> int:
        """A variable byte integer, which has as few bytes as it needs (MQTT-1.5.5-1)."""
        at = self.at
        if at < self.stop and self.data[at] < 0x80:
            self.at = at + 1
            return self.data[at]
        value = 0
        for place in range(INTEGER_BYTES_MAX):
            byte = self.byte(what)
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                if not byte and place:
                    raise Malformed(
                        MALFORMED_PACKET, f"the {what} of {self.name} has more bytes than it needs"
                    )
                return value
        raise Malformed(
            MALFORMED_PACKET, f"the {what} of {self.name} has more than {INTEGER_BYTES_MAX} bytes"
        )

    def binary(self, what: str) -> bytes:
        at = self.at + 2
        end = at + self.two_bytes(what)
        if end > self.stop:
            raise self._too_short(what)
        self.at = end
        return self.data[at:end]

    def text(self, what: str) -> str:
        """A text in UTF-8, without surrogates and U+0000 (MQTT-1.5.4-1, MQTT-1.5.4-2)."""
        return text_of(self.binary(what), what, self.name)

    def plain(self, what: str) -> str:
        """A text without control characters: the name of a client or user, or a filter."""
        text = self.text(what)
        check_plain(text, what, self.name)
        return text

    def topic_name(self, what: str) -> str:
        """A text to which a message can be published."""
        topic = self.text(what)
        if not topic:
            raise Malformed(MALFORMED_PACKET, f"the {what} of {self.name} is empty")
        check_topic_name(topic, what, self.name)
        return topic

    def topic_filter(self) -> str:
        """A filter of topics. Whether its wildcards stand right, the answer says for each filter."""
        filter = self.plain("topic filter")
        if not filter:
            raise Malformed(MALFORMED_PACKET, f"a topic filter of {self.name} is empty")
        return filter

    def packet_id(self) -> int:
        packet_id = self.two_bytes("packet identifier")
        if not packet_id:
            raise no_packet_id(self.name)
        return packet_id

    def end(self) -> None:
        """Nothing follows."""
        if self.at != self.stop:
            raise Malformed(
                MALFORMED_PACKET, f"{self.name} has {self.stop - self.at} bytes behind its last field"
            )


def text_of(raw: bytes, what: str, packet: str) -> str:
    """The text of these bytes; `what` and `packet` say where they stand."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise Malformed(MALFORMED_PACKET, f"the {what} of {packet} is not UTF-8") from None
    if "\0" in text:
        raise Malformed(MALFORMED_PACKET, f"the {what} of {packet} has the character U+0000")
    return text


def check_topic_name(topic: str, what: str, packet: str) -> None:
    """Refuse wildcards, which belong into filters only (section 4.7.1), and control characters."""
    if "+" in topic or "#" in topic:
        raise Malformed(
            MALFORMED_PACKET, f"the {what} of {packet} has a wildcard, + or #, which only filters have"
        )
    check_plain(topic, what, packet)


def check_plain(text: str, what: str, packet: str) -> None:
    """Refuse control characters."""
    if _CONTROL.search(text) is not None:
        raise Malformed(MALFORMED_PACKET, f"the {what} of {packet} has a control character")


def no_packet_id(packet: str) -> Malformed:
    return Malformed(PROTOCOL_ERROR, f"{packet} has the packet identifier 0; it must be from 1 to 65535")
