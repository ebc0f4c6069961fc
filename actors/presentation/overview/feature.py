"""What the overview adds to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.core.runtime.system import System
from trunkline.actors.presentation.overview.fleet import CountFleet, Fleets, count_fleet
from trunkline.actors.presentation.overview.health import choose_applications, get_health
from trunkline.actors.presentation.overview.health_messages import ChooseApplications, GetHealth
from trunkline.actors.presentation.overview.messages import GetOverview, ListSilentDevices
from trunkline.actors.presentation.overview.reads import get_overview, list_silent_devices


def _parts(start: Start) -> Iterator[object]:
    yield Fleets(start.system, start.read)


async def _count(system: System, message: GetHealth | GetOverview | ListSilentDevices) -> None:
    """Count the fleet, if that is due."""
    await system.component(Fleets).count(message.application)


FEATURE: Final = Feature(
    parts=_parts,
    before_reads={GetHealth: _count, GetOverview: _count, ListSilentDevices: _count},
    readers={
        ChooseApplications: choose_applications,
        CountFleet: count_fleet,
        GetHealth: get_health,
        GetOverview: get_overview,
        ListSilentDevices: list_silent_devices,
    },
)
