"""The actor of an integration: what arrives on its connection triggers workflows.

Its record belongs to the application. A message is on disk, as a trigger of each workflow that waits for it, before it
is acknowledged. What no workflow waits for is counted and dropped.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from trunkline.actors.integrations.messages import NoteConnection, TakeMessages
from trunkline.actors.integrations.session import Arrived
from trunkline.actors.plain.integrations import INTEGRATION
from trunkline.actors.runtime.actor import Actor
from trunkline.actors.topics.filters import matches
from trunkline.actors.triggers.index import FlowIndex, Triggers
from trunkline.actors.triggers.intake import Cause, stage
from trunkline.actors.values.origin import Origin
from trunkline.actors.values.timestamps import HOUR_MS
from trunkline.store import keys

_BY_DEFAULT: Final = {"message": True}
"""What starts a workflow whose trigger does not say."""


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
        triggers = self._triggers()
        for each in message.arrived:
            self._stage(triggers, each.data)
            if each.topic is not None:
                self._stage_topic(triggers, each, each.topic)
        hour = self.system.clock.wall_ms() // HOUR_MS
        counts = {"integration": len(message.arrived)}
        self.add(keys.COUNTS, keys.app_counts_key(self.ref.parent, hour), counts)

    def on_note_connection(self, message: NoteConnection) -> None:
        """Stage the triggers of a beginning, an end or a failure."""
        self._stage(self._triggers(), message.data)

    def _triggers(self) -> Triggers:
        return self.system.component(FlowIndex).of(self.ref.parent)

    def _stage(self, triggers: Triggers, data: dict[str, Any]) -> None:
        """Stage what triggers of the integration wait for."""
        id, type = self.ref.id.hex(), data["type"]
        watchers = [
            each
            for each in triggers.of_type("integration")
            if each.key.lower() == id and each.config.get(type, _BY_DEFAULT.get(type, False))
        ]
        if watchers:
            stage(self, watchers, self._cause(id, data))

    def _stage_topic(self, triggers: Triggers, arrived: Arrived, topic: str) -> None:
        """Stage what triggers of a topic of this broker wait for."""
        id = self.ref.id.hex()
        watchers = [
            each
            for each in triggers.of_type("mqttTopic")
            if each.config.get("integrationId", "").lower() == id and matches(each.key, topic)
        ]
        if watchers:
            stage(self, watchers, self._cause(topic, arrived.text))

    def _cause(self, trigger_id: str, data: Any) -> Cause:
        origin = Origin(self.ref.id.hex(), "integration")
        return Cause(trigger_id, data, self.system.clock.wall_ms(), origin=origin)
