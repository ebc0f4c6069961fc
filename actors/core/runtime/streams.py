"""All open streams of this process: their limits, publishing, and their end.

An owner gets at most half of them, and each is one of the connections that last, of which an owner gets half as well.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.ref import APPLICATION
from trunkline.actors.core.runtime.subscription import Ending, Events, Subscription
from trunkline.actors.core.values.errors import Overloaded

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.mailbox import Mailbox
    from trunkline.limits.table import Limits


class Streams:
    """The registry of subscriptions.

    `published` counts events put into buffers, `slow_consumers` readers whose stream was closed as too slow.
    """

    def __init__(self, limits: Limits, lasting: OwnerShares) -> None:
        self.published = 0
        self.slow_consumers = 0
        self._limits = limits
        self._lasting = lasting
        self._places = OwnerShares("streams", limits.streams_max, leaves=1)
        # A dict, not a set: it keeps the order of subscribing, so that tests are deterministic.
        self._open: dict[Subscription, Hashable] = {}
        """Who is charged for each."""

    def __len__(self) -> int:
        return len(self._open)

    def open(self, mailbox: Mailbox, topic: str, owner: Hashable) -> Subscription:
        """Subscribe to `topic` of the actor of `mailbox`, charged to `owner`. Raises `Overloaded` at the limits.

        The streams of an application have larger buffers, because many devices share them.
        """
        limits = self._limits
        if mailbox.subscribers is None:
            mailbox.subscribers = {}
        length_max, bytes_max = limits.stream_buffer_length_max, limits.stream_buffer_bytes_max
        if mailbox.ref.kind == APPLICATION:
            most = limits.application_streams_max
            if sum(map(len, mailbox.subscribers.values())) >= most:
                raise Overloaded(
                    f"{most} streams of this application are open, which is the limit. Close one of them first."
                )
            length_max = limits.application_stream_buffer_length_max
            bytes_max = limits.application_stream_buffer_bytes_max
        self._places.take_at_once(owner)
        try:
            self._lasting.take_at_once(owner)
        except BaseException:
            self._places.leave(owner)
            raise
        subscription = Subscription(mailbox.subscribers, topic, length_max=length_max, bytes_max=bytes_max)
        mailbox.subscribers.setdefault(topic, {})[subscription] = None
        self._open[subscription] = owner
        return subscription

    def close(self, subscription: Subscription) -> None:
        """Remove a subscription whose reader has left. Idempotent."""
        if subscription in self._open:
            owner = self._open.pop(subscription)
            self._places.leave(owner)
            self._lasting.leave(owner)
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

    def end_of(self, mailbox: Mailbox, why: Ending, topic: str | None = None) -> None:
        """End the streams of one actor, or those of one of its topics."""
        for of_topic, readers in (mailbox.subscribers or {}).items():
            if topic in (None, of_topic):
                for subscription in readers:
                    subscription.end(why)
