"""A rehearsal: the turns of actors on a scratch copy of the store, in a worker thread.

So an import is checked by the same code that creates its records later, and nothing is written. Owns the stand-in of
the actor system that the actors see, and one turn after the other. Only for synchronous handlers that read the journal
and snapshots; what a turn would do after its commit does not happen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from trunkline.actors.core.values.errors import NotFound, StorageFull
from trunkline.actors.core.values.ids import IdFactory
from trunkline.store.errors import StoreFull

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunkline.actors.core.runtime.actor import Actor
    from trunkline.actors.core.runtime.host import Host
    from trunkline.actors.core.runtime.ref import Ref
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.core.values.structs import Message
    from trunkline.store.scratch import Scratch

T = TypeVar("T")


class Rehearsal:
    """A stand-in of `system` that keeps all writes in `scratch`."""

    def __init__(self, system: System, scratch: Scratch, kinds: Iterable[type[Actor]]) -> None:
        self.limits = system.limits
        self.clock = system.clock
        self.random_bytes = system.random_bytes
        self.ids = IdFactory(system.random_bytes)
        self.journal = _Journal(scratch)
        self.store = _Store(scratch)
        self.check_batch = None
        self._system = system
        self._scratch = scratch
        self._kinds = {kind.kind: kind for kind in kinds}
        self._ref: Ref | None = None
        self._actor: Actor | None = None

    def component(self, type: type[T]) -> T:
        """The component of this type."""
        return self._system.component(type)

    def ask(self, ref: Ref, message: Message) -> Any:
        """Run the turn, and return the answer of its handler. Raises the `DomainError` with which the actor refuses."""
        actor = self._actor
        if actor is None or self._ref != ref:
            actor = self._kinds[ref.kind](cast("Host", self), ref)
        self._ref, self._actor = ref, None  # until the turn has succeeded
        if not actor.exists and type(message) not in actor.creation_messages:
            raise NotFound(actor.missing())
        answer = actor.handler(type(message)).call(actor, message)
        if actor.batch is not None:
            actor.flush()
            try:
                self._scratch.apply(actor.batch)
            except StoreFull as full:
                raise StorageFull(f"The import cannot be checked: {full}") from full
            actor.batch = None
        actor.effects = None
        self._actor = actor
        return answer


class _Journal:
    """What actors read of the journal."""

    def __init__(self, scratch: Scratch) -> None:
        self.get = scratch.get
        self.head = scratch.head
        self._scratch = scratch

    def range(self, db: str, lo: bytes, hi: bytes) -> list[tuple[bytes, bytes]]:
        """The entries with lo <= key < hi."""
        return list(self._scratch.range(db, lo, hi))


class _Store:
    """What actors read of the store."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch

    def snapshot(self) -> _Kept:
        """A snapshot, which ends with the rehearsal."""
        return _Kept(self._scratch)


class _Kept:
    """A context manager that returns the scratch copy and leaves it open."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch

    def __enter__(self) -> Scratch:
        return self._scratch

    def __exit__(self, *_: object) -> None:
        return
