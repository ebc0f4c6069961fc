"""The mailbox of one actor: what is admitted, what waits, and what is known about it.

Owns admission (capacity first, then the throttle, so that a refused call costs neither a slot nor a call of
the window), the queue behind an asynchronous turn, the subscribers of the actor's streams, and its figures.
It outlives the actor's memory: when a bug restarts the actor, its throttles, subscribers and figures stay.

A mailbox has no task. While turns are synchronous it holds nothing but the count of messages whose
commit is awaited; only an asynchronous turn makes later messages wait, and then the system lends a task.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any

import trio

from trunkline.actors.values.errors import DomainError, Overloaded, TooManyRequests
from trunkline.actors.values.structs import Message
from trunkline.limits.window import SlidingWindow, Verdict

if TYPE_CHECKING:
    from trunkline.actors.runtime.actor import Actor, Handler
    from trunkline.actors.runtime.ref import Ref
    from trunkline.actors.runtime.subscription import Subscription
    from trunkline.limits.table import Limits, Rate
    from trunkline.store.journal import Group


class Waiting:
    """A message in the queue of a busy actor, and the place where its answer will lie.

    It is worked off also where nobody waits for the answer any more.
    """

    __slots__ = ("entered_s", "error", "event", "group", "handler", "message", "value")

    def __init__(self, message: Message, handler: Handler, entered_s: float) -> None:
        self.message = message
        self.handler = handler
        self.entered_s = entered_s
        self.event = trio.Event()
        self.value: Any = None
        self.group: Group | None = None
        self.error: DomainError | None = None


class Mailbox:
    """Admission, queue, subscribers and figures of the actor behind `ref`.

    `actor` is its memory, None where that was dropped; `epoch` is the journal's at the time it was loaded;
    `group` is the commit of its latest writes, None where they are known to be on disk. `queue` is there
    while an asynchronous turn runs; the first in it is the message whose turn it is. `held` counts callers
    whose turn is over and who wait for the commit. `gone` says that the actor is not there (any more) and
    that the mailbox goes with the end of its queue.
    """

    __slots__ = (
        "actor",
        "epoch",
        "gone",
        "group",
        "handled",
        "held",
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
        self.held = 0
        self.queue: deque[Waiting] | None = None
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
        """Messages that wait for their turn or for their commit. A caller who left still counts in the queue."""
        return self.held if self.queue is None else self.held + len(self.queue)

    def admit(self, message: Message, limits: Limits, now_s: float) -> Verdict | None:
        """Let `message` in and count it, or refuse it.

        Returns the throttle's verdict, None where no throttle applies. Raises `TooManyRequests` where the
        throttle is used up, `Overloaded` where the mailbox is full. Nothing waits here.
        """
        if self.depth >= limits.mailbox_length_max:
            raise self._full()
        return self.spend(message, limits, now_s)

    def check(self, message: Message, limits: Limits, now_s: float) -> None:
        """Raise what `admit` would raise, and also where the actor is busy; count nothing."""
        if self.depth >= limits.mailbox_length_max:
            raise self._full()
        if self.queue is not None:
            self.refused += 1
            raise Overloaded(f"The {self.ref.kind} is busy with a long call. Try again in a second.")
        bucket = message.throttle
        rate: Rate | None = getattr(limits, bucket) if bucket is not None else None
        if bucket is not None and rate is not None:
            verdict = self.window(bucket, rate).peek(now_s)
            if not verdict.allowed:
                raise self._throttled(bucket, verdict)

    def spend(self, message: Message, limits: Limits, now_s: float) -> Verdict | None:
        """Count the message in the window of its throttle; `TooManyRequests` where that is used up."""
        self.last_used_s = now_s
        bucket = message.throttle
        rate: Rate | None = getattr(limits, bucket) if bucket is not None else None
        if bucket is None or rate is None:
            return None
        verdict = self.window(bucket, rate).allow(now_s)
        if not verdict.allowed:
            raise self._throttled(bucket, verdict)
        return verdict

    def window(self, bucket: str, rate: Rate) -> SlidingWindow:
        """The sliding window of `bucket`, made on first use."""
        if self.windows is None:
            self.windows = {}
        window = self.windows.get(bucket)
        if window is None:
            window = self.windows[bucket] = SlidingWindow(rate)
        return window

    def _full(self) -> Overloaded:
        self.refused += 1
        return Overloaded(
            f"The {self.ref.kind} has {self.depth} messages waiting, which is its bound. Try again in a second."
        )

    def _throttled(self, bucket: str, verdict: Verdict) -> TooManyRequests:
        self.refused += 1
        return TooManyRequests(
            f"This {self.ref.kind} takes {verdict.limit} calls of {bucket} in any {verdict.window_s:g} seconds. "
            f"The next one passes in {math.ceil(verdict.reset_s * 1000) / 1000:.3f} seconds.",
            bucket=bucket,
            verdict=verdict,
            retry_after_s=verdict.reset_s,
        )

    def is_idle(self, now_s: float, idle_s: float) -> bool:
        """True where forgetting this mailbox would lose nothing: no message, write, stream or throttle."""
        return (
            self.held == 0
            and self.queue is None
            and not self.subscribers
            and now_s - self.last_used_s >= idle_s
            and (self.group is None or self.group.done)
            and (self.windows is None or all(window.empty(now_s) for window in self.windows.values()))
        )

    def oldest_message_age_s(self, now_s: float) -> float:
        """Seconds since the oldest message that is not worked off came; 0.0 where there is none."""
        return now_s - self.queue[0].entered_s if self.queue else 0.0
