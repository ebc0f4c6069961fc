"""The move of an application to another partition of a server that runs, by whichever process is asked for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trunkline.actors.core.records.places import Places
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.maintenance.move_target import MoveTarget

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System


async def move(system: System, application: str, partition: str) -> dict[str, Any]:
    """Move an application (its id in hex) to the partition with a number; what was done (`Moved`).

    Raises `Invalid` for an id or a number that does not exist, and as `MoveTarget.take`.
    """
    if re.fullmatch(r"[0-9a-fA-F]{24}", application) is None:
        raise Invalid(f"application: {application[:40]!r} is not an id; give the 24 hex digits of one.")
    if system.store.partitions is None:
        raise Invalid("The data has one partition; divide it first with: trunkline partition --count N.")
    places = system.component(Places)
    to = int(partition) if partition.isdecimal() and len(partition) < 10 else -1
    if not 0 <= to < places.count:
        raise Invalid(f"partition: there is no partition {partition[:40]}; give 0 to {places.count - 1}.")
    id = bytes.fromhex(application)
    if to == places.own:
        return await system.component(MoveTarget).take(id)
    assert system.peers is not None
    moved: dict[str, Any] = await system.peers.command(to, "move.take", id)
    return moved
