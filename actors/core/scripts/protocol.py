"""What the server and a process that runs scripts send each other: JSON, each text after its length.

Owns the messages and their frames. The server sends a `Call` and reads an `Answer`; there is one call at a time.
The bounds of a process are an argument of its program.
"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO, Final

import msgspec

HEADER: Final = struct.Struct("!I")
"""The length of what follows, in bytes."""


class Bounds(msgspec.Struct, frozen=True):
    """What a process keeps to."""

    cpu_s: float
    memory_bytes: int
    """Of the values of a script."""
    address_space_bytes: int
    payload_bytes_max: int
    nesting_max: int
    """Levels of arrays and objects of a result."""
    log_bytes_max: int


class Call(msgspec.Struct, frozen=True):
    """`script` is the body of a function of `payload`."""

    script: str
    payload: Any


class LogLine(msgspec.Struct, frozen=True):
    """A call of `console.<level>`."""

    level: str
    text: str


class Failure(msgspec.Struct, frozen=True):
    """Why there is no result. `stack` is what JavaScript makes of it, or empty."""

    name: str
    message: str
    stack: str = ""


class Answer(msgspec.Struct, frozen=True):
    """Either `error` is set, or `value` is the payload after the call."""

    value: Any = None
    error: Failure | None = None
    logs: list[LogLine] = []


def frame(text: bytes) -> bytes:
    """A text behind its length."""
    return HEADER.pack(len(text)) + text


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next text of a blocking stream; None at its end."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    text = stream.read(length)
    return text if len(text) == length else None
