"""Applications that move to another partition, while everything else goes on and processes die: from seed 300,000 on.

Owns who asks for a move, and what one may be told. Does not own what calls may be told meanwhile (`machine.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any, Final

import trio

from tests.simulation.applications import Applications
from tests.simulation.machine import place_of, places_of
from tests.simulation.model import Broken, Throttle
from tests.simulation.part import Part
from tests.simulation.processes import LATE_S, Process
from tests.simulation.site import Site, nothing
from tests.simulation.wires import PROCESS
from tests.simulation.world import World
from trunkline.actors.core.runtime.background import Background
from trunkline.actors.core.values.errors import DomainError, Overloaded
from trunkline.actors.maintenance import moves
from trunkline.actors.maintenance.move_source import PATIENCE_S
from trunkline.store import keys

MOVES_FROM: Final = 300_000
"""The first seed with moves."""
DIES: Final = 0.5
"""The share of moves during which one of both processes dies."""


async def move(world: World, chance: Random) -> None:
    """Ask a process to move an application."""
    life, site = world.life, world.of(Site).id
    one = world.of(Applications).one(chance)
    application = site if one is None or chance.random() < 0.5 else one
    asked, before = chance.choice(life.processes), place_of(world, application)
    to = chance.choice([number for number in range(world.partitions) if number != before])
    if not asked.is_up or life.moves.get(application) == float("inf"):
        return
    if chance.random() < DIES:
        _let_one_die(life.processes[before], life.processes[to], bytes.fromhex(application), chance)
    began_s, failed = world.virtual.now_s, world.failed_commits
    with world.of(Applications).names.watched() as names, _moving(world, application):
        outcome = await _told(asked, partial(moves.move, asked.server.system, application, str(to)))
        if life.over:
            return
        world.note(f"move of {application} from {before} to {to}: {outcome}")
        was_away = any(each.was_away(began_s) for each in life.processes)
        has_moved = isinstance(outcome, dict)
        world.reached["an application was moved" if has_moved else "a move was refused"] += 1
        world.reached["an application was moved, and a process died meanwhile"] += has_moved and was_away
        await trio.sleep(LATE_S if has_moved else PATIENCE_S + LATE_S)
        may_be_gone = application != site and None in names.allowed(application)
        excused = was_away or may_be_gone or world.failed_commits > failed or world.quota is not None
    if has_moved and not excused and life.running and places_of(world, application) != [to]:
        raise Broken(f"{application} was moved to {to}, and is in {places_of(world, application)}")
    if not (has_moved or excused or isinstance(outcome, Overloaded)):
        raise Broken(f"the move of {application} to {to} has failed without a reason: {outcome!r}")


def _let_one_die(source: Process, target: Process, application: bytes, chance: Random) -> None:
    """One dies at some commit of the move; or the target when the copy has arrived, or was just given away to it."""
    match chance.choice(("at a commit", "arrived", "given away")):
        case "arrived":
            _die_when_there(target, target, keys.arrived_key(application))
        case "given away":
            _die_when_there(source, target, keys.foreign_key(application))
        case _:
            chance.choice((source, target)).disk.kill_soon(chance.randint(1, 8))


def _die_when_there(holder: Process, dying: Process, marker: bytes) -> None:
    """A process dies, once, as soon as a store has a marker."""
    server = holder.server

    def look() -> bool:
        is_same = holder.is_up and holder.server is server
        if is_same:
            with server.system.store.snapshot(own=True) as snapshot:
                if snapshot.get(keys.META, marker) is None:
                    return False
        holder.disk.dies_now = lambda: False
        if not is_same:
            return False  # it has died before
        if dying is not holder:
            dying.kill()
        return dying is holder

    holder.disk.dies_now = look


@contextmanager
def _moving(world: World, application: str) -> Iterator[None]:
    """The application may be in either partition, and its calls are refused at times."""
    life, is_home = world.life, application == world.of(Site).id
    life.moves[application] = float("inf")
    if is_home:
        life.home_moves_until_s = float("inf")
        Throttle.crashes += 1  # what a throttle has counted stays behind
        Throttle.moves += 1
    try:
        yield
    finally:
        world.reached["power cut while an application was moved"] += life.over
        life.moves[application] = world.virtual.now_s
        world.placed.pop(application, None)
        if is_home:
            life.home_moves_until_s = world.virtual.now_s
            Throttle.crashes += 1
            Throttle.moves -= 1
            if life is world.life and not life.over:
                world.home = life.home = place_of(world, application)


async def _told(asked: Process, ask: Any) -> Any:
    """What a process answers, or the error; None if it has died meanwhile."""
    over, answers = trio.Event(), []

    async def run() -> None:
        PROCESS.set(asked.number)
        try:
            answers.append(await ask())
        except DomainError as refusal:
            answers.append(refusal)
        finally:
            over.set()

    asked.server.system.component(Background).begin(run)
    await over.wait()
    return answers[0] if answers else None


async def look(world: World) -> None:
    """Each application is in one partition."""
    for application in [world.of(Site).id, *world.of(Applications).names.sure()]:
        if len(places_of(world, application)) != 1:
            raise Broken(f"{application} is in the partitions {places_of(world, application)}")


PART: Final = Part(nothing, {move: 4}, look, since=MOVES_FROM, divided=True, undivided=False, with_log=False)
