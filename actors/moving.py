"""Moving: an application leaves a system that goes on working, and comes to one.

`leave` and then `come`, with the data in the same store or in another one, are for this one application what a stop
and a start of the server are for all. In between its calls are refused as `Overloaded`; snapshots of its data may be
read. Nothing that was acknowledged is lost. Owns the order of the steps; each component does its own
(`core/runtime/moved.py`).

What is in memory only is lost as in a restart: the windows of throttles and of idempotent calls under way, the pace of
mails, counts of traffic, dry runs. Jobs of users and organizations (clones, imports) are not of the application: while
it is away, what they do in it is refused, and they try again after a pause.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import trio

from trunkline.actors.catalogue import FEATURES
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.fleet.devices.state.arrays import load_arrays

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.moved import Moved
    from trunkline.actors.core.runtime.system import System

_PAUSE_S: Final = 0.1
"""The pause before a step is tried again."""


async def leave(system: System, application: bytes) -> None:
    """End all that works for an application. When this returns, nothing of it is in memory, all is on disk, and no call
    of it is answered before `come`, also not after another process has its data.

    If this raises, or is cancelled, `come` takes the application back. Twice does no more than once.
    """
    system.moves.away.add(application)
    for part in reversed(_parts(system)):
        await part.leave(application)
    await system.pause(application)
    system.component(FlowRunner).tell()
    await system.settle()
    system.forget(application)


async def come(system: System, application: bytes) -> None:
    """Serve an application whose data is in the store of this system, as after a start.

    Where the places of applications are known (`core/records/places.py`), it has to be placed here before, in the same
    turn of the event loop. If this raises `StoreError`, or is cancelled, it can be called again.
    """
    system.moves.away.add(application)
    system.moves.paused.add(application)
    await leave(system, application)
    await load_arrays()
    parts = _parts(system)
    for part in parts:
        await _insist(part.load, application)
    system.resume(application)
    for part in parts:
        await _insist(part.recover, application)
    system.moves.away.discard(application)
    for part in parts:
        await _insist(part.come, application)


async def _insist(step: Callable[[bytes], Awaitable[None]], application: bytes) -> None:
    """Do a step, again and again if the server has too much to do: it may take more than others' calls leave."""
    while True:
        try:
            return await step(application)
        except Overloaded:
            await trio.sleep(_PAUSE_S)


def _parts(system: System) -> list[Moved]:
    return [system.component(part) for feature in FEATURES for part in feature.moved]
