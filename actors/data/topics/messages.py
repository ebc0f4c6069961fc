"""Messages of topics: the body of a publication, the query of a stream, and what is sent to the actor."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

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
    """Which MQTT clients: those that are connected, or those without a connection that have a session."""

    state: Literal["connected", "sleeping"] = "connected"
    page: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    per_page: Annotated[int, Meta(ge=1, le=100)] = 100


class MqttRefusal(View, frozen=True):
    """Why a message or a subscription of an MQTT client was refused: a reason code of MQTT 5, a sentence, and when."""

    code: int
    message: str
    time: IsoTime


class MqttClientView(View, frozen=True, kw_only=True):
    """An MQTT client: one that is connected, since it connected, or one that sleeps: its session waits for it.

    Of one that is connected, `unacknowledged` messages are under way to it and `waiting` ones were not sent yet;
    `refused` are messages and subscriptions of the client, and `last_refusal` says why the last one was. Of a session,
    `queued` messages are stored until its client acknowledges them, and `dropped` ones found no room there; both since
    it began. One that sleeps has been `disconnected` since then, `ends` at a time, and has `subscriptions`.
    """

    client_id: str
    device_id: Id | None = None
    state: Literal["connected", "sleeping"]
    version: str | None = None
    transport: Literal["tcp", "tls", "websocket"] | None = None
    address: str | None = None
    connected: IsoTime | None = None
    packets_received: int | None = None
    messages_sent: int | None = None
    unacknowledged: int | None = None
    waiting: int | None = None
    has_session: bool
    queued: int
    dropped: int
    refused: int | None = None
    last_refusal: MqttRefusal | None = None
    disconnected: IsoTime | None = None
    ends: IsoTime | None = None
    subscriptions: int | None = None


class MqttClientList(View, frozen=True, kw_only=True):
    """A page of MQTT clients of an application."""

    items: list[MqttClientView]
    count: int
    total_count: int
    page: int
    per_page: int
    application_id: Id


class ListSleepingClients(Message, frozen=True):
    """The MQTT clients of an application without a connection that have a session."""

    application: bytes
    query: MqttClientPage
