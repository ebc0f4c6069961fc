"""Messages of topics: the body of a publication, the query of a stream, and what is sent to the actor."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Body, Message, Query, View
from trunkline.actors.core.values.terms import Id, IsoTime
from trunkline.actors.data.topics.filters import TOPIC_CHARS_MAX
from trunkline.actors.fleet.devices.record.messages import KeepAlive

TopicText = Annotated[str, Meta(min_length=1, max_length=TOPIC_CHARS_MAX)]


class PublishPost(Body, frozen=True):
    """A message for a topic of the application."""

    hint: ClassVar[str] = '{"topic": "barn/door", "message": "open"}'
    topic: TopicText
    message: Annotated[str, Meta(max_length=32767)]


class TopicMessage(View, frozen=True):
    """A message that was published to a topic."""

    topic: str
    message: str


class TopicStream(KeepAlive, frozen=True, kw_only=True):
    """Which topics a stream carries: one topic, or a filter with + and #."""

    topic: TopicText


class Publish(Message, frozen=True):
    """Publish a message for a caller of the API."""

    throttle: ClassVar[str | None] = "mqtt_publish"
    body: PublishPost
    by: Creator


class PublishInRun(Message, frozen=True):
    """Publish a message for the run of a workflow. `origin` is the run."""

    topic: str
    message: str
    origin: Origin


class MqttClientPage(Query, frozen=True):
    """Paging of the list of connected MQTT clients."""

    page: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    per_page: Annotated[int, Meta(ge=1, le=100)] = 100


class MqttClientView(View, frozen=True, kw_only=True):
    """A connected MQTT client, since it connected.

    `unacknowledged` messages are under way to it and `waiting` ones were not sent yet. Of a client with a session,
    `queued` messages are stored until it acknowledges them, and `dropped` ones found no room there; both since the
    session began. `refused` are those of the client.
    """

    client_id: str
    device_id: Id | None = None
    version: str
    address: str | None = None
    connected: IsoTime
    packets_received: int
    messages_sent: int
    unacknowledged: int
    waiting: int
    has_session: bool
    queued: int
    dropped: int
    refused: int


class MqttClientList(View, frozen=True, kw_only=True):
    """A page of the connected MQTT clients of an application."""

    items: list[MqttClientView]
    count: int
    total_count: int
    page: int
    per_page: int
    application_id: Id
