"""A message of a topic on its way: from who publishes it to who is subscribed.

Owns what a message consists of and the messages to the publisher that bring one. Does not own topics and filters
(`filters.py`), nor who gets it (`broker.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Message

NO_PROPERTIES: Final[Mapping[str, Any]] = MappingProxyType({})


class Publication:
    """A published message. `qos` is that of the publisher; a subscriber gets it with at most the QoS it asked for.

    `properties` are those of MQTT 5 that go through to subscribers, by name. `expires_ms` is the time after which
    nobody gets it, None for never. `publisher` is the client that published it, None where it was no MQTT client.
    `forms` is for who sends it: the bytes of each form, so that each is made once for all subscribers.
    """

    __slots__ = ("expires_ms", "forms", "payload", "properties", "publisher", "qos", "topic")

    def __init__(
        self,
        topic: str,
        payload: bytes,
        qos: int = 0,
        properties: Mapping[str, Any] = NO_PROPERTIES,
        expires_ms: int | None = None,
        publisher: bytes | None = None,
    ) -> None:
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.properties = properties
        self.expires_ms = expires_ms
        self.publisher = publisher
        self.forms: dict[Any, Any] = {}

    @property
    def text(self) -> str:
        """The payload as text, for workflows and event streams; what is no UTF-8 is replaced."""
        return self.payload.decode("utf-8", "replace")


class PublishFromClient(Message, frozen=True):
    """Publish a message of an MQTT client. `retain`: it is the topic's retained message from now on; with an empty
    payload the topic has none any more.

    Answers whether anybody listens. Raises `Invalid` for its topic, and `StorageFull` if the application has no room
    for one more retained message; with `always_delivers` it is then delivered and not retained, because its publisher
    has no way to learn of a refusal.
    """

    publication: Publication
    retain: bool
    origin: Origin | None
    always_delivers: bool = False


class ConnectClient(Message, frozen=True):
    """An MQTT client has connected. `will` is published if its connection ends without a goodbye, also if the server
    stops meanwhile; None if it has none.

    The will is published `delay_s` seconds after the end, unless the client comes back before and `is_resumed` is true:
    it goes on with its session. `login` is the id of the access key or certificate without which it is not published.
    """

    will: Publication | None
    retain_will: bool
    origin: Origin | None
    login: bytes | None = None
    delay_s: int = 0
    is_resumed: bool = False


class DisconnectClient(Message, frozen=True):
    """The connection of an MQTT client has ended. With `publish_will` its will is published, if it has one; otherwise
    the will is dropped."""

    publish_will: bool


class PublishDueWill(Message, frozen=True):
    """Publish the will of a client whose delay is over, if the client has not come back."""
