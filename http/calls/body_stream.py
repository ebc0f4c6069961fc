"""Bodies that are read in pieces while they arrive: for routes with `streams_body`.

Owns the bound on the length of such a body, and its progress. Does not own what it contains (`form_data.py`), nor how
such calls come to the dispatcher (`streamed_calls.py`).
"""

from __future__ import annotations

from typing import Any, Final

import trio

from trunkline.actors.core.values.errors import DomainError, Invalid, PayloadTooLarge
from trunkline.http.wire.timeouts import until

STEP_BYTES: Final = 1 << 20
"""Each MiB of a body has the body time-out to itself."""


class BodyTooSlow(DomainError):
    """The body came too slowly."""

    type = "RequestTimeout"


class BodyStream:
    """The body of one request: iterate over its pieces. Raises DomainError where it does not come as it should."""

    def __init__(self, receive: Any, announced: bytes | None, timeout_s: float) -> None:
        """`announced` is the value of Content-Length."""
        self._receive = receive
        self._timeout_s = timeout_s
        self.announced_bytes = int(announced) if announced and announced.isdigit() else None
        self.bytes_max = 0
        """The bound on its length; set before it is read."""
        self._received_bytes = 0
        self._step_bytes = 0
        self._left_s = timeout_s
        self._more = True
        self._advice = ""

    def limit(self, bytes_max: int, advice: str = "") -> None:
        """Set the bound. Raises PayloadTooLarge, with the advice, if more is announced."""
        self.bytes_max = bytes_max
        self._advice = advice
        if self.announced_bytes is not None and self.announced_bytes > bytes_max:
            raise self._too_large()

    def __aiter__(self) -> BodyStream:
        return self

    async def __anext__(self) -> bytes:
        """The next piece, as soon as it has come.

        The time-out counts only while the client is waited for. It is here as well as in the engine, because a call
        may be shielded from the end of its connection.
        """
        while self._more:
            if self._step_bytes >= STEP_BYTES:
                self._step_bytes, self._left_s = 0, self._timeout_s
            began_s = trio.current_time()
            try:
                message = await until(began_s + self._left_s, self._receive)
            except trio.TooSlowError:
                raise BodyTooSlow("The body came too slowly.") from None
            self._left_s -= trio.current_time() - began_s
            if message["type"] == "http.disconnect":
                raise Invalid("The body ended before it was complete.")
            piece: bytes = message.get("body", b"")
            self._more = message.get("more_body", False)
            self._step_bytes += len(piece)
            self._received_bytes += len(piece)
            if self._received_bytes > self.bytes_max:
                raise self._too_large()
            if piece:
                return piece
        raise StopAsyncIteration

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(
            f"The body has more than {self.bytes_max} bytes, which this call takes at most.{self._advice}"
        )
