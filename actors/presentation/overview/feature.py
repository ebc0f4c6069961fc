"""What the overview adds to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.presentation.overview.fleet import count_fleet
from trunkline.actors.presentation.overview.messages import CountFleet, GetOverview, ListSilentDevices
from trunkline.actors.presentation.overview.reads import get_overview, list_silent_devices

FEATURE: Final = Feature(
    readers={
        CountFleet: count_fleet,
        GetOverview: get_overview,
        ListSilentDevices: list_silent_devices,
    },
)
