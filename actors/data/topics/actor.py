"""The publisher: publishes messages to topics of an application, an actor for each caller of the API.

It owns nothing but its throttle: so each caller has one. The streams of an application are on the publisher with the id
of the application; their topics are the filters of the streams. Messages are kept nowhere.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

import msgspec

from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.timestamps import HOUR_MS
from trunkline.actors.data.topics.filters import check_topic, matches
from trunkline.actors.data.topics.messages import Publish, PublishInRun, TopicMessage
from trunkline.actors.workflows.triggers.index import FlowIndex
from trunkline.actors.workflows.triggers.intake import Cause, stage
from trunkline.store import keys

OWN: Final = ("", "losant", "local")
"""How triggers and nodes of workflows name the topics of their application, where others name an integration."""


def streams_ref(application: bytes) -> Ref:
    """The actor that has the streams of an application."""
    return Ref(Publisher.kind, application, application)


class Publisher(Actor):
    """Who publishes: a user, an API token or a workflow, by its id. `ref.parent` is the application's id."""

    kind: ClassVar[str] = "publisher"
    noun: ClassVar[str] = "application"

    __slots__ = ()

    def load(self) -> bool:
        return True

    def missing(self) -> str:
        return f"There is no application {self.ref.parent.hex()}."

    def on_publish(self, message: Publish) -> None:
        """Publish a message for a caller of the API. Raises `Invalid` for its topic."""
        self._publish(message.body.topic, message.body.message, Origin(message.by.id, message.by.type))

    def on_publish_in_run(self, message: PublishInRun) -> None:
        """Publish a message for the run of a workflow. Raises `Invalid` for its topic."""
        self._publish(message.topic, message.message, message.origin)

    def _publish(self, topic: str, text: str, origin: Origin) -> None:
        """Stage what workflows wait for, and count the message; after the commit it goes to the streams."""
        check_topic(topic, "topic")
        application, now_ms = self.ref.parent, self.system.clock.wall_ms()
        watchers = [
            each
            for each in self.system.component(FlowIndex).of(application).of_type("mqttTopic")
            if each.config.get("integrationId", "") in OWN and matches(each.key, topic)
        ]
        if watchers:
            stage(self, watchers, Cause(topic, text, now_ms, origin=origin))
        self.add(keys.COUNTS, keys.app_counts_key(application, now_ms // HOUR_MS), {"mqttIn": 1})
        self.after_commit(partial(_deliver, self.system, application, topic, text))


def _deliver(system: Host, application: bytes, topic: str, text: str) -> None:
    """Offer a message to the streams whose filters select its topic, encoded once."""
    ref = streams_ref(application)
    filters = [each for each in system.topics_of(ref) if matches(each, topic)]
    if filters:
        event = msgspec.json.encode(TopicMessage(topic=topic, message=text))
        for each in filters:
            system.publish(ref, each, [(0, event)])
