"""The creation of what a bundle describes, a part at a time.

Records are made by the same messages as by calls of the API, with ids that follow from the job (`plan.py`). A record
that exists already was made by an earlier attempt, and is left as it is; so after kill -9 the work begins again and
makes nothing twice.

A new application belongs to nobody until all of it is there, so nobody sees a part of it. If its job ends otherwise,
the sweep removes it (`sweep.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import structlog
import trio

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.messages import CreateRecord
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.records.resource import Resources
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, Invalid, NotFound, Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.tables.messages import InsertRows
from trunkline.actors.people.accounts.passwords import hash_password
from trunkline.actors.platform.applications.messages import TransferApplication
from trunkline.actors.portability.bundles.plan import Plan, Target, View
from trunkline.actors.portability.bundles.steps import Content, Step, Steps, names_content

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.peers import Peers
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.portability.bundles.reader import Source
    from trunkline.store.snapshot import Snapshot

OwnerType = Literal["user", "organization"]
_STEPS_PER_PART: Final = 64
_TURNS_AT_ONCE: Final = 16
"""The event loop is blocked for some milliseconds; they share a commit."""
_MOVES_TRIED: Final = 20
_MOVE_AGAIN_S: Final = 0.5
"""So long after a move was refused, as others are under way, it is tried again."""

_log = structlog.get_logger("trunkline.moves")

Progress = Callable[[int, int], None]
"""Takes how many resources are done, and how many there are."""


async def create_from(system: System, source: Source, target: Target, progress: Progress) -> dict[str, int]:
    """Create or change all records of a bundle that was checked. Returns how many there are by name.

    May be repeated with the same target after any interruption. Raises what an actor refuses, with the resource before
    the sentence; what was done until then stays.
    """
    plan, view = await system.read(partial(_opened, system, source, target))
    creation = _Creation(system, plan)
    steps = Steps(plan, system.limits).all()
    done = 0
    progress(done, plan.total)
    while part := await system.read(partial(_next_part, view, steps)):
        await creation.take(part)
        done += sum(step.counts for step in part)
        progress(done, plan.total)
    return {name: count for name, count in plan.counts.items() if count}


def is_published(system: System, application: bytes) -> bool:
    """Whether a new application is complete, and was given to its owner."""
    with system.store.snapshot() as snapshot:
        found = records.find(snapshot, APPLICATION, ROOT, application)
    return found is not None and found.doc["ownerId"] != ROOT.hex()


async def publish(system: System, application: bytes, owner: bytes, owner_type: OwnerType) -> None:
    """Give a complete new application to its owner, and move it where a new one is put (`Places.emptiest`).

    Raises `NotFound` if that owner is gone. An application that cannot be moved stays in this partition.
    """
    message = TransferApplication(owner=ROOT, new_owner=owner, new_owner_type=owner_type)
    await system.ask(Ref("application", ROOT, application), message)
    if system.peers is not None:
        places = system.component(Places)
        to = places.emptiest()
        if to != places.own:
            await _move(system.peers, application, to)


async def _move(peers: Peers, application: bytes, to: int) -> None:
    """Have another partition take an application, or leave it here where that is refused for long."""
    for _ in range(_MOVES_TRIED):
        try:
            await peers.command(to, "move.take", application)
        except Overloaded as refusal:  # one is moved at a time
            _log.info("a new application waits for its move", reason=refusal.message)
            await trio.sleep(_MOVE_AGAIN_S)
        except DomainError as refusal:
            _log.warning("a new application was not moved", reason=refusal.message)
            return
        else:
            return


def _opened(system: System, source: Source, target: Target, snapshot: Snapshot) -> tuple[Plan, View]:
    view = View(snapshot)
    plan = Plan(source, target, system.limits, view, system.component(Contents).signatures)
    if plan.problems:
        first = plan.problems[0]
        raise Invalid(f"{first.type} {first.name}: {first.message}")
    return plan, view


def _next_part(view: View, steps: Iterator[Step], snapshot: Snapshot) -> list[Step]:
    """The next steps, which see what the steps before them have stored."""
    view.source = snapshot
    part: list[Step] = []
    for step in islice(steps, _STEPS_PER_PART):
        part.append(step)
        if any(isinstance(message, InsertRows) for _, message in step.asks):
            break  # rows are many for one step
    return part


class _Creation:
    """Takes the steps of a plan for good."""

    def __init__(self, system: System, plan: Plan) -> None:
        self._system = system
        self._plan = plan
        self._hash: str | None = None

    async def take(self, part: list[Step]) -> None:
        """Take some steps, each after the ones before it. All of their writes are on disk when this returns."""
        asks: list[Ask] = []
        steps: list[Step] = []
        for step in part:
            if step.refusal is not None:
                raise _at(step, step.refusal)
            for ref, message in step.asks:
                if step.content is not None and names_content(message):
                    message = await self._with_content(ref.parent, message, step.content)
                asks.append((ref, await self._prepared(message)))
                steps.append(step)
        for start in range(0, len(asks), _TURNS_AT_ONCE):
            answers = await self._system.ask_in_order(asks[start : start + _TURNS_AT_ONCE])
            if answers and isinstance(answers[-1], DomainError):
                raise _at(steps[start + len(answers) - 1], answers[-1])

    async def _with_content(self, application: bytes, message: Any, content: Content) -> Any:
        """Write the content of a file, and return the message that names it."""
        system = self._system
        contents = system.component(Contents)
        now_ms = system.clock.wall_ms()
        id = system.ids.new(now_ms)
        # Nobody names it before the next message; after kill -9 it is removed when this has expired.
        await contents.reserve_now(application, id, now_ms + 1000 * system.limits.job_result_keep_s)

        def fill(write: Callable[[bytes], None]) -> None:
            for piece in self._plan.source.content(content.entry):
                write(piece)

        stored = await contents.in_thread(
            lambda: contents.write_blocking(application, id, fill, system.limits.file_bytes_max)
        )
        return msgspec.structs.replace(message, content=id, stored=stored)

    async def _prepared(self, message: Any) -> Any:
        """The message with the hash of a password instead of the password."""
        if not isinstance(message, CreateRecord):
            return message
        resource = self._system.component(Resources)[message.resource]
        if resource.prepare is None:
            return message
        if getattr(message.body, "password", None) != self._plan.secret:
            return msgspec.structs.replace(message, body=await resource.prepare(message.body))
        if self._hash is None:
            self._hash = await hash_password(self._plan.secret)
        return msgspec.structs.replace(
            message, body=msgspec.structs.replace(message.body, password=self._hash)
        )


def _at(step: Step, refusal: DomainError) -> DomainError:
    """The refusal with the resource before its sentence."""
    if isinstance(refusal, Invalid | NotFound):
        return Invalid(f"{step.type} {step.name[:255]}: {refusal.message}")
    return refusal
