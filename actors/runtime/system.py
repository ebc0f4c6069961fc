"""The actor system: the one way to ask actors.

Owns who is let in and in what order: admission, the queue of a busy actor, the wait for the commit, the
streams, and the order in which all of that starts and ends. What a turn is, `runtime/turns.py` says; which actors
are in memory, `runtime/registry.py`. Does not know any kind of actor; those are given to it.

Why there is no task per actor: a turn is a plain call that takes microseconds, so it runs in the task of
the caller when nothing waits before it. Since the loop has one thread and a synchronous turn has no
`await`, two turns of one actor can not overlap. Only an `async` handler makes the actor busy; then later
messages queue in arrival order and one task, which ends with the queue, works them off.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import trio

from trunkline.actors.runtime.actor import Actor
from trunkline.actors.runtime.mailbox import Mailbox, Waiting
from trunkline.actors.runtime.ref import Ref
from trunkline.actors.runtime.registry import Registry
from trunkline.actors.runtime.revocations import Revocations
from trunkline.actors.runtime.streams import Streams
from trunkline.actors.runtime.subscription import Ending, Subscription
from trunkline.actors.runtime.turns import Turn, Turns, told
from trunkline.actors.values.errors import DomainError, Overloaded
from trunkline.actors.values.ids import IdFactory
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.values.clock import Clock
    from trunkline.actors.values.structs import Message
    from trunkline.limits.table import Limits
    from trunkline.limits.window import Verdict
    from trunkline.store.batch import Batch
    from trunkline.store.env import Store
    from trunkline.store.journal import Group
    from trunkline.store.snapshot import Snapshot

T = TypeVar("T")


class Answer(NamedTuple):
    """What an ask gives back: the handler's value, and the throttle's verdict where one applied."""

    value: Any
    verdict: Verdict | None


class Begun(NamedTuple):
    """A turn that is over. Its answer may be told when `group` is on disk, at once where it is None."""

    value: Any
    verdict: Verdict | None
    group: Group | None
    mailbox: Mailbox


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

    `store`, `limits`, `clock` and `random_bytes` are the seams: a test may give a store with injected
    faults, a clock and a source of chance of its own, and everything above behaves the same. `check_batch` sees what
    each turn writes before it is submitted; tests hold the placement of keys with it (`records/placement.py`).
    """

    def __init__(
        self,
        store: Store,
        limits: Limits,
        clock: Clock,
        kinds: Iterable[type[Actor]],
        *,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self.store = store
        self.journal = store.journal
        self.limits = limits
        self.clock = clock
        self.random_bytes = random_bytes
        self.ids = IdFactory(random_bytes)
        self.streams = Streams(limits)
        self.revocations = Revocations()
        self.check_batch: Callable[[Ref, Batch], None] | None = None
        self._components: dict[type, Any] = {}
        self.draining = False
        self._registry = Registry(limits, clock)
        self._mailboxes = self._registry.mailboxes
        self._turns = Turns(self, self._registry, self.streams, kinds)
        self._nursery: trio.Nursery | None = None

    # Components: objects of packages above the runtime (jobs, plain resources).

    def add_component(self, component: object) -> None:
        """Register an object that actors and readers get by its type."""
        self._components[type(component)] = component

    def component(self, type: type[T]) -> T:
        """The component of this type. Raises KeyError if there is none."""
        component: T = self._components[type]
        return component

    # Asking.

    async def ask(self, ref: Ref, message: Message) -> Answer:
        """Send `message` to the actor at `ref` and return its answer when what it wrote is on disk.

        Raises the `DomainError` that the actor refuses with; `TooManyRequests` and `Overloaded` at the
        door; `NotFound` where there is no such actor; `StorageFull` where the commit found no room;
        `Crashed` where a bug ended the turn. A cancelled caller loses the answer, never the effect.
        """
        begun = self.begin(ref, message)
        if begun is None:
            mailbox, now_s = self._mailboxes[ref], self.clock.monotonic_s()
            verdict = self._admit(mailbox, message, now_s)
            handler = self._turns.kinds[ref.kind].handler(type(message))
            value, group = await self._queued(mailbox, Waiting(message, handler, now_s))
            answer = Answer(value, verdict)
        else:
            value, verdict, group, mailbox = begun
            answer = Answer(value, verdict)
        if group is not None:
            mailbox.held += 1
            try:
                await _synced(group)
            finally:
                mailbox.held -= 1
        return answer

    def begin(self, ref: Ref, message: Message) -> Begun | None:
        """Let `message` in and take its turn, without waiting for the commit. Raises as `ask` before its commit.

        None where the message would have to wait for its turn: then it was not let in, and `ask` has to do it.
        """
        mailbox = self._mailboxes.get(ref)
        if mailbox is None or self._nursery is None:
            mailbox = self._open(ref, message)
        handler = self._turns.kinds[ref.kind].handler(type(message))
        if handler.waits or mailbox.queue is not None:
            return None
        verdict = self._admit(mailbox, message, self.clock.monotonic_s())
        value, group = self._turns.take(mailbox, message, handler)
        return Begun(value, verdict, group, mailbox)

    def check_crowd(self) -> None:
        """Raise `Overloaded` where as many writes wait for the commit as may wait.

        The edge asks this before anything else is done for a call: a server that has more to do than it can must
        spend as little as possible on what it does not do.
        """
        if self.journal.pending_batches >= self.limits.waiting_writes_max:
            self._turns.refused += 1
            raise Overloaded(
                f"{self.limits.waiting_writes_max} writes wait to be stored, which is the bound. Try again in a second."
            )

    def when_stored(self, begun: Begun, then: Callable[[DomainError | None], None]) -> None:
        """Call `then` when what the turn wrote is on disk, or with the refusal where it could not be stored.

        Only where there is a group. Until then the message counts as one that waits in the mailbox.
        """
        group, mailbox = begun.group, begun.mailbox
        assert group is not None
        mailbox.held += 1

        def settled(error: StoreError | None) -> None:
            mailbox.held -= 1
            then(None if error is None else told(error))

        group.settled(settled)

    def _admit(self, mailbox: Mailbox, message: Message, now_s: float) -> Verdict | None:
        try:
            return mailbox.admit(message, self.limits, now_s)
        except DomainError:
            self._turns.refused += 1
            raise

    async def ask_all(self, refs: Iterable[Ref], message: Message) -> Verdict | None:
        """Send one message to many actors, each once, to all of them or to none.

        The first that would refuse it, for whatever reason, refuses the whole call, and what all of them
        write is one batch. No other turn runs in between. Only for synchronous handlers. Raises as `ask`.
        Returns the verdict of the throttle that has least left, None where none applied.
        """
        mailboxes: list[Mailbox] = []
        now_s = self.clock.monotonic_s()
        try:
            for ref in dict.fromkeys(refs):
                try:
                    mailbox = self._mailboxes.get(ref)
                    if mailbox is None or self._nursery is None:
                        mailbox = self._open(ref, message)
                    mailbox.check(message, self.limits, now_s)
                    self._turns.present(mailbox, message)
                except DomainError as refusal:
                    self._turns.refused += 1
                    refusal.message = f"Nothing was sent: {ref.kind} {ref.id.hex()}: {refusal.message}"
                    raise
                mailbox.held += 1  # so that making room for the next one does not drop this one
                mailboxes.append(mailbox)
            verdicts = [mailbox.spend(message, self.limits, now_s) for mailbox in mailboxes]
            group = self._turns.take_all(mailboxes, message)
            if group is not None:
                await _synced(group)
        finally:
            for mailbox in mailboxes:
                mailbox.held -= 1
        applied = [verdict for verdict in verdicts if verdict is not None]
        return min(applied, key=lambda verdict: (verdict.remaining, -verdict.reset_s), default=None)

    async def read(self, query: Callable[[Snapshot], T]) -> T:
        """Run a long read on its own snapshot in a worker thread, beside the loop."""
        return await self.store.read(query)

    def _open(self, ref: Ref, message: Message) -> Mailbox:
        """The mailbox of an actor that is not in memory. Nothing is kept of one that is not there."""
        if self._nursery is None:
            raise Overloaded("The server is stopping.")
        mailbox = Mailbox(ref)
        self._turns.present(mailbox, message)
        try:
            self._registry.add(mailbox)
        except Overloaded:
            self._turns.refused += 1
            raise
        return mailbox

    # The queue behind an asynchronous turn.

    async def _queued(self, mailbox: Mailbox, waiting: Waiting) -> Turn:
        """Wait until it is the message's turn and the turn is over.

        The turn runs in a task of the system, so that a caller who leaves does not cut it in half.
        """
        if mailbox.queue is None:
            assert self._nursery is not None
            mailbox.queue = deque()
            self._nursery.start_soon(self._work_off, mailbox, mailbox.queue)
        mailbox.queue.append(waiting)
        await waiting.event.wait()
        if waiting.error is not None:
            raise waiting.error
        return waiting.value, waiting.group

    async def _work_off(self, mailbox: Mailbox, queue: deque[Waiting]) -> None:
        """Take turns until nobody waits any more; where the system stops, tell those who do."""
        try:
            while queue:
                waiting = queue[0]
                turn = (mailbox, waiting.message, waiting.handler)
                try:
                    if waiting.handler.waits:
                        waiting.value, waiting.group = await self._turns.take_long(*turn)
                    else:
                        waiting.value, waiting.group = self._turns.take(*turn)
                except DomainError as refusal:
                    waiting.error = refusal
                queue.popleft()
                waiting.event.set()
        finally:
            mailbox.queue = None
            if mailbox.gone:
                self._registry.remove(mailbox)
            for waiting in queue:
                waiting.error = Overloaded("The server is stopping; the call was not handled.")
                waiting.event.set()

    # Streams.

    def subscribe(self, ref: Ref, topic: str, message: Message) -> Subscription:
        """Open a bounded stream of `topic` events of the actor at `ref` (`message` only activates it)."""
        if self.draining:
            raise Overloaded("The server is stopping.")
        mailbox = self._mailboxes.get(ref) or self._open(ref, message)
        if mailbox.queue is None:  # a busy actor is there, and its memory belongs to the turn
            self._turns.present(mailbox, message)
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

    # Life.

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the committer, the long turns and the idle sweeper until cancelled.

        Then no ask is let in, the long turns end, and last the committer, which commits what they left; so
        every caller is answered.
        """
        committing = trio.CancelScope(shield=True)
        async with trio.open_nursery() as outer:
            await outer.start(self._commit, committing)
            try:
                async with trio.open_nursery() as nursery:
                    self._nursery = nursery
                    nursery.start_soon(self._registry.sweep)
                    task_status.started()
                    try:
                        await trio.sleep_forever()
                    finally:
                        self._nursery = None
            finally:
                committing.cancel()

    async def _commit(self, scope: trio.CancelScope, task_status: trio.TaskStatus[None]) -> None:
        with scope:
            await self.journal.run(task_status)

    def drain(self) -> None:
        """End all streams and commit what waits. Called once, when no new calls come in any more."""
        self.draining = True
        self.streams.end_all(Ending.DRAINING)
        self.journal.flush()

    def forget_children(self, parent: bytes) -> None:
        """Drop every active actor of a deleted application and end its streams."""
        for mailbox in self._registry.held_by(parent):
            self._turns.forget(mailbox)

    # Figures.

    @property
    def active(self) -> int:
        """Actors in memory."""
        return len(self._mailboxes)

    @property
    def handled(self) -> int:
        """Messages that actors handled."""
        return self._turns.handled

    @property
    def refused(self) -> int:
        """Messages refused by a throttle, a bound or an actor."""
        return self._turns.refused

    @property
    def restarts(self) -> int:
        """Actors restarted after a bug."""
        return self._turns.restarts

    @property
    def activations(self) -> int:
        """Actors loaded into memory."""
        return self._turns.activations

    @property
    def deactivations(self) -> int:
        """Actors that left memory because they were idle."""
        return self._registry.deactivations

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


async def _synced(group: Group) -> None:
    """Wait for the commit, and turn what the store says of a failure into what the caller is told."""
    try:
        await group.wait()
    except StoreError as failure:
        raise told(failure) from failure
