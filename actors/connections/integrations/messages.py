"""Messages to the actor of an integration."""

from __future__ import annotations

from typing import Any

from trunkline.actors.connections.integrations.session import Arrived
from trunkline.actors.core.values.structs import Message


class TakeMessages(Message, frozen=True):
    """Take messages that have arrived on the connection, in their order."""

    arrived: list[Arrived]


class NoteConnection(Message, frozen=True):
    """The connection was opened, has ended, or could not be opened; `data` is what workflows are told."""

    data: dict[str, Any]
