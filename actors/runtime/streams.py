"""All open streams of this process: their limit, publishing, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.actors.runtime.ref import APPLICATION
from trunkline.actors.runtime.subscription import Ending, Events, Subscription
from trunkline.actors.values.errors import Overloaded

if TYPE_CHECKING:
    from trunkline.actors.runtime.mailbox import Mailbox
    from trunkline.limits.table import Limits


class Streams:
    """The registry of subscriptions.

    `published` counts events put into buffers, `slow_consumers` readers whose stream was closed as too slow.
    """

    def __init__(self, limits: Limits) -> None:
        self.published = 0
        self.slow_consumers = 0
        self._limits = limits
        # A dict, not a set: it keeps the order of subscribing, so that tests are deterministic.
        self._open: dict[Subscription, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, mailbox: Mailbox, topic: str) -> Subscription:
        """Subscribe to `topic` of the actor of `mailbox`. Raises `Overloaded` at the limits.

        The streams of an application have larger buffers, because many devices share them.
        """
        limits = self._limits
        if len(self._open) >= limits.streams_max:
            raise Overloaded(f"{limits.streams_max} streams are open, which is the bound of this server.")
        if mailbox.subscribers is None:
            mailbox.subscribers = {}
        length_max, bytes_max = limits.stream_buffer_length_max, limits.stream_buffer_bytes_max
        if mailbox.ref.kind == APPLICATION:
            most = limits.application_streams_max
            if sum(map(len, mailbox.subscribers.values())) >= most:
                raise Overloaded(
                    f"{most} streams of this application are open, which is the bound. Close one of them first."
                )
            length_max = limits.application_stream_buffer_length_max
            bytes_max = limits.application_stream_buffer_bytes_max
        subscription = Subscription(mailbox.subscribers, topic, length_max=length_max, bytes_max=bytes_max)
        mailbox.subscribers.setdefault(topic, {})[subscription] = None
        self._open[subscription] = None
        return subscription

    def close(self, subscription: Subscription) -> None:
        """Remove a subscription whose reader has left. Idempotent."""
        self._open.pop(subscription, None)
        readers = subscription.readers.get(subscription.topic)
        if readers is not None:
            readers.pop(subscription, None)
            if not readers:
                del subscription.readers[subscription.topic]

    def publish(self, mailbox: Mailbox, topic: str, events: Events) -> None:
        """Offer the same events to every subscriber. Never waits: slow subscribers are closed and counted."""
        size_bytes = sum(len(event) for _, event in events)
        for subscription in (mailbox.subscribers or {}).get(topic, ()):
            if subscription.ending is not None:
                continue
            if subscription.offer(events, size_bytes):
                self.published += len(events)
            else:
                self.slow_consumers += 1

    def end_all(self, why: Ending) -> None:
        """End every stream."""
        for subscription in self._open:
            subscription.end(why)

    def end_of(self, mailbox: Mailbox, why: Ending) -> None:
        """End the streams of one actor."""
        for readers in (mailbox.subscribers or {}).values():
            for subscription in readers:
                subscription.end(why)
