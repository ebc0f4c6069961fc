"""A session: one connection of an integration, from the time it is open until it ends."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec


class Arrived(msgspec.Struct, frozen=True):
    """A message that has arrived. `data` is what workflows are told; `topic` and `text` are those of MQTT.

    `number` is what the other side calls it, 0 if it wants no acknowledgement.
    """

    data: dict[str, Any]
    topic: str | None = None
    text: str = ""
    number: int = 0


class Failed(Exception):
    """A session could not be opened, or it has ended. The text says why; `code` is that of WebSocket."""

    def __init__(self, reason: str, code: int = 1006) -> None:
        super().__init__(reason)
        self.code = code


class Unsent(Exception):
    """A message could not be sent. The text is a sentence."""


class Session(Protocol):
    """An open session. `connected` is what workflows are told of its beginning; `heard_ms` when the other side was
    heard last."""

    connected: dict[str, Any]
    heard_ms: int

    async def receive(self) -> list[Arrived]:
        """Wait for messages. Raises `Failed` when the session has ended."""
        ...

    async def acknowledge(self, arrived: list[Arrived]) -> None:
        """Tell the other side that these messages are on disk. Raises `Failed`."""
        ...

    async def publish(self, topic: str, message: str) -> None:
        """Send a message, and wait until the other side has taken it. Raises `Unsent`."""
        ...

    async def send(self, content: bytes, *, is_text: bool) -> None:
        """Send a message to a server of WebSocket. Raises `Unsent`."""
        ...

    async def close(self) -> None:
        """Say that the session ends, and end it."""
        ...
