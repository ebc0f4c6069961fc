"""What the actor of a device adds to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.fleet.devices.actor.actor import Device
from trunkline.actors.fleet.devices.actor.state_feed import get_missed_states
from trunkline.actors.fleet.devices.record.read_messages import GetMissedStates

FEATURE: Final = Feature(
    actors=(Device,),
    readers={GetMissedStates: get_missed_states},
)
