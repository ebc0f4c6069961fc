"""An actor: the single writer of its keys, one message at a time.

Owns the base class and the rules of a turn. A handler is a method `on_<message>` that takes the message
and returns the answer. It decides synchronously, changes its memory, and says what is to be stored with
`put`, `delete` and `add`; the system submits that as one batch when the turn ends, and releases the
answer when the batch is on disk.

The memory of an actor is a copy of what is stored, or on its way there. Where a turn is refused, crashes
or is not stored, the memory is dropped with what the turn staged, and the next message loads it anew; so a
handler may refuse at any point. What must outlive that (throttles, streams) lies in the mailbox.

An `async def on_<message>` may wait (for a worker thread, or another actor); until it returns, later
messages queue, so the rule of one message at a time holds for it as well. It must not ask its own actor,
which would wait for itself, and reads what belongs to others after its last `await`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from trunkline.actors.values.errors import NotFound
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.structs import Message
from trunkline.store import keys
from trunkline.store.batch import Batch

if TYPE_CHECKING:
    from trunkline.actors.runtime.host import Host
    from trunkline.actors.runtime.ref import Ref


_HOLDER = "application"
"""The kind of the records that hold actors."""


class Handler(NamedTuple):
    """The method that answers a message; `waits` where it is an `async def`."""

    call: Callable[[Any, Any], Any]
    waits: bool


class Actor:
    """Base of all actors. Subclasses load their state in `load` and answer in `on_<message>`."""

    kind: ClassVar[str]
    noun: ClassVar[str]
    births: ClassVar[frozenset[type[Message]]] = frozenset()
    """Messages that may reach an actor that does not exist yet, to create it."""
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
        self.exists = self._is_held() and self.load()

    def load(self) -> bool:
        """Read the state through `self.system.journal.get`, which also sees writes that are not synced yet.

        Returns False where there is no such record.
        """
        raise NotFound(self.missing())

    def _is_held(self) -> bool:
        """Whether the application that holds this actor is there: its sweep must not meet a writer."""
        parent = self.ref.parent
        if parent == ROOT:
            return True
        held_by = keys.record_key(_HOLDER, ROOT, parent)
        return self.system.journal.get(keys.RECORDS, held_by) is not None

    def flush(self) -> None:
        """Called at the end of each turn, before the batch is submitted: the place for derived writes."""

    def missing(self) -> str:
        """The sentence for an actor that does not exist."""
        return f"There is no {self.noun} {self.ref.id.hex()} here."

    # What a handler says while it decides.

    def put(self, db: str, key: bytes, value: bytes) -> None:
        """Store `value` with the batch of this turn."""
        batch = self.batch
        if batch is None:
            batch = self.batch = Batch()
        batch.put(db, key, value)

    def put_all(self, db: str, writes: dict[bytes, bytes]) -> None:
        """Store all these values with the batch of this turn."""
        self._writes().put_all(db, writes)

    def delete(self, db: str, key: bytes) -> None:
        """Delete `key` with the batch of this turn."""
        self._writes().delete(db, key)

    def add(self, db: str, key: bytes, counts: dict[str, int]) -> None:
        """Add to the counters at `key` with the batch of this turn."""
        self._writes().add(db, key, counts)

    def _writes(self) -> Batch:
        if self.batch is None:
            self.batch = Batch()
        return self.batch

    def after_commit(self, effect: Callable[[], None]) -> None:
        """Run `effect` right after the commit of this turn; never where it fails."""
        if self.effects is None:
            self.effects = []
        self.effects.append(effect)

    @classmethod
    def handler(cls, message: type[Message]) -> Handler:
        """The handler of `message`, found by its name once and remembered."""
        found = cls._handlers.get(message)
        if found is None:
            name = "on_" + re.sub(r"(?<!^)(?=[A-Z])", "_", message.__name__).lower()
            call = getattr(cls, name)
            found = cls._handlers[message] = Handler(call, inspect.iscoroutinefunction(call))
        return found
