"""The session behind a link (`links.py`), as the registry of links sees it, and why the server ends it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from trunkline.actors.core.runtime.moves import MOVED
from trunkline.actors.fleet.devices.commands.command_messages import LinkCommand


class LinkEnd(Enum):
    """Why the server ends a link."""

    SUPERSEDED = "A newer link of the device took over."
    GONE = "The device was deleted."
    FAILED = "The server could not store what the link needs."
    MOVED = MOVED


class LinkSession(Protocol):
    """What a link calls: the session behind it. No call waits or raises."""

    def deliver(self, commands: Sequence[LinkCommand]) -> None:
        """Send the commands, which are on disk. A few at a time, and only some after `has_room` was true."""

    def has_room(self) -> bool:
        """Whether the client has taken enough of what it was sent before. Call `Links.pump` when it has again."""

    def end(self, why: LinkEnd) -> None:
        """End the link: it carries nothing any more. The session closes its connection, and may call `Links.close`."""

    def counts(self) -> tuple[int, int]:
        """The messages from the client and to it, for the connection log."""
