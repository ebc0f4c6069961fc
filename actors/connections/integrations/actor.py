"""The actor of an integration: what arrives on its connection triggers workflows.

Its record belongs to the application. A message is on disk, as a trigger of each workflow that waits for it, before it
is acknowledged. What no workflow waits for is counted and dropped.
"""

from __future__ import annotations

from typing import Any, ClassVar

from trunkline.actors.connections.integrations.messages import NoteConnection, TakeMessages
from trunkline.actors.connections.integrations.resource import INTEGRATION
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.timestamps import HOUR_MS
from trunkline.actors.data.topics.filters import matches
from trunkline.actors.workflows.triggers.index import FlowIndex, Triggers, Watcher
from trunkline.actors.workflows.triggers.intake import Cause, stage
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
        """Stage the triggers of messages, and count them."""
        id, watchers, of_topics = self.ref.id.hex(), self._watchers("message"), self._topic_watchers()
        for each in message.arrived:
            if watchers:
                stage(self, watchers, self._cause(id, each.data))
            if each.topic is not None:
                selected = [watcher for watcher in of_topics if matches(watcher.key, each.topic)]
                if selected:
                    stage(self, selected, self._cause(each.topic, each.text))
        hour = self.system.clock.wall_ms() // HOUR_MS
        counts = {"integration": len(message.arrived)}
        self.add(keys.COUNTS, keys.app_counts_key(self.ref.parent, hour), counts)

    def on_note_connection(self, message: NoteConnection) -> None:
        """Stage the triggers of a beginning, an end or a failure."""
        watchers = self._watchers(message.data["type"])
        if watchers:
            stage(self, watchers, self._cause(self.ref.id.hex(), message.data))

    def _watchers(self, event: str) -> list[Watcher]:
        """The triggers of this integration that wait for the event."""
        id, default = self.ref.id.hex(), event == "message"
        return [
            each
            for each in self._triggers.of_type("integration")
            if each.key.lower() == id and each.config.get(event, default)
        ]

    def _topic_watchers(self) -> list[Watcher]:
        """The triggers that wait for topics of this broker."""
        id = self.ref.id.hex()
        return [
            each
            for each in self._triggers.of_type("mqttTopic")
            if each.config.get("integrationId", "").lower() == id
        ]

    @property
    def _triggers(self) -> Triggers:
        return self.system.component(FlowIndex).of(self.ref.parent)

    def _cause(self, trigger_id: str, data: Any) -> Cause:
        origin = Origin(self.ref.id.hex(), "integration")
        return Cause(trigger_id, data, self.system.clock.wall_ms(), origin=origin)
