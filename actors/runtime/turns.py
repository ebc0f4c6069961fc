"""Turns: what happens when an actor handles a message, and what is left where that fails.

Owns loading an actor's memory and dropping it, the order handle, flush, submit, and supervision. Does not
own who may ask or who waits (`runtime/system.py`, `runtime/mailbox.py`).

The rule that keeps memory and store together: an actor's memory is what is stored, or waits to be stored in
a group that is still to come. A turn that is refused, crashes or can not be submitted drops the memory. A
group that fails raises the journal's epoch, and memory of an older epoch is dropped before the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
import trio

from trunkline.actors.runtime.actor import Actor, Handler
from trunkline.actors.runtime.subscription import Ending
from trunkline.actors.values.errors import Crashed, DomainError, NotFound, Overloaded, StorageFull
from trunkline.store.batch import Batch
from trunkline.store.errors import JournalFull, StoreError, StoreFull

if TYPE_CHECKING:
    from trunkline.actors.runtime.host import Host
    from trunkline.actors.runtime.mailbox import Mailbox
    from trunkline.actors.runtime.registry import Registry
    from trunkline.actors.runtime.streams import Streams
    from trunkline.actors.values.structs import Message
    from trunkline.store.journal import Group

Turn = tuple[Any, "Group | None"]
"""What a turn gave: the handler's value, and the group that must be on disk before anybody is told."""

_log = structlog.get_logger("trunkline.actors")


class Turns:
    """Takes turns of actors. The figures count since the start of the process."""

    def __init__(
        self, system: Host, registry: Registry, streams: Streams, kinds: Iterable[type[Actor]]
    ) -> None:
        self.handled = 0
        self.refused = 0
        self.restarts = 0
        self.activations = 0
        self.kinds = {kind.kind: kind for kind in kinds}
        self._system = system
        self._journal = system.journal
        self._registry = registry
        self._streams = streams

    # The actor.

    def present(self, mailbox: Mailbox, message: Message) -> Actor:
        """The actor as it is now, loaded if need be. `NotFound` where there is none and `message` makes none."""
        if mailbox.group is not None and mailbox.group.done:
            mailbox.group = None
        actor = mailbox.actor
        if actor is None or mailbox.epoch != self._journal.epoch:
            actor = self._load(mailbox)
        if not actor.exists and type(message) not in actor.births:
            if not self._journal.pending_batches:  # else the deletion that it sees may still fail
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
        """Let go of an actor that does not exist (any more); its streams end. A queue is worked off first."""
        mailbox.actor = None
        mailbox.gone = True
        self._streams.end_of(mailbox, Ending.GONE)
        if mailbox.queue is None:
            self._registry.remove(mailbox)

    def _deleted(self, mailbox: Mailbox) -> None:
        """The deletion of an actor is on disk; it may have been created anew since."""
        if mailbox.actor is None or not mailbox.actor.exists:
            self.forget(mailbox)

    # Turns.

    def take(self, mailbox: Mailbox, message: Message, handler: Handler) -> Turn:
        """A synchronous turn: handle the message and submit what it staged."""
        actor = self.present(mailbox, message)
        unborn = not actor.exists
        try:
            value = handler.call(actor, message)
            if actor.batch is not None:
                actor.flush()
        except DomainError as refusal:
            self._refused(mailbox, refusal, unborn)
            raise
        except Exception as bug:
            raise self._crashed(mailbox, type(message).__name__, bug) from bug
        except BaseException:
            mailbox.actor = None
            raise
        return value, self._submit(mailbox, actor, unborn)

    async def take_long(self, mailbox: Mailbox, message: Message, handler: Handler) -> Turn:
        """A turn that may wait. It is given up after `request_timeout_s`, lest the actor be stuck for good."""
        actor = self.present(mailbox, message)
        unborn = not actor.exists
        basis = mailbox.group
        try:
            with trio.move_on_after(self._system.limits.request_timeout_s) as patience:
                value = await handler.call(actor, message)
            if patience.cancelled_caught:
                raise self._stuck(mailbox, message)
            if mailbox.actor is not actor:
                raise NotFound(actor.missing())  # its application was deleted meanwhile
            if basis is not None and basis.error is not None:
                raise told(basis.error)  # what the handler saw was never stored
            if actor.batch is not None:
                actor.flush()
        except DomainError as refusal:
            self._refused(mailbox, refusal, unborn)
            raise
        except Exception as bug:
            raise self._crashed(mailbox, type(message).__name__, bug) from bug
        except BaseException:
            mailbox.actor = None
            raise
        return value, self._submit(mailbox, actor, unborn)

    def take_all(self, mailboxes: list[Mailbox], message: Message) -> Group | None:
        """A synchronous turn of each, and one batch of all that they write. Where one fails, all forget."""
        batch = Batch()
        actors: list[Actor] = []
        for mailbox in mailboxes:
            try:
                actor = self.present(mailbox, message)
                handler = actor.handler(type(message))
                assert not handler.waits
                handler.call(actor, message)
                if actor.batch is not None:
                    actor.flush()
                    if self._system.check_batch is not None:
                        self._system.check_batch(mailbox.ref, actor.batch)
                    batch.extend(actor.batch)
            except DomainError as refusal:
                _drop(mailboxes)
                self._refused(mailbox, refusal, unborn=False)
                raise
            except Exception as bug:
                _drop(mailboxes)
                raise self._crashed(mailbox, type(message).__name__, bug) from bug
            except BaseException:
                _drop(mailboxes)
                raise
            actors.append(actor)
        group: Group | None = None
        if batch:
            try:
                group = self._handed_over(batch)
            except DomainError:
                _drop(mailboxes)
                self.refused += 1
                raise
        for mailbox, actor in zip(mailboxes, actors, strict=True):
            self._submitted(mailbox, actor, group)
        return group

    # The end of a turn.

    def _submit(self, mailbox: Mailbox, actor: Actor, unborn: bool) -> Group | None:
        """Hand over what the turn staged; the group to wait for, None where there is nothing to wait for."""
        if actor.batch is None:
            group = mailbox.group  # the answer rests on writes that still wait
        else:
            if self._system.check_batch is not None:
                self._system.check_batch(mailbox.ref, actor.batch)
            try:
                group = self._handed_over(actor.batch)
            except DomainError as refusal:
                self._refused(mailbox, refusal, unborn)
                raise
        self._submitted(mailbox, actor, group)
        return group

    def _handed_over(self, batch: Batch) -> Group:
        try:
            group = self._journal.submit(batch)
        except StoreError as failure:
            raise told(failure) from failure
        if group.error is not None:  # at the quota a batch is refused at once
            raise told(group.error) from group.error
        return group

    def _submitted(self, mailbox: Mailbox, actor: Actor, group: Group | None) -> None:
        """The turn is over: what it staged is in `group`, and what it wants done is done after that."""
        mailbox.handled += 1
        self.handled += 1
        if actor.effects is not None:
            for effect in actor.effects:
                if group is not None:
                    group.then(effect)
                else:
                    _now(effect)
            actor.effects = None
        if actor.batch is not None:
            actor.batch = None
            mailbox.group = group
            mailbox.gone = False
            if not actor.exists:
                mailbox.actor = None  # born again, it must not remember its former life
                assert group is not None
                group.then(partial(self._deleted, mailbox))

    def _refused(self, mailbox: Mailbox, refusal: DomainError, unborn: bool) -> None:
        """A refused turn leaves nothing: no write, no memory, and no mailbox of what was not born."""
        mailbox.refused += 1
        self.refused += 1
        mailbox.last_error = refusal.type
        mailbox.actor = None
        if unborn and not mailbox.handled:
            self.forget(mailbox)

    def _crashed(self, mailbox: Mailbox, doing: str, bug: Exception) -> Crashed:
        """Log the bug with the ids, drop the actor's memory (it reloads with its next message), say 500."""
        mailbox.actor = None
        mailbox.restarts += 1
        self.restarts += 1
        mailbox.last_error = type(bug).__name__
        _log.error(
            "actor restarted", kind=mailbox.ref.kind, id=mailbox.ref.id.hex(), message=doing, exc_info=bug
        )
        return Crashed(
            f"The {mailbox.ref.kind} failed to handle this call and was restarted; nothing of the call was stored."
        )

    def _stuck(self, mailbox: Mailbox, message: Message) -> Overloaded:
        _log.warning(
            "turn given up",
            kind=mailbox.ref.kind,
            id=mailbox.ref.id.hex(),
            message=type(message).__name__,
            after_s=self._system.limits.request_timeout_s,
        )
        return Overloaded(
            f"The {mailbox.ref.kind} did not get what it waited for; nothing of this call was stored. "
            "Try again in a second."
        )


def told(failure: StoreError) -> DomainError:
    """What a caller is told of a failure of the store."""
    if isinstance(failure, JournalFull):
        return Overloaded(f"{failure} Nothing of this call was stored. Try again in a second.")
    if isinstance(failure, StoreFull):
        return StorageFull("The disk of the server is full; nothing of this call was stored. Reads go on.")
    return Crashed("The store failed to commit; nothing of this call was stored.")


def _drop(mailboxes: list[Mailbox]) -> None:
    for mailbox in mailboxes:
        mailbox.actor = None


def _now(effect: Callable[[], None]) -> None:
    """Run an effect of a turn that waits for no commit. What it raises hurts nobody."""
    try:
        effect()
    except Exception:  # noqa: BLE001 - as in the journal: the turn itself is over and was right
        _log.exception("an effect of a turn failed")
