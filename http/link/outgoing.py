"""The frames of the server, in both forms of the link.

Owns how a frame is written. Does not own when one is sent (`session.py`), nor the frames of clients (`frames.py`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trunkline.actors.core.values import cbor
from trunkline.actors.fleet.devices.commands.command_messages import LinkCommand

_WELCOME: Final = 0
_STORED: Final = 1
_REFUSAL: Final = 2
_COMMAND: Final = 3

_STORED_HEAD: Final = b"\x82\x01"
_STORED_BACKLOG_HEAD: Final = b"\x83\x01"
_TRUE: Final = b"\xf5"


class Outgoing:
    """Writes frames as CBOR, or with `text` as JSON."""

    __slots__ = ("_encode", "text")

    def __init__(self, *, text: bool) -> None:
        self.text = text
        self._encode: Any = msgspec.json.encode if text else cbor.encode

    def welcome(self, facts: dict[str, Any]) -> bytes:
        return self._written([_WELCOME, facts])

    def stored(self, n: int, *, backlog: bool) -> bytes:
        """Every frame of a lane up to `n` is on disk."""
        if self.text:
            return b"[1,%d,true]" % n if backlog else b"[1,%d]" % n
        if backlog:
            return _STORED_BACKLOG_HEAD + cbor.encode(n) + _TRUE
        return _STORED_HEAD + cbor.encode(n)

    def refusal(
        self, n: int, kind: str, message: str, bucket: str | None = None, retry_ms: int | None = None
    ) -> bytes:
        more: dict[str, Any] = {}
        if bucket is not None:
            more["bucket"] = bucket
        if retry_ms is not None:
            more["retryMs"] = retry_ms
        return self._written([_REFUSAL, n, kind, message, *([more] if more else [])])

    def command(self, command: LinkCommand) -> bytes:
        id, name, payload, time_ms, device = command
        told = None if payload is msgspec.UNSET else payload
        return self._written([_COMMAND, id, name, told, time_ms, *([] if device is None else [device.hex()])])

    def _written(self, frame: list[Any]) -> bytes:
        written: bytes = self._encode(frame)
        return written


CBOR: Final = Outgoing(text=False)
JSON: Final = Outgoing(text=True)
