"""Turns of several actors whose writes are one batch: all of them are stored, or none.

Owns the order: turns first, each with its own refusal, then one submission. Many turns are taken in parts, and the
event loop goes on in between; then other messages to these actors have their turns as ever. An actor that had one
meanwhile has lost the turn of the batch, and takes it once more. Nothing may be awaited between the last look at what
is lost and the submission. No turn sees what the others write: where two write different values to one key, the batch
fails as a bug, and nothing is stored. Does not own admission (`core/runtime/system.py`) nor a turn itself
(`core/runtime/turns.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from trunkline.actors.core.runtime.turns import STAGED
from trunkline.actors.core.values.errors import DomainError
from trunkline.store.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from trunkline.actors.core.runtime.actor import Actor
    from trunkline.actors.core.runtime.mailbox import Mailbox
    from trunkline.actors.core.runtime.ref import Ref
    from trunkline.actors.core.runtime.turns import Turns
    from trunkline.actors.core.values.structs import Message
    from trunkline.limits.table import Limits
    from trunkline.limits.window import Verdict
    from trunkline.store.commit_group import Group

Ask = tuple["Ref", "Message"]
"""An actor, and the message for it."""

LOADED_AT_ONCE_MAX: Final = 8
"""Actors of a message to many that are loaded in one part: 2 ms for devices with 256 attributes."""
PART_S: Final = 0.0015
"""After so long the event loop goes on with others."""
LOST_AT_ONCE_MAX: Final = 20
"""Lost turns that are taken once more right before the submission; more are taken in parts."""
_ROUNDS_MAX: Final = 4
"""How often they are. Each round takes those turns that others have made lost meanwhile, which are fewer each time."""


class _Staged(NamedTuple):
    """A turn of the batch, and the epoch of the journal in which it was taken."""

    message: Message
    actor: Actor
    epoch: int
    is_new: bool


class SharedBatch:
    """A context manager. Each actor takes one turn in it.

    A turn counts as waiting in its mailbox until the end of the context, so the commit is awaited inside. If the
    context ends before `submit`, the turns are undone: their actors forget what they did. `batch` has the writes of the
    first turns, as far as they were put together in parts. `monotonic_s` is the clock that ends a part.
    """

    __slots__ = (
        "_began_s",
        "_has_paused",
        "_held",
        "_loaded",
        "_merged",
        "_monotonic_s",
        "_size_bytes",
        "_staged",
        "_submitted",
        "_turns",
        "batch",
    )

    def __init__(self, turns: Turns, monotonic_s: Callable[[], float]) -> None:
        self._turns = turns
        self._monotonic_s = monotonic_s
        self.batch = Batch()
        self._held: set[Mailbox] = set()
        self._staged: dict[Mailbox, _Staged] = {}
        self._submitted = False
        self._has_paused = False
        self._merged = 0
        self._size_bytes = 0
        self._loaded = turns.activations
        self._began_s = self._monotonic_s()

    async def pause_if_long(self) -> None:
        """Let the event loop go on with others, if this part took long."""
        loaded = self._turns.activations - self._loaded
        if loaded >= LOADED_AT_ONCE_MAX or self._monotonic_s() - self._began_s > PART_S:
            await self._pause()

    async def _pause(self) -> None:
        await trio.lowlevel.checkpoint()
        self._has_paused = True
        self._loaded = self._turns.activations
        self._began_s = self._monotonic_s()

    def hold(self, mailbox: Mailbox) -> None:
        """Keep a mailbox in memory while others are opened."""
        if mailbox not in self._held:
            mailbox.awaiting_commit += 1
            self._held.add(mailbox)

    async def take_many(self, asks: Iterable[Ask], take: Callable[[Ask], None]) -> None:
        """Have `take` hold each actor and take its turn, in parts, and once more if that was lost.

        When this returns no turn is lost, until the caller waits.
        """
        lost = asks
        for _ in range(_ROUNDS_MAX):
            for ask in lost:
                await self.pause_if_long()
                take(ask)
            if not self._has_paused:
                return
            await self._pause()
            lost = self._lost()
            if not lost:
                for staged in list(self._staged.values()):
                    await self.pause_if_long()
                    self._merge(staged.actor)
                await self._pause()
                lost = self._lost()
            if len(lost) <= LOST_AT_ONCE_MAX:
                break
        for ask in lost:
            take(ask)

    def _merge(self, actor: Actor) -> None:
        if actor.batch is not None:
            conflict = self.batch.conflict(actor.batch)
            if conflict is not None:
                db, key = conflict
                raise RuntimeError(
                    f"{actor.ref} writes {key.hex()} of {db}, as an actor before it in this batch does, without having "
                    "read that; ask such actors one after the other (`System.ask_in_order`)"
                )
            self.batch.extend(actor.batch)
        self._merged += 1

    def take(self, mailbox: Mailbox, message: Message) -> Any:
        """Run a turn, and return the value of its handler. Raises the `DomainError` with which the actor refuses."""
        is_new = mailbox.actor is not None and not mailbox.actor.exists
        actor, value = self._turns.stage(mailbox, message)
        self._staged[mailbox] = _Staged(message, actor, self._turns.epoch, is_new)
        if actor.batch is not None:
            self._size_bytes += actor.batch.size_bytes
            self._turns.check_size(self._size_bytes)
        return value

    def _lost(self) -> list[Ask]:
        """Forget the turns that count no longer, as their actors had others or were dropped, and return their asks."""
        epoch = self._turns.epoch
        lost = [
            mailbox
            for mailbox, staged in self._staged.items()
            if mailbox.actor is not staged.actor or mailbox.epoch != STAGED or staged.epoch != epoch
        ]
        if lost:
            self.batch, self._merged = Batch(), 0
        return [(mailbox.ref, self._staged.pop(mailbox).message) for mailbox in lost]

    def spend(self, limits: Limits, now_s: float) -> list[Verdict]:
        """Count all messages in the windows of their throttles, or none. Raises `TooManyRequests` as `Mailbox`."""
        verdicts: list[Verdict] = []
        spent: list[tuple[Mailbox, Message]] = []
        try:
            for mailbox, staged in self._staged.items():
                verdict = mailbox.spend(staged.message, limits, now_s)
                if verdict is not None:
                    verdicts.append(verdict)
                    spent.append((mailbox, staged.message))
        except DomainError:
            for mailbox, message in spent:
                mailbox.take_back(message)
            raise
        return verdicts

    def submit(self) -> Group | None:
        """Submit all writes; return the group to wait for, None if nothing was written. Requires that none is lost."""
        turns = [(mailbox, staged.actor) for mailbox, staged in self._staged.items()]
        for _, actor in turns[self._merged :]:
            self._merge(actor)
        group = self._turns.submit_staged(turns, self.batch)
        self._submitted = True
        return group

    def __enter__(self) -> SharedBatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for mailbox in self._held:
            mailbox.awaiting_commit -= 1
        if self._submitted:
            return
        for mailbox, staged in self._staged.items():
            if mailbox.actor is staged.actor:
                mailbox.actor = None
                if staged.is_new:
                    self._turns.forget(mailbox)
