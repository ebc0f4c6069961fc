"""An actor: the single writer of its keys, which handles one message at a time.

Owns the base class and the rules of a turn. A handler is a method `on_<message>` that takes the message
and returns the answer. It decides synchronously, changes its memory, and stages writes with `put`, `delete`
and `add`. The system submits these as one batch when the turn ends, and sends the answer when the batch is on
disk.

The memory of an actor is a copy of what is stored or submitted. If a turn is refused, crashes or is not
stored, the memory and the staged writes are dropped, and the next message loads the actor again; so a
handler may refuse at any point. State that must survive this (throttles, streams) is in the mailbox.

An `async def on_<message>` may wait (for a worker thread, or another actor). Until it returns, later
messages queue, so the actor still handles one message at a time. It must not ask its own actor, which would be
a deadlock, and it must read the data of others after its last `await`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.store import keys
from trunkline.store.batch import Batch

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host
    from trunkline.actors.core.runtime.ref import Ref


_PARENT_KIND = "application"
"""The kind of the records that are parents of actors."""


class Handler(NamedTuple):
    """The method that answers a message; `waits` if it is an `async def`."""

    call: Callable[[Any, Any], Any]
    waits: bool


class Actor:
    """Base of all actors. Subclasses load their state in `load` and answer messages in `on_<message>`."""

    kind: ClassVar[str]
    noun: ClassVar[str]
    creation_messages: ClassVar[frozenset[type[Message]]] = frozenset()
    """Messages that an actor that does not exist accepts, because they create it."""
    _handlers: ClassVar[dict[type[Message], Handler]]

    __slots__ = ("batch", "effects", "exists", "ref", "system")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._handlers = {}

    def __init__(self, system: Host, ref: Ref) -> None:
        self.system = system
        self.ref = ref
        self.batch: Batch | None = None
        self.effects: list[Callable[[], None]] | None = None
        self.exists = self._parent_exists() and self.load()

    def load(self) -> bool:
        """Load the state with `self.system.journal.get`, which also returns writes that are not committed yet.

        Returns False if the actor does not exist.
        """
        raise NotFound(self.missing())

    def _parent_exists(self) -> bool:
        """Whether the application of this actor exists: actors must not write while the sweep deletes its keys."""
        parent = self.ref.parent
        if parent == ROOT:
            return True
        parent_key = keys.record_key(_PARENT_KIND, ROOT, parent)
        return self.system.journal.get(keys.RECORDS, parent_key) is not None

    def flush(self) -> None:
        """Stage derived writes. Called at the end of each turn that staged a write, before the batch is submitted."""

    def missing(self) -> str:
        """The error message for an actor that does not exist."""
        return f"There is no {self.noun} {self.ref.id.hex()} here."

    # Staging writes, for handlers.

    def put(self, db: str, key: bytes, value: bytes) -> None:
        """Store `value` with the batch of this turn."""
        batch = self.batch
        if batch is None:
            batch = self.batch = Batch()
        batch.put(db, key, value)

    def put_all(self, db: str, writes: dict[bytes, bytes]) -> None:
        """Store all these values with the batch of this turn."""
        self.writes().put_all(db, writes)

    def delete(self, db: str, key: bytes) -> None:
        """Delete `key` with the batch of this turn."""
        self.writes().delete(db, key)

    def add(self, db: str, key: bytes, counts: dict[str, int]) -> None:
        """Add to the counters at `key` with the batch of this turn."""
        self.writes().add(db, key, counts)

    def writes(self) -> Batch:
        """The batch of this turn."""
        if self.batch is None:
            self.batch = Batch()
        return self.batch

    def after_commit(self, effect: Callable[[], None]) -> None:
        """Run `effect` right after the commit of this turn; not at all if the commit fails."""
        if self.effects is None:
            self.effects = []
        self.effects.append(effect)

    @classmethod
    def handler(cls, message: type[Message]) -> Handler:
        """The handler of `message`, found by name and cached."""
        found = cls._handlers.get(message)
        if found is None:
            name = "on_" + re.sub(r"(?<!^)(?=[A-Z])", "_", message.__name__).lower()
            call = getattr(cls, name)
            found = cls._handlers[message] = Handler(call, inspect.iscoroutinefunction(call))
        return found


Stamp = Callable[[Actor, Any], None]
"""Adds writes to those of a turn, given the value of its handler."""
