"""What the nodes of a run reach outside of it: actors, reads, and the identity in whose name they do it.

Owns that an effect inside happens once: a marker is written in the batch of the effect. If the server stops before the
run has ended, the run is repeated, finds the marker, and goes on with the answer that it contains. The marker names the
node, the device (or the application) that is changed, and how often the node has changed it in this run. So a
repetition that reads another list of devices than the run before changes no device twice and leaves none out. The time
and the random numbers of a run are those of its trigger. An effect outside happens at least once, with the key that
`key` gives.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
import trio

from trunkline.actors.core.records.mandate import Mandates
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.placement import Home, home_of_actor
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.store_errors import Outdated
from trunkline.actors.core.values.structs import Message
from trunkline.actors.engine.errors import NodeError
from trunkline.store import keys
from trunkline.store.codec import decode, encode
from trunkline.store.snapshot import Snapshot

T = TypeVar("T")

_PAUSES_S = (0.05, 0.2, 1.0, 5.0)
"""Between attempts while too many writes wait."""


class ReadCalls:
    """The reads of the API. A component of the system, which calls `read` of `actors/readers.py`."""

    def __init__(self, read: Callable[[Message], Awaitable[Any]]) -> None:
        self.read = read


class World(Protocol):
    """What nodes use. `creator` and `origin` say who they are, for records and for triggers that they cause.

    `place` is the node that asks (`Visit.place`).
    """

    system: Host
    application: bytes
    flow: bytes
    trigger: str
    """The id of the cause of the run; that of the reply, if somebody waits for one. Empty in a dry run."""

    @property
    def creator(self) -> Creator: ...

    @property
    def origin(self) -> Origin: ...

    @property
    def has_changed(self) -> bool:
        """Whether the run has had an effect inside, by which others may know what it was told."""
        ...

    async def ask(self, place: int, ref: Ref, message: Message) -> Any:
        """Ask an actor for an effect; return its answer in plain data. Raises the `DomainError` of the actor."""
        ...

    async def read(self, message: Message) -> Any:
        """Read as a caller of the API does. Raises the `DomainError` of the reader."""
        ...

    async def query(self, query: Callable[[Snapshot], T]) -> T:
        """Run a long read on a snapshot, in a worker thread."""
        ...

    def key(self, place: int) -> str:
        """The key of an effect outside of this visit; the same one if the run is repeated."""
        ...

    def effect(self, what: str) -> None:
        """Called before an effect outside. Raises `NodeError` where there must be none."""
        ...


class _Reads:
    """The part of a world that only reads."""

    def __init__(
        self,
        system: Host,
        application: bytes,
        flow: bytes,
        name: str,
        hops: int,
        authors: Sequence[Mandates],
    ) -> None:
        self.system = system
        self._authors = authors
        self.application = application
        self.flow = flow
        self._name = name
        self._hops = hops

    @property
    def creator(self) -> Creator:
        mandates = tuple(dict.fromkeys(each for mandates in self._authors for each in mandates))
        return Creator(self.flow.hex(), "flow", self._name, mandates)

    @property
    def origin(self) -> Origin:
        return Origin(self.flow.hex(), "flow", self._hops)

    async def read(self, message: Message) -> Any:
        return await self.system.component(ReadCalls).read(message)

    async def query(self, query: Callable[[Snapshot], T]) -> T:
        return await self.system.read(query)


class DryWorld(_Reads):
    """The world of a dry run: it can be read, and nothing in it changes."""

    has_changed = False
    trigger = ""

    def __init__(
        self, system: Host, application: bytes, flow: bytes, name: str, authors: Sequence[Mandates] = ()
    ) -> None:
        super().__init__(system, application, flow, name, 0, authors)

    async def ask(self, place: int, ref: Ref, message: Message) -> Any:  # noqa: ARG002
        raise _dry(f"changes a {ref.kind}")

    def key(self, place: int) -> str:  # noqa: ARG002
        return "dry-run"

    def effect(self, what: str) -> None:
        raise _dry(what)


def _dry(what: str) -> NodeError:
    return NodeError(
        "NotInDryRun", f"This node {what}, and a dry run changes nothing; give a stub for the node."
    )


class RunWorld(_Reads):
    """The world of a run. `number` is that of its trigger; `done` has what an earlier attempt has done."""

    def __init__(
        self,
        system: Host,
        application: bytes,
        flow: bytes,
        name: str,
        *,
        hops: int,
        number: int,
        trigger: str,
        done: dict[bytes, bytes],
        flush: Callable[[], None],
        authors: Sequence[Mandates] = (),
    ) -> None:
        super().__init__(system, application, flow, name, hops + 1, authors)
        self.markers = list(done)
        """The keys of the markers, which are removed at the end of the run."""
        self.trigger = trigger
        self._number = number
        self._done = done
        self._flush = flush
        self._visits: dict[tuple[int, Home | None], int] = {}

    @property
    def has_changed(self) -> bool:
        return bool(self.markers)

    async def ask(self, place: int, ref: Ref, message: Message) -> Any:
        home = home_of_actor(ref)
        at = self._next(place, home)
        marker = keys.done_key(self._number, home.place, home.id or bytes(keys.ID_BYTES), place, at)
        done = self._done.get(marker)
        if done is not None:
            return decode(done)
        answer: Any = None

        def stamp(actor: Actor, value: Any) -> None:
            nonlocal answer
            answer = msgspec.to_builtins(value, builtin_types=(bytes,))
            actor.put(keys.TRIGGERS, marker, encode(answer))

        self._flush()
        self.markers.append(marker)
        for pause_s in (*_PAUSES_S, None):
            try:
                await self.system.ask(ref, message, stamp)
                break
            except Overloaded as refusal:
                if pause_s is None:
                    raise
                await trio.sleep(pause_s)
                if isinstance(refusal, Outdated):
                    await self.system.until_readable()
        return answer

    def key(self, place: int) -> str:
        return f"{self._number:016x}-{place}-{self._next(place, None)}"

    def effect(self, what: str) -> None:
        """Nothing prevents it."""

    def _next(self, place: int, home: Home | None) -> int:
        at = self._visits.get((place, home), 0)
        self._visits[place, home] = at + 1
        return at
