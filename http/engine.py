"""Hypercorn's connection handler with a bound on writing.

Hypercorn serves; it looks its connection class up when it begins to serve, and this subclass stands in its
place. What it changes: a client that stops reading is let go after `write_timeout_s`. The stock class sends
under a shield without a time-out, so such a client would hold its connection, and the task behind it, for
as long as it likes.
"""

from __future__ import annotations

from typing import Any

import trio
from hypercorn.events import Closed, Event, RawData
from hypercorn.trio import run as hypercorn_run
from hypercorn.trio.tcp_server import TCPServer


def install(write_timeout_s: float) -> None:
    """Let Hypercorn use the bounded connection class from now on in this process."""

    class BoundedConnection(TCPServer):
        """A connection whose every write ends within the bound, or ends the connection."""

        async def protocol_send(self, event: Event) -> None:
            if not isinstance(event, RawData):
                await super().protocol_send(event)
                return
            async with self.send_lock:
                try:
                    with trio.fail_after(write_timeout_s) as scope:
                        scope.shield = True
                        await self.stream.send_all(event.data)
                    return
                except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError):
                    await trio.aclose_forcefully(_transport(self.stream))
            await self.protocol.handle(Closed())

    hypercorn_run.TCPServer = BoundedConnection  # type: ignore[attr-defined]


def _transport(stream: Any) -> Any:
    """The socket's stream below TLS: closing it does not wait for a peer that does not answer."""
    return getattr(stream, "transport_stream", stream)
