"""Turns: an actor handles a message, and the handling of failures.

Owns loading and dropping an actor's memory, the order handle, flush, submit, and supervision. Does not own
admission and waiting (`core/runtime/system.py`, `core/runtime/mailbox.py`).

The rule that keeps memory and store consistent: an actor's memory is what is stored, or submitted in a group
that is not committed yet. If a turn is refused, crashes or cannot be submitted, the memory is dropped. A group
that fails raises the journal's epoch, and memory of an older epoch is dropped before the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog
import trio

from trunkline.actors.core.runtime.actor import Actor, Handler, Stamp
from trunkline.actors.core.runtime.subscription import Ending
from trunkline.actors.core.values.errors import (
    Crashed,
    DomainError,
    NotFound,
    Overloaded,
    StorageFull,
    Unanswered,
)
from trunkline.store.batch import Batch
from trunkline.store.errors import (
    Fenced,
    JournalFull,
    LogUnreachable,
    NoDescriptors,
    StoreError,
    StoreFull,
    StoreLost,
    StoreUnreachable,
)

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host
    from trunkline.actors.core.runtime.mailbox import Mailbox
    from trunkline.actors.core.runtime.registry import Registry
    from trunkline.actors.core.runtime.streams import Streams
    from trunkline.actors.core.values.structs import Message
    from trunkline.store.commit_group import Group

Turn = tuple[Any, "Group | None"]
"""The result of a turn: the handler's value, and the group that must be on disk before the answer is sent."""

WRITES_WAIT: Final = "journal"
"""The `reason` of refusals because too much waits to be stored."""

STAGED: Final = -2
"""The epoch of memory with a turn that waits for those of other actors: another turn loads the actor anew."""

_log = structlog.get_logger("trunkline.actors")


class Turns:
    """Runs the turns of actors. The counters count from the start of the process."""

    def __init__(
        self, system: Host, registry: Registry, streams: Streams, kinds: Iterable[type[Actor]]
    ) -> None:
        self.handled = 0
        self.refused = 0
        self.restarts = 0
        self.activations = 0
        self.kinds = {kind.kind: kind for kind in kinds}
        self.waiting: dict[Mailbox, trio.CancelScope] = {}
        """The turns that may wait, and the scopes that end them in time."""
        self._system = system
        self._journal = system.journal
        self._registry = registry
        self._streams = streams

    @property
    def epoch(self) -> int:
        """The epoch of the journal."""
        return self._journal.epoch

    # The actor.

    def activate(self, mailbox: Mailbox, message: Message) -> Actor:
        """Return the current actor, loaded if necessary. Raises `NotFound` unless it exists or `message` creates it."""
        if mailbox.group is not None and mailbox.group.done:
            mailbox.group = None
        actor = mailbox.actor
        if actor is None or mailbox.epoch != self._journal.epoch:
            actor = self._load(mailbox)
        if not actor.exists and type(message) not in actor.creation_messages:
            if not self._journal.pending_batches:  # else the commit of its deletion may still fail
                self.forget(mailbox)
            raise NotFound(actor.missing())
        return actor

    def _load(self, mailbox: Mailbox) -> Actor:
        try:
            actor = self.kinds[mailbox.ref.kind](self._system, mailbox.ref)
        except Exception as bug:
            raise self._crashed(mailbox, "load", bug) from bug
        mailbox.actor = actor
        mailbox.epoch = self._journal.epoch
        self.activations += 1
        return actor

    def forget(self, mailbox: Mailbox) -> None:
        """Remove an actor that does not exist (any more), after its queue is empty. Its streams end at once."""
        mailbox.actor = None
        mailbox.gone = True
        self._streams.end_of(mailbox, Ending.GONE)
        if mailbox.queue is None:
            self._registry.remove(mailbox)

    def _deleted(self, mailbox: Mailbox) -> None:
        """Called when the deletion of an actor is on disk; the actor may have been created again since."""
        if mailbox.actor is None or not mailbox.actor.exists:
            self.forget(mailbox)

    # Turns.

    def take(self, mailbox: Mailbox, message: Message, handler: Handler, stamp: Stamp | None = None) -> Turn:
        """Run a synchronous turn: handle the message and submit the staged writes, and what `stamp` adds to them."""
        actor = self.activate(mailbox, message)
        is_new = not actor.exists
        try:
            value = handler.call(actor, message)
            if actor.batch is not None:
                actor.flush()
            if stamp is not None:
                stamp(actor, value)
        except DomainError as refusal:
            self._refused(mailbox, refusal, is_new)
            raise
        except Exception as bug:
            raise self._crashed(mailbox, type(message).__name__, bug) from bug
        except BaseException:
            mailbox.actor = None
            raise
        return value, self._submit(mailbox, actor, is_new)

    async def take_long(
        self, mailbox: Mailbox, message: Message, handler: Handler, stamp: Stamp | None = None
    ) -> Turn:
        """Run a turn that may wait. Cancelled after `request_timeout_s`, so that it never blocks the actor forever."""
        actor = self.activate(mailbox, message)
        is_new = not actor.exists
        base_group = mailbox.group
        try:
            with trio.move_on_after(self._system.limits.request_timeout_s) as timeout:
                self.waiting[mailbox] = timeout
                value = await handler.call(actor, message)
            if timeout.cancelled_caught:
                raise self._timed_out(mailbox, message)
            if mailbox.actor is not actor:
                raise NotFound(actor.missing())  # its application was deleted meanwhile
            if base_group is not None and base_group.error is not None:
                raise as_domain_error(base_group.error)  # the data that the handler used was never stored
            if actor.batch is not None:
                actor.flush()
            if stamp is not None:
                stamp(actor, value)
        except DomainError as refusal:
            self._refused(mailbox, refusal, is_new)
            raise
        except Exception as bug:
            raise self._crashed(mailbox, type(message).__name__, bug) from bug
        except BaseException:
            mailbox.actor = None
            raise
        finally:
            self.waiting.pop(mailbox, None)
        return value, self._submit(mailbox, actor, is_new)

    def stage(self, mailbox: Mailbox, message: Message) -> tuple[Actor, Any]:
        """Run a synchronous turn whose writes wait; return the actor and the handler's value. Raises as `take`.

        The turn ends with `submit_staged`; until then its effects are not run, and any other turn of the actor loads it
        anew, so that this one is lost.
        """
        actor = self.activate(mailbox, message)
        is_new = not actor.exists
        handler = actor.handler(type(message))
        assert not handler.waits
        try:
            value = handler.call(actor, message)
            if actor.batch is not None:
                actor.flush()
        except DomainError as refusal:
            self._refused(mailbox, refusal, is_new)
            raise
        except Exception as bug:
            raise self._crashed(mailbox, type(message).__name__, bug) from bug
        except BaseException:
            mailbox.actor = None
            raise
        if actor.batch is not None and self._system.check_batch is not None:
            self._system.check_batch(mailbox.ref, actor.batch)
        mailbox.epoch = STAGED
        return actor, value

    def check_size(self, size_bytes: int) -> None:
        """Raise `Overloaded` if so many bytes can never be submitted as one batch."""
        try:
            self._journal.check_size(size_bytes)
        except StoreError as failure:
            self.refused += 1
            raise as_domain_error(failure) from failure

    def submit_staged(self, staged: list[tuple[Mailbox, Actor]], batch: Batch) -> Group | None:
        """Submit `batch`, with the writes of staged turns; return the group to wait for, None if there are none."""
        group = None
        if batch:
            try:
                group = self._submit_batch(batch)
            except DomainError:
                self.refused += 1
                raise
        for mailbox, actor in staged:
            mailbox.epoch = self._journal.epoch
            self._finish(mailbox, actor, group)
        return group

    # The end of a turn.

    def _submit(self, mailbox: Mailbox, actor: Actor, is_new: bool) -> Group | None:
        """Submit the staged writes; return the group to wait for, None if there is nothing to wait for."""
        if actor.batch is None:
            group = mailbox.group  # the answer depends on earlier writes that are not committed yet
        else:
            if self._system.check_batch is not None:
                self._system.check_batch(mailbox.ref, actor.batch)
            try:
                group = self._submit_batch(actor.batch)
            except DomainError as refusal:
                self._refused(mailbox, refusal, is_new)
                raise
        self._finish(mailbox, actor, group)
        return group

    def _submit_batch(self, batch: Batch) -> Group:
        try:
            group = self._journal.submit(batch)
        except StoreError as failure:
            raise as_domain_error(failure) from failure
        if group.error is not None:  # at the quota a batch is refused at once
            raise as_domain_error(group.error) from group.error
        return group

    def _finish(self, mailbox: Mailbox, actor: Actor, group: Group | None) -> None:
        """Finish a turn whose writes are in `group`: its effects run after the commit."""
        mailbox.handled += 1
        self.handled += 1
        if actor.effects is not None:
            for effect in actor.effects:
                if group is not None:
                    group.then(effect)
                else:
                    _run_effect(effect)
            actor.effects = None
        if actor.batch is not None:
            actor.batch = None
            mailbox.group = group
            mailbox.gone = False
            if not actor.exists:
                mailbox.actor = None  # if it is created again, it must not use this memory
                assert group is not None
                group.then(partial(self._deleted, mailbox))

    def _refused(self, mailbox: Mailbox, refusal: DomainError, is_new: bool) -> None:
        """Undo a refused turn: drop its writes, the memory, and the mailbox of an actor that it failed to create."""
        mailbox.refused += 1
        self.refused += 1
        mailbox.last_error = refusal.type
        mailbox.actor = None
        if is_new and not mailbox.handled:
            self.forget(mailbox)

    def _crashed(self, mailbox: Mailbox, doing: str, bug: Exception) -> Crashed:
        """Log the bug, or the fault of the store, with the ids and drop the actor's memory.

        The next message loads it again.
        """
        mailbox.actor = None
        mailbox.restarts += 1
        self.restarts += 1
        mailbox.last_error = type(bug).__name__
        _log.error(
            "actor restarted", kind=mailbox.ref.kind, id=mailbox.ref.id.hex(), message=doing, exc_info=bug
        )
        if isinstance(bug, StoreError):
            return Crashed("The store failed to read; nothing of this call was stored. The fault is logged.")
        return Crashed(
            f"The {mailbox.ref.kind} failed to handle this call and was restarted; nothing of the call was stored."
        )

    def _timed_out(self, mailbox: Mailbox, message: Message) -> Overloaded:
        _log.warning(
            "turn given up",
            kind=mailbox.ref.kind,
            id=mailbox.ref.id.hex(),
            message=type(message).__name__,
        )
        return Overloaded(
            f"The {mailbox.ref.kind} did not finish this call in time; nothing of this call was stored. "
            "Try again in a second."
        )


def as_domain_error(failure: StoreError) -> DomainError:
    """Return the error for callers of a failure of the store."""
    if isinstance(failure, JournalFull):
        return Overloaded(
            f"{failure} Nothing of this call was stored. Try again in a second.", reason=WRITES_WAIT
        )
    if isinstance(failure, DomainError):
        return failure
    if isinstance(failure, Fenced):
        return Overloaded(
            "Another machine owns the data now; nothing of this call was stored. Try again in a second."
        )
    if isinstance(failure, LogUnreachable):
        return Unanswered(
            "The server has ended before its log had this call. Nobody knows whether it was done: read it back, or "
            "repeat it with the same Idempotency-Key."
        )
    if isinstance(failure, StoreUnreachable):
        return Overloaded(
            "The store of files cannot be reached; nothing of this call was stored.", retry_after_s=5
        )
    if isinstance(failure, NoDescriptors):
        return Overloaded(
            "The server has no descriptor left to open a file with; nothing of this call was stored.",
            retry_after_s=5,
        )
    if isinstance(failure, StoreFull):
        return StorageFull(
            "The disk of the server, or its quota, is full; nothing of this call was stored. Reads still work."
        )
    if isinstance(failure, StoreLost):
        return Crashed(
            "The store has failed, and the server ends. Whether this call was stored is not known; read what is there.",
            is_unknown=True,
        )
    return Crashed("The store failed to commit; nothing of this call was stored.")


def _run_effect(effect: Callable[[], None]) -> None:
    """Run an effect of a turn that waits for no commit. Exceptions are logged, not raised."""
    try:
        effect()
    except Exception:  # noqa: BLE001 - as in the journal: the turn itself succeeded
        _log.exception("an effect of a turn failed")
