"""The protocol of NATS between a client and a server, without I/O: lines, and payloads of a given length.

Owns what bytes mean, in both directions, and the bounds of what is read. Does not own connections
(`nats_connection.py`) nor what messages are about (`jetstream.py`).

    server: INFO {json}   MSG subject sid [reply] bytes   HMSG subject sid [reply] header_bytes all_bytes
            PING   PONG   +OK   -ERR 'text'
    client: CONNECT {json}   PUB subject [reply] bytes   HPUB subject [reply] header_bytes all_bytes
            SUB subject sid   UNSUB sid   PING   PONG

Source: https://docs.nats.io/reference/reference-protocols/nats-protocol
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

LINE_BYTES_MAX: Final = 256 * 1024
"""Of a line of the server. INFO is the longest: it names all servers of a cluster."""
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of the headers and the payload of a message: the most that a server can be configured to pass."""
PING: Final = b"PING\r\n"
PONG: Final = b"PONG\r\n"

_END: Final = b"\r\n"
_VERSION: Final = b"NATS/1.0"


class ProtocolError(Exception):
    """What the server sent is not this protocol. The connection cannot be used any more."""


class Info(NamedTuple):
    """What a server says of itself, at the start of a connection and whenever that changes."""

    fields: dict[str, Any]


class Message(NamedTuple):
    """A message of a subscription. `status` is that of its headers, such as 503 if nobody answers; 0 if it has none.

    Names of headers are as they were sent. Of several values of one name the last one is kept.
    """

    subject: str
    subscription: int
    reply: str
    payload: bytes
    status: int = 0
    description: str = ""
    headers: Mapping[str, str] = {}


class Ping(NamedTuple):
    """The server wants a PONG."""


class Pong(NamedTuple):
    """The answer to a PING."""


class Refusal(NamedTuple):
    """The server refuses something, and often closes the connection then."""

    text: str


Event = Info | Message | Ping | Pong | Refusal


class Parser:
    """Makes events of the bytes that a server sends, however they are cut into pieces."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: tuple[str, int, str, int, int] | None = None
        """Subject, subscription, reply, bytes of headers and of all, of the message whose payload is to come."""

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield what is complete now. Raises ProtocolError."""
        buffer = self._buffer
        buffer += data
        at = 0
        try:
            while True:
                if self._head is None:
                    end = buffer.find(_END, at)
                    if end < 0:
                        if len(buffer) - at > LINE_BYTES_MAX:
                            raise ProtocolError(f"A line is longer than {LINE_BYTES_MAX} bytes.")
                        return
                    line, at = bytes(buffer[at:end]), end + 2
                    event = self._event(line)
                    if event is not None:
                        yield event
                    continue
                subject, subscription, reply, head_bytes, all_bytes = self._head
                if len(buffer) < at + all_bytes + 2:
                    return
                body, end = bytes(buffer[at : at + all_bytes]), at + all_bytes
                if buffer[end : end + 2] != _END:
                    raise ProtocolError("A payload is longer than its line says.")
                at, self._head = end + 2, None
                status, description, headers = _headers(body[:head_bytes]) if head_bytes else (0, "", {})
                yield Message(subject, subscription, reply, body[head_bytes:], status, description, headers)
        finally:
            del buffer[:at]

    def _event(self, line: bytes) -> Event | None:
        """The event of a line; None if it has none, or a payload has to come first."""
        verb, _, rest = line.partition(b" ")
        verb = verb.upper()
        if verb in (b"MSG", b"HMSG"):
            self._head = _message_head(line.split(), has_headers=verb == b"HMSG")
            return None
        if verb == b"INFO":
            return Info(_object(rest))
        if verb == b"PING":
            return Ping()
        if verb == b"PONG":
            return Pong()
        if verb == b"-ERR":
            return Refusal(rest.decode("utf-8", "replace").strip().strip("'"))
        if verb == b"+OK":
            return None
        raise ProtocolError(f"A line begins with {line[:20]!r}.")


def _message_head(words: list[bytes], *, has_headers: bool) -> tuple[str, int, str, int, int]:
    numbers = 2 if has_headers else 1
    if len(words) not in (3 + numbers, 4 + numbers):
        raise ProtocolError(f"A message begins with {len(words)} words.")
    try:
        subscription, sizes = int(words[2]), [int(word) for word in words[-numbers:]]
        subject, reply = words[1].decode(), words[3].decode() if len(words) == 4 + numbers else ""
    except ValueError as error:
        raise ProtocolError(f"A message begins with {b' '.join(words)[:80]!r}.") from error
    head_bytes, all_bytes = sizes if has_headers else (0, sizes[0])
    if not 0 <= head_bytes <= all_bytes <= MESSAGE_BYTES_MAX:
        raise ProtocolError(f"A message of {all_bytes} bytes with {head_bytes} bytes of headers.")
    return subject, subscription, reply, head_bytes, all_bytes


def _headers(raw: bytes) -> tuple[int, str, dict[str, str]]:
    first, *lines = raw.split(_END)
    if not first.startswith(_VERSION):
        raise ProtocolError(f"Headers begin with {first[:20]!r}.")
    number, _, description = first[len(_VERSION) :].decode("utf-8", "replace").strip().partition(" ")
    headers = {}
    for line in lines:
        name, colon, value = line.decode("utf-8", "replace").partition(":")
        if colon:
            headers[name.strip()] = value.strip()
    return int(number) if number.isascii() and number.isdigit() else 0, description.strip(), headers


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError as error:
        raise ProtocolError("INFO is not JSON.") from error
    if not isinstance(found, dict):
        raise ProtocolError("INFO is not an object.")
    return found


# What the client sends.


def connect(fields: Mapping[str, Any]) -> bytes:
    """The first line of a client: who it is, and what it can do."""
    return b"CONNECT " + json.dumps(fields, separators=(",", ":")).encode() + _END


def subscribe(subject: str, subscription: int) -> bytes:
    """Ask for all messages of a subject, which may end with a wildcard."""
    return b"SUB %b %d\r\n" % (_word(subject), subscription)


def unsubscribe(subscription: int) -> bytes:
    """Ask for no more messages of a subscription."""
    return b"UNSUB %d\r\n" % subscription


def publish(
    subject: str, payload: bytes, *, reply: str = "", headers: Mapping[str, str] | None = None
) -> bytes:
    """Send a message. Raises ValueError for a subject or a header that would break the protocol."""
    words = _word(subject) + (b" " + _word(reply) if reply else b"")
    if not headers:
        return b"PUB %b %d\r\n%b\r\n" % (words, len(payload), payload)
    head = b"%b\r\n%b\r\n" % (_VERSION, b"".join(_header(*each) for each in headers.items()))
    return b"HPUB %b %d %d\r\n%b%b\r\n" % (words, len(head), len(head) + len(payload), head, payload)


def _word(text: str) -> bytes:
    word = text.encode()
    if not word or len(word.split()) != 1 or word.split()[0] != word:
        raise ValueError(f"{text!r} is not a subject")
    return word


def _header(name: str, value: str) -> bytes:
    if not name or any(char in "\r\n" for char in name + value) or ":" in name:
        raise ValueError(f"{name!r} with {value!r} is not a header")
    return f"{name}: {value}\r\n".encode()
