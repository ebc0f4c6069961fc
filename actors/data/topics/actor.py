"""The publisher: publishes messages to topics of an application, an actor for each caller of the API and MQTT client.

It owns its throttle, and the will of its client: so each caller has one. The streams of an application are on the
publisher with the id of the application; their topics are the filters of the streams. Messages are kept only where they
are retained (`retained.py`).
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import msgspec

from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import StorageFull
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.timestamps import HOUR_MS
from trunkline.actors.data.topics.broker import Broker
from trunkline.actors.data.topics.filters import check_topic, matches
from trunkline.actors.data.topics.messages import Publish, PublishInRun, TopicMessage
from trunkline.actors.data.topics.publication import (
    ConnectClient,
    DisconnectClient,
    Publication,
    PublishDueWill,
    PublishFromClient,
)
from trunkline.actors.data.topics.queues import Queued, stage_for
from trunkline.actors.data.topics.retained import stage_retained
from trunkline.actors.data.topics.wills import Will, Wills, decode_will, encode_will, may_be_published
from trunkline.actors.fleet.devices.state.traffic import Traffic
from trunkline.actors.workflows.flows.triggers import OWN_BROKER
from trunkline.actors.workflows.triggers.index import FlowIndex
from trunkline.actors.workflows.triggers.intake import Cause, stage
from trunkline.store import keys


def streams_ref(application: bytes) -> Ref:
    """The actor that has the streams of an application."""
    return Ref(Publisher.kind, application, application)


class Publisher(Actor):
    """Who publishes: a user, an API token, a workflow or an MQTT client, by its id. `ref.parent` is the application's
    id."""

    kind: ClassVar[str] = "publisher"
    noun: ClassVar[str] = "application"

    __slots__ = ()

    def load(self) -> bool:
        return True

    def missing(self) -> str:
        return f"There is no application {self.ref.parent.hex()}."

    def on_publish(self, message: Publish) -> None:
        """Publish a message for a caller of the API. Raises `Invalid` for its topic."""
        publication = Publication(message.body.topic, message.body.message.encode())
        self._publish(publication, Origin(message.by.id, message.by.type))

    def on_publish_in_run(self, message: PublishInRun) -> None:
        """Publish a message for the run of a workflow. Raises `Invalid` for its topic."""
        self._publish(Publication(message.topic, message.message.encode()), message.origin)

    def on_publish_from_client(self, message: PublishFromClient) -> bool:
        """Publish a message of an MQTT client, and retain it if it asks for that. Answers whether anybody listens."""
        publication, origin = message.publication, message.origin
        return self._publish(
            publication, origin, retain=message.retain, always_delivers=message.always_delivers
        )

    def on_connect_client(self, message: ConnectClient) -> None:
        """Keep the will of a client that has connected. A will that still waits for its time is dropped if the client
        goes on with its session, and published if that has ended; one without a delay was to be published before."""
        key = keys.will_key(self.ref.parent, self.ref.id)
        raw = self.system.journal.get(keys.MESSAGES, key)
        will = None if raw is None else decode_will(raw, self.ref.id)
        if will is not None and not (message.is_resumed and will.delay_s):
            self._publish_will(will)
        if message.will is not None:
            check_topic(message.will.topic, "will topic")
            will = Will(message.will, message.retain_will, message.origin, message.login, message.delay_s)
            self.put(keys.MESSAGES, key, encode_will(will))
        elif raw is not None:
            self.delete(keys.MESSAGES, key)

    def on_disconnect_client(self, message: DisconnectClient) -> None:
        """Publish the will of a client whose connection has ended, let it wait for its time, or drop it."""
        key = keys.will_key(self.ref.parent, self.ref.id)
        raw = self.system.journal.get(keys.MESSAGES, key)
        if raw is None:
            return
        will = decode_will(raw, self.ref.id)
        if message.publish_will and will.delay_s:
            due_ms = will.due_ms or self.system.clock.wall_ms() + 1000 * will.delay_s
            self.put(keys.MESSAGES, key, encode_will(will._replace(due_ms=due_ms)))
            self.after_commit(partial(self.system.component(Wills).schedule, self.ref, due_ms))
            return
        self.delete(keys.MESSAGES, key)
        if message.publish_will:
            self._publish_will(will)

    def on_publish_due_will(self, _message: PublishDueWill) -> None:
        """Publish a will whose time has come."""
        key = keys.will_key(self.ref.parent, self.ref.id)
        raw = self.system.journal.get(keys.MESSAGES, key)
        will = None if raw is None else decode_will(raw, self.ref.id)
        if will is not None and will.due_ms is not None and self.system.clock.wall_ms() >= will.due_ms:
            self.delete(keys.MESSAGES, key)
            self._publish_will(will)

    def _publish_will(self, will: Will) -> None:
        """Publish a will, if its client could still log in as it did. One that cannot be retained is delivered to all
        who listen: what is refused here would be refused to each later connection of its client."""
        with self.system.store.snapshot() as snapshot:
            if not may_be_published(snapshot, self.ref.parent, will):
                return
        publication = will.publication
        expiry_s = publication.properties.get("message_expiry_interval")
        if expiry_s is not None:  # it begins now
            publication.expires_ms = self.system.clock.wall_ms() + 1000 * expiry_s
            left = dict(publication.properties)
            del left["message_expiry_interval"]
            publication.properties = left
        self._publish(publication, will.origin, retain=will.retain, always_delivers=True)

    def _publish(
        self,
        publication: Publication,
        origin: Origin | None,
        *,
        retain: bool = False,
        always_delivers: bool = False,
    ) -> bool:
        """Stage what workflows wait for, and count the message; after the commit it goes to all who listen. Returns
        whether anybody does now.

        With `always_delivers` a message that cannot be retained is delivered all the same.
        """
        topic = publication.topic
        check_topic(topic, "topic")
        application, now_ms = self.ref.parent, self.system.clock.wall_ms()
        if retain:
            try:
                stage_retained(self, publication)
            except StorageFull as refusal:
                if not always_delivers:
                    raise
                self.after_commit(partial(_note_not_retained, self.system, application, refusal))
        watchers = [
            each
            for each in self.system.component(FlowIndex).of(application).of_type("mqttTopic")
            if each.config.get("integrationId", "") in OWN_BROKER and matches(each.key, topic)
        ]
        if watchers:
            stage(self, watchers, Cause(topic, publication.text, now_ms, origin=origin))
        self.add(keys.COUNTS, keys.app_counts_key(application, now_ms // HOUR_MS), {"mqttIn": 1})
        broker = self.system.component(Broker)
        members, sleepers, is_wanted = broker.route(application, publication)
        queued: list[Queued] = []
        if sleepers:
            queued, dropped = stage_for(self, publication, sleepers, retain=retain)
            if dropped:
                broker.note_dropped(application, dropped)
        self.after_commit(partial(broker.deliver, application, publication, members, queued, retain=retain))
        self.after_commit(partial(_stream, self.system, application, publication))
        return is_wanted or bool(watchers) or bool(_filters_of(self.system, application, topic))


def _filters_of(system: Host, application: bytes, topic: str) -> list[str]:
    """The filters of streams that select a topic."""
    return [each for each in system.topics_of(streams_ref(application)) if matches(each, topic)]


def _note_not_retained(system: Host, application: bytes, refusal: StorageFull) -> None:
    """A message was delivered, and not retained: its publisher does not know."""
    system.component(Traffic).refuse(application, None, "mqtt.publish", refusal)
    system.component(Broker).note_not_retained(application, refusal.message)


def _stream(system: Host, application: bytes, publication: Publication) -> None:
    """Offer a message to the streams whose filters select its topic, encoded once."""
    ref = streams_ref(application)
    filters = _filters_of(system, application, publication.topic)
    if filters:
        event = msgspec.json.encode(TopicMessage(topic=publication.topic, message=publication.text))
        for each in filters:
            system.publish(ref, each, [(0, event)])
