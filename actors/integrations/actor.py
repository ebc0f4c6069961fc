"""The actor of an integration: takes what arrives on its connection.

Its record belongs to the application. A message is on disk before it is acknowledged. Workflows do not run yet, so it
is counted and dropped.
"""

from __future__ import annotations

from typing import ClassVar

from trunkline.actors.integrations.messages import NoteConnection, TakeMessages
from trunkline.actors.plain.integrations import INTEGRATION
from trunkline.actors.runtime.actor import Actor
from trunkline.actors.values.timestamps import HOUR_MS
from trunkline.store import keys


class Integration(Actor):
    """One integration of an application. `ref.parent` is the application."""

    kind: ClassVar[str] = "integration"
    noun: ClassVar[str] = "integration"

    __slots__ = ()

    def load(self) -> bool:
        key = keys.record_key(INTEGRATION.name, self.ref.parent, self.ref.id)
        return self.system.journal.get(keys.RECORDS, key) is not None

    def on_take_messages(self, message: TakeMessages) -> None:
        """Count messages."""
        hour = self.system.clock.wall_ms() // HOUR_MS
        counts = {"integration": len(message.arrived)}
        self.add(keys.COUNTS, keys.app_counts_key(self.ref.parent, hour), counts)

    def on_note_connection(self, message: NoteConnection) -> None:
        """Take note of a beginning, an end or a failure of the connection."""
