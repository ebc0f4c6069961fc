"""Small actors that do on purpose what no actor should, and a system to run them on.

A `Tally` keeps a sum and the numbers that made it, in memory and in the store, so that a test can compare
both. Everything is real but the clock, which a test may own, and the disk, which fails where it is told to.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import trio

from trunkline.actors import boot
from trunkline.actors.catalogue import ACTORS
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.answer import Answer
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.clock import Clock, SystemClock
from trunkline.actors.core.values.errors import DomainError, Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.codec import decode, encode
from trunkline.store.env import Store

TOPIC = "sums"


class Begin(Message, frozen=True):
    """Create the tally."""


class End(Message, frozen=True):
    """Delete the tally."""


class Add(Message, frozen=True):
    """Add a number and store it; the answer is the sum."""

    by: int


class AddThrottled(Message, frozen=True):
    """The same, at the rate of a device's states."""

    throttle: ClassVar[str | None] = "send_state"
    by: int


class AddSlowly(Message, frozen=True):
    """Add a number after `gate` was opened; with `read` the sum is taken before that."""

    by: int
    gate: Any = None
    seconds: float = 0.0


class Peek(Message, frozen=True):
    """The sum, from memory."""


class PeekSlowly(Message, frozen=True):
    """The sum as it was before `gate` was opened."""

    gate: Any


class Fail(Message, frozen=True):
    """Change the memory, stage a write and an effect, and then raise `error`."""

    error: Any
    gate: Any = None


class FailSlowly(Fail, frozen=True):
    """The same, after `gate` was opened."""


class AddUnless(Message, frozen=True):
    """Add a number; the tally with the id `who` raises `error` instead."""

    by: int
    who: bytes
    error: Any


class WriteDown(Message, frozen=True):
    """Store the sum at a key that all tallies share."""


class FailAtFlush(Message, frozen=True):
    """Raise a bug where derived writes are made."""


class AskYourself(Message, frozen=True):
    """Wait for an answer that can not come."""


class Tally(Actor):
    """A sum. Where `load` fails, `broken` says so."""

    kind: ClassVar[str] = "tally"
    noun: ClassVar[str] = "tally"
    creation_messages: ClassVar[frozenset[type[Message]]] = frozenset({Begin})
    broken: ClassVar[set[bytes]] = set()
    effects_run: ClassVar[list[int]] = []

    __slots__ = ("added", "fails_at_flush", "total")
    added: list[int]
    total: int

    def load(self) -> bool:
        if self.ref.id in self.broken:
            raise RuntimeError("the tally can not be read")
        self.fails_at_flush = False
        raw = self.system.journal.get(keys.META, tally_key(self.ref))
        self.total, self.added = (0, []) if raw is None else decode(raw)
        return raw is not None

    def flush(self) -> None:
        if self.fails_at_flush:
            raise RuntimeError("a bug at the end of a turn")

    def on_begin(self, _message: Begin) -> None:
        if self.exists:
            raise Invalid("there is a tally already")
        self.exists = True
        self._store()

    def on_end(self, _message: End) -> None:
        self.exists = False
        self.delete(keys.META, tally_key(self.ref))

    def on_add(self, message: Add) -> int:
        return self._add(message.by)

    def on_add_throttled(self, message: AddThrottled) -> int:
        return self._add(message.by)

    async def on_add_slowly(self, message: AddSlowly) -> int:
        if message.gate is not None:
            await message.gate.wait()
        await trio.sleep(message.seconds)
        return self._add(message.by)

    def on_peek(self, _message: Peek) -> int:
        return self.total

    async def on_peek_slowly(self, message: PeekSlowly) -> int:
        total = self.total
        await message.gate.wait()
        return total

    def on_fail(self, message: Fail) -> None:
        self.after_commit(partial(self.effects_run.append, -1))
        self._add(1000)
        raise message.error

    async def on_fail_slowly(self, message: FailSlowly) -> None:
        self._add(1000)
        await message.gate.wait()
        self._add(1000)
        raise message.error

    def on_add_unless(self, message: AddUnless) -> int:
        self._add(message.by)
        if self.ref.id == message.who:
            raise message.error
        return self.total

    def on_write_down(self, _message: WriteDown) -> None:
        self.put(keys.META, tally_key(tally(0)), encode((self.total, [])))

    def on_fail_at_flush(self, _message: FailAtFlush) -> None:
        self._add(1000)
        self.fails_at_flush = True

    async def on_ask_yourself(self, _message: AskYourself) -> None:
        await self.system.ask(self.ref, Peek())

    def _add(self, by: int) -> int:
        self.total += by
        self.added.append(by)
        self._store()
        if self.system.has_subscribers(self.ref, TOPIC):
            event = b"%d" % self.total
            self.after_commit(partial(self.system.publish, self.ref, TOPIC, [(len(self.added), event)]))
        self.after_commit(partial(self.effects_run.append, by))
        return self.total

    def _store(self) -> None:
        self.put(keys.META, tally_key(self.ref), encode((self.total, self.added)))


def tally_key(ref: Ref) -> bytes:
    """Where a tally is stored."""
    return b"tally" + ref.parent + ref.id


def tally(number: int, parent: bytes = ROOT) -> Ref:
    """The address of a tally."""
    return Ref("tally", parent, number.to_bytes(12, "big"))


class Disk:
    """The seam of the store at the moment before a commit is synced: it watches, and fails where told to."""

    def __init__(self) -> None:
        self.watchers: list[Callable[[], None]] = []
        self.failures: list[int] = []
        self.syncs = 0

    def __call__(self) -> float:
        self.syncs += 1
        for watcher in self.watchers:
            watcher()
        if self.failures:
            raise OSError(self.failures.pop(0), "told to fail")
        return 0.0

    def fill_up(self) -> None:
        """The next commit finds no room."""
        self.failures.append(errno.ENOSPC)

    def break_down(self) -> None:
        """The next commit meets a fault of the disk."""
        self.failures.append(errno.EIO)


class Workshop:
    """A running system of tallies, and short ways to ask it."""

    def __init__(self, system: System, disk: Disk, nursery: trio.Nursery, life: trio.CancelScope) -> None:
        self.system = system
        self.disk = disk
        self.nursery = nursery
        self.life = life

    async def ask(self, ref: Ref, message: Message) -> Any:
        return (await self.system.ask(ref, message)).value

    async def begin(self, *numbers: int) -> list[Ref]:
        """Create tallies."""
        refs = [tally(number) for number in numbers]
        for ref in refs:
            await self.system.ask(ref, Begin())
        return refs

    async def outcome(self, ref: Ref, message: Message) -> Any:
        """The answer, or the refusal that was raised."""
        try:
            return await self.ask(ref, message)
        except DomainError as refusal:
            return refusal

    def stop_system(self) -> None:
        """Cancel the system as its nursery would; callers go on."""
        self.life.cancel()

    def start(self, ref: Ref, message: Message) -> Call:
        """Ask in a task of its own."""
        call = Call()
        self.nursery.start_soon(call.run, self.system, ref, message)
        return call

    def stored(self, ref: Ref) -> tuple[int, list[int]] | None:
        """What is on disk."""
        with self.system.store.snapshot() as snapshot:
            raw = snapshot.get(keys.META, tally_key(ref))
        return None if raw is None else tuple(decode(raw))


class Call:
    """An ask in a task of its own: `outcome` is its answer or the error that it raised."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.outcome: Any = None

    async def run(self, system: System, ref: Ref, message: Message) -> None:
        with self.scope:
            try:
                answer: Answer = await system.ask(ref, message)
                self.outcome = answer.value
            except Exception as error:  # noqa: BLE001 - the test looks at it
                self.outcome = error
        self.ended.set()

    async def result(self) -> Any:
        """Wait for the outcome."""
        await self.ended.wait()
        return self.outcome


@asynccontextmanager
async def workshop(
    path: Path,
    *,
    limits: Limits | None = None,
    clock: Clock | None = None,
    kinds: Iterable[type[Actor]] = (),
    **store: Any,
) -> AsyncIterator[Workshop]:
    """A running system on a real store in `path`. The tallies' traces are wiped first."""
    Tally.broken.clear()
    Tally.effects_run.clear()
    disk = Disk()
    options = {"map_size_bytes": 2**22, "sync_delay_s": disk, **store}
    with Store.open(path, **options) as opened:
        system = System(opened, limits or Limits(), clock or SystemClock(), (Tally, *ACTORS, *kinds))
        boot.add_parts(system, Settings())
        life = trio.CancelScope()
        async with trio.open_nursery() as running:
            await running.start(_live, system, life)
            async with trio.open_nursery() as callers:
                yield Workshop(system, disk, callers, life)
            life.cancel()


async def _live(system: System, life: trio.CancelScope, task_status: trio.TaskStatus[None]) -> None:
    with life:
        await system.run(task_status)
