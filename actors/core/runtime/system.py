"""The actor system: all messages to actors go through it.

Owns admission, the order of messages, the queue of a busy actor, the wait for the commit, the streams, and
start and shutdown. Does not own turns (`core/runtime/turns.py`), nor which actors are in memory
(`core/runtime/registry.py`). Does not depend on any kind of actor; the kinds are passed in.

Why there is no task per actor: a turn is a plain call that takes microseconds, so it runs in the task of
the caller unless other messages are queued. Since the event loop has one thread and a synchronous turn has no
`await`, two turns of one actor cannot overlap. Only an `async` handler makes the actor busy; then later
messages queue in arrival order, and one task, which ends with the queue, handles them.

The module is long because every way from a caller to a turn is here.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import trio

from trunkline.actors.core.runtime.actor import Actor, Stamp
from trunkline.actors.core.runtime.answer import Answer
from trunkline.actors.core.runtime.mailbox import Mailbox, QueuedMessage
from trunkline.actors.core.runtime.moves import Moves, application_of, elsewhere, refusal
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.precedence import compute_in_turn, give_way
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.registry import Registry
from trunkline.actors.core.runtime.revocations import Revocations
from trunkline.actors.core.runtime.shared_batch import LOADED_AT_ONCE_MAX, Ask, SharedBatch
from trunkline.actors.core.runtime.streams import Streams
from trunkline.actors.core.runtime.subscription import Ending, Events, Subscription
from trunkline.actors.core.runtime.turns import WRITES_WAIT, Turn, Turns, as_domain_error
from trunkline.actors.core.runtime.work import Work, current_work
from trunkline.actors.core.values.errors import DomainError, NamesBusy, Overloaded, TooManyRequests
from trunkline.actors.core.values.ids import IdFactory
from trunkline.store.batch import Batch
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.peers import Peers
    from trunkline.actors.core.values.clock import Clock
    from trunkline.actors.core.values.structs import Message
    from trunkline.limits.table import Limits
    from trunkline.limits.window import Verdict
    from trunkline.store.commit_group import Group
    from trunkline.store.env import Store
    from trunkline.store.snapshot import Snapshot

T = TypeVar("T")

READABLE_S: Final = 0.1
"""So often it is looked whether partitions of other machines can be read again."""
LAST_TURN_S: Final = 1.0
"""A turn that waits may take so long after its application was paused."""
NOT_CURRENT: Final = "log"
_COMMIT: Final = Work("commit", "group commit")


class PendingAnswer(NamedTuple):
    """The answer of a finished turn. It may be sent when `group` is on disk; at once if `group` is None."""

    value: Any
    verdict: Verdict | None
    group: Group | None
    mailbox: Mailbox


class Statistics(NamedTuple):
    """The statistics of one actor. Ages in seconds."""

    mailbox_depth: int
    oldest_message_age_s: float
    handled: int
    refused: int
    restarts: int
    last_error: str | None


class System:
    """All actors of this process. Run `run` in a nursery for as long as it is used.

    Tests may pass their own `store` (with injected faults), `limits`, `clock` and `random_bytes`. `check_batch` is
    called with the batch of each turn before it is submitted; tests use it to check the placement of keys
    (`core/records/placement.py`).
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
        self.lasting = OwnerShares("lasting connections", limits.connections_max, leaves=1)
        """Of the connections, those of streams, links, WebSockets of webhooks, and callers who wait for workflows."""
        self.streams = Streams(limits, self.lasting)
        self.revocations = Revocations()
        self.payer: Callable[[], Hashable] = lambda: None
        """Who is charged for what the task works on."""
        self.reads = OwnerShares("reads", limits.read_threads_max, limits.read_queue_length_max, leaves=1)
        self.check_batch: Callable[[Ref, Batch], None] | None = None
        self.peers: Peers | None = None
        """The processes that serve the other partitions of the data directory; None if it has one."""
        self.claim_names: Callable[[], Awaitable[None]] | None = None
        """Returns when this process may claim names, where it may not always (`records/names.py`)."""
        self.tells: dict[str, Callable[..., Awaitable[Any]]] = {}
        """What this process tells those of the other partitions of itself, or does for them, by subject."""
        self.forgotten: list[Callable[[bytes], object]] = []
        """Called with the id of each application that is deleted, or has left for another process."""
        self.moves = Moves()
        self._components: dict[type, Any] = {}
        self.draining = False
        self._registry = Registry(limits, clock)
        self._mailboxes = self._registry.mailboxes
        self._turns = Turns(self, self._registry, self.streams, kinds)
        self._nursery: trio.Nursery | None = None
        self._of_many: dict[bytes, trio.Lock] = {}

    # Components: objects of packages above the runtime (jobs, plain resources).

    def add_component(self, component: object) -> None:
        """Register an object that actors and readers get by its type."""
        self._components[type(component)] = component

    @property
    def kinds(self) -> Iterable[type[Actor]]:
        """The kinds of actors."""
        return self._turns.kinds.values()

    def component(self, type: type[T]) -> T:
        """The component of this type. Raises KeyError if there is none."""
        component: T = self._components[type]
        return component

    # Asking.

    async def ask(self, ref: Ref, message: Message, stamp: Stamp | None = None) -> Answer:
        """Send `message` to the actor at `ref` and return its answer when its writes are on disk.

        `stamp` adds writes to those of the turn.

        Raises the `DomainError` with which the actor refuses; `TooManyRequests` and `Overloaded` at admission;
        `NotFound` if the actor does not exist; `StorageFull` if the commit failed because the disk is full;
        `Crashed` if a bug ended the turn. Cancelling the caller loses the answer, but does not undo the turn.
        """
        try:
            pending = self.begin(ref, message, stamp)
        except NamesBusy:
            if self.claim_names is None:
                raise
            await self.claim_names()
            pending = self.begin(ref, message, stamp)
        if pending is None and self.is_elsewhere(ref):
            assert self.peers is not None
            if stamp is not None:
                raise elsewhere()  # what is added to a turn does not travel to another process
            return await self.peers.ask(ref, message)
        if pending is None:
            mailbox, now_s = self._mailboxes[ref], self.clock.monotonic_s()
            verdict = self._admit(mailbox, message, now_s)
            handler = self._turns.kinds[ref.kind].handler(type(message))
            value, group = await self._ask_queued(mailbox, QueuedMessage(message, handler, now_s, stamp))
            answer = Answer(value, verdict)
        else:
            value, verdict, group, mailbox = pending
            answer = Answer(value, verdict)
        if group is not None:
            mailbox.awaiting_commit += 1
            try:
                await _committed(group)
            finally:
                mailbox.awaiting_commit -= 1
        return answer

    def begin(self, ref: Ref, message: Message, stamp: Stamp | None = None) -> PendingAnswer | None:
        """Admit `message` and take its turn, without waiting for the commit. Raises as `ask` before its commit.

        None if the message would have to wait for its turn, or another process serves the actor: then it was not
        admitted, and the caller must use `ask`.
        """
        mailbox = self._mailboxes.get(ref)
        if mailbox is None or self._nursery is None:
            if self.is_elsewhere(ref):
                return None
            mailbox = self._open(ref, message)
        handler = self._turns.kinds[ref.kind].handler(type(message))
        if handler.waits or mailbox.queue is not None:
            return None
        verdict = self._admit(mailbox, message, self.clock.monotonic_s())
        value, group = self._turns.take(mailbox, message, handler, stamp)
        return PendingAnswer(value, verdict, group, mailbox)

    def is_elsewhere(self, ref: Ref) -> bool:
        """Whether another process serves this actor. Then only `ask` and `ask_in_order` reach it."""
        return self.peers is not None and ref not in self._mailboxes and self.peers.has(ref)

    def check_load(self) -> None:
        """Raise `Overloaded` if too many writes wait for the commit.

        Called before anything else is done for a call: an overloaded server must spend as little as possible on
        the calls that it refuses.
        """
        if self.journal.pending_batches >= self.limits.waiting_writes_max:
            self._turns.refused += 1
            raise Overloaded(
                f"{self.limits.waiting_writes_max} writes wait to be stored, which is the limit. "
                "Try again in a second.",
                reason=WRITES_WAIT,
            )

    async def until_readable(self) -> None:
        """Return when all partitions can be read here: at once, unless another machine has some and is not heard."""
        while not self.is_readable:  # noqa: ASYNC110 - silence is no event
            await trio.sleep(READABLE_S)

    @property
    def is_readable(self) -> bool:
        """Whether all partitions can be read here now."""
        partitions = self.store.partitions
        return partitions is None or partitions.are_fresh

    def check_current(self) -> None:
        """After a read: raise `Overloaded` if another machine may own the data by now, so that it may be old."""
        if not self.journal.is_current():
            raise Overloaded(
                "The log of this server cannot be reached, so another machine may own the data by now. Try again in a "
                "second.",
                reason=NOT_CURRENT,
            )

    def checked(self, refusal: DomainError) -> DomainError:
        """A refusal as it is told: `Overloaded` where it follows from data that may be old (`check_current`)."""
        try:
            if refusal.is_of_data:
                self.check_current()
        except Overloaded as doubt:
            return doubt
        return refusal

    def release(self, ref: Ref) -> None:
        """Deactivate an actor that keeps nothing in memory and is not used for now, without waiting until it has been
        idle for long."""
        mailbox = self._mailboxes.get(ref)
        if mailbox is not None:
            self._registry.release((mailbox,))

    def when_stored(self, pending: PendingAnswer, then: Callable[[DomainError | None], None]) -> None:
        """Call `then` when the writes of the turn are on disk, with None, or with the error if they were not stored.

        Requires a group. Until then the message counts as waiting in the mailbox.
        """
        group, mailbox = pending.group, pending.mailbox
        assert group is not None
        mailbox.awaiting_commit += 1

        def settled(error: StoreError | None) -> None:
            mailbox.awaiting_commit -= 1
            then(None if error is None else as_domain_error(error))

        group.settled(settled)

    def when_all_stored(
        self,
        turns: Sequence[tuple[T, PendingAnswer]],
        then: Callable[[list[T], DomainError | None], None],
    ) -> None:
        """Call `then` as `when_stored` does, with what each turn is for: once for all turns in a row that are of one
        actor and share a group. Turns without a group have stored nothing; for them it is called now."""
        subjects: list[T] = []
        for at, (subject, turn) in enumerate(turns):
            subjects.append(subject)
            following = turns[at + 1][1] if at + 1 < len(turns) else None
            if following is not None and following.group is turn.group and following.mailbox is turn.mailbox:
                continue
            if turn.group is None:
                then(subjects, None)
            else:
                self.when_stored(turn, partial(then, subjects))
            subjects = []

    def _admit(self, mailbox: Mailbox, message: Message, now_s: float) -> Verdict | None:
        try:
            return mailbox.admit(message, self.limits, now_s)
        except DomainError:
            self._turns.refused += 1
            raise

    async def ask_all(
        self, refs: Iterable[Ref], message: Message, add: Callable[[Batch], None] | None = None
    ) -> Verdict | None:
        """Send one message to many actors, each once: either all of them handle it or none.

        If one of them refuses it, for any reason, the whole call is refused. The writes of all of them are one
        batch, to which `add` adds. The turns are taken in parts, and the event loop goes on in between; nobody sees one
        of them before all are submitted. Only for synchronous handlers. Raises as `ask`. Returns the verdict of the
        throttle with the fewest calls left, None if no throttle applied.
        """
        asks = [(ref, message) for ref in dict.fromkeys(refs)]
        with SharedBatch(self._turns, self.clock.monotonic_s) as shared:

            def hold(ask: Ask) -> Mailbox:
                try:
                    return self._hold(shared, *ask)
                except DomainError as refusal:
                    refusal.message = f"Nothing was sent: {ask[0].kind} {ask[0].id.hex()}: {refusal.message}"
                    raise

            async with self._one_of_many(asks):
                for ask in asks:
                    await shared.pause_if_long()
                    hold(ask)
                await shared.take_many(asks, lambda ask: shared.take(hold(ask), message))
                verdicts = shared.spend(self.limits, self.clock.monotonic_s())
                if add is not None:
                    add(shared.batch)
                group = shared.submit()
            if group is not None:
                await _committed(group)
        return min(verdicts, key=lambda verdict: (verdict.remaining, -verdict.reset_s), default=None)

    @asynccontextmanager
    async def _one_of_many(self, asks: Sequence[Ask]) -> AsyncIterator[None]:
        """Let one call to many actors of an application take its turns at a time, as they would undo each other's."""
        if len(asks) <= LOADED_AT_ONCE_MAX:
            yield
            return
        parent = asks[0][0].parent
        lock = self._of_many.setdefault(parent, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._of_many.pop(parent, None)

    async def ask_each(
        self, asks: Iterable[Ask], last: Callable[[list[Any]], Ask] | None = None
    ) -> list[Any]:
        """Send messages to different actors; return the value of each answer, or the error of an actor that refuses.

        The writes of all of them are one batch. `last` makes one more message from the answers, whose writes are in
        the same batch; its answer comes last, and if it is refused, nothing is stored. Nothing is stored either if an
        actor is busy or its throttle exhausted; that is raised, as everything is that would pass with time. The turns
        are taken in parts, as those of `ask_all`. Actors that only this call needs in memory leave it again. Only for
        synchronous handlers.
        """
        asks = list(asks)
        try:
            return await self._ask_each(asks, last)
        except NamesBusy:
            if self.claim_names is None:
                raise
            await self.claim_names()
            return await self._ask_each(asks, last)

    async def _ask_each(self, asks: Sequence[Ask], last: Callable[[list[Any]], Ask] | None) -> list[Any]:
        answers: dict[Ref, Any] = {}
        opened: list[Mailbox] = []
        with SharedBatch(self._turns, self.clock.monotonic_s) as shared:

            def take(ask: Ask) -> Any:
                is_active = ask[0] in self._mailboxes
                mailbox = self._hold(shared, *ask)
                if not is_active:
                    opened.append(mailbox)
                return shared.take(mailbox, ask[1])

            def take_or_refuse(ask: Ask) -> None:
                try:
                    answers[ask[0]] = take(ask)
                except (Overloaded, TooManyRequests):
                    raise
                except DomainError as refusal:
                    answers[ask[0]] = refusal

            await shared.take_many(asks, take_or_refuse)
            values = [answers[ref] for ref, _ in asks]
            if last is not None:
                values.append(take(last(list(values))))
            shared.spend(self.limits, self.clock.monotonic_s())
            group = shared.submit()
            if group is not None:
                await _committed(group)
        self._registry.release(opened)
        return values

    async def ask_in_order(self, asks: Iterable[Ask], *, past_refusals: bool = False) -> list[Any]:
        """Send messages one after the other, each of which sees what those before it have written.

        The turns share commits, and everything is on disk when this returns. The value of each answer is returned; the
        first refusal is the last value, and ends the call, which does not undo what was done before; with
        `past_refusals` the messages behind it are sent too. Actors that only this call needs in memory leave it again.
        """
        answers: list[Any] = []
        opened: list[Mailbox] = []
        groups: dict[int, Group] = {}
        for ref, message in asks:
            is_active = ref in self._mailboxes
            try:
                try:
                    pending = self.begin(ref, message)
                except NamesBusy:
                    pending = None
                if pending is None:
                    answers.append((await self.ask(ref, message)).value)
                    continue
            except DomainError as refusal:
                answers.append(refusal)
                if past_refusals:
                    continue
                break
            answers.append(pending.value)
            if pending.group is not None:
                groups[id(pending.group)] = pending.group
            if not is_active:
                opened.append(pending.mailbox)
        for group in groups.values():
            await _committed(group)
        self._registry.release(opened)
        return answers

    def _hold(self, shared: SharedBatch, ref: Ref, message: Message) -> Mailbox:
        """Activate an actor, check that its mailbox takes the message, and keep it in memory."""
        try:
            mailbox = self._mailboxes.get(ref)
            if mailbox is None or self._nursery is None:
                mailbox = self._open(ref, message)
            mailbox.check(message, self.limits, self.clock.monotonic_s())
            self._turns.activate(mailbox, message)
        except DomainError:
            self._turns.refused += 1
            raise
        shared.hold(mailbox)
        return mailbox

    async def read(
        self,
        query: Callable[[Snapshot], T],
        *,
        wide: bool = False,
        own: bool = False,
        on_step: Callable[[], None] | None = None,
    ) -> T:
        """Run a long read on its own snapshot (`Store.snapshot`) in a worker thread, charged to `payer`.

        `on_step` is called at times while the snapshot is scanned, and may raise to end the read; it lets the event
        loop go first, which is all that is done without it. Raises `Overloaded` if too many reads wait.
        """
        payer = self.payer()
        async with self.reads.place(payer):
            return await self.store.read(
                lambda snapshot: compute_in_turn(payer, partial(query, snapshot)),
                wide=wide,
                own=own,
                on_step=on_step or give_way,
            )

    def _open(self, ref: Ref, message: Message) -> Mailbox:
        """Activate an actor and register its mailbox. Nothing is registered if the actor does not exist."""
        if self._nursery is None:
            raise Overloaded("The server is stopping.")
        if self.moves.paused:
            self.moves.check_actor(ref)
        if self.is_elsewhere(ref):
            raise elsewhere()
        mailbox = Mailbox(ref)
        self._turns.activate(mailbox, message)
        try:
            self._registry.add(mailbox)
        except Overloaded:
            self._turns.refused += 1
            raise
        return mailbox

    # The queue behind an asynchronous turn.

    async def _ask_queued(self, mailbox: Mailbox, waiting: QueuedMessage) -> Turn:
        """Queue the message and wait until it is handled.

        The turn runs in a task of the system, so that cancelling the caller does not interrupt it.
        """
        if mailbox.queue is None:
            mailbox.queue = deque((waiting,))
            self._begin_queued(mailbox, mailbox.queue)
        else:
            mailbox.queue.append(waiting)
        await waiting.event.wait()
        if waiting.error is not None:
            raise waiting.error
        return waiting.value, waiting.group

    def _begin_queued(self, mailbox: Mailbox, queue: deque[QueuedMessage]) -> None:
        """Begin the task of the first message, in the context of its caller. A system that stops refuses all."""
        if self._nursery is None:
            self._end_queue(mailbox, queue)
            return
        queue[0].context.run(self._nursery.start_soon, self._handle_queued, mailbox, queue)

    async def _handle_queued(self, mailbox: Mailbox, queue: deque[QueuedMessage]) -> None:
        """Handle the first message, and begin the next. If the system stops, refuse the remaining ones."""
        waiting = queue[0]
        turn = (mailbox, waiting.message, waiting.handler, waiting.stamp)
        try:
            if waiting.handler.waits:
                waiting.value, waiting.group = await self._turns.take_long(*turn)
            else:
                waiting.value, waiting.group = self._turns.take(*turn)
        except DomainError as refusal:
            waiting.error = refusal
        except BaseException:
            self._end_queue(mailbox, queue)
            raise
        queue.popleft()
        waiting.event.set()
        if queue:
            self._begin_queued(mailbox, queue)
        else:
            self._end_queue(mailbox, queue)

    def _end_queue(self, mailbox: Mailbox, queue: deque[QueuedMessage]) -> None:
        mailbox.queue = None
        if mailbox.gone:
            self._registry.remove(mailbox)
        if queue:
            _refuse(queue, Overloaded("The server is stopping; the call was not handled."))

    # Streams.

    def subscribe(self, ref: Ref, topic: str, message: Message) -> Subscription:
        """Open a bounded stream of `topic` events of the actor at `ref`, charged to who asks for it.

        `message` only activates the actor.
        """
        if self.draining:
            raise Overloaded("The server is stopping.")
        self.moves.check(application_of(ref))
        mailbox = self._mailboxes.get(ref) or self._open(ref, message)
        if mailbox.queue is None:  # a busy actor exists, and its memory belongs to the turn
            self._turns.activate(mailbox, message)
        return self.streams.open(mailbox, topic, self.payer())

    def has_subscribers(self, ref: Ref, topic: str) -> bool:
        """True if a `publish` would reach a subscriber; if not, the event need not be encoded."""
        mailbox = self._mailboxes.get(ref)
        return mailbox is not None and topic in (mailbox.subscribers or ())

    def topics_of(self, ref: Ref) -> tuple[str, ...]:
        """The topics of an actor that have subscribers."""
        mailbox = self._mailboxes.get(ref)
        return () if mailbox is None else tuple(mailbox.subscribers or ())

    def publish(self, ref: Ref, topic: str, events: Events) -> None:
        """Offer the same events to every subscriber, without waiting."""
        mailbox = self._mailboxes.get(ref)
        if mailbox is not None:
            self.streams.publish(mailbox, topic, events)

    def end_streams(self, ref: Ref, topic: str) -> None:
        """End the streams of a topic after what was published, so that their clients come back for the rest."""
        mailbox = self._mailboxes.get(ref)
        if mailbox is not None:
            self.streams.end_of(mailbox, Ending.GONE, topic)

    # Start and shutdown.

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the journal, the asynchronous turns and the deactivation of idle actors until cancelled.

        On cancellation new asks are refused, the asynchronous turns end, and last the journal, which commits
        their writes; so every caller is answered.
        """
        committing = trio.CancelScope(shield=True)
        async with trio.open_nursery() as outer:
            outer.start_soon(self._commit, committing)
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

    async def _commit(self, scope: trio.CancelScope) -> None:
        current_work.set(_COMMIT)
        with scope:
            await self.journal.run()

    def drain(self) -> None:
        """End all streams and commit all submitted writes. Called once, when no new calls are accepted."""
        self.draining = True
        self.streams.end_all(Ending.DRAINING)
        self.journal.flush()

    def forget_children(self, parent: bytes) -> None:
        """Remove every active actor of a deleted application from memory and end its streams."""
        for mailbox in self._registry.of_parent(parent):
            self._turns.forget(mailbox)
        self.forget(parent)

    def forget(self, application: bytes) -> None:
        """Drop what is known in memory of an application that is deleted, or has left for another process."""
        for forget in self.forgotten:
            forget(application)

    # Applications that are moved.

    async def pause(self, application: bytes) -> None:
        """Answer no call of the actors of an application from now on: it is refused as `Overloaded`.

        When this returns none of them is in memory, and all that was written is on disk. A turn that waits for
        something comes to its end, within `LAST_TURN_S`, or is given up; what is queued behind it is refused. The
        streams of the application end.
        """
        self.moves.away.add(application)
        self.moves.paused.add(application)
        waiting: list[QueuedMessage] = []
        for mailbox in self._registry.of_application(application):
            self._registry.remove(mailbox)
            self.streams.end_of(mailbox, Ending.DRAINING)
            if mailbox.queue is None:
                mailbox.actor = None  # so a turn that waits for those of other actors counts no longer
                continue
            scope = self._turns.waiting.get(mailbox)
            if scope is not None:
                scope.deadline = min(scope.deadline, trio.current_time() + LAST_TURN_S)
            waiting.append(mailbox.queue.popleft())
            _refuse(mailbox.queue, refusal())
            mailbox.queue.clear()
            mailbox.queue.append(waiting[-1])
        for turn in waiting:
            await turn.event.wait()
        await self.settle()

    def resume(self, application: bytes) -> None:
        """Answer the calls of an application again."""
        self.moves.paused.discard(application)

    async def settle(self) -> None:
        """Return when all that was submitted until now is on disk, or has failed."""
        while self.journal.pending_batches:
            try:
                await self.journal.submit(Batch()).wait()
            except StoreError:
                await trio.lowlevel.checkpoint()
            else:
                return

    # Statistics.

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
        """Messages refused by a throttle, a limit or an actor."""
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
        """Actors removed from memory because they were idle."""
        return self._registry.deactivations

    def mailboxes(self) -> Iterable[Mailbox]:
        """The mailboxes of all active actors."""
        return self._mailboxes.values()

    def mailbox(self, ref: Ref) -> Mailbox | None:
        """The mailbox of an actor; None if it is not active."""
        return self._mailboxes.get(ref)

    def statistics(self, ref: Ref) -> Statistics | None:
        """The statistics of the actor at `ref`; None if it is not active."""
        box = self.mailbox(ref)
        if box is None:
            return None
        age_s = box.oldest_message_age_s(self.clock.monotonic_s())
        return Statistics(box.depth, age_s, box.handled, box.refused, box.restarts, box.last_error)


def _refuse(queue: Iterable[QueuedMessage], why: DomainError) -> None:
    for waiting in queue:
        waiting.error = why
        waiting.event.set()


async def _committed(group: Group) -> None:
    """Wait for the commit of a group. Raises the `DomainError` for a failure of the store."""
    try:
        await group.wait()
    except StoreError as failure:
        raise as_domain_error(failure) from failure
