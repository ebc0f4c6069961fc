"""The processes that serve the other partitions: what is asked of them, and what they ask of this one.

Owns questions for single actors and readers, questions about a process itself (`System.tells`), and how those and
their answers travel: as the typed messages that they are, pickled, between processes of one server. Does not own whole
requests, which are passed on without being read (`partition_front.py`).

No turn waits for another process: a question is asked by a call or a job, never inside a turn.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import structlog
import trio

from trunkline.actors import readers
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.answer import Answer
from trunkline.actors.core.runtime.moves import elsewhere
from trunkline.actors.core.runtime.work import current_work
from trunkline.actors.core.values.errors import Crashed, DomainError, Overloaded, Unanswered
from trunkline.http.processes.door import Door

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.ref import Ref
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.core.values.structs import Message

ASK: Final = "ask"
READ: Final = "read"
TELL: Final = "tell"
ASK_S: Final = 60.0
"""How long an answer may take: longer than any turn and any read. Then the process hangs."""
TELL_S: Final = 1.5
"""How long a process may take to tell something of itself."""

HANGS: Final = (
    f"The process that owns the data has not answered for {ASK_S:.0f} s. Nobody knows whether the call was done; "
    "read it back."
)

_log = structlog.get_logger("trunkline.processes")


class ProcessPeers:
    """The other processes, by the door that leads to each (`Peers`)."""

    def __init__(self, places: Places, doors: Mapping[int, Door]) -> None:
        self._places = places
        self.doors = doors

    def has(self, ref: Ref) -> bool:
        """Whether one of them serves this actor."""
        return self._places.of_ref(ref) != self._places.own

    def has_application(self, application: bytes) -> bool:
        """Whether one of them serves this application."""
        return self._places.of_application(application) != self._places.own

    async def ask(self, ref: Ref, message: Message) -> Answer:
        """Ask an actor of another process."""
        return Answer(*await self._asked(self._places.of_ref(ref), ASK, ref, message))

    async def read(self, application: bytes, message: Message) -> Any:
        """Have another process answer a read message."""
        return await self._asked(self._places.of_application(application), READ, message)

    async def command(self, partition: int, subject: str, *arguments: Any) -> Any:
        """Have the process of a partition do something, however long that takes."""
        return await self._asked(partition, TELL, subject, *arguments, wait_s=math.inf)

    async def ask_each(self, subject: str) -> dict[int, Any]:
        """What each of them tells of itself; None for one that does not answer in time."""
        told: dict[int, Any] = dict.fromkeys(self.doors)

        async def ask(partition: int) -> None:
            with trio.move_on_after(TELL_S), suppress(Overloaded, Unanswered):
                told[partition] = await self._asked(partition, TELL, subject)

        async with trio.open_nursery() as nursery:
            for partition in self.doors:
                nursery.start_soon(ask, partition)
        return told

    def unreachable(self) -> list[int]:
        """The partitions to whose processes there is no channel."""
        return [partition for partition, door in self.doors.items() if not door.channel.open]

    async def _asked(self, partition: int, *question: Any, wait_s: float = ASK_S) -> Any:
        work = current_work.get()
        plain = None if work is None else work._replace(detail=None)
        answer = None
        with trio.move_on_after(wait_s):
            answer = await self.doors[partition].ask(pickle.dumps((plain, *question)))
        if answer is None:
            raise Unanswered(HANGS)
        is_refusal, value = pickle.loads(answer)  # noqa: S301 - of another process of this server
        if not is_refusal:
            return value
        kind, message, fields = value
        refusal: DomainError = kind.__new__(kind)
        refusal.args = (message,)
        refusal.__dict__.update(fields)
        raise refusal


async def answered(system: System, question: bytes) -> bytes:
    """The answer to a question of another process. Raises only `trio.Cancelled`."""
    try:
        work, kind, *rest = pickle.loads(question)  # noqa: S301 - of another process of this server
        current_work.set(work)
        answer = _ANSWERS[kind]
        return pickle.dumps((False, await answer(system, *rest)))
    except DomainError as refusal:
        return _refusal(refusal)
    except Exception as bug:  # noqa: BLE001 - a bug in one call must not affect others
        _log.error("a question of another process failed", exc_info=bug)
        return _refusal(Crashed("The server failed to handle this call; the fault is logged."))


def _refusal(refusal: DomainError) -> bytes:
    return pickle.dumps((True, (type(refusal), refusal.args[0] if refusal.args else "", vars(refusal))))


async def _ask(system: System, ref: Ref, message: Message) -> tuple[Any, Any]:
    places = system.component(Places)
    if places.of_ref(ref) != places.own:
        _is_here(places, ref.id if ref.kind == APPLICATION.name else ref.parent)
    answer = await system.ask(ref, message)
    return tuple(answer)


async def _read(system: System, message: Message) -> Any:
    places, application = system.component(Places), getattr(message, "application", None)
    if isinstance(application, bytes) and places.of_application(application) != places.own:
        _is_here(places, application)
    return await readers.read(system, message)


def _is_here(places: Places, application: bytes) -> None:
    """Who asks knows that an application is here: it will be created by this, or was deleted. So nothing is asked in a
    circle. Where it is elsewhere, it was moved just now: raises `Overloaded`."""
    if places.find(application) not in (None, places.own):
        raise elsewhere()
    places.place(application, places.own)


async def _tell(system: System, subject: str, *arguments: Any) -> Any:
    return await system.tells[subject](*arguments)


_ANSWERS: Final[dict[str, Callable[..., Awaitable[Any]]]] = {ASK: _ask, READ: _read, TELL: _tell}
