"""Messages between two processes of a server, in batches: the bytes of a channel.

A batch is its length in 4 bytes and a MessagePack array of messages. A message is an array that begins with its kind.
Both processes are of one server and of one version, so a batch that cannot be read is a bug, which ends the channel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

_LENGTH_BYTES: Final = 4
_decode = msgspec.msgpack.Decoder(list[list[Any]]).decode
_encode = msgspec.msgpack.Encoder().encode

Message = list[Any]


class Kind:
    """The kinds of messages, each with what follows. `id` is the number of a call on its channel.

    Plain numbers: a member of an enumeration is slow to look up in Python 3.11.
    """

    # From a door.
    HEAD: Final = 0
    """number, method, target, headers: a request head that comes again, which has this number from now on."""
    KNOWN: Final = 1
    """id, number, body: a whole request with a head that was sent. The answer is ANSWER, or DECLINED."""
    WHOLE: Final = 2
    """id, method, target, headers, body: a whole request, answered as KNOWN."""
    CALL: Final = 3
    """id, `Head`, body, more: a request of any kind, or its beginning. The answer is ANSWER, START or FAILED."""
    BODY: Final = 4
    """id, bytes, more: the next part of the request's body, for a WANT."""
    TAKEN: Final = 5
    """id: the client has taken a part of the answer, so the next may follow."""
    GONE: Final = 6
    """id: the client has left, or its time is over."""
    COUNTS: Final = 7
    """`ConnectionCounts` of the door."""
    ASK: Final = 15
    """id, bytes: a question for an actor or a reader (`peers.py`). The answer is REPLY."""

    # From the owner.
    ANSWER: Final = 8
    """id, status, headers, body, note: a whole answer, with what the door logs about it (`Note`), or None."""
    DECLINED: Final = 9
    """id: nothing was done; the request has to come again as a CALL."""
    START: Final = 10
    """id, status, headers, bytes: the beginning of an answer whose parts follow."""
    PART: Final = 11
    """id, bytes, more: the next part."""
    WANT: Final = 12
    """id: the next part of the request's body is wanted."""
    FAILED: Final = 13
    """id: there is no answer, or no more of it; why is logged."""
    REPLY: Final = 16
    """id, bytes: the answer to an ASK."""
    LEAVING: Final = 17
    """The owner ends: nothing is asked any more, and the door closes the channel when nothing is under way."""
    CERTIFICATES: Final = 14
    """The PEM of the certificates and the key of each domain of an experience, by its name; replaces those before."""


class Head(msgspec.Struct, array_like=True, frozen=True):
    """The head of a request of any kind, and what its connection knows."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    version: str
    client: tuple[str, int] | None
    server: tuple[str, int] | None
    scheme: str
    certificate: bytes | None
    request_id: bytes


class NotedWork(msgspec.Struct, array_like=True, frozen=True):
    """The operation of a request, and who sent it (`Work` of `wire/request_context.py`)."""

    name: str
    bearer: str | None


class Note(msgspec.Struct, array_like=True, frozen=True):
    """What a door logs about a request: the id that it has in the owner's log, and what it is."""

    request_id: bytes
    work: NotedWork | None


def encode(messages: list[tuple[Any, ...]]) -> bytes:
    """A batch."""
    data = _encode(messages)
    return len(data).to_bytes(_LENGTH_BYTES, "big") + data


class BatchReader:
    """Finds the batches in what is received."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        """Take what has come next."""
        self._data += data

    def messages(self) -> Iterator[Message]:
        """Yield the messages of all batches that are complete."""
        data, start = self._data, 0
        try:
            while len(data) >= start + _LENGTH_BYTES:
                end = start + _LENGTH_BYTES + int.from_bytes(data[start : start + _LENGTH_BYTES], "big")
                if len(data) < end:
                    return
                batch = _decode(bytes(data[start + _LENGTH_BYTES : end]))
                start = end
                yield from batch
        finally:
            del data[:start]
