"""What the actor of a device adds to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.fleet.devices.actor.actor import Device
from trunkline.actors.fleet.devices.actor.inactivity import Inactivity
from trunkline.actors.fleet.devices.actor.state_feed import StateFeed, get_missed_states
from trunkline.actors.fleet.devices.record.read_messages import GetMissedStates


def _parts(start: Start) -> Iterator[object]:
    yield StateFeed(start.system)
    yield Inactivity(start.system)


FEATURE: Final = Feature(
    parts=_parts,
    tasks=(Inactivity,),
    moved=(Inactivity,),
    actors=(Device,),
    readers={GetMissedStates: get_missed_states},
)
