"""The actor system: the registry that turns refs into running actors, and the one way to ask them.

Owns activation on demand, deactivation when idle, supervision, and the order of a turn: admit, handle,
submit the batch, wait for its group, answer. Does not know any kind of actor; those register themselves.

Why there is no task per actor: a turn is a plain call that takes microseconds, so it runs in the task of
the caller when nothing waits before it. Since the loop has one thread and a synchronous turn has no
`await`, two turns of one actor can not overlap. Only an `async` handler makes the actor busy; then later
messages queue in arrival order and one task, which ends with the queue, works them off.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import structlog
import trio

from trunkline.actors.actor import Actor, Ref
from trunkline.actors.errors import Crashed, DomainError, NotFound, Overloaded, StorageFull, TooManyRequests
from trunkline.actors.ids import IdFactory
from trunkline.actors.mailbox import Mailbox, Waiting, throttled
from trunkline.actors.streams import Streams
from trunkline.actors.subscription import Ending, Subscription
from trunkline.store.errors import JournalFull, StoreError, StoreFull
from trunkline.store.journal import Group

if TYPE_CHECKING:
    from trunkline.actors.clock import Clock
    from trunkline.actors.messages.base import Message
    from trunkline.limits.table import Limits
    from trunkline.limits.window import Verdict
    from trunkline.store.env import Store
    from trunkline.store.snapshot import Snapshot

T = TypeVar("T")
_log = structlog.get_logger("trunkline.actors")


class Answer(NamedTuple):
    """What an ask gives back: the handler's value, and the throttle's verdict where one applied."""

    value: Any
    verdict: Verdict | None


class Statistics(NamedTuple):
    """The figures of one actor. Ages in seconds."""

    mailbox_depth: int
    oldest_message_age_s: float
    handled: int
    refused: int
    restarts: int
    last_error: str | None


class System:
    """All actors of this process. Run `run` in a nursery for as long as it is used.

    `store`, `limits` and `clock` are the seams: a test may give a store with injected faults and a clock
    of its own, and everything above behaves the same.
    """

    def __init__(self, store: Store, limits: Limits, clock: Clock, kinds: Iterable[type[Actor]]) -> None:
        self.store = store
        self.journal = store.journal
        self.limits = limits
        self.clock = clock
        self.ids = IdFactory()
        self.authority_epoch = 0
        self.handled = 0
        self.refused = 0
        self.restarts = 0
        self.activations = 0
        self.deactivations = 0
        self._kinds = {kind.kind: kind for kind in kinds}
        self._mailboxes: dict[Ref, Mailbox] = {}
        self.streams = Streams(limits)
        self._nursery: trio.Nursery | None = None
        self.draining = False

    # Asking.

    async def ask(self, ref: Ref, message: Message) -> Answer:
        """Send `message` to the actor at `ref` and return its answer when what it wrote is on disk.

        Raises the `DomainError` that the actor refuses with; `TooManyRequests` and `Overloaded` at the
        door; `NotFound` where there is no such actor; `StorageFull` where the commit found no room;
        `Crashed` where a bug ended the turn. A cancelled caller loses the answer, never the effect.
        """
        mailbox = self._mailbox(ref, message)
        now_s = self.clock.monotonic_s()
        try:
            verdict = mailbox.admit(message, self.limits, now_s)
        except DomainError:
            self.refused += 1
            raise
        mailbox.depth += 1
        try:
            if mailbox.queue is not None:
                value, group = await self._queued(mailbox, message, now_s)
            else:
                value, group = self._turn(mailbox, message)
                if inspect.iscoroutine(value):
                    value, group = await self._asynchronous(mailbox, message, value, now_s)
            if group is not None:
                await _synced(group)
        finally:
            mailbox.depth -= 1
        return Answer(value, verdict)

    async def ask_all(self, refs: list[Ref], message: Message) -> None:
        """Send one message to many actors, to all or to none: a used-up throttle refuses the whole call.

        No other turn runs between the check and the last of the turns. Only for synchronous handlers.
        """
        now_s = self.clock.monotonic_s()
        mailboxes = [self._mailbox(ref, message) for ref in refs]
        bucket = message.throttle
        rate = getattr(self.limits, bucket) if bucket is not None else None
        if bucket is not None and rate is not None:
            for mailbox in mailboxes:
                verdict = mailbox.window(bucket, rate).peek(now_s)
                if not verdict.allowed:
                    self.refused += 1
                    mailbox.refused += 1
                    refusal = throttled(mailbox.ref.kind, bucket, verdict)
                    raise TooManyRequests(
                        f"Nothing was sent: {mailbox.ref.kind} {mailbox.ref.id.hex()} is throttled. {refusal.message}",
                        bucket=bucket,
                        verdict=verdict,
                        retry_after_s=verdict.reset_s,
                    )
        last: Group | None = None
        for mailbox in mailboxes:
            mailbox.admit(message, self.limits, now_s)
            _, group = self._turn(mailbox, message)
            last = group or last
        if last is not None:
            await _synced(last)

    async def read(self, query: Callable[[Snapshot], T]) -> T:
        """Run a long read on its own snapshot in a worker thread, beside the loop."""
        return await self.store.read(query)

    # A turn.

    def _mailbox(self, ref: Ref, message: Message) -> Mailbox:
        mailbox = self._mailboxes.get(ref)
        if mailbox is not None:
            return mailbox
        if len(self._mailboxes) >= self.limits.actors_active_max:
            self._evict()
        mailbox = Mailbox(ref)
        if not self._activate(mailbox).exists and type(message) not in self._kinds[ref.kind].births:
            raise NotFound(mailbox.actor.missing() if mailbox.actor else "There is no such record.")
        self._mailboxes[ref] = mailbox
        return mailbox

    def _activate(self, mailbox: Mailbox) -> Actor:
        mailbox.actor = self._kinds[mailbox.ref.kind](self, mailbox.ref)
        mailbox.epoch = self.journal.epoch
        self.activations += 1
        return mailbox.actor

    def _turn(self, mailbox: Mailbox, message: Message) -> tuple[Any, Group | None]:
        """Handle one message; return the value (or the coroutine of an `async` handler) and its group."""
        actor = mailbox.actor
        if actor is None or mailbox.epoch != self.journal.epoch:
            actor = self._activate(mailbox)
        if not actor.exists and type(message) not in actor.births:
            self._forget(mailbox)
            raise NotFound(actor.missing())
        try:
            value = actor.handler(type(message))(actor, message)
        except DomainError as refusal:
            self._discard(mailbox, actor, refusal)
            raise
        except Exception as bug:
            raise self._crash(mailbox, message, bug) from bug
        if inspect.iscoroutine(value):
            return value, None
        return value, self._submit(mailbox, actor)

    def _submit(self, mailbox: Mailbox, actor: Actor) -> Group | None:
        mailbox.handled += 1
        self.handled += 1
        if actor.batch is None:
            effects, actor.effects = actor.effects, []
            for effect in effects:
                effect()
            return None
        try:
            actor.flush()
            group = self.journal.submit(actor.batch)
        except StoreError as refusal:
            mailbox.actor = None
            raise _told(refusal) from refusal
        except Exception as bug:
            raise self._crash(mailbox, None, bug) from bug
        if group.error is not None:
            # Refused at the quota: what the actor decided is not stored, so it must not be remembered.
            mailbox.actor = None
            return group
        actor.batch = None
        if actor.effects:
            effects, actor.effects = actor.effects, []
            for effect in effects:
                group.then(effect)
        if not actor.exists:
            self._forget(mailbox)
        return group

    def _discard(self, mailbox: Mailbox, actor: Actor, refusal: DomainError) -> None:
        """A refused turn leaves nothing: not in a batch, and not a mailbox of an actor that is not there."""
        mailbox.refused += 1
        self.refused += 1
        mailbox.last_error = refusal.type
        actor.batch = None
        actor.effects = []
        if not actor.exists:
            self._forget(mailbox)

    def _crash(self, mailbox: Mailbox, message: Message | None, bug: Exception) -> Crashed:
        """Log the bug with the ids, drop the actor's memory (it reloads with its next message), say 500."""
        mailbox.actor = None
        mailbox.restarts += 1
        self.restarts += 1
        mailbox.last_error = type(bug).__name__
        _log.error(
            "actor restarted",
            kind=mailbox.ref.kind,
            id=mailbox.ref.id.hex(),
            message=type(message).__name__ if message is not None else "submit",
            exc_info=bug,
        )
        return Crashed(
            f"The {mailbox.ref.kind} failed to handle this call and was restarted; nothing of the call was stored."
        )

    # Asynchronous turns and the queue behind them.

    async def _queued(self, mailbox: Mailbox, message: Message, now_s: float) -> tuple[Any, Group | None]:
        waiting = Waiting(message, now_s)
        assert mailbox.queue is not None
        mailbox.queue.append(waiting)
        return await _result(waiting)

    async def _asynchronous(
        self, mailbox: Mailbox, message: Message, coroutine: Coroutine[Any, Any, Any], now_s: float
    ) -> tuple[Any, Group | None]:
        """Run the turn in a task of the system, so that a caller who leaves does not cut it in half."""
        waiting = Waiting(message, now_s)
        if self._nursery is None:
            coroutine.close()
            raise Overloaded("The server is stopping.")
        mailbox.queue = deque()
        self._nursery.start_soon(self._drain, mailbox, waiting, coroutine)
        return await _result(waiting)

    async def _drain(self, mailbox: Mailbox, waiting: Waiting, coroutine: Coroutine[Any, Any, Any]) -> None:
        queue = mailbox.queue
        assert queue is not None
        current: Waiting | None = waiting
        pending: Coroutine[Any, Any, Any] | None = coroutine
        try:
            while current is not None:
                try:
                    if pending is None:
                        value, group = self._turn(mailbox, current.message)
                        pending = value if inspect.iscoroutine(value) else None
                        current.value, current.group = value, group
                    if pending is not None:
                        current.value, current.group = await self._await_turn(
                            mailbox, current.message, pending
                        )
                except DomainError as refusal:
                    current.error = refusal
                pending = None
                current.event.set()
                current = queue.popleft() if queue else None
        finally:
            mailbox.queue = None
            for left in [current, *queue]:
                if left is not None and not left.event.is_set():
                    left.error = Overloaded("The server is stopping; the call was not handled.")
                    left.event.set()

    async def _await_turn(
        self, mailbox: Mailbox, message: Message, coroutine: Coroutine[Any, Any, Any]
    ) -> tuple[Any, Group | None]:
        actor = mailbox.actor
        assert actor is not None
        try:
            value = await coroutine
        except DomainError as refusal:
            self._discard(mailbox, actor, refusal)
            raise
        except Exception as bug:
            raise self._crash(mailbox, message, bug) from bug
        return value, self._submit(mailbox, actor)

    # Streams.

    def subscribe(self, ref: Ref, topic: str, message: Message) -> Subscription:
        """Open a bounded stream of `topic` events of the actor at `ref` (`message` only activates it)."""
        if self.draining:
            raise Overloaded("The server is stopping.")
        mailbox = self._mailbox(ref, message)
        mailbox.last_used_s = self.clock.monotonic_s()
        return self.streams.open(mailbox, topic)

    def has_subscribers(self, ref: Ref, topic: str) -> bool:
        """True where somebody would hear a `publish`: an event that nobody hears need not be encoded."""
        mailbox = self._mailboxes.get(ref)
        return mailbox is not None and topic in (mailbox.subscribers or ())

    def publish(self, ref: Ref, topic: str, position: int, event: bytes) -> None:
        """Offer the same bytes to every subscriber now."""
        mailbox = self._mailboxes.get(ref)
        if mailbox is not None:
            self.streams.publish(mailbox, topic, position, event)

    def authority_changed(self) -> None:
        """A key, token, password, device or application changed: every cached permission is void now."""
        self.authority_epoch += 1
        self.streams.nudge_all()

    # Life.

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the committer and the idle sweeper until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await nursery.start(self.journal.run)
            nursery.start_soon(self._sweep)
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def drain(self) -> None:
        """End all streams and commit what waits. Called once, when no new calls come in any more."""
        self.draining = True
        self.streams.end_all(Ending.DRAINING)
        self.journal.flush()

    def forget_children(self, parent: bytes) -> None:
        """Drop every active actor of a deleted application and end its streams."""
        for mailbox in [box for ref, box in self._mailboxes.items() if ref.parent == parent]:
            self._forget(mailbox)

    def _forget(self, mailbox: Mailbox) -> None:
        """Remove an actor that does not exist (any more); its streams end."""
        if self._mailboxes.get(mailbox.ref) is mailbox:
            del self._mailboxes[mailbox.ref]
        mailbox.actor = None
        self.streams.end_of(mailbox, Ending.GONE)

    async def _sweep(self) -> None:
        """Deactivate what is idle, a bounded slice at a time so that the loop never stalls on it."""
        while True:
            await trio.sleep(self.limits.actor_sweep_s)
            now_s = self.clock.monotonic_s()
            for number, (ref, mailbox) in enumerate(list(self._mailboxes.items())):
                if number % 1000 == 999:
                    await trio.lowlevel.checkpoint()
                idle = mailbox.is_idle(now_s, self.limits.actor_idle_s)
                if idle and self._mailboxes.get(ref) is mailbox:
                    del self._mailboxes[ref]
                    self.deactivations += 1

    def _evict(self) -> None:
        """Make room by deactivating idle actors early; with none idle, the caller is told to come back."""
        now_s = self.clock.monotonic_s()
        found = [ref for ref, box in self._mailboxes.items() if box.is_idle(now_s, 0.0)][:1000]
        for ref in found:
            del self._mailboxes[ref]
        self.deactivations += len(found)
        if not found:
            self.refused += 1
            raise Overloaded(
                f"{self.limits.actors_active_max} actors are active, which is the bound of this server.",
                retry_after_s=self.limits.actor_sweep_s,
            )

    @property
    def active(self) -> int:
        """Actors in memory."""
        return len(self._mailboxes)

    def mailboxes(self) -> Iterable[Mailbox]:
        """The mailboxes of all active actors, for the metrics."""
        return self._mailboxes.values()

    def statistics(self, ref: Ref) -> Statistics | None:
        """The figures of the actor at `ref`; None where it is not active."""
        box = self._mailboxes.get(ref)
        if box is None:
            return None
        age_s = box.oldest_message_age_s(self.clock.monotonic_s())
        return Statistics(box.depth, age_s, box.handled, box.refused, box.restarts, box.last_error)


async def _result(waiting: Waiting) -> tuple[Any, Group | None]:
    await waiting.event.wait()
    if waiting.error is not None:
        raise waiting.error
    return waiting.value, waiting.group


async def _synced(group: Group) -> None:
    """Wait for the commit, and turn what the store says of a failure into what the caller is told."""
    try:
        await group.wait()
    except StoreError as failure:
        raise _told(failure) from failure


def _told(failure: StoreError) -> DomainError:
    if isinstance(failure, JournalFull):
        return Overloaded(f"{failure} Nothing of this call was stored. Try again in a second.")
    if isinstance(failure, StoreFull):
        return StorageFull("The disk of the server is full; nothing of this call was stored. Reads go on.")
    return Crashed("The store failed to commit; nothing of this call was stored.")
