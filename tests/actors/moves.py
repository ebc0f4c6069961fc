"""An application of a house leaves its system and comes back. Owns no test."""

from __future__ import annotations

import trio
import trio.testing

from tests.actors.house import House
from tests.patience import PATIENCE_S
from trunkline.actors import moving
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.applications.messages import (
    ApplicationPost,
    CreateApplication,
)


async def other_house(house: House) -> House:
    """Another application of the same system."""
    ref = Ref("application", ROOT, house.system.ids.new(house.clock.wall_ms()))
    await house.system.ask(ref, CreateApplication(body=ApplicationPost(name="other"), user=bytes(12)))
    return House(house.system, house.clock, ref.id)


async def leave(house: House) -> None:
    with trio.fail_after(PATIENCE_S):
        await moving.leave(house.system, house.application)


async def come(house: House) -> None:
    with trio.fail_after(PATIENCE_S):
        await moving.come(house.system, house.application)


async def move(house: House) -> None:
    await leave(house)
    await come(house)
