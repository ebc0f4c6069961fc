"""The frames of WebSocket (RFC 6455): bytes into messages, and messages into bytes.

Owns the syntax: heads, masks, fragments, UTF-8, close codes, and the bound on a message. Does not own a connection
(`websocket.py`). It never waits and knows no socket.

Why it is not a library: a busy device sends thousands of frames a second, and the libraries for trio spend ten times
as long on a frame as this does. The mask is removed in C.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import Final

try:
    from websockets.speedups import apply_mask
except ImportError:  # pragma: no cover - where its wheel has no machine code
    from websockets.utils import apply_mask

CONTINUATION: Final = 0
TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10

GOING_AWAY: Final = 1001
NO_CODE: Final = 1005
"""The code that a session is told where the client has closed without one."""
PROTOCOL_ERROR: Final = 1002
NOT_UTF8: Final = 1007
TOO_LARGE: Final = 1009
FAILED: Final = 1011

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KNOWN_CODES: Final = frozenset({*range(1000, 1004), *range(1007, 1015)})
_CONTROL_BYTES_MAX = 125
_SHORT = struct.Struct("!BBH")
_LONG = struct.Struct("!BBQ")
_U16 = struct.Struct("!H")
_U64 = struct.Struct("!Q")


def accept_of(key: bytes) -> bytes:
    """The value of `Sec-WebSocket-Accept` for a key (RFC 6455, 4.2.2)."""
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())


def is_key(key: bytes) -> bool:
    """Whether `Sec-WebSocket-Key` is 16 bytes in base 64."""
    try:
        return len(base64.b64decode(key, validate=True)) == 16
    except ValueError:
        return False


def frame(opcode: int, payload: bytes) -> bytes:
    """An unmasked frame with a whole message, as a server sends it."""
    size = len(payload)
    if size <= _CONTROL_BYTES_MAX:
        return bytes((0x80 | opcode, size)) + payload
    if size < 1 << 16:
        return _SHORT.pack(0x80 | opcode, 126, size) + payload
    return _LONG.pack(0x80 | opcode, 127, size) + payload


def close_payload(code: int, reason: str) -> bytes:
    """The payload of a close frame. A reason that is too long for a control frame is cut."""
    text = reason.encode()[: _CONTROL_BYTES_MAX - 2]
    return _U16.pack(code) + text.decode(errors="ignore").encode()


def read_close(payload: bytes) -> tuple[int, str]:
    """The code and the reason of a close frame; `NO_CODE` where it has none. Raises `Broken`."""
    if not payload:
        return NO_CODE, ""
    if len(payload) == 1:
        raise Broken(PROTOCOL_ERROR, "a close frame has a payload of one byte")
    code: int = _U16.unpack_from(payload)[0]
    if code not in _KNOWN_CODES and not 3000 <= code < 5000:
        raise Broken(PROTOCOL_ERROR, f"{code} is not a code with which a connection may be closed")
    return code, _text(payload[2:])


class Broken(Exception):
    """The bytes are not what a client may send: the connection has to be closed with `code`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class FrameReader:
    """Puts the frames of one client together to messages."""

    __slots__ = ("_buffer", "_message", "_message_bytes_max", "_opcode")

    def __init__(self, message_bytes_max: int) -> None:
        self._message_bytes_max = message_bytes_max
        self._buffer = b""
        """The beginning of a frame whose rest has not come."""
        self._opcode = CONTINUATION
        """That of the message whose fragments are read; `CONTINUATION` where there is none."""
        self._message = bytearray()
        """What its fragments brought: however many they are, they take no more memory than their bytes."""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The messages that `data` completes, each with its opcode, in their order; control frames among them.

        The payload of a text message is valid UTF-8. Raises `Broken`, whose `args[1]` has the messages before it.
        """
        messages: list[tuple[int, bytes]] = []
        try:
            self._read(self._buffer + data if self._buffer else data, messages)
        except Broken as broken:
            broken.args = (*broken.args, messages)
            raise
        return messages

    def _read(self, data: bytes, messages: list[tuple[int, bytes]]) -> None:
        at, end = 0, len(data)
        while end - at >= 2:
            first, second = data[at], data[at + 1]
            size = second & 0x7F
            body = at + 6
            if size == 126:
                body = at + 8
                if end - at < 4:
                    break
                size = _U16.unpack_from(data, at + 2)[0]
            elif size == 127:
                body = at + 14
                if end - at < 10:
                    break
                size = _U64.unpack_from(data, at + 2)[0]
            if not second & 0x80:
                raise Broken(PROTOCOL_ERROR, "a client has to mask its frames")
            self._check(first, size)
            if end - body < size:
                break
            payload = apply_mask(data[body : body + size], data[body - 4 : body])
            at = body + size
            opcode = first & 0x0F
            if opcode >= CLOSE:
                messages.append((opcode, payload))
            elif opcode and first & 0x80:
                messages.append((opcode, payload if opcode == BINARY else _checked(payload)))
            else:
                self._add_fragment(first, payload, messages)
        self._buffer = data[at:] if at < end else b""

    def _check(self, first: int, size: int) -> None:
        """Refuse a frame by its head. Raises `Broken`."""
        opcode = first & 0x0F
        if first & 0x70:
            raise Broken(PROTOCOL_ERROR, "a reserved bit is set, and no extension was agreed")
        if opcode > PONG or BINARY < opcode < CLOSE:
            raise Broken(PROTOCOL_ERROR, f"{opcode} is not an opcode")
        if opcode >= CLOSE:
            if size > _CONTROL_BYTES_MAX or not first & 0x80:
                raise Broken(PROTOCOL_ERROR, "a control frame is longer than 125 bytes or in fragments")
            return
        if (opcode == CONTINUATION) is not bool(self._opcode):
            raise Broken(PROTOCOL_ERROR, "a fragment does not continue the message before it")
        if len(self._message) + size > self._message_bytes_max:
            raise Broken(TOO_LARGE, f"a message has more than {self._message_bytes_max} bytes")

    def _add_fragment(self, first: int, payload: bytes, messages: list[tuple[int, bytes]]) -> None:
        self._opcode = self._opcode or first & 0x0F
        self._message += payload
        if not first & 0x80:
            return
        whole = bytes(self._message)
        messages.append((self._opcode, whole if self._opcode == BINARY else _checked(whole)))
        self._opcode, self._message = CONTINUATION, bytearray()


def _checked(payload: bytes) -> bytes:
    _text(payload)
    return payload


def _text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        raise Broken(NOT_UTF8, "a text is not UTF-8") from None
