"""An answer that stays open: the messages of topics as server-sent events, to who asked an endpoint for them.

Owns the sending, and when it ends: when the client leaves or does not read, when the visitor may not use the endpoint
any more, and after an hour at the latest, so that the workflow decides again. Browsers then ask again by themselves.
Does not own which topics there are (`actors/presentation/experience/topic_streams.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import trio

from trunkline.actors.core.runtime.system import System
from trunkline.actors.presentation.experience.topic_streams import TopicSubscription
from trunkline.http.streams.sse import KEEP_ALIVE

STREAM_S_MAX: Final = 3_600.0
"""How long an answer stays open."""
CHECK_S: Final = 15.0
"""How often a comment is sent and everything is checked again that may have changed."""
_EVENT: Final = b"event: mqttMessage\ndata: %b\n\n"


class TopicAnswer:
    """The open answer. `may_send` says at once whether the visitor may still have it, `may_stay` also looks at what
    takes a read. `close` gives back what it holds, and has to be called."""

    def __init__(
        self,
        system: System,
        application: bytes,
        topics: Sequence[str],
        may_send: Callable[[], bool],
        may_stay: Callable[[], Awaitable[bool]],
        closed: Callable[[], None],
    ) -> None:
        """Subscribe. Raises `NotFound` and `Overloaded`; nothing is held then."""
        self._may_send = may_send
        self._may_stay = may_stay
        self._closed: Callable[[], None] | None = closed
        self._topics: list[TopicSubscription] = []
        self._sending = trio.Lock()
        try:
            for each in dict.fromkeys(topics):
                self._topics.append(TopicSubscription(system, application, each))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the subscriptions. Idempotent."""
        for each in self._topics:
            each.close()
        self._topics.clear()
        if self._closed is not None:
            closed, self._closed = self._closed, None
            closed()

    async def send_to(self, send: Callable[[bytes], Awaitable[Any]]) -> None:
        """Send events until the answer ends."""
        with trio.move_on_after(STREAM_S_MAX):
            await send(KEEP_ALIVE)  # so that proxies and clients see that the stream is open
            async with trio.open_nursery() as nursery:
                for each in self._topics:
                    nursery.start_soon(self._follow, each, send, nursery.cancel_scope)
                while await self._wait_for_check():
                    async with self._sending:
                        await send(KEEP_ALIVE)
                nursery.cancel_scope.cancel()

    async def _wait_for_check(self) -> bool:
        await trio.sleep(CHECK_S)
        return self._may_send() and await self._may_stay()

    async def _follow(
        self, topic: TopicSubscription, send: Callable[[bytes], Awaitable[Any]], scope: trio.CancelScope
    ) -> None:
        """Send the events of one topic. The answer ends with the first of its subscriptions."""
        subscription = topic.subscription
        while True:
            events = await subscription.receive()
            if events:
                async with self._sending:
                    if not self._may_send():
                        break
                    await send(b"".join([_EVENT % each for each in topic.messages(events)]))
            elif subscription.ending is not None:
                break
        scope.cancel()
