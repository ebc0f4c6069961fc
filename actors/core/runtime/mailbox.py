"""The mailbox of one actor: admission, queue, subscribers and statistics.

Owns admission (capacity first, then the throttle, so that a refused call uses neither a slot nor a call of
the window), the queue behind an asynchronous turn, the subscribers of the actor's streams, and its statistics.
It outlives the actor's memory: when a bug restarts the actor, its throttles, subscribers and statistics stay.

A mailbox has no task. While all turns are synchronous, it only counts the messages that wait for a commit. Only
an asynchronous turn makes later messages queue; then the system starts a task for the queue.
"""

from __future__ import annotations

import math
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

import trio

from trunkline.actors.core.values.errors import DomainError, Overloaded, TooManyRequests
from trunkline.actors.core.values.structs import Message
from trunkline.limits.window import SlidingWindow, Verdict

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.actor import Actor, Handler, Stamp
    from trunkline.actors.core.runtime.ref import Ref
    from trunkline.actors.core.runtime.subscription import Subscription
    from trunkline.limits.table import Limits, Rate
    from trunkline.store.commit_group import Group

FULL: Final = "mailbox"
"""The `reason` of refusals at the bound of a mailbox."""


class QueuedMessage:
    """A message in the queue of a busy actor, with its answer when it is handled.

    It is handled even if its caller was cancelled, and in the context of its caller, who is charged for it.
    """

    __slots__ = ("context", "entered_s", "error", "event", "group", "handler", "message", "stamp", "value")

    def __init__(
        self, message: Message, handler: Handler, entered_s: float, stamp: Stamp | None = None
    ) -> None:
        self.message = message
        self.handler = handler
        self.stamp = stamp
        self.entered_s = entered_s
        self.context = copy_context()
        self.event = trio.Event()
        self.value: Any = None
        self.group: Group | None = None
        self.error: DomainError | None = None


class Mailbox:
    """Admission, queue, subscribers and statistics of the actor at `ref`.

    `actor` is its memory, None after it was dropped; `epoch` is the journal's when the memory was loaded;
    `group` is the commit of its latest writes, None when they are known to be on disk. `queue` exists while an
    asynchronous turn runs; its first message is the one being handled. `awaiting_commit` counts callers whose
    turn is over and who wait for the commit. `gone` means that the actor does not exist (any more) and that the
    mailbox is removed when its queue is empty.
    """

    __slots__ = (
        "actor",
        "awaiting_commit",
        "epoch",
        "gone",
        "group",
        "handled",
        "last_error",
        "last_used_s",
        "queue",
        "ref",
        "refused",
        "restarts",
        "subscribers",
        "windows",
    )

    def __init__(self, ref: Ref) -> None:
        self.ref = ref
        self.actor: Actor | None = None
        self.epoch = -1
        self.gone = False
        self.awaiting_commit = 0
        self.queue: deque[QueuedMessage] | None = None
        self.group: Group | None = None
        self.windows: dict[str, SlidingWindow] | None = None
        self.subscribers: dict[str, dict[Subscription, None]] | None = None
        self.last_used_s = 0.0
        self.handled = 0
        self.refused = 0
        self.restarts = 0
        self.last_error: str | None = None

    @property
    def depth(self) -> int:
        """Messages that wait for their turn or their commit. Queued messages of cancelled callers count as well."""
        return self.awaiting_commit if self.queue is None else self.awaiting_commit + len(self.queue)

    @property
    def subscriber_count(self) -> int:
        """The open streams of the actor."""
        return sum(map(len, self.subscribers.values())) if self.subscribers else 0

    def admit(self, message: Message, limits: Limits, now_s: float) -> Verdict | None:
        """Admit `message` and count it, or refuse it. Never waits.

        Returns the throttle's verdict, None if no throttle applies. Raises `TooManyRequests` if the throttle is
        exhausted, `Overloaded` if the mailbox is full.
        """
        if self.depth >= limits.mailbox_length_max:
            raise self._full()
        return self.spend(message, limits, now_s)

    def check(self, message: Message, limits: Limits, now_s: float) -> None:
        """Raise the error that `admit` would raise, or `Overloaded` if the actor is busy. Spends no call."""
        if self.depth >= limits.mailbox_length_max:
            raise self._full()
        if self.queue is not None:
            self.refused += 1
            raise Overloaded(
                f"The {self.ref.kind} is busy with a long call. Try again in a second.", reason=FULL
            )
        bucket = message.throttle
        rate: Rate | None = getattr(limits, bucket) if bucket is not None else None
        if bucket is not None and rate is not None:
            verdict = self.window(bucket, rate).peek(now_s)
            if not verdict.allowed:
                raise self._throttled(bucket, verdict)

    def spend(self, message: Message, limits: Limits, now_s: float) -> Verdict | None:
        """Count the message in the window of its throttle. Raises `TooManyRequests` if that is exhausted."""
        self.last_used_s = now_s
        bucket = message.throttle
        rate: Rate | None = getattr(limits, bucket) if bucket is not None else None
        if bucket is None or rate is None:
            return None
        verdict = self.window(bucket, rate).allow(now_s)
        if not verdict.allowed:
            raise self._throttled(bucket, verdict)
        return verdict

    def take_back(self, message: Message) -> None:
        """Undo the last `spend`, of this message."""
        window = (
            None if self.windows is None or message.throttle is None else self.windows.get(message.throttle)
        )
        if window is not None:
            window.take_back()

    def window(self, bucket: str, rate: Rate) -> SlidingWindow:
        """The sliding window of `bucket`, created on first use."""
        if self.windows is None:
            self.windows = {}
        window = self.windows.get(bucket)
        if window is None:
            window = self.windows[bucket] = SlidingWindow(rate)
        return window

    def _full(self) -> Overloaded:
        self.refused += 1
        return Overloaded(
            f"The {self.ref.kind} has {self.depth} messages waiting, which is its limit. Try again in a second.",
            reason=FULL,
        )

    def _throttled(self, bucket: str, verdict: Verdict) -> TooManyRequests:
        self.refused += 1
        return TooManyRequests(
            f"This {self.ref.kind} takes {verdict.limit} calls of {bucket} in any {verdict.window_s:g} seconds. "
            f"The next one is allowed in {math.ceil(verdict.reset_s * 1000) / 1000:.3f} seconds.",
            bucket=bucket,
            verdict=verdict,
            retry_after_s=verdict.reset_s,
        )

    def is_idle(self, now_s: float, idle_s: float) -> bool:
        """True if removing this mailbox would lose nothing: no message, write, stream or throttle count."""
        return (
            self.awaiting_commit == 0
            and self.queue is None
            and not self.subscribers
            and now_s - self.last_used_s >= idle_s
            and (self.group is None or self.group.done)
            and (self.windows is None or all(window.empty(now_s) for window in self.windows.values()))
        )

    def oldest_message_age_s(self, now_s: float) -> float:
        """Seconds since the oldest queued message was admitted; 0.0 if there is none."""
        return now_s - self.queue[0].entered_s if self.queue else 0.0
