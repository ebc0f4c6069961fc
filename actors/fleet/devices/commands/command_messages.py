"""Commands over a device's link, and the opening and closing of links: messages to the device actor.

A session does not send most of them itself: `Links` (`fleet/devices/commands/links.py`) does. It sends
`AcknowledgeCommand` and `GiveUpCommand`.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Message


class LinkCommand(NamedTuple):
    """A command as a link sends it.

    `id` is the number of the command, at most 2**32 - 1: it rises with each command of a device, and names it only
    together with the device. `payload` is UNSET if the command has none. `time_ms` is the time of the command, which
    its sender may have given. `device` is the peripheral that it is for, None for the device of the link.
    """

    id: int
    name: str
    payload: Any
    time_ms: int
    device: bytes | None


class AcknowledgeCommand(Message, frozen=True):
    """The device has the command with this `id`. Answers whether it waited for that.

    `gateway` is the device whose link brings the acknowledgement, None for the device itself. Raises `NotFound` if
    the device has another gateway.
    """

    id: int
    gateway: bytes | None = None


class GiveUpCommand(Message, frozen=True):
    """The client of the link cannot take the command with this `id`, as that is too large: it expires.

    Answers and raises as `AcknowledgeCommand`.
    """

    id: int
    gateway: bytes | None = None


class DeliverCommands(Message, frozen=True):
    """Give the next commands that wait to the link `number` of the device `holder`: itself, or its gateway.

    Raises `NotFound` if the device has another gateway.
    """

    holder: bytes
    number: int


class LinkOpened(Message, frozen=True):
    """The device opened a link: it is connected, and from its first link on its commands wait for it.

    A link that was open ends: the log has that first. Answers whether the device is a gateway.
    """

    throttle: ClassVar[str | None] = "set_connection_status"
    number: int
    address: str | None
    origin: Origin | None = None


class LinkClosed(Message, frozen=True):
    """The link `number` of the device is closed. Nothing changes if that link has ended for the log already.

    `number` None: whichever was open when the server stopped.
    """

    number: int | None
    reason: str
    messages_from_client: int | None = None
    messages_to_client: int | None = None
