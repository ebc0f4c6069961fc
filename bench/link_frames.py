"""The frames of the device link, as a client writes and reads them (docs/reference/device-link.md).

Owns both forms, CBOR and JSON. Does not own numbers of frames (`link_queue`), nor a connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import cbor2
import msgspec

from trunkline.bench.errors import ProtocolViolation

CBOR_PROTOCOL: Final = "trunkline.link.v1+cbor"
JSON_PROTOCOL: Final = "trunkline.link.v1+json"

LINK_HEADERS: Final = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": CBOR_PROTOCOL,
}
"""What the request for a link says beside its token, where the handshake is not that of a library."""

STATE: Final = 1
ROWS: Final = 2
COLUMNS: Final = 3

Frame = list[Any]


class Welcome(NamedTuple):
    """What the server says first: the last stored frames of the session, and its bounds."""

    n: int
    backlog_n: int
    window: int
    ping_s: float


class Stored(NamedTuple):
    """All frames of a lane up to `n` are on disk."""

    n: int
    backlog: bool


class Refusal(NamedTuple):
    """Nothing of frame `n` is stored. With `retry_ms`, the same states may be sent then."""

    n: int
    type: str
    message: str
    retry_ms: int | None


class Command(NamedTuple):
    """A command; `device` is the peripheral that it is for."""

    id: int
    name: str
    payload: Any
    time_ms: int
    device: str | None

    @property
    def received(self) -> Frame:
        """The frame that acknowledges it."""
        return [4, self.id] if self.device is None else [4, self.id, self.device]


FromServer = Welcome | Stored | Refusal | Command


def write_frame(frame: Frame, *, text: bool) -> bytes:
    """A frame as it is sent."""
    return msgspec.json.encode(frame) if text else cbor2.dumps(frame)


def read_frame(message: bytes | str) -> FromServer:
    """A frame of the server. Raises `ProtocolViolation` if it is none."""
    try:
        frame: Any = msgspec.json.decode(message) if isinstance(message, str) else cbor2.loads(message)
        kind, *rest = frame
        if kind == 0:
            facts = rest[0]
            return Welcome(facts["n"], facts["backlogN"], facts["window"], facts["pingSeconds"])
        if kind == 1:
            return Stored(rest[0], rest[1:] == [True])
        if kind == 2:
            n, type_, said = rest[:3]
            return Refusal(n, type_, said, rest[3].get("retryMs") if len(rest) > 3 else None)
        if kind == 3:
            return Command(rest[0], rest[1], rest[2], rest[3], rest[4] if len(rest) > 4 else None)
    except (cbor2.CBORDecodeError, msgspec.DecodeError, ValueError, TypeError, LookupError) as problem:
        raise ProtocolViolation(f"The server sent a frame that is none of the link: {problem!r}.") from None
    raise ProtocolViolation(f"The server sent a frame of the unknown kind {kind!r}.")


def typed(tag: int, data: bytes) -> cbor2.CBORTag:
    """A typed array of RFC 8746."""
    return cbor2.CBORTag(tag, data)


def options_of(device: str | None, *, backlog: bool) -> Sequence[dict[str, Any]]:
    """The last element of a frame with states, if it needs one."""
    options: dict[str, Any] = {}
    if device is not None:
        options["device"] = device
    if backlog:
        options["backlog"] = True
    return [options] if options else []
