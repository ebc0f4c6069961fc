"""Streams of topics with which endpoints answer: what they may name, and the subscriptions that they are made of.

A stream has the messages of topics of the application, each by a topic or a filter, and what devices report and are
told: `losant/DEVICE_ID/state` and `losant/DEVICE_ID/command`, also with `trunkline` in front. The workflow that answers
says which; it may read them all, as it may read the devices. Owns these rules. Does not own how events are sent, nor
for how long (`http/experiences/topic_answer.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.subscription import Events, Subscription
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.terms import TOPICS_OF_DEVICES
from trunkline.actors.data.topics.actor import streams_ref
from trunkline.actors.data.topics.filters import TOPIC_CHARS_MAX, check_filter
from trunkline.actors.data.topics.messages import TopicMessage
from trunkline.actors.fleet.devices.actor.commands import COMMAND_TOPIC
from trunkline.actors.fleet.devices.actor.state_feed import STATE_TOPIC
from trunkline.actors.fleet.devices.record.messages import Listen

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System

TOPICS_MAX: Final = 10
"""Topics of one stream: each is a subscription, and counts as a stream of the server."""

_OF_DEVICE: Final = re.compile(r"(?:losant|trunkline)/([0-9A-Fa-f]{24})/(state|command)")
_STREAM_OF: Final = {"state": STATE_TOPIC, "command": COMMAND_TOPIC}


def check_topics(topics: Sequence[str]) -> None:
    """Raise `Invalid` unless a stream may have these topics."""
    if not 1 <= len(topics) <= TOPICS_MAX:
        raise Invalid(f"{len(topics)} topics are given; a stream has 1 to {TOPICS_MAX}.")
    for each in topics:
        if len(each) > TOPIC_CHARS_MAX:
            raise Invalid(f"a topic has {len(each)} characters; it has at most {TOPIC_CHARS_MAX}.")
        if _OF_DEVICE.fullmatch(each) is not None:
            continue
        if each.startswith(TOPICS_OF_DEVICES):
            raise Invalid(
                f"{each} is not a topic of a device; these are losant/DEVICE_ID/state and losant/DEVICE_ID/command."
            )
        check_filter(each, "a topic")


class TopicSubscription:
    """The subscription to one topic or filter."""

    def __init__(self, system: System, application: bytes, topic: str) -> None:
        """Subscribe. Raises `NotFound` if there is no such device, and `Overloaded` if too many streams are open."""
        found = _OF_DEVICE.fullmatch(topic)
        self._system = system
        self._topic = None if found is None else topic
        """The topic of a device: its events do not name it."""
        ref, name = streams_ref(application), topic
        if found is not None:
            ref, name = Ref("device", application, bytes.fromhex(found[1])), _STREAM_OF[found[2]]
        self.subscription: Subscription = system.subscribe(ref, name, Listen())

    def messages(self, events: Events) -> list[bytes]:
        """The JSON of each message, with its topic."""
        if self._topic is None:
            return [event for _, event in events]
        topic = self._topic
        return [msgspec.json.encode(TopicMessage(topic=topic, message=event.decode())) for _, event in events]

    def close(self) -> None:
        """End the subscription."""
        self._system.streams.close(self.subscription)
