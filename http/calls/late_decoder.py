"""The decoder of a body, made when the first body comes.

To make the decoders of all operations takes a tenth of a second of a start, most of it for types of which few calls
come: those of dashboards and of experiences. The dispatcher makes one in a thread, because the largest take 30 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

Decoder = msgspec.json.Decoder[Any]


class LateDecoder:
    """Stands for the decoder of a type until it is made. `keep` puts the decoder in its place."""

    __slots__ = ("_keep", "type")

    def __init__(self, type: Any, keep: Callable[[Decoder], None]) -> None:
        self.type = type
        self._keep = keep

    def made(self) -> Decoder:
        """Make the decoder, and have it kept."""
        decoder = msgspec.json.Decoder(self.type)
        self._keep(decoder)
        return decoder

    def decode(self, body: bytes) -> Any:
        """Make the decoder and decode a body with it."""
        return self.made().decode(body)
