"""A link as its registry sees it (`links.py`): whose it is, how far it was given commands, the session behind it."""

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


class Link:
    """One link of a device. Make one with `Links.open`.

    `given` has, for each device whose commands it carries and that is not behind, the number of the last command that
    it was given. `behind` are the devices with commands that it may have to be given.
    """

    __slots__ = (
        "application",
        "behind",
        "device",
        "given",
        "is_closed",
        "is_taking",
        "number",
        "owner",
        "peripherals_after",
        "session",
    )

    def __init__(
        self, application: bytes, device: bytes, number: int, session: LinkSession, owner: bytes
    ) -> None:
        self.application = application
        self.owner = owner
        self.device = device
        self.number = number
        self.session = session
        self.given: dict[bytes, int] = {}
        self.behind: dict[bytes, None] = {device: None}
        self.is_taking = False
        self.is_closed = False
        self.peripherals_after: bytes | None = None  # of a gateway: the last one that was looked at

    def lose(self, device: bytes) -> None:
        """Forget a peripheral that the link does not carry any more."""
        self.given.pop(device, None)
        self.behind.pop(device, None)

    def is_ready(self, device: bytes) -> bool:
        """Whether it would be given the next command of a device at once."""
        return device in self.given and device not in self.behind and self.session.has_room()
