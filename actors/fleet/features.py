"""What each package of the wing adds, in the order of the packages."""

from __future__ import annotations

from typing import Final

from trunkline.actors.fleet.alarms.feature import FEATURE as ALARMS
from trunkline.actors.fleet.deployments.feature import FEATURE as DEPLOYMENTS
from trunkline.actors.fleet.devices.actor.feature import FEATURE as ACTOR
from trunkline.actors.fleet.devices.bulk.feature import FEATURE as BULK
from trunkline.actors.fleet.devices.commands.feature import FEATURE as COMMANDS
from trunkline.actors.fleet.devices.queries.feature import FEATURE as QUERIES
from trunkline.actors.fleet.devices.record.feature import FEATURE as RECORD
from trunkline.actors.fleet.devices.state.feature import FEATURE as STATE
from trunkline.actors.fleet.recipes.feature import FEATURE as RECIPES

FEATURES: Final = (
    RECORD,
    STATE,
    COMMANDS,
    QUERIES,
    ALARMS,
    BULK,
    ACTOR,
    DEPLOYMENTS,
    RECIPES,
)
