"""What the parts of a session ask of it (`session.py`), which knows them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from trunkline.actors.data.topics.broker import Client as Receiver

if TYPE_CHECKING:
    from trunkline.actors.core.values.structs import Message
    from trunkline.actors.data.topics.session_records import Options
    from trunkline.http.mqtt.acknowledgements import Acknowledgements
    from trunkline.http.mqtt.outgoing import Outgoing, OutgoingMessages
    from trunkline.http.mqtt.packets import Properties
    from trunkline.http.mqtt.service import MqttService
    from trunkline.limits.table import Limits


class Queue(Protocol):
    """What waits in the store for a session (`session_queue.py`)."""

    def take(self, group: bytes, options: Options) -> None:
        """Take what waits for a shared subscription, if the client has all that waited for itself."""


class MqttConnection(Receiver, Protocol):
    """The connection of a client that has logged in. No call waits."""

    service: MqttService
    limits: Limits
    version: int
    is_open: bool
    acknowledgements: Acknowledgements
    outgoing: OutgoingMessages

    @property
    def queue(self) -> Queue | None:
        """What waits in the store; None for a session that ends with its connection."""

    def disconnect(self, code: int, reason: str) -> None:
        """End the connection, and say why where the version has a packet for that."""

    def reason(self, sentence: str) -> Properties:
        """The property with a sentence, if the client wants it and takes a packet with it."""

    def change_session(
        self, message: Message, answer: Callable[[], bytes], then: Callable[[], None] | None = None
    ) -> None:
        """Take a turn of the session that outlives the connection, answer when its writes are on disk, and call `then`;
        if they cannot be stored, the connection ends. Raises `DomainError` if the turn is refused."""

    def may_receive(self, topic: str) -> bool:
        """Whether the client may still have messages of a topic, which were queued when it was allowed to."""

    def send_message(self, message: Outgoing) -> None:
        """Send a message, or let it wait; too many that wait end the connection."""

    def pump(self) -> None:
        """The client may have room: send what waits for it."""

    def offer_again(self, devices: Sequence[bytes]) -> None:
        """The client has subscribed to the commands of these devices, some of which it was not sent."""
