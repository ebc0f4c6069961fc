"""Turns of several actors whose writes are one batch: all of them are stored, or none.

Owns the order: turns first, each with its own refusal, then one submission. Nothing may be awaited between the first
turn and the submission. Does not own admission (`runtime/system.py`) nor a turn itself (`runtime/turns.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunkline.store.batch import Batch

if TYPE_CHECKING:
    from types import TracebackType

    from trunkline.actors.runtime.actor import Actor
    from trunkline.actors.runtime.mailbox import Mailbox
    from trunkline.actors.runtime.turns import Turns
    from trunkline.actors.values.structs import Message
    from trunkline.store.journal import Group


class SharedBatch:
    """A context manager. Each actor takes at most one turn in it.

    A turn counts as waiting in its mailbox until the end of the context, so the commit is awaited inside. If the
    context ends before `submit`, the turns are undone: their actors forget what they did.
    """

    __slots__ = ("_held", "_new", "_staged", "_submitted", "_turns", "batch")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.batch = Batch()
        self._held: list[Mailbox] = []
        self._staged: list[tuple[Mailbox, Actor]] = []
        self._new: list[Mailbox] = []
        self._submitted = False

    def hold(self, mailbox: Mailbox) -> None:
        """Keep a mailbox in memory while others are opened."""
        mailbox.awaiting_commit += 1
        self._held.append(mailbox)

    def take(self, mailbox: Mailbox, message: Message) -> Any:
        """Run a turn, and return the value of its handler. Raises the `DomainError` with which the actor refuses."""
        is_new = mailbox.actor is not None and not mailbox.actor.exists
        actor, value = self._turns.stage(mailbox, message, self.batch)
        if is_new:
            self._new.append(mailbox)
        self._staged.append((mailbox, actor))
        return value

    def submit(self) -> Group | None:
        """Submit all writes; return the group to wait for, None if nothing was written."""
        group = self._turns.submit_staged(self._staged, self.batch)
        self._submitted = True
        return group

    def __enter__(self) -> SharedBatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for mailbox in self._held:
            mailbox.awaiting_commit -= 1
        if not self._submitted:
            for mailbox, _ in self._staged:
                mailbox.actor = None
            for mailbox in self._new:
                self._turns.forget(mailbox)
