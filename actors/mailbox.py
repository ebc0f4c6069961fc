"""The mailbox of one actor: what is admitted, what waits, and what is known about it.

Owns admission (throttle first, then capacity, so that a refused call costs no slot), the queue behind an
asynchronous turn, the subscribers of the actor's streams, and its statistics. It outlives the actor's
state: when a bug restarts the actor, its throttles, subscribers and figures stay.

A mailbox has no task. While turns are synchronous it holds nothing but the count of messages whose
commit is awaited; only an asynchronous turn makes later messages wait, and then the system lends a task.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import trio

from trunkline.actors.errors import Overloaded, TooManyRequests
from trunkline.actors.messages.base import Message
from trunkline.limits.window import SlidingWindow, Verdict

if TYPE_CHECKING:
    from trunkline.actors.actor import Actor, Ref
    from trunkline.actors.subscription import Subscription
    from trunkline.limits.table import Limits, Rate
    from trunkline.store.journal import Group


class Waiting:
    """A message in the queue of a busy actor, and the place where its answer will lie."""

    __slots__ = ("entered_s", "error", "event", "group", "message", "value")

    def __init__(self, message: Message, entered_s: float) -> None:
        self.message = message
        self.entered_s = entered_s
        self.event = trio.Event()
        self.value: Any = None
        self.group: Group | None = None
        self.error: BaseException | None = None


class Mailbox:
    """Admission, queue, subscribers and statistics of the actor behind `ref`."""

    __slots__ = (
        "actor",
        "depth",
        "epoch",
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
        self.depth = 0
        self.queue: deque[Waiting] | None = None
        self.group: Group | None = None
        self.windows: dict[str, SlidingWindow] | None = None
        self.subscribers: dict[str, set[Subscription]] | None = None
        self.last_used_s = 0.0
        self.handled = 0
        self.refused = 0
        self.restarts = 0
        self.last_error: str | None = None

    def admit(self, message: Message, limits: Limits, now_s: float) -> Verdict | None:
        """Let `message` in or refuse it.

        Returns the throttle's verdict, None where no throttle applies. Raises `TooManyRequests` where the
        throttle is used up, `Overloaded` where the mailbox is full. Nothing waits here.
        """
        self.last_used_s = now_s
        if self.depth >= limits.mailbox_length_max:
            self.refused += 1
            raise Overloaded(
                f"The {self.ref.kind} has {self.depth} messages waiting, which is its bound. Try again in a second."
            )
        bucket = message.throttle
        rate: Rate | None = getattr(limits, bucket) if bucket is not None else None
        if bucket is None or rate is None:
            return None
        verdict = self.window(bucket, rate).allow(now_s)
        if not verdict.allowed:
            self.refused += 1
            raise throttled(self.ref.kind, bucket, verdict)
        return verdict

    def window(self, bucket: str, rate: Rate) -> SlidingWindow:
        """The sliding window of `bucket`, made on first use."""
        if self.windows is None:
            self.windows = {}
        window = self.windows.get(bucket)
        if window is None:
            window = self.windows[bucket] = SlidingWindow(rate)
        return window

    def is_idle(self, now_s: float, idle_s: float) -> bool:
        """True where forgetting this mailbox would lose nothing: no message, no stream, no throttle."""
        return (
            self.depth == 0
            and self.queue is None
            and not self.subscribers
            and now_s - self.last_used_s >= idle_s
            and (self.windows is None or all(window.empty(now_s) for window in self.windows.values()))
        )

    def oldest_message_age_s(self, now_s: float) -> float:
        """Seconds that the oldest queued message has waited; 0.0 where none waits."""
        return now_s - self.queue[0].entered_s if self.queue else 0.0


def throttled(kind: str, bucket: str, verdict: Verdict) -> TooManyRequests:
    """The refusal of a used-up throttle, as a sentence and with the time to come back."""
    return TooManyRequests(
        f"This {kind} takes {verdict.limit} calls of {bucket} in any {verdict.window_s:g} seconds. "
        f"The next one passes in {verdict.reset_s:.3f} seconds.",
        bucket=bucket,
        verdict=verdict,
        retry_after_s=verdict.reset_s,
    )
